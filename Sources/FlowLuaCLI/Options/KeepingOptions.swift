internal import FlowEngine
internal import FlowScripting

/// The options about kept runs.
final class KeepingOptions {
  /// Which run of the store the script's runs belong to.
  enum Choice {
    /// A new one.
    case new
    /// The latest that hasn't finished, or a new one.
    case latest
    /// The one with this id.
    case run(ByteString)
  }

  /// How runs are kept; nil: the options don't say that they are.
  var choice: Choice?
  /// Whether the server of `--remote` keeps the runs as well.
  private(set) var usesServer = false
  /// The script's name there; nil: as its file.
  private(set) var serverName: ByteString?
  /// Which ops are executed.
  var ops = ScriptKeeping.Choice.changed
  /// The folder of the store; nil: beside the script.
  var store: ByteString?
  /// How long ago the run that `--resume` continues may have changed last; nil: any time.
  private(set) var within: ScriptKeeping.Age?
  /// Whether ops whose code has changed count as unchanged.
  var trustsCode = false
  /// Whether ops with a cache may take results of other runs.
  var usesCache = true
  /// The decisions about ops that are executed only once.
  var settlements: [ByteString: ByteString] = [:]
  /// `--send`: the run, and its messages.
  var receiver: ByteString?
  private(set) var sent: [(name: ByteString, text: ByteString)] = []
  /// Whether the process stays when a kept run waits for nothing but messages.
  var stays = false
  /// The command about the store of kept runs.
  var stored = StoreOptions()

  /// Whether an option says which ops are executed.
  var choosesOps: Bool {
    if case .changed = ops { false } else { true }
  }

  /// Takes a word `name=value` after `--send RUN`.
  func send(_ word: ByteString) {
    let parts = word.split(at: "=", maxSplits: 1)
    sent.append((ByteString(parts[0]), ByteString(parts[1])))
  }

  /// Whether a word is a message after `--send RUN`.
  static func isMessage(_ word: ByteString) -> Bool {
    guard let sign = word.bytes.firstIndex(of: UInt8(ascii: "=")) else { return false }
    return sign > 0 && word.bytes[0] != UInt8(ascii: "-")
  }

  /// Takes the value of `--within`.
  func setWithin(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    within = ScriptKeeping.Age(
      seconds: try StoreOptions.seconds(text, option: "--within", such: "12h"), text: text)
  }

  /// Takes the value of `--keep`, or of the variable that is named: `nats`, or `nats:` and a name.
  func keep(_ place: ByteString, naming source: ByteString) throws(CommandLineArguments.Misuse) {
    let parts = place.split(at: ":", maxSplits: 1)
    guard parts[0].equals("nats"), parts.count == 1 || (1...64).contains(parts[1].count)
    else {
      throw LongOptions.misuse(
        "\(source) takes 'nats', or 'nats:' with a name of up to 64 characters, not '\(place)'")
    }
    usesServer = true
    serverName = parts.count == 1 ? nil : ByteString(parts[1])
  }

  /// Takes an option that says which ops are executed.
  func choose(_ choice: ScriptKeeping.Choice) throws(CommandLineArguments.Misuse) {
    switch (ops, choice) {
    case (.changed, _), (.nothing, .nothing): ops = choice
    case (.only(let names), .only(let more)): ops = .only(names + more)
    default:
      throw LongOptions.misuse(
        "options '--why', '--only' and '--from' can't be combined, and '--from' takes one op")
    }
    if self.choice == nil { self.choice = .latest }
  }

  /// The command that sends messages; nil without any.
  var message: StoreOptions.Command? { receiver.map { .send($0, sent) } }

  /// The command about the store; nil when a script is to be executed.
  func command() throws(CommandLineArguments.Misuse) -> StoreOptions.Command? {
    let command = try stored.command()
    guard let message else { return command }
    if command != nil {
      throw LongOptions.misuse("option '--send' can't be combined with other commands on the store")
    }
    return choice == nil ? message : nil
  }
}
