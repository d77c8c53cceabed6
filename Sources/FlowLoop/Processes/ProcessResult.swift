/// The end of a program, and its output; empty when it wasn't collected.
public struct ProcessResult: Sendable {
  /// Its exit status; for a program that a signal ended, 128 and the signal's number, as in a
  /// shell.
  public var status: Int { signal.map { 128 + $0 } ?? exitStatus }
  /// The number of the signal that ended it.
  public let signal: Int?
  /// Whether any of its outputs was collected.
  public var isCaptured: Bool { hasStdout || hasStderr }
  /// Whether its standard output was collected, and not written to a file.
  public let hasStdout: Bool
  /// Whether its standard error was collected.
  public let hasStderr: Bool
  /// Its standard output; empty when it wasn't collected. Lines that readers have taken aren't part of
  /// it.
  public let stdout: ByteString
  /// Its standard error; empty when it wasn't collected. Lines that readers have taken aren't part of
  /// it.
  public let stderr: ByteString
  /// The last bytes of its standard error, whether it was collected or read line by line.
  package let stderrEnd: ByteString
  private let exitStatus: Int
  /// Count the outputs.
  private let held: [HeldBytes]

  /// The status as the system has it: negative for a signal.
  package var rawStatus: Int32 {
    Int32(truncatingIfNeeded: signal.map { -$0 } ?? exitStatus)
  }

  /// The result of a program of another process.
  package init(rawStatus: Int32, stdout: ByteString?, stderr: ByteString?, stderrEnd: ByteString) {
    self.init(
      rawStatus: rawStatus, stdout: stdout, stderr: stderr, stderrEnd: stderrEnd, held: [])
  }

  init(
    rawStatus: Int32, stdout: ByteString?, stderr: ByteString?, stderrEnd: ByteString,
    held: [HeldBytes]
  ) {
    self.held = held
    signal = rawStatus < 0 ? -Int(rawStatus) : nil
    exitStatus = Int(rawStatus)
    hasStdout = stdout != nil
    hasStderr = stderr != nil
    self.stdout = stdout ?? ""
    self.stderr = stderr ?? ""
    self.stderrEnd = stderrEnd
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
  package let limit: Duration
}

/// A program was stopped, and couldn't be ended.
package struct ProcessOutOfReach: Error {
  /// The number of its process.
  package let pid: Int32
  /// Why the signal didn't end it.
  package let problem: ByteString
  /// Why it was stopped.
  package let reason: any Error
}
