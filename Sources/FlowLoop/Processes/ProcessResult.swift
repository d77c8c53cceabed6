/// The end of a program, and its output; empty when it wasn't collected.
public struct ProcessResult: Sendable {
  /// Its exit status; for a program that a signal ended, 128 and the signal's number, as in a
  /// shell.
  public var status: Int { signal.map { 128 + $0 } ?? exitStatus }
  /// The number of the signal that ended it.
  public let signal: Int?
  /// Whether its outputs were collected.
  public let isCaptured: Bool
  /// Its standard output; empty when it wasn't collected.
  public let stdout: ByteString
  /// Its standard error; empty when it wasn't collected.
  public let stderr: ByteString
  private let exitStatus: Int

  package init(rawStatus: Int32, outputs: (stdout: ByteString, stderr: ByteString)?) {
    signal = rawStatus < 0 ? -Int(rawStatus) : nil
    exitStatus = Int(rawStatus)
    isCaptured = outputs != nil
    stdout = outputs?.stdout ?? ""
    stderr = outputs?.stderr ?? ""
  }
}

/// The way in which a program ended.
public enum ProcessEnd: Sendable {
  /// It ended by itself, with any status.
  case exited(ProcessResult)
  /// It was stopped for this reason; with its output so far, if it had been started.
  case stopped(any Error, ProcessResult?)
  /// It couldn't be started or followed.
  case failed(SystemError)
  /// Its request is invalid, for this reason.
  case refused(ByteString)
  /// Other code in this process has taken its status, or ignores SIGCHLD.
  case lost
}

/// The time limit of a program's request is over.
package struct ProcessTimeout: Error {
  /// The limit.
  package let seconds: Double
}
