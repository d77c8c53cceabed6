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
    let tail = Self.tail(of: secrets.redacted(stderr))
    if !tail.isEmpty { message = message + ": " + tail }
    return FlowError(.error, message, code: Int64(status), process: self)
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
