import Glibc

/// Runs a program to its end: gives `status`, `stdout` and `stderr`, the outputs byte for byte.
///
/// It fails when the program can't be started and, unless that isn't checked, when it ends with
/// another status than 0 or by a signal. What it gives is set even then.
public final class ExecOp: Op {
  /// An op that runs a program.
  ///
  /// - Parameters:
  ///   - request: What to run.
  ///   - check: Whether a status other than 0 is a failure.
  public init(_ request: ProcessRequest, check: Bool = true) {
    super.init(
      name: "ExecOp",
      gives: Op.declarations(["status": "integer", "stdout": "string", "stderr": "string"]),
      body: ExecBody(request, check: check))
  }

  /// An op that runs a program without input, here and as is.
  public convenience init(_ argv: ByteString..., check: Bool = true) {
    self.init(ProcessRequest(argv), check: check)
  }
}

private final class ExecBody: OpBody {
  private let request: ProcessRequest
  private let check: Bool

  init(_ request: ProcessRequest, check: Bool) {
    self.request = request
    self.check = check
  }

  func start(_ context: OpContext) -> OpProgress {
    let child = context.loop.startProcess(request) { [self] result in
      switch result {
      case .success(let result):
        context.set("status", result.status)
        context.set("stdout", result.stdout)
        context.set("stderr", result.stderr)
        context.end(check ? failure(result) : nil)
      case .failure(let error): context.end(error)
      }
    }
    if child.isPending { context.state = child }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? ChildProcess)?.cancel(error)
  }

  /// What a result other than success is as an error.
  private func failure(_ result: ProcessResult) -> FlowError? {
    guard result.status != 0 else { return nil }
    var message = request.commandText
    if let signal = result.signal {
      let name = strsignal(Int32(signal)).map { String(cString: $0) } ?? "unknown"
      message = message + " was ended by signal \(signal) (\(name))"
    } else {
      message = message + " exited with status \(result.status)"
    }
    let tail = Self.tail(of: result.stderr)
    if !tail.isEmpty { message = message + ": " + tail }
    return FlowError(.error, message, code: Int64(result.status))
  }

  /// The last bytes of an error output, without the line's end.
  private static func tail(of output: ByteString) -> ByteString {
    let limit = 400
    var bytes = output.bytes[...]
    while let last = bytes.last, last == UInt8(ascii: "\n") { bytes.removeLast() }
    guard bytes.count > limit else { return ByteString(Array(bytes)) }
    // Not in the middle of a character.
    let end = bytes.suffix(limit).drop { $0 & 0xC0 == 0x80 }
    return "…" + ByteString(Array(end))
  }
}
