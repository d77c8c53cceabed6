/// The records of a log and of the logs that it keeps of runs which its ops have started, in the order of their times.
struct MergedRecords {
  /// A log that is read.
  struct Source {
    let log: EventLog
    /// The log with the lines about its run, and the scope of these; nil for the outermost log.
    let outer: (source: Int, scope: UInt32)?
    fileprivate let depth: Int
    fileprivate var place = EventLog.Place()
    fileprivate var next: LogRecord?
  }

  /// When the next record of a source is due. At the same time inner runs come first, because the one around them logs
  /// their ends.
  private struct Turn: Comparable {
    let time: Int64
    let rank: Int
    let source: Int

    static func < (one: Turn, other: Turn) -> Bool {
      (one.time, one.rank, one.source) < (other.time, other.rank, other.source)
    }
  }

  private(set) var sources: ContiguousArray<Source> = []
  private var turns = EarliestFirst<Turn>()
  /// The source of the next record.
  private var current = 0

  init(_ log: EventLog) { add(log, outer: nil, depth: 0) }

  private mutating func add(
    _ log: EventLog, outer: (source: Int, scope: UInt32)?, depth: Int
  ) {
    sources.append(Source(log: log, outer: outer, depth: depth))
    advance(sources.count - 1)
  }

  private mutating func advance(_ source: Int) {
    sources[source].next = sources[source].log.record(at: &sources[source].place)
  }

  private func turn(of source: Int) -> Turn? {
    let (depth, next) = (sources[source].depth, sources[source].next)
    return next.map { Turn(time: $0.time, rank: -depth, source: source) }
  }

  /// The next record, and the index of its source; nil after the last one.
  mutating func next() -> (record: LogRecord, source: Int)? {
    let source = current
    guard let record = sources[source].next else { return nil }
    advance(source)
    let log = sources[source].log
    if record.kind == .start, let child = log.children.logs[record.scope],
      record.position == LogRecord.ownPosition
    {
      add(child, outer: (source, record.scope), depth: sources[source].depth + 1)
      if let turn = turn(of: sources.count - 1) { turns.push(turn) }
    }
    let own = turn(of: source)
    if let first = turns.first, own.map({ first < $0 }) ?? true {
      if let own { turns.push(own) }
      current = turns.pop()?.source ?? source
    }
    return (record, source)
  }
}
