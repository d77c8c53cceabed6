internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// The options about other machines. Made by the first one: fields of these types would cost each start.
final class RemoteOptions {
  /// The URL of `--remote`.
  var server: ByteString?
  /// Whether this machine joins a server.
  private(set) var joins = false
  /// The URL of `--join`; nil for that of `FLOWLUA_REMOTE`.
  private(set) var joined: ByteString?
  /// Whether the machines are only listed.
  var checks = false
  var isInsecure = false
  /// How long jobs wait while no machine can execute them.
  private(set) var timeout: Duration?
  /// The folders that all machines have.
  private(set) var shared = RemoteSharedFolders()
  private(set) var tags: ByteString = ""
  private(set) var name: ByteString?
  /// The first option that only `--join` may have.
  private var joiningOption: ByteString?
  /// What is said about machines that are started for the script; nil without such an option.
  private(set) var started: HostOptions?

  /// The same, so that more can be said.
  var hosts: HostOptions {
    if let started { return started }
    let made = HostOptions()
    started = made
    return made
  }

  func join(_ url: ByteString?) {
    joins = true
    joined = url.flatMap { $0.isEmpty ? nil : $0 }
  }

  /// Whether the first line of standard input has the URL of `--join`, whose end then is that of this machine, too.
  var readsURL: Bool { joined == "-" }

  func setTimeout(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let seconds = LongOptions.decimal(text), seconds > 0 else {
      throw LongOptions.misuse(
        "option '--remote-timeout' needs a number of seconds greater than 0, not '\(text)'")
    }
    timeout = Duration(clampingSeconds: seconds)
  }

  /// Adds the folders of `--remote-shared`, with commas between them.
  func addShared(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    for folder in text.bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
      do throws(FlowError) { try shared.add(ByteString(Array(folder))) } catch {
        throw LongOptions.misuse("option '--remote-shared': \(error.messageBytes)")
      }
    }
  }

  func setTags(_ text: ByteString) {
    tags = text
    joiningOption = joiningOption ?? "--tags"
  }

  func setName(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard Self.isName(text) else {
      throw LongOptions.misuse(
        "option '--name' needs up to 64 characters without spaces and '/', not '\(text)'")
    }
    name = text
    joiningOption = joiningOption ?? "--name"
  }

  /// Whether a machine may have a name.
  static func isName(_ text: ByteString) -> Bool {
    text.count <= 64
      && text.bytes.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
  }

  /// Refuses options that have no effect together.
  func check(_ script: CommandLineArguments.Script?) throws(CommandLineArguments.Misuse) {
    if joins || checks, started != nil {
      throw LongOptions.misuse(
        "option '\(joins ? "--join" : "--remote-check")' can't be combined with '--hosts'")
    }
    if joins {
      if server != nil || checks {
        throw LongOptions.misuse("option '--join' can't be combined with '--remote'")
      }
      if script != nil {
        throw LongOptions.misuse("option '--join' executes no script: it waits for those of others")
      }
    } else if let joiningOption {
      throw LongOptions.misuse("option '\(joiningOption)' needs --join")
    }
  }

  /// The name of this machine.
  static var hostName: ByteString {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "machine" }
    return ByteString(bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
  }

  /// The settings of a script, by its options or the environment; nil without a server.
  static func settings(
    _ arguments: CommandLineArguments
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings? {
    if let server = arguments.options.remote?.server {
      return try settings(server, arguments, naming: "option '--remote'")
    }
    guard let text = variable("FLOWLUA_REMOTE"), !arguments.ignoresEnvironment else { return nil }
    return try settings(text, arguments, naming: "FLOWLUA_REMOTE")
  }

  /// The value of a variable; nil for none, and an empty one.
  private static func variable(_ name: StaticString) -> ByteString? {
    guard let value = getenv(name.description), value.pointee != 0 else { return nil }
    return ByteString(Array(UnsafeRawBufferPointer(start: value, count: strlen(value))))
  }

  /// The text of `FLOWLUA_REMOTE_KEY`, which neither the script nor a program that it starts gets to see.
  static func key(_ arguments: CommandLineArguments) -> ByteString? {
    let taken = takenKey
    return arguments.ignoresEnvironment ? nil : taken
  }

  private static let takenKey: ByteString? = {
    defer { unsetenv("FLOWLUA_REMOTE_KEY") }
    return variable("FLOWLUA_REMOTE_KEY")
  }()

  /// A text that nobody guesses.
  static var randomText: ByteString {
    (0..<4).reduce("") { text, _ in text + UInt64.random(in: 0 ... .max).hexadecimal }
  }

  /// The settings for a URL.
  static func settings(
    _ url: ByteString, _ arguments: CommandLineArguments, naming option: ByteString
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings {
    let options = arguments.options.remote
    do throws(FlowError) {
      var settings = try RemoteSettings(url: url)
      settings.isInsecure = options?.isInsecure ?? false
      settings.shared = options?.shared ?? settings.shared
      if let timeout = options?.timeout { settings.timeout = timeout }
      try settings.check()
      try settings.setKey(key(arguments))
      return settings
    } catch {
      throw LongOptions.misuse("\(option): \(error.messageBytes)")
    }
  }
}
