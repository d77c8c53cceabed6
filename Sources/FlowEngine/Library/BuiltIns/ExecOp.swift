/// Runs a program to its end: gives `status` and, of `stdout` and `stderr`, those that are collected,
/// byte for byte.
///
/// It fails when the program can't be started and, unless `check` is false, when the program ends
/// with a status other than 0 or by a signal. The outputs are set even then.
///
/// ```swift
/// let run = ExecOp("git", "rev-parse", "HEAD").start(on: loop)
/// print(try await run.value.value("stdout") ?? "")
/// ```
public final class ExecOp: Op {
  /// The description of such ops, for people.
  package static let docText = "Runs a program: gives status, stdout and stderr."

  /// Makes an op that runs a program.
  ///
  /// - Parameters:
  ///   - request: The program to run.
  ///   - check: Whether a status other than 0 is a failure.
  public init(_ request: ProcessRequest, check: Bool = true) {
    let gives: KeyValuePairs<String, String> =
      switch (request.capturesOutput, request.output) {
      case (false, _): ["status": "integer"]
      case (true, nil): ["status": "integer", "stdout": "string", "stderr": "string"]
      case (true, _?): ["status": "integer", "stderr": "string"]
      }
    super.init(
      name: "ExecOp", doc: Self.docText, gives: Op.declarations(gives),
      body: ExecBody(request, check: check))
  }

  /// Makes an op that runs a program in the current folder and environment, without input.
  public convenience init(_ argv: (any FlowText)..., check: Bool = true) {
    self.init(ProcessRequest(argv.map(\.byteString)), check: check)
  }
}

private final class ExecBody: OpBody {
  private let request: ProcessRequest
  private let check: Bool

  init(_ request: ProcessRequest, check: Bool) {
    self.request = request
    self.check = check
  }

  func start(_ context: OpContext) -> CallState {
    let loop = context.loop
    let place = context.workPlace
    var request = request.continuing(place)
    if request.label == nil { request.label = context.displayName }
    let started = loop.now()
    let child = loop.startProcess(request) { [self] ending in
      var (result, error): (ProcessResult?, FlowError?)
      switch ending {
      case .success(let ended):
        result = ended
        error = check ? ended.failure(of: request, hiding: loop.secrets) : nil
      case .failure(let failure): (result, error) = (failure.process, failure)
      }
      let work = LoggedWork(
        program: request, result, error,
        process: (context.state as? ChildProcess)?.processNumber, hiding: loop.secrets)
      place?.append(work, from: started, to: loop.now())
      if let result { give(result, context) }
      let isOutOfReach = (context.state as? ChildProcess)?.isOutOfReach == true
      let run = isOutOfReach ? context.run : nil
      context.end(error)
      // The op ends with what has stopped it, which says nothing about the program.
      if let run, let error { run.addLateError(error) }
    }
    if child.isPending {
      context.state = child
      place?.append(
        starting: LoggedWork(
          starting: request, process: child.processNumber, hiding: loop.secrets), at: started)
    }
    return .suspended
  }

  /// Sets the available outputs, also those of a program that has failed or was stopped.
  private func give(_ result: ProcessResult, _ context: OpContext) {
    context.set("status", result.status)
    if result.hasStdout { context.set("stdout", result.stdout) }
    if result.hasStderr { context.set("stderr", result.stderr) }
  }

  /// The command and the use of its outputs; not how long it may take.
  func codeForm() -> CodeForm? {
    var writer = CodeFormWriter("ExecOp")
    writer.add(request.argv.count)
    for word in request.argv { writer.add(word) }
    switch request.input {
    case .nothing: writer.add("nothing")
    case .bytes(let bytes):
      writer.add("bytes")
      writer.add(bytes)
    case .inherited: writer.add("inherited")
    case .file(let path):
      writer.add("file")
      writer.add(path)
    case .pipe: writer.add("pipe")
    }
    writer.add(request.cwd)
    writer.add(request.environment.count)
    for (name, value) in request.environment.sorted(by: { $0.key < $1.key }) {
      writer.add(name)
      writer.add(value)
    }
    writer.add(request.capturesOutput)
    writer.add(request.output)
    writer.add(check)
    return writer.form()
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? ChildProcess)?.cancel(error)
  }
}
