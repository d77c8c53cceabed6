/// A program to run, without a shell in between: the arguments are passed byte for byte.
public struct ProcessRequest: Sendable {
  /// The source of a program's standard input.
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
  public var argv: [String] {
    get { argvBytes.map(\.description) }
    set { argvBytes = newValue.map { ByteString($0) } }
  }
  /// The bytes of `argv`.
  package var argvBytes: [ByteString]
  /// Its standard input.
  public var input: Input
  /// Its working directory; this process's own, when nil.
  public var cwd: String? {
    get { cwdBytes?.description }
    set { cwdBytes = newValue.map { ByteString($0) } }
  }
  /// The bytes of `cwd`.
  package var cwdBytes: ByteString?
  /// Changes to this process's environment: a value, or nil to remove the variable.
  public var environment: [String: String?] {
    get {
      Dictionary(
        environmentBytes.map { ($0.description, $1?.description) }, uniquingKeysWith: { $1 })
    }
    set { environmentBytes = Self.bytes(of: newValue) }
  }
  /// The bytes of `environment`.
  package var environmentBytes: [ByteString: ByteString?]
  /// Whether its outputs are collected; otherwise they go to this process's own.
  public var capturesOutput = true
  /// The file for its standard output, instead: it is made or emptied at the start of the program, and
  /// grows as the program writes. The path is relative to the folder of this process.
  public var output: String? {
    get { outputBytes?.description }
    set { outputBytes = newValue.map { ByteString($0) } }
  }
  /// The bytes of `output`.
  package var outputBytes: ByteString?
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

  /// The object that it runs for; see `EventLoop.cancelProcesses(of:)`.
  package var owner: ObjectIdentifier?

  /// Makes a request to run a program, with these bytes as its input, or none.
  public init(
    _ argv: [String], stdin: ByteString? = nil, cwd: String? = nil,
    environment: [String: String?] = [:]
  ) {
    self.init(
      argv.map { ByteString($0) }, stdin: stdin, cwd: cwd.map { ByteString($0) },
      environment: Self.bytes(of: environment))
  }

  /// The same with texts that may have any bytes.
  @_disfavoredOverload
  package init(
    _ argv: [ByteString], stdin: ByteString? = nil, cwd: ByteString? = nil,
    environment: [ByteString: ByteString?] = [:]
  ) {
    argvBytes = argv
    input = stdin.map { .bytes($0) } ?? .nothing
    cwdBytes = cwd
    environmentBytes = environment
  }

  private static func bytes(of environment: [String: String?]) -> [ByteString: ByteString?] {
    Dictionary(
      environment.map { (ByteString($0), $1.map { ByteString($0) }) }, uniquingKeysWith: { $1 })
  }

  /// The problem of a request that can't be run on any machine; nil for a valid request.
  package var problem: ByteString? {
    if argvBytes.isEmpty { return "a command is at least the name of a program" }
    if argvBytes[0].isEmpty {
      return "a command begins with the name of a program, not an empty string"
    }
    for (index, word) in argvBytes.enumerated() where word.bytes.contains(0) {
      return "word #\(index + 1) of the command has a NUL byte in it: '\(word.escapingNUL)'"
    }
    if let cwd = cwdBytes, cwd.bytes.contains(0) {
      return "the working directory has a NUL byte in it: '\(cwd.escapingNUL)'"
    }
    if let output = outputBytes, output.bytes.contains(0) {
      return "the path of the output has a NUL byte in it: '\(output.escapingNUL)'"
    }
    if case .file(let path) = input, path.bytes.contains(0) {
      return "the path of the input has a NUL byte in it: '\(path.escapingNUL)'"
    }
    for (name, value) in environmentBytes {
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

  /// What passes the output on, line by line; nil where nothing does.
  func makeTee() -> ProcessTee? {
    if tees { return ProcessTee(label ?? programName, to: destination) }
    // As where the outputs are those of this process, no line gets a name.
    return destination != nil && !capturesOutput ? ProcessTee(nil, to: destination) : nil
  }

  /// The program without the folders of its path.
  package var programName: ByteString {
    let path = argvBytes.first?.bytes ?? []
    let slash = path.lastIndex(of: UInt8(ascii: "/"))
    return ByteString(Array(path[(slash.map { $0 + 1 } ?? 0)...]))
  }
}
