internal import FlowEngine
internal import FlowScripting
internal import Glibc

/// The options about other machines. Made by the first one: fields of these types would cost each start.
final class RemoteOptions {
  /// The URL of `--remote`.
  var server: ByteString?
  /// The URL of `--join`.
  var joined: ByteString?
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
    let isName = text.bytes.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
    guard isName, text.count <= 64 else {
      throw LongOptions.misuse(
        "option '--name' needs up to 64 characters without spaces and '/', not '\(text)'")
    }
    name = text
    joiningOption = joiningOption ?? "--name"
  }

  /// Refuses options that have no effect together.
  func check(_ script: CommandLineArguments.Script?) throws(CommandLineArguments.Misuse) {
    if joined != nil {
      if server != nil || checks {
        throw LongOptions.misuse("option '--join' can't be combined with '--remote'")
      }
      if script != nil {
        throw LongOptions.misuse("option '--join' executes no script: it waits for those of others")
      }
    } else if let joiningOption {
      throw LongOptions.misuse("option '\(joiningOption)' needs --join URL")
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
    let options = arguments.options.remote
    if let server = options?.server {
      return try settings(server, options, naming: "option '--remote'")
    }
    guard !arguments.ignoresEnvironment, let value = getenv("FLOWLUA_REMOTE") else { return nil }
    let text = ByteString(Array(UnsafeRawBufferPointer(start: value, count: strlen(value))))
    return text.isEmpty ? nil : try settings(text, options, naming: "FLOWLUA_REMOTE")
  }

  /// The settings for a URL.
  static func settings(
    _ url: ByteString, _ options: RemoteOptions?, naming option: ByteString
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings {
    do throws(FlowError) {
      var settings = try RemoteSettings(url: url)
      settings.isInsecure = options?.isInsecure ?? false
      settings.shared = options?.shared ?? settings.shared
      if let timeout = options?.timeout { settings.timeout = timeout }
      try settings.check()
      return settings
    } catch {
      throw LongOptions.misuse("\(option): \(error.messageBytes)")
    }
  }
}
