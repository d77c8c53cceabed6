/// Writes the events of runs to a program's logger, each with a level; see `RunLogLevel`.
///
/// The metadata says what a message is about: `run` and `flow`, the id and the name of the run; `op` and `path`;
/// `attempt` if it isn't the first; `worker`; `duration` in seconds at an end; `error.type`, the kind of a
/// failure. In a distributed trace, `trace_id` and `span_id` are those of the spans. A run that an op has
/// started counts as an op. Add the sink to `FlowEventLoop.eventSinks` for all runs of a loop, or give it to one run.
///
/// ```swift
/// loop.eventSinks.append(RunLogSink(logger, source: "jobs"))
/// ```
public final class RunLogSink: RunSink, RecordSink {
  private let logger: any RunLogger
  private let source: String
  private var runs = SinkRuns()

  /// Makes a sink.
  ///
  /// - Parameters:
  ///   - logger: The logger.
  ///   - source: The component that its messages are from, as the logger shows it.
  public init(_ logger: any RunLogger, source: String = "FlowEngine") {
    self.logger = logger
    self.source = source
  }

  public func runBegan(_ run: Run) {
    let entry = runs.begin(run)
    if entry.isInner || logger.minimumLevel > .info { return }
    write(.info, "\(entry.name): started", metadata(of: run.log, id: 0))
  }

  public func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}

  func append(_ record: LogRecord, in log: EventLog) {
    let isEnd = record.kind == .finish || record.kind == .undo
    let outcome = isEnd ? log.loggedOutcome(of: record) : nil
    guard let level = level(of: record, outcome), level >= logger.minimumLevel,
      !runs.isElsewhere(record, in: log), let event = log.event(of: record)
    else { return }
    // The messages about a run have the start and the end of an op that is started alone.
    if event.id == 0, record.kind == .start || record.kind == .finish { return }
    var metadata = metadata(of: log, id: event.id)
    metadata["op"] = event.op.description
    metadata["path"] = event.path.description
    if event.attempt > 1 { metadata["attempt"] = String(event.attempt) }
    if event.lane > 0 { metadata["worker"] = event.laneName?.description ?? String(event.lane) }
    metadata["key"] = event.key?.description
    metadata["value"] = event.value?.description
    if isEnd {
      metadata["duration"] = Self.seconds(Int64(bitPattern: record.second))
      metadata["error.type"] = outcome?.kind?.name.description
    }
    if let work = event.work {
      metadata["error.type"] = work.errorKind?.description
      metadata["status"] = work.status.map { String($0) }
    }
    let name = log.shown(log.displayName(of: record))
    write(level, "\(name): \(Self.text(of: event, outcome))", metadata)
  }

  public func runEnded(_ run: Run) {
    guard let entry = runs[run.log] else { return }
    defer { _ = runs.end(run) }
    if entry.isInner { return }
    var ending = metadata(of: run.log, id: 0)
    for error in run.lateErrors {
      ending["error.type"] = error.kind.name.description
      write(.error, "\(entry.name): \(error.logLine)", ending)
    }
    let outcome = LoggedOutcome(run.error?.logLine)
    ending["error.type"] = run.error?.kind.name.description
    ending["duration"] = Self.seconds(run.duration.wholeNanoseconds)
    let level: RunLogLevel =
      switch outcome.state {
      case .succeeded: .info
      case .failed: .error
      case .cancelled: .notice
      }
    write(level, "\(entry.name): \(Self.text(of: outcome))", ending)
  }

  private func write(_ level: RunLogLevel, _ message: String, _ metadata: [String: String]) {
    if level < logger.minimumLevel { return }
    logger.log(level: level, message: message, metadata: metadata, source: source)
  }

  private func metadata(of log: EventLog, id: UInt64) -> [String: String] {
    var metadata: [String: String] = ["run": log.runID.description]
    guard let entry = runs[log] else { return metadata }
    metadata["flow"] = entry.name.description
    if let trace = entry.trace {
      metadata["trace_id"] = trace.id.description
      let span = SpanID.execution(run: log.runID, id: id)
      metadata["span_id"] = span.hexadecimal.description
    }
    return metadata
  }

  /// The level of a record; nil for one without an event.
  private func level(of record: LogRecord, _ outcome: LoggedOutcome?) -> RunLogLevel? {
    switch record.kind {
    case .startWith, .endWith, .snapshotEntry, .attempt, .queues: nil
    case .add, .replace, .remove, .progress, .state, .wait: .trace
    case .programStart, .requestStart: .trace
    case .start, .executed, .undoStart, .kept, .skipped, .queued: .debug
    case .groupCreated, .groupFinished, .groupStopped, .groupEmpty, .groupRefused: .debug
    case .caseMatched, .noCase, .caseFailed, .transition, .program, .request: .debug
    case .log: .info
    case .retry: .warning
    case .finish:
      switch outcome?.state {
      case .failed: .warning
      case .cancelled: .notice
      default: .debug
      }
    case .undo: outcome?.state == .succeeded ? .notice : .error
    }
  }

  private static func text(of event: RunEvent, _ outcome: LoggedOutcome?) -> String {
    let message = event.message?.description ?? ""
    switch event.kind {
    case .start: return "started"
    case .finish: return outcome.map { text(of: $0) } ?? message
    case .undoStart: return "undo started"
    case .undo: return "undo " + (outcome.map { text(of: $0) } ?? message)
    case .set: return "set \(event.key ?? ""): \(event.value ?? "")"
    case .replace:
      return
        "replaced \(event.key ?? ""): \(event.oldValue ?? "") -> \(event.value ?? "")"
    case .remove: return "removed \(event.key ?? "")"
    case .progress:
      let done = FlowValue.number(event.done ?? 0).logText
      return event.total.map { "\(done) of \(FlowValue.number($0).logText)" } ?? "\(done)"
    case .programStart, .requestStart: return "\(message) started"
    case .program, .request:
      return "\(message) \(event.work?.outcome.name ?? "")"
    case .wait: return "waited for \(message)"
    case .log, .retry, .group, .case, .transition, .state, .kept: return message
    }
  }

  private static func text(of outcome: LoggedOutcome) -> String {
    switch outcome.state {
    case .succeeded: "finished"
    case .failed: "failed: \(outcome.message ?? "")"
    case .cancelled: "\(outcome.message ?? "cancelled")"
    }
  }

  private static func seconds(_ nanoseconds: Int64) -> String {
    String(Double(nanoseconds) / 1e9)
  }
}

/// Writes log messages of runs: the part of a program's logger that `RunLogSink` needs.
///
/// Its methods have the shape of swift-log's `Logger`, so that an adapter passes them on. They are called on
/// the loop's thread; a logger of several loops has to be safe for that.
///
/// ```swift
/// struct Printed: RunLogger {
///   let minimumLevel = RunLogLevel.info
///   func log(level: RunLogLevel, message: String, metadata: [String: String], source: String) {
///     print(level, message, metadata["path"] ?? "")
///   }
/// }
/// loop.eventSinks.append(RunLogSink(Printed()))
/// ```
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
///
/// ```swift
/// let isVerbose = ProcessInfo.processInfo.environment["DEBUG"] != nil
/// let minimumLevel: RunLogLevel = isVerbose ? .debug : .warning
/// ```
public enum RunLogLevel: String, Sendable, CaseIterable, Comparable {
  /// Values that are set, progress and waits.
  case trace
  /// Starts and successful ends of ops, groups, cases, transitions, programs and requests.
  case debug
  /// The messages of ops, and the starts and successful ends of runs.
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

/// The open runs of a sink, by their logs.
///
/// A run that an op has started is an op of another run, whose log has its start and its end. If the sink gets
/// both logs, it must count them once.
struct SinkRuns {
  /// A run whose end has not been reached.
  struct Entry {
    let name: ByteString
    let trace: TraceContext?
    /// Whether an op has started it.
    let isInner: Bool
  }

  private var entries: [ObjectIdentifier: Entry] = [:]

  /// The run of a log.
  subscript(log: EventLog) -> Entry? { entries[ObjectIdentifier(log)] }

  /// Adds a run that starts.
  mutating func begin(_ run: Run) -> Entry {
    let entry = Entry(
      name: run.log.shown(run.name), trace: run.traceContext,
      isInner: run.outerExecution != nil)
    entries[ObjectIdentifier(run.log)] = entry
    return entry
  }

  /// Removes a run that has ended.
  mutating func end(_ run: Run) -> Entry? {
    entries.removeValue(forKey: ObjectIdentifier(run.log))
  }

  /// Whether another log has the same: a record is the start or the end of a run that an op has started.
  func isElsewhere(_ record: LogRecord, in log: EventLog) -> Bool {
    (record.kind == .start || record.kind == .finish) && log.id(of: record) == 0
      && self[log]?.isInner == true
  }
}
