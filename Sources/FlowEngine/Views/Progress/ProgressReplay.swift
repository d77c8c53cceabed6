/// Passes a tree the records that the logs of runs have so far, in the order of their times.
struct ProgressReplay {
  private struct Source {
    let log: EventLog
    let id: UInt64
    let outer: (log: EventLog, scope: UInt32)?
    let end: (time: Int64, end: RunEnd)?
    var place = EventLog.Place()
    var next: LogRecord?
    /// How many runs are around it.
    var depth = 0
  }

  /// When the next record of a source, or its end, is due. At the same time inner runs come first, because the
  /// one around them logs their ends, and ends come last.
  private struct Turn: Comparable {
    let time: Int64
    let rank: Int
    let id: UInt64
    let source: Int

    static func < (one: Turn, other: Turn) -> Bool {
      (one.time, one.rank, one.id) < (other.time, other.rank, other.id)
    }
  }

  private struct Place: Hashable {
    let log: ObjectIdentifier
    let scope: UInt32
  }

  private let tree: ProgressTree
  private var sources: [Source] = []
  private var turns = EarliestFirst<Turn>()
  /// The sources of runs that ops of others have started.
  private var inner: [Place: Int] = [:]

  init(_ tree: ProgressTree) { self.tree = tree }

  /// Adds the log of a run. `outer` is its scope in the log of the op that has started it.
  mutating func add(
    _ log: EventLog, id: UInt64, in outer: (log: EventLog, scope: UInt32)?,
    end: (time: Int64, end: RunEnd)?
  ) {
    sources.append(Source(log: log, id: id, outer: outer, end: end))
  }

  /// Passes on all records.
  mutating func perform() {
    let logs = Set(sources.map { ObjectIdentifier($0.log) })
    for (index, source) in sources.enumerated() {
      if let outer = source.outer, logs.contains(ObjectIdentifier(outer.log)) {
        inner[Place(log: ObjectIdentifier(outer.log), scope: outer.scope)] = index
      } else {
        turns.push(turn(of: index, at: source.log.began))
      }
    }
    while let turn = turns.pop() {
      if turn.rank == .max {
        if let end = sources[turn.source].end { tree.end(sources[turn.source].log, end.end) }
      } else {
        pass(turn.source)
      }
    }
  }

  private func turn(of source: Int, at time: Int64) -> Turn {
    Turn(time: time, rank: -sources[source].depth, id: sources[source].id, source: source)
  }

  private mutating func begin(_ index: Int) {
    let source = sources[index]
    tree.begin(source.log, in: source.outer)
    sources[index].next = source.log.record(at: &sources[index].place)
  }

  /// Passes on the records of a source up to the next turn of another one.
  private mutating func pass(_ index: Int) {
    if sources[index].place.index == 0 { begin(index) }
    let log = sources[index].log
    while let record = sources[index].next {
      let turn = turn(of: index, at: record.time)
      if let first = turns.first, first < turn {
        turns.push(turn)
        return
      }
      tree.replay(record, in: log)
      sources[index].next = log.record(at: &sources[index].place)
      if record.kind == .start, log.scopes[Int(record.scope)].kind == .child,
        let started = inner[Place(log: ObjectIdentifier(log), scope: record.scope)]
      {
        sources[started].depth = sources[index].depth + 1
        begin(started)
        turns.push(self.turn(of: started, at: record.time))
      }
    }
    if let end = sources[index].end {
      turns.push(Turn(time: end.time, rank: .max, id: sources[index].id, source: index))
    }
  }
}
