internal import FlowEngine

/// The options about the store of kept runs: what is done with it instead of executing a script, and how large it may
/// become.
struct StoreOptions {
  /// A command about a store.
  enum Command {
    /// Lists the runs.
    case list
    /// Shows a run and its records.
    case show(ByteString)
    case forget(ByteString)
    /// Removes the runs that changed last more than these seconds ago; the text is what the user wrote.
    case forgetOlder(than: Double, text: ByteString)
    case verify
    /// Sends messages to a run.
    case send(ByteString, [(name: ByteString, text: ByteString)])
  }

  /// The most bytes that the store keeps; nil: the default.
  private(set) var limit: Int64?
  /// The first command, and the option that asks for it.
  private var first: (option: ByteString, command: Command?)?
  private var second: ByteString?
  private var age: (seconds: Double, text: ByteString)?

  /// The file of `--html`.
  var page: ByteString?

  /// Notes an option that asks for a command; nil is a `--forget` that names no run.
  mutating func note(_ option: ByteString, _ command: Command?) {
    if first == nil {
      first = (option, command)
    } else {
      second = option
    }
  }

  /// Notes `--older-than`.
  mutating func forgetOlder(than text: ByteString) throws(CommandLineArguments.Misuse) {
    age = (try Self.seconds(text, option: "--older-than", such: "30d"), text)
  }

  /// The seconds of a number with a unit.
  static func seconds(
    _ text: ByteString, option: ByteString, such: ByteString
  ) throws(CommandLineArguments.Misuse) -> Double {
    let units: [(Character, Int64)] = [
      ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800),
    ]
    if let seconds = number(text, units: units) { return Double(seconds) }
    throw misuse(
      "option '\(option)' needs a number with the unit s, m, h, d or w, such as \(such), not '\(text)'"
    )
  }

  /// Notes `--store-limit`.
  mutating func setLimit(_ text: ByteString) throws(CommandLineArguments.Misuse) {
    guard let count = ByteCount(parsing: text), count.bytes > 0 else {
      throw Self.misuse(
        "option '--store-limit' needs a number with the unit K, M, G or T, such as 500M, not '\(text)'"
      )
    }
    limit = Int64(count.bytes)
  }

  /// The command about the store; nil when a script is to be executed.
  func command() throws(CommandLineArguments.Misuse) -> Command? {
    guard let first else {
      if page != nil {
        throw Self.misuse("option '--html' belongs to '--runs': --runs --html FILE")
      }
      if age == nil { return nil }
      throw Self.misuse("option '--older-than' belongs to '--forget': --forget --older-than 30d")
    }
    if page != nil, first.option != "--runs" {
      throw Self.misuse("option '--html' belongs to '--runs': --runs --html FILE")
    }
    if let second {
      throw Self.misuse(
        first.option == second
          ? "option '\(second)' is there twice"
          : "options '\(first.option)' and '\(second)' can't be used together")
    }
    guard let age else {
      if let command = first.command { return command }
      throw Self.misuse("option '--forget' needs a run, or an age: --forget --older-than 30d")
    }
    switch first.command {
    case nil: return .forgetOlder(than: age.seconds, text: age.text)
    case .forget?:
      throw Self.misuse("option '--forget' takes a run or '--older-than', not both")
    default:
      throw Self.misuse("option '--older-than' belongs to '--forget', not to '\(first.option)'")
    }
  }

  /// A whole number times its unit; nil for another text, and for a product that is too large.
  private static func number(
    _ text: ByteString, units: [(name: Character, factor: Int64)]
  ) -> Int64? {
    let digits = text.bytes.dropLast()
    guard !digits.isEmpty, let last = text.bytes.last,
      digits.allSatisfy(\.isDigit),
      let number = Int64(String(decoding: digits, as: UTF8.self)),
      let unit = units.first(where: { $0.name.asciiValue == last })
    else { return nil }
    let (product, overflows) = number.multipliedReportingOverflow(by: unit.factor)
    return overflows ? nil : product
  }

  private static func misuse(_ message: ByteString) -> CommandLineArguments.Misuse {
    CommandLineArguments.Misuse(message: message, status: 2, showsUsage: false)
  }
}
