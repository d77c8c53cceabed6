import Glibc

/// How a program ended, and what it wrote; nothing where that wasn't collected.
public struct ProcessResult: Sendable {
  /// What it exited with; for one that a signal ended 128 and the signal's number, as in a shell.
  public var status: Int { signal.map { 128 + $0 } ?? exitStatus }
  /// The number of the signal that ended it.
  public let signal: Int?
  /// Whether its outputs were collected.
  public let isCaptured: Bool
  /// What it wrote to its standard output; empty where that wasn't collected.
  public let stdout: ByteString
  /// What it wrote to its standard error; empty where that wasn't collected.
  public let stderr: ByteString
  private let exitStatus: Int

  init(rawStatus: Int32, outputs: (stdout: ByteString, stderr: ByteString)?) {
    signal = rawStatus < 0 ? -Int(rawStatus) : nil
    exitStatus = Int(rawStatus)
    isCaptured = outputs != nil
    stdout = outputs?.stdout ?? ""
    stderr = outputs?.stderr ?? ""
  }

  /// What a status other than 0 is as an error, whose message shows no part of `secrets`.
  func failure(of request: ProcessRequest, hiding secrets: SecretTexts) -> FlowError? {
    guard status != 0 else { return nil }
    var message = request.commandText(hiding: secrets)
    if let signal {
      let name = strsignal(Int32(signal)).map { String(cString: $0) } ?? "unknown"
      message = message + " was ended by signal \(signal) (\(name))"
    } else {
      message = message + " exited with status \(status)"
    }
    return FlowError(
      .error, message + lastWords(hiding: secrets), code: Int64(status), process: self)
  }

  /// The last line of the error output, after `: `; nothing when that is empty.
  fileprivate func lastWords(hiding secrets: SecretTexts) -> ByteString {
    let isSpace = { (byte: UInt8) in byte == 32 || (9...13).contains(byte) }
    let end = stderr.bytes.lastIndex { !isSpace($0) } ?? -1
    let text = secrets.redacted(ByteString(Array(stderr.bytes[...end])))
    let line = (text.bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }).last
    guard let line else { return "" }
    let limit = 400
    guard line.count > limit else { return ": " + ByteString(Array(line)) }
    // Not in the middle of a character.
    let last = line.suffix(limit).drop { $0 & 0xC0 == 0x80 }
    return ": …" + ByteString(Array(last))
  }
}

extension FlowError {
  /// The same error, of a program that was stopped because of it: with what that had printed.
  func carrying(_ result: ProcessResult, hiding secrets: SecretTexts) -> FlowError {
    FlowError(
      kind, message + result.lastWords(hiding: secrets), op: op, traceback: traceback, code: code,
      seconds: seconds, process: result)
  }
}
