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
      name: run.log.shown(run.nameBytes), trace: run.traceContext,
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
