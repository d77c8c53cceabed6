internal import FlowEngine

/// The options about limits and permissions. Made by the first one: fields of these many types would cost each start.
final class ConfinementOptions {
  /// The most bytes that the script may hold; the text is what the user wrote.
  private(set) var memory: (bytes: Int, text: ByteString)?
  /// The most seconds that the script may take.
  private(set) var time: Double?
  /// The most seconds of processor time that the process, and each of its programs, may use.
  private(set) var processorTime: Int?
  /// The most descriptors that the process, and each of its programs, may have open.
  private(set) var openFiles: Int?

  /// Whether the script executes in a sandbox.
  private(set) var usesSandbox = false
  /// Whether a kernel that can't enforce all of it is an error.
  private(set) var isStrict = false
  private(set) var readable: [ByteString] = []
  private(set) var writable: [ByteString] = []
  private(set) var variables: [ByteString] = []
  var allowsNetwork = false
  var allowsPrograms = false
  /// The first option that belongs to a sandbox.
  private var permission: ByteString?

  /// Fewer descriptors don't suffice for the loop, its files and one program.
  static let leastOpenFiles = 20

  // MARK: Limits

  var limitsTime: Bool { time != nil || processorTime != nil }

  func limitMemory(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let count = ByteCount(parsing: text)?.bytes, count > 0 else {
      throw LongOptions.misuse(
        "option '--memory-limit' needs a number with the unit K, M, G or T, such as 512M, not '\(text)'"
      )
    }
    memory = (count, text)
  }

  func limitTime(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    let seconds = LongOptions.decimal(text)
    guard let seconds, seconds > 0 else {
      throw LongOptions.misuse(
        "option '--time-limit' needs a number of seconds greater than 0, not '\(text)'")
    }
    time = seconds
  }

  func limitProcessorTime(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let seconds = LongOptions.whole(text), seconds >= 1 else {
      throw LongOptions.misuse(
        "option '--cpu-limit' needs a whole number of seconds of at least 1, not '\(text)'")
    }
    processorTime = seconds
  }

  func limitOpenFiles(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let count = LongOptions.whole(text), count >= Self.leastOpenFiles else {
      throw LongOptions.misuse(
        "option '--open-files' needs a number of at least \(Self.leastOpenFiles), not '\(text)'")
    }
    openFiles = count
  }

  // MARK: Permissions

  /// Takes `--sandbox` or `--sandbox=strict`.
  func useSandbox(_ value: ByteString?) throws(CommandLineArguments.Misuse) {
    if let value, value != "strict" {
      throw LongOptions.misuse(
        "option '--sandbox' takes no value, or 'strict': --sandbox=strict, not '\(value)'")
    }
    usesSandbox = true
    if value != nil { isStrict = true }
  }

  /// Takes `--allow-read` or `--allow-write`: paths, with commas between them.
  func allow(
    _ option: ByteString, _ text: ByteString, writing: Bool
  ) throws(CommandLineArguments.Misuse) {
    let paths = try parts(of: text, option, "a path: \(option)=PATH")
    if writing { writable += paths } else { readable += paths }
    note(option)
  }

  /// Takes `--allow-env`: names of variables, with commas between them.
  func allowVariables(
    _ option: ByteString, _ text: ByteString
  ) throws(CommandLineArguments.Misuse) {
    let names = try parts(of: text, option, "the name of a variable: \(option)=NAME")
    for name in names where name.bytes.contains(UInt8(ascii: "=")) {
      throw LongOptions.misuse(
        "option '\(option)' takes names of variables without values, not '\(name)'")
    }
    variables += names
    note(option)
  }

  /// Notes an option that has a meaning in a sandbox only.
  func note(_ option: ByteString) { permission = permission ?? option }

  private func parts(
    of text: ByteString, _ option: ByteString, _ needed: ByteString
  ) throws(CommandLineArguments.Misuse) -> [ByteString] {
    let parts = text.split(at: ",")
    for part in parts where part.isEmpty {
      throw LongOptions.misuse("option '\(option)' needs \(needed); in '\(text)' one is empty")
    }
    return parts.map { ByteString($0) }
  }

  /// Checks that a permission belongs to a sandbox: without one it would seem to restrict the script.
  func check() throws(CommandLineArguments.Misuse) {
    guard let permission, !usesSandbox else { return }
    throw LongOptions.misuse("option '\(permission)' belongs to '--sandbox', which isn't there")
  }
}
