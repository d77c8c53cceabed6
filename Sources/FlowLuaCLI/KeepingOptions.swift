internal import FlowEngine

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
  /// The folder of the store; nil: beside the script.
  var store: ByteString?
  /// Whether ops whose code has changed count as unchanged.
  var trustsCode = false
  /// Whether ops with a cache may take results of other runs.
  var usesCache = true
  /// What became of ops that are executed only once.
  var settlements: [ByteString: ByteString] = [:]
  /// What is done with the store of kept runs.
  var stored = StoreOptions()
}
