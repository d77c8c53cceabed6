/// A program to run: no shell in between, words and bytes as they are.
public struct ProcessRequest: Sendable {
  /// The program, looked up on the PATH when it has no slash, and its arguments.
  public var argv: [ByteString]
  /// What it reads from its standard input; nothing, when nil.
  public var stdin: ByteString?
  /// Its working directory; this process's own, when nil.
  public var cwd: ByteString?
  /// Changes to this process's environment: a value, or nil to remove the variable.
  public var environment: [ByteString: ByteString?]
  /// Whether its outputs are collected; else they are this process's own.
  public var capturesOutput = true
  /// Seconds from its start after which it is asked to stop, in real time; nil: none.
  public var timeout: Double?
  /// Seconds between asking it to stop (SIGTERM) and stopping it (SIGKILL).
  public var gracePeriod: Double = 1

  /// On whose behalf it runs; see `EventLoop.cancelProcesses(of:)`.
  public var owner: ObjectIdentifier?

  /// A program to run.
  public init(
    _ argv: [ByteString], stdin: ByteString? = nil, cwd: ByteString? = nil,
    environment: [ByteString: ByteString?] = [:]
  ) {
    self.argv = argv
    self.stdin = stdin
    self.cwd = cwd
    self.environment = environment
  }

  /// The command as messages show it: words with other characters than plain ones in quotes, without
  /// secrets.
  func commandText(hiding secrets: SecretTexts) -> ByteString {
    let words = argv.map { word in
      let isPlain = !word.isEmpty && word.bytes.allSatisfy { Self.plain.contains($0) }
      return isPlain ? word : "'\(word.escapingNUL)'"
    }
    let text = ByteString(Array(words.map(\.bytes).joined(separator: [UInt8(ascii: " ")])))
    return secrets.redacted(text).truncated(to: Value.logLimit)
  }

  private static let plain = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%^".utf8)

  /// What is wrong with the request, whatever the machine has to say.
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
