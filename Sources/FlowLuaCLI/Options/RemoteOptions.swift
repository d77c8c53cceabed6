internal import FlowEngine
internal import FlowNodes
internal import FlowScripting
internal import FlowSystem

/// The options about other nodes. Made by the first one: fields of these types would cost each start.
final class RemoteOptions {
  /// The URL of `--remote`.
  var server: ByteString?
  /// Whether this node joins a server.
  private(set) var joins = false
  /// The URL of `--join`; nil for the one of `FLOWLUA_REMOTE`.
  private(set) var joined: ByteString?
  /// Whether the nodes are only listed.
  var checks = false
  /// The values that `flow.remote` of the script takes for fields that it isn't given, too.
  var defaults = RemoteDefaults()
  private(set) var tags: ByteString = ""
  private(set) var name: ByteString?
  /// The first option that only `--join` may have.
  private var joiningOption: ByteString?
  /// The options about nodes that are started for the script; nil without one.
  private(set) var started: HostOptions?

  /// The options about started nodes, to add further ones.
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

  /// Whether the first line of standard input has the URL of `--join`, whose end then ends this node, too.
  var readsURL: Bool { joined == "-" }

  func allowInsecure() { defaults.isInsecure = true }

  func setTimeout(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let seconds = LongOptions.decimal(text), seconds > 0 else {
      throw LongOptions.misuse(
        "option '--remote-timeout' needs a number of seconds greater than 0, not '\(text)'")
    }
    defaults.timeout = Duration(clampingSeconds: seconds)
  }

  /// Adds the folders of `--remote-shared`, with commas between them.
  func addShared(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    for folder in text.split(at: ",") {
      do throws(FlowError) { try defaults.shared.add(ByteString(folder)) } catch {
        throw LongOptions.misuse("option '--remote-shared': \(error.message)")
      }
    }
  }

  func setTags(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    do throws(FlowError) {
      if try RemoteTags(text).isEmpty { throw .usage("'\(text)' has no tag") }
    } catch {
      throw LongOptions.misuse("option '--tags': \(error.message)")
    }
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

  /// Whether a node may have a name.
  static func isName(_ text: ByteString) -> Bool {
    text.count <= 64
      && text.bytes.allSatisfy { $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "/") }
  }

  /// Refuses options that have no effect together.
  func check(_ arguments: CommandLineArguments) throws(CommandLineArguments.Misuse) {
    if joins {
      let others = [
        ("--hosts", started != nil), ("--remote", server != nil), ("--remote-check", checks),
      ]
      for case (let other, true) in others {
        throw LongOptions.misuse("option '--join' can't be combined with '\(other)'")
      }
      try refuseScript(arguments, "--join", "it waits for the ops of others")
    } else if let joiningOption {
      throw LongOptions.misuse("option '\(joiningOption)' needs --join")
    } else if checks {
      if started != nil {
        throw LongOptions.misuse("option '--remote-check' can't be combined with '--hosts'")
      }
      try refuseScript(arguments, "--remote-check", "it lists nodes")
    }
  }

  /// Refuses a script, and options that have an effect only with one, beside an option that executes none.
  private func refuseScript(
    _ arguments: CommandLineArguments, _ option: ByteString, _ purpose: ByteString
  ) throws(CommandLineArguments.Misuse) {
    if arguments.script != nil {
      throw LongOptions.misuse("option '\(option)' executes no script: \(purpose)")
    }
    if let other = arguments.codeOption ?? arguments.options.scriptOption {
      throw LongOptions.misuse(
        "option '\(option)' executes no script: \(purpose), and '\(other)' has no effect")
    }
  }

  /// The name of this node.
  static var hostName: ByteString {
    var bytes = [CChar](repeating: 0, count: 256)
    guard gethostname(&bytes, bytes.count - 1) == 0 else { return "node" }
    return ByteString(bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
  }

  /// The settings of a script, by its options or the environment; nil without a server.
  static func settings(
    _ arguments: CommandLineArguments
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings? {
    if let server = arguments.options.remote?.server {
      return try settings(server, arguments, naming: "option '--remote'")
    }
    guard let text = Secrets.remote, !arguments.ignoresEnvironment else { return nil }
    return try settings(text, arguments, naming: "FLOWLUA_REMOTE")
  }

  /// The text of `FLOWLUA_REMOTE_KEY`.
  static func key(_ arguments: CommandLineArguments) -> ByteString? {
    arguments.ignoresEnvironment ? nil : Secrets.remoteKey
  }

  /// A text that nobody guesses.
  static var randomText: ByteString {
    (0..<4).reduce("") { text, _ in text + UInt64.random(in: 0 ... .max).hexadecimal }
  }

  /// The settings for a URL.
  static func settings(
    _ url: ByteString, _ arguments: CommandLineArguments, naming option: ByteString
  ) throws(CommandLineArguments.Misuse) -> RemoteSettings {
    var settings: RemoteSettings
    do throws(FlowError) {
      let options = arguments.options.remote?.defaults ?? RemoteDefaults()
      settings = try RemoteSettings(url: url, options)
    } catch {
      throw LongOptions.misuse("\(option): \(error.message)")
    }
    // Its error names the variable.
    do throws(FlowError) { try settings.setKey(key(arguments)) } catch {
      throw LongOptions.misuse(error.message)
    }
    return settings
  }
}

/// The variables of the environment with secrets, which neither the script nor a program that it starts gets to see.
enum Secrets {
  static let storeKey = taken("FLOWLUA_STORE_KEY")
  static let remoteKey = taken("FLOWLUA_REMOTE_KEY")
  /// The URLs of the server. In the environment they stay without the token or the user: that there is a server is no
  /// secret, and scripts ask for it.
  static let remote: ByteString? = {
    guard let text = environment("FLOWLUA_REMOTE"), text.bytes.contains(UInt8(ascii: "@")) else {
      return environment("FLOWLUA_REMOTE")
    }
    flowsystem_remove_variable("FLOWLUA_REMOTE" as String)
    let shown = text.bytes.split(separator: UInt8(ascii: ",")).map(withoutUser)
    _ = shown.joined(separator: ",").withCString {
      setenv("FLOWLUA_REMOTE" as String, $0, 1)
    }
    return text
  }()

  /// Takes all of them, while the process has one thread.
  static func take() { _ = (storeKey, remoteKey, remote) }

  /// A URL from its scheme on, without what is before the host.
  private static func withoutUser(_ url: ArraySlice<UInt8>) -> [UInt8] {
    guard let sign = url.lastIndex(of: UInt8(ascii: "@")) else { return Array(url) }
    let scheme = url[..<sign].prefix { $0 != UInt8(ascii: ":") }
    let mark = "://".bytes
    let isScheme = url[scheme.endIndex...].starts(with: mark)
    return Array((isScheme ? scheme + mark : []) + url[(sign + 1)...])
  }

  /// The value of a variable, which is removed.
  private static func taken(_ name: String) -> ByteString? {
    defer { flowsystem_remove_variable(name) }
    return environment(name)
  }
}
