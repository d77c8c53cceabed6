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
  /// How many executions were dropped with all of their events.
  package fileprivate(set) var droppedExecutions = 0

  /// A sentence about what has been dropped; nil if nothing has.
  package var note: ByteString? {
    if droppedEvents == 0 { return nil }
    let whole =
      droppedExecutions > 0 ? " (all those of \(droppedExecutions) ops that succeeded)" : ""
    return "\(droppedEvents) events\(whole) were dropped: the log keeps \(limit)"
  }
}

// A log is bounded, because a run may never end. When it reaches its limit, a quarter of it is dropped at once,
// so that an event costs little on average. First the oldest lines of executions that have succeeded are
// dropped; then the oldest lines, values and states of all that haven't failed; then the oldest executions that
// have succeeded at once and enclose no others. Failures, retries, and what runs are kept: with those alone
// a log may exceed its limit.
extension EventLog {
  /// A sentence about what has been dropped; nil if nothing has.
  package var droppedNote: ByteString? { bound.note }

  /// What is known of the executions at one place.
  private struct Fate: OptionSet {
    let rawValue: UInt8
    static let isOpen = Fate(rawValue: 1)
    static let hasEnded = Fate(rawValue: 2)
    static let hasFailed = Fate(rawValue: 4)
    static let wasRetried = Fate(rawValue: 8)
    static let enclosesOthers = Fate(rawValue: 16)
  }

  /// Drops events, and sets when that is done next.
  func dropEvents() {
    let fates = readFates()
    var isDropped = [Bool](repeating: false, count: count)
    var excess = count - (bound.limit - bound.limit / 4)

    func drop(where isChosen: (LogRecord, Fate) -> Bool) {
      guard excess > 0 else { return }
      forEachStoredRecord { index, record in
        guard excess > 0, !isDropped[index] else { return }
        guard isChosen(record, fates[place(of: record)] ?? []) else { return }
        isDropped[index] = true
        bound.droppedEvents += 1
        excess -= 1
      }
    }

    drop { record, fate in
      record.kind == .log && fate.contains(.hasEnded)
        && fate.isDisjoint(with: [.isOpen, .hasFailed])
    }
    drop { record, fate in Self.isDetail(record.kind) && !fate.contains(.hasFailed) }
    var dropped: Set<UInt64> = []
    if excess > 0 {
      forEachStoredRecord { index, record in
        let place = place(of: record)
        let begins = record.isExecuted || record.kind == .start
        if excess > 0, begins, fates[place] == .hasEnded, record.position != LogRecord.ownPosition {
          dropped.insert(place)
          bound.droppedExecutions += 1
        }
        guard !isDropped[index], dropped.contains(place) else { return }
        isDropped[index] = true
        bound.droppedEvents += record.isExecuted ? 2 : 1
        excess -= 1
      }
    }
    removeRecords(where: isDropped)
    // Where little could be dropped, the next attempt comes later and later.
    bound.next = max(bound.limit, count + count / 4)
  }

  /// Events that only tell what an execution has done.
  private static func isDetail(_ kind: LogKind) -> Bool {
    switch kind {
    case .log, .progress, .add, .replace, .remove, .state, .transition, .caseMatched, .program,
      .request, .wait:
      true
    default: false
    }
  }

  private func place(of record: LogRecord) -> UInt64 {
    UInt64(record.scope) << 32 | UInt64(record.position)
  }

  private func readFates() -> [UInt64: Fate] {
    var fates: [UInt64: Fate] = [:]
    forEachStoredRecord { _, record in
      let place = place(of: record)
      switch record.kind {
      case .start: fates[place, default: []].insert(.isOpen)
      case .executed: fates[place, default: []].insert(.hasEnded)
      case .finish:
        var fate = fates[place] ?? []
        fate.remove(.isOpen)
        fate.insert(record.firstPayload.tag == .none ? .hasEnded : .hasFailed)
        fates[place] = fate
      case .retry: fates[place, default: []].insert(.wasRetried)
      default: break
      }
    }
    for scope in scopes where scope.kind != .top {
      let place = UInt64(scope.parent) << 32 | UInt64(scope.position)
      fates[place]?.insert(.enclosesOthers)
    }
    return fates
  }
}
