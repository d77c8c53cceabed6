/// A program to run, without a shell in between: the arguments are passed byte for byte.
///
/// ```swift
/// var request = ProcessRequest(["sort", "-u"], stdin: "b\na\n")
/// request.timeout = .seconds(5)
/// let run = ExecOp(request).start(on: loop)
/// ```
public struct ProcessRequest: Sendable {
  /// The source of a program's standard input.
  ///
  /// ```swift
  /// var request = ProcessRequest(["sort"])
  /// request.input = .file("names.txt")
  /// ```
  public enum Input: Sendable {
    /// The end of the input at once.
    case nothing
    /// These bytes.
    case bytes(ByteString)
    /// The standard input of this process. A program that reads a terminal this way shares its Ctrl-C
    /// with this process.
    case inherited
    /// The content of the file with this path, relative to the folder of this process.
    case file(ByteString)
    /// The bytes that are written while it runs; see `ChildProcess.write`.
    case pipe
  }

  /// The program, looked up on the PATH when it has no slash, and its arguments.
  public var argv: [ByteString]
  /// Its standard input.
  public var input: Input
  /// Its working directory; this process's own, when nil.
  public var cwd: ByteString?
  /// Changes to this process's environment: a value, or nil to remove the variable.
  public var environment: [ByteString: ByteString?]
  /// Whether its outputs are collected; otherwise they go to this process's own.
  public var capturesOutput = true
  /// The file for its standard output, instead: it is made or emptied at the start of the program, and
  /// grows as the program writes. The path is relative to the folder of this process.
  public var output: ByteString?
  /// Whether the output that isn't written to a file goes to this process's own as well, line by line.
  package var tees = false
  /// Gets what goes to this process's own outputs otherwise, on the loop's thread; nil for those.
  package var destination: (@Sendable (ByteString) -> Void)?
  /// The name before each of these lines while several programs do that; nil for the program's own.
  package var label: ByteString?
  /// How long it may run, in real time, before it is stopped; nil for no limit.
  public var timeout: Duration?
  /// The time between SIGTERM and SIGKILL when it is stopped.
  public var gracePeriod: Duration = .seconds(1)

  /// The object that it runs for; see `FlowEventLoop.cancelProcesses(of:)`.
  package var owner: ObjectIdentifier?

  /// Makes a request to run a program, with these bytes as its input, or none.
  public init(
    _ argv: [some FlowText], stdin: (any FlowText)? = nil, cwd: (any FlowText)? = nil,
    environment: [ByteString: ByteString?] = [:]
  ) {
    self.argv = argv.map(\.byteString)
    input = stdin.map { .bytes($0.byteString) } ?? .nothing
    self.cwd = cwd?.byteString
    self.environment = environment
  }

  /// The problem of a request that can't be run on any machine; nil for a valid request.
  package var problem: ByteString? {
    if argv.isEmpty { return "a command is at least the name of a program" }
    if argv[0].isEmpty {
      return "a command begins with the name of a program, not an empty string"
    }
    for (index, word) in argv.enumerated() where word.bytes.contains(0) {
      return "word #\(index + 1) of the command has a NUL byte in it: '\(word.escapingNUL)'"
    }
    if let cwd, cwd.bytes.contains(0) {
      return "the working directory has a NUL byte in it: '\(cwd.escapingNUL)'"
    }
    if let output, output.bytes.contains(0) {
      return "the path of the output has a NUL byte in it: '\(output.escapingNUL)'"
    }
    if case .file(let path) = input, path.bytes.contains(0) {
      return "the path of the input has a NUL byte in it: '\(path.escapingNUL)'"
    }
    for (name, value) in environment {
      if name.isEmpty || name.bytes.contains(UInt8(ascii: "=")) || name.bytes.contains(0) {
        return "'\(name.escapingNUL)' can't be the name of an environment variable"
      }
      if let value, value.bytes.contains(0) {
        return "the environment variable '\(name)' has a NUL byte in it"
      }
    }
    return nil
  }

  /// Whether an output of it is one of this process.
  var sharesOutput: Bool { !capturesOutput && !tees && destination == nil }

  /// The reader that passes the output on, line by line; nil where nothing does.
  func makeTee() -> ProcessTee? {
    if tees { return ProcessTee(label ?? programName, to: destination) }
    // As where the outputs are those of this process, no line gets a name.
    return destination != nil && !capturesOutput ? ProcessTee(nil, to: destination) : nil
  }

  /// The program without the folders of its path.
  package var programName: ByteString {
    let path = argv.first?.bytes ?? []
    let slash = path.lastIndex(of: UInt8(ascii: "/"))
    return ByteString(path[(slash.map { $0 + 1 } ?? 0)...])
  }
}

/// The end of a program, and its output; empty when it wasn't collected.
///
/// ```swift
/// let result = try await ProcessTask(ProcessRequest(["date"]), check: false, on: loop).value
/// print(result.status, result.stdout)
/// ```
public struct ProcessResult: Sendable {
  /// Its exit status; for a program that a signal ended, 128 and the signal's number, as shells say it.
  public var status: Int { signal.map { 128 + $0 } ?? exitStatus }
  /// The number of the signal that ended it.
  public let signal: Int?
  /// Whether any of its outputs was collected.
  package var isCaptured: Bool { hasStdout || hasStderr }
  /// Whether its standard output was collected, and not written to a file.
  package let hasStdout: Bool
  /// Whether its standard error was collected.
  package let hasStderr: Bool
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
package enum ProcessEnd: Sendable {
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
