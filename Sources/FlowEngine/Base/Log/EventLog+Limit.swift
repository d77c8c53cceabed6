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
