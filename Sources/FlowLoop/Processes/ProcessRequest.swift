/// A program to run, without a shell in between: the arguments are passed byte for byte.
public struct ProcessRequest: Sendable {
  /// The program, looked up on the PATH when it has no slash, and its arguments.
  public var argv: [ByteString]
  /// The bytes for its standard input; no input when nil.
  public var stdin: ByteString?
  /// Its working directory; this process's own, when nil.
  public var cwd: ByteString?
  /// Changes to this process's environment: a value, or nil to remove the variable.
  public var environment: [ByteString: ByteString?]
  /// Whether its outputs are collected; otherwise they go to this process's own.
  public var capturesOutput = true
  /// Seconds after its start at which it is stopped, in real time; nil for no limit.
  public var timeout: Double?
  /// Seconds between SIGTERM and SIGKILL when it is stopped.
  public var gracePeriod: Double = 1

  /// The object that it runs for; see `EventLoop.cancelProcesses(of:)`.
  public var owner: ObjectIdentifier?

  /// Makes a request to run a program.
  public init(
    _ argv: [ByteString], stdin: ByteString? = nil, cwd: ByteString? = nil,
    environment: [ByteString: ByteString?] = [:]
  ) {
    self.argv = argv
    self.stdin = stdin
    self.cwd = cwd
    self.environment = environment
  }

  /// The problem of a request that can't be run on any machine; nil for a valid request.
  public var problem: ByteString? {
    if argv.isEmpty { return "a command is at least the name of a program" }
    if argv[0].isEmpty { return "a command begins with the name of a program, not an empty string" }
    for (index, word) in argv.enumerated() where word.bytes.contains(0) {
      return "word #\(index + 1) of the command has a NUL byte in it: '\(word.escapingNUL)'"
    }
    if let cwd, cwd.bytes.contains(0) {
      return "the working directory has a NUL byte in it: '\(cwd.escapingNUL)'"
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
}
