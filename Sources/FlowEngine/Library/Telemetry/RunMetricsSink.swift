/// Measures runs and their ops:
///
/// | metric | kind | dimensions |
/// |---|---|---|
/// | `flow.runs.started` | counter | `flow` |
/// | `flow.runs.finished` | counter | `flow`, `outcome` |
/// | `flow.runs.duration` | timer | `flow`, `outcome` |
/// | `flow.runs.active` | gauge | |
/// | `flow.ops.finished` | counter | `op`, `outcome` |
/// | `flow.ops.duration` | timer, with the waits for retries | `op`, `outcome` |
/// | `flow.ops.retries` | counter of attempts that another one follows | `op` |
/// | `flow.ops.kept` | counter of ops that a kept run has the results of | `op` |
/// | `flow.ops.undone` | counter | `op`, `outcome` |
///
/// An outcome is `succeeded`, `failed` or `cancelled`. Runs are those that no op has started; runs that an op
/// starts, and flows within flows, count as ops. Items of a group have the name of their op. Add it to
/// `FlowEventLoop.eventSinks` for all runs of a loop, or give it to one run.
///
/// ```swift
/// loop.eventSinks.append(RunMetricsSink(metrics))
/// ```
public final class RunMetricsSink: RunSink, RecordSink {
  private let metrics: any RunMetrics
  private var runs = SinkRuns()
  private var activeCount = 0
  /// The executions that aren't executed because a kept run has their results, until their end.
  private var kept: Set<Place> = []

  private struct Place: Hashable {
    let log: ObjectIdentifier
    let id: UInt64
  }

  /// Makes a sink that records into these metrics.
  public init(_ metrics: any RunMetrics) {
    self.metrics = metrics
  }

  public func runBegan(_ run: Run) {
    let entry = runs.begin(run)
    if entry.isInner { return }
    activeCount += 1
    metrics.increment(
      counter: "flow.runs.started", dimensions: [("flow", "\(entry.name)")], by: 1)
    metrics.record(gauge: "flow.runs.active", dimensions: [], value: Double(activeCount))
  }

  public func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}

  func append(_ record: LogRecord, in log: EventLog) {
    switch record.kind {
    case .finish:
      if runs.isElsewhere(record, in: log) || endsKept(record, in: log) { return }
      let dimensions = outcome(of: record, in: log)
      metrics.increment(counter: "flow.ops.finished", dimensions: dimensions, by: 1)
      metrics.record(
        timer: "flow.ops.duration", dimensions: dimensions,
        nanoseconds: Int64(bitPattern: record.second))
    case .retry:
      metrics.increment(counter: "flow.ops.retries", dimensions: [op(of: record, in: log)], by: 1)
    case .kept:
      kept.insert(Place(log: ObjectIdentifier(log), id: log.id(of: record)))
      metrics.increment(counter: "flow.ops.kept", dimensions: [op(of: record, in: log)], by: 1)
    case .undo:
      metrics.increment(
        counter: "flow.ops.undone", dimensions: outcome(of: record, in: log), by: 1)
    default: break
    }
  }

  public func runEnded(_ run: Run) {
    guard let entry = runs.end(run), !entry.isInner else { return }
    activeCount -= 1
    let dimensions = [("flow" as String, String(entry.name)), ("outcome", String(run.state.name))]
    metrics.increment(counter: "flow.runs.finished", dimensions: dimensions, by: 1)
    metrics.record(
      timer: "flow.runs.duration", dimensions: dimensions,
      nanoseconds: run.duration.wholeNanoseconds)
    metrics.record(gauge: "flow.runs.active", dimensions: [], value: Double(activeCount))
  }

  /// Whether the finish belongs to an op which wasn't executed.
  private func endsKept(_ record: LogRecord, in log: EventLog) -> Bool {
    if kept.isEmpty { return false }
    return kept.remove(Place(log: ObjectIdentifier(log), id: log.id(of: record))) != nil
  }

  private func op(of record: LogRecord, in log: EventLog) -> (String, String) {
    ("op", log.shown(log.subject(of: record).name).description)
  }

  private func outcome(of record: LogRecord, in log: EventLog) -> [(String, String)] {
    let outcome: String =
      switch log.loggedOutcome(of: record).state {
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      }
    return [op(of: record, in: log), ("outcome", outcome)]
  }
}

/// Records measurements of runs: the part of a program's metrics that `RunMetricsSink` needs.
///
/// Its methods have the shapes of `Counter`, `Timer` and `Gauge` of swift-metrics, so that an adapter passes
/// them on. They are called on the loop's thread; metrics of several loops have to be safe for that.
///
/// ```swift
/// struct Printed: RunMetrics {
///   func increment(counter label: String, dimensions: [(String, String)], by amount: Int64) {
///     print(label, dimensions, amount)
///   }
///   func record(timer label: String, dimensions: [(String, String)], nanoseconds: Int64) {}
///   func record(gauge label: String, dimensions: [(String, String)], value: Double) {}
/// }
/// loop.eventSinks.append(RunMetricsSink(Printed()))
/// ```
public protocol RunMetrics {
  /// Increases a counter.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - amount: A positive number.
  func increment(counter label: String, dimensions: [(String, String)], by amount: Int64)

  /// Adds a duration to a timer.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - nanoseconds: The duration.
  func record(timer label: String, dimensions: [(String, String)], nanoseconds: Int64)

  /// Sets a gauge.
  ///
  /// - Parameters:
  ///   - label: Its name.
  ///   - dimensions: Names and values that tell its series apart.
  ///   - value: Its value from now on.
  func record(gauge label: String, dimensions: [(String, String)], value: Double)
}
