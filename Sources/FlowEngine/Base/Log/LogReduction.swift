/// The choice of the records that a log drops when it has reached its limit.
///
/// Each record belongs to an execution: the last one that has begun at its place, or else the one that encloses
/// that place. A machine executes the op of a step at one place again and again.
struct LogReduction {
  /// What is known of an execution.
  private struct Fate: OptionSet {
    let rawValue: UInt8
    static let hasEnded = Fate(rawValue: 1)
    static let hasFailed = Fate(rawValue: 2)
    /// Or undone.
    static let wasRetried = Fate(rawValue: 4)
    static let enclosesOthers = Fate(rawValue: 8)
    /// One of those that it encloses has failed, was retried or hasn't ended.
    static let enclosesKept = Fate(rawValue: 16)
  }

  private let log: EventLog
  /// How many records are still to be dropped.
  private var excess: Int
  private(set) var isDropped: [Bool]
  /// How many events are dropped, of which an `executed` record is two.
  private(set) var events = 0
  /// The executions of which everything is dropped, by the scope and position of flows' steps and of groups.
  private(set) var executions: [LabelPlace: Int] = [:]

  /// The executions in the order of their starts, and the ones that enclose them; -1 means the run itself.
  private var fates: ContiguousArray<Fate> = []
  private var parents: ContiguousArray<Int32> = []
  /// The execution of each record.
  private var executionOfRecord: ContiguousArray<Int32> = []

  init(_ log: EventLog, excess: Int) {
    self.log = log
    self.excess = excess
    isDropped = [Bool](repeating: false, count: log.count)
    readFates()
    drop { kind, fate in kind == .log && fate.contains(.hasEnded) && !fate.contains(.hasFailed) }
    drop { kind, fate in Self.isDetail(kind) && !fate.contains(.hasFailed) }
    dropExecutions { $0 == .hasEnded }
    dropExecutions { $0 == .hasEnded || $0 == [.hasEnded, .enclosesOthers] }
  }

  /// Drops the oldest of the chosen records.
  private mutating func drop(where isChosen: (LogKind, Fate) -> Bool) {
    guard excess > 0 else { return }
    log.forEachStoredRecord { index, record in
      guard excess > 0, !isDropped[index] else { return }
      let execution = executionOfRecord[index]
      guard isChosen(record.kind, execution < 0 ? [] : fates[Int(execution)]) else { return }
      drop(index, record)
    }
  }

  /// Drops the oldest of the chosen executions, with all that they enclose.
  private mutating func dropExecutions(where isChosen: (Fate) -> Bool) {
    guard excess > 0 else { return }
    var chosen = [Bool](repeating: false, count: fates.count)
    var next = 0
    log.forEachStoredRecord { index, record in
      let execution = Int(executionOfRecord[index])
      if execution == next {
        // Its first record.
        next += 1
        let parent = Int(parents[execution])
        chosen[execution] =
          parent >= 0 && chosen[parent] || excess > 0 && isChosen(fates[execution])
        if chosen[execution], !isDropped[index], record.kind != .groupCreated { count(record) }
      }
      if execution >= 0, chosen[execution], !isDropped[index] { drop(index, record) }
    }
  }

  private mutating func drop(_ index: Int, _ record: LogRecord) {
    isDropped[index] = true
    events += record.isExecuted ? 2 : 1
    excess -= 1
  }

  private mutating func count(_ record: LogRecord) {
    let isItem = log.scopes[Int(record.scope)].kind == .group
    let position = isItem ? LogRecord.ownPosition : record.position
    executions[LabelPlace(scope: record.scope, position: position), default: 0] += 1
  }

  /// Events that only tell what an execution has done.
  private static func isDetail(_ kind: LogKind) -> Bool {
    switch kind {
    case .log, .progress, .add, .replace, .remove, .state, .transition, .program, .request, .wait,
      .programStart, .requestStart:
      true
    default: false
    }
  }

  // MARK: Executions

  private mutating func readFates() {
    // The last execution at each place, and the one that encloses each scope.
    var current: [UInt64: Int32] = [:]
    var enclosing: [UInt32: Int32] = [0: -1]
    executionOfRecord.reserveCapacity(log.count)

    /// The execution that encloses a scope; scopes can be nested to any depth.
    func execution(enclosing scope: UInt32) -> Int32 {
      var missing: [UInt32] = []
      var scope = scope
      var found: Int32 = -1
      while true {
        if let known = enclosing[scope] {
          found = known
          break
        }
        missing.append(scope)
        let (place, outer) = placeEnclosing(scope)
        if let known = current[place] {
          found = known
          break
        }
        scope = outer
      }
      for scope in missing { enclosing[scope] = found }
      return found
    }

    log.forEachStoredRecord { _, record in
      let place = log.id(of: record)
      // The scope of the place: a nested flow is a step of the one around it.
      let scope = UInt32(truncatingIfNeeded: place >> 32)
      switch record.kind {
      case .start, .executed, .groupCreated:
        let made = Int32(truncatingIfNeeded: fates.count)
        let parent = execution(enclosing: scope)
        var fate: Fate = record.isExecuted ? .hasEnded : []
        // The op that was started as the run itself.
        if place == 0 { fate.insert(.enclosesKept) }
        fates.append(fate)
        parents.append(place == 0 ? -1 : parent)
        current[place] = made
        executionOfRecord.append(made)
        return
      default: break
      }
      let execution = current[place] ?? execution(enclosing: record.scope)
      executionOfRecord.append(execution)
      guard execution >= 0 else { return }
      switch record.kind {
      case .finish:
        fates[Int(execution)].insert(
          record.firstPayload.tag == .none ? .hasEnded : [.hasEnded, .hasFailed])
      case .groupFinished: fates[Int(execution)].insert(.hasEnded)
      case .groupStopped, .groupEmpty, .groupRefused, .caseFailed:
        fates[Int(execution)].insert(.hasFailed)
      case .retry, .undoStart, .undo: fates[Int(execution)].insert(.wasRetried)
      default: break
      }
    }
    for execution in fates.indices.reversed() where parents[execution] >= 0 {
      let isKept =
        !fates[execution].contains(.hasEnded)
        || !fates[execution].isDisjoint(with: [.hasFailed, .wasRetried, .enclosesKept])
      fates[Int(parents[execution])].insert(
        isKept ? [.enclosesOthers, .enclosesKept] : .enclosesOthers)
    }
  }

  /// The place of the execution that a scope belongs to, and the scope of that place.
  private func placeEnclosing(_ scope: UInt32) -> (place: UInt64, scope: UInt32) {
    let entry = log.scopes[Int(scope)]
    let place =
      entry.kind == .child || entry.kind == .inner
      ? log.id(scope: entry.parent, position: entry.position) : log.id(ofScope: scope)
    return (place, UInt32(truncatingIfNeeded: place >> 32))
  }
}
