/// Writes log messages of runs: the part of a program's logger that `RunLogSink` needs.
///
/// Its methods have the shape of swift-log's `Logger`, so that an adapter passes them on. They are called on
/// the loop's thread; a logger of several loops has to be safe for that.
public protocol RunLogger {
  /// The lowest level that is written; messages of lower levels aren't made.
  var minimumLevel: RunLogLevel { get }

  /// Writes a message.
  ///
  /// - Parameters:
  ///   - level: Its severity.
  ///   - message: The text, without secrets.
  ///   - metadata: Its details, such as `run`, `op` and `path`, without secrets; see `RunLogSink`.
  ///   - source: The component that the message is from.
  func log(level: RunLogLevel, message: String, metadata: [String: String], source: String)
}

/// The severity of a log message. The raw values are those of `Logger.Level` of swift-log.
public enum RunLogLevel: String, Sendable, CaseIterable, Comparable {
  /// Values that are set, progress and waits.
  case trace
  /// Starts and successful ends of ops, groups, cases, transitions, programs and requests.
  case debug
  /// What ops log, and the starts and successful ends of runs.
  case info
  /// Stops, and undos that succeed.
  case notice
  /// Failures of ops, and of attempts that another one follows.
  case warning
  /// Failures of runs, of undos and of cleanups.
  case error
  /// No event has it.
  case critical

  private var severity: Int {
    switch self {
    case .trace: 0
    case .debug: 1
    case .info: 2
    case .notice: 3
    case .warning: 4
    case .error: 5
    case .critical: 6
    }
  }

  public static func < (left: RunLogLevel, right: RunLogLevel) -> Bool {
    left.severity < right.severity
  }
}
