/// How many events a log keeps, and how many it has dropped.
package struct LogBound {
  /// The limit of runs that set none.
  package static let defaultLimit = 1_000_000

  /// The most events that the log keeps, if what it must keep leaves room for it.
  package var limit = Self.defaultLimit {
    didSet { next = limit }
  }
  /// The number of records at which events are dropped next.
  fileprivate(set) var next = Self.defaultLimit
  /// How many events have been dropped.
  package fileprivate(set) var droppedEvents = 0
  /// How many executions of each step of a flow, and of the items of each group, were dropped with all of their events.
  fileprivate(set) var executions = ExecutionCounts()
  package var droppedExecutions: Int { executions.sum }

  /// The counts, to be changed and given to `noteDropped`: two owners would copy them.
  mutating func takeExecutions() -> ExecutionCounts {
    defer { executions = ExecutionCounts() }
    return executions
  }

  mutating func noteDropped(events: Int, _ executions: ExecutionCounts) {
    noteDropped(events: events)
    self.executions = executions
  }

  mutating func noteDropped(events: Int) { droppedEvents += events }

  /// A sentence about what has been dropped; nil if nothing has.
  package var note: ByteString? {
    if droppedEvents == 0 { return nil }
    let whole =
      droppedExecutions > 0 ? " (all those of \(droppedExecutions) ops that succeeded)" : ""
    return "\(droppedEvents) events\(whole) were dropped: the log keeps \(limit)"
  }
}

/// Is notified while a log still has all of its events.
protocol DropObserver: AnyObject {
  /// A log is about to drop events for the first time.
  func logWillDrop(_ log: EventLog)
}

// A log is bounded, because a run may never end. When it reaches its limit, a quarter of it is dropped at once,
// so that an event costs little on average. First the oldest lines of executions that have succeeded are
// dropped; then the oldest lines, values and states of all that haven't failed; then the oldest executions that
// have succeeded at once, those that enclose others last. Failures, retries, and what runs are kept, with the
// flows and groups around them: with those alone a log may exceed its limit.
extension EventLog {
  /// A sentence about what has been dropped; nil if nothing has.
  package var droppedNote: ByteString? { bound.note }

  /// Drops events, and sets when that is done next.
  func dropEvents() {
    dropObserver.take()?.logWillDrop(self)
    let excess = count - (bound.limit - bound.limit / 4)
    if !removePlainOps(excess) {
      let reduction = LogReduction(self, excess: excess, executions: bound.takeExecutions())
      bound.noteDropped(events: reduction.events, reduction.executions)
      removeRecords(where: reduction.isDropped)
    }
    // Where little could be dropped, the next attempt comes later and later.
    bound.next = max(bound.limit, count + count / 4)
    stopAtBound()
  }
}

// Most logs that are full consist of ops that are one record each: they have succeeded at once, and enclose nothing.
// LogReduction looks at all records and moves those that stay, which costs ten times as much as what is done here: each
// record is looked at once while its chunk is among those that stay, and once more when it is dropped.
extension EventLog {
  /// Removes the oldest ops of one record each. Returns false, without having removed anything, when something else would
  /// come before them.
  func removePlainOps(_ excess: Int) -> Bool {
    guard excess > 0, isMostlyPlain(excess) else { return false }
    var executions = bound.takeExecutions()
    // The rest of the oldest chunks, and where it was.
    var kept: ContiguousArray<LogRecord> = []
    var indices: ContiguousArray<Int> = []
    var missing = excess
    var front = 0
    var index = 0
    while missing > 0 {
      for record in chunks[front] {
        if missing > 0, isPlainOp(record) {
          missing -= 1
          executions.add(record, of: self)
        } else {
          kept.append(record)
          indices.append(index)
        }
        index += 1
      }
      front += 1
    }
    // The finish of an op comes as many records later as are left of those between.
    for place in kept.indices where kept[place].isExecuted && kept[place].first != 0 {
      let end = indices[place] + 1 + Int(truncatingIfNeeded: kept[place].first)
      let newEnd = end < index ? Self.count(of: indices, before: end) : kept.count + end - index
      kept[place].first = UInt64(newEnd - place - 1)
    }
    replaceChunks(front, with: kept)
    bound.noteDropped(events: 2 * excess, executions)
    return true
  }

  /// How many of the indices, which ascend, are less than `end`.
  private static func count(of indices: ContiguousArray<Int>, before end: Int) -> Int {
    var (low, high) = (0, indices.count)
    while low < high {
      let middle = (low + high) / 2
      if indices[middle] < end { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private func isPlainOp(_ record: LogRecord) -> Bool {
    record.isExecuted && record.first == 0 && (record.scope != 0 || id(of: record) != 0)
  }

  /// Whether nothing else comes before the oldest ops of one record, and there are enough of them in the chunks
  /// before the last one, which is being filled.
  private func isMostlyPlain(_ excess: Int) -> Bool {
    guard let newest = chunks.last else { return false }
    let full = chunks.count - 1
    while othersInChunks.count < full {
      othersInChunks.append(countOthers(chunks[othersInChunks.count]))
    }
    let records = chunks.prefix(full).reduce(0) { $0 + $1.count }
    var others = 0
    for number in othersInChunks {
      guard let number else { return false }
      others += number
    }
    guard records - others >= excess,
      let last = countOthers(UnsafeMutableBufferPointer(rebasing: newest.prefix(count - records)))
    else { return false }
    return others + last <= count / 16
  }

  /// How many records aren't ops of one record; nil if there is one that is dropped before whole executions are, or that
  /// keeps them.
  private func countOthers(_ records: UnsafeMutableBufferPointer<LogRecord>) -> Int? {
    var others = 0
    for record in records where !isPlainOp(record) {
      others += 1
      switch record.kind {
      // Undone and repeated ops are kept.
      case .retry, .undoStart, .undo: return nil
      case let kind where kind.isDetail: return nil
      default: break
      }
    }
    return others
  }
}
