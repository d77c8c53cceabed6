/// The choice of the records that a log drops when it has reached its limit.
///
/// Each record belongs to an execution: the last one that has begun at its place, or else the one that encloses
/// that place. A machine executes the op of a step at one place again and again.
struct LogReduction {
  /// The facts about an execution.
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
  /// Counts the executions of which everything is dropped.
  private(set) var executions: ExecutionCounts

  /// The executions in the order of their starts, and the ones that enclose them; -1 means the run itself.
  private var fates: ContiguousArray<Fate> = []
  private var parents: ContiguousArray<Int32> = []
  /// The execution of each record.
  private var executionOfRecord: ContiguousArray<Int32> = []
  /// Whether there are records that are dropped before whole executions are.
  private var hasDetails = false

  init(_ log: EventLog, excess: Int, executions: consuming ExecutionCounts) {
    self.log = log
    self.executions = executions
    self.excess = excess
    isDropped = [Bool](repeating: false, count: log.count)
    readFates()
    if hasDetails {
      drop { kind, fate in kind == .log && fate.contains(.hasEnded) && !fate.contains(.hasFailed) }
      drop { kind, fate in kind.isDetail && !fate.contains(.hasFailed) }
    }
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
        if chosen[execution], !isDropped[index], record.kind != .groupCreated {
          executions.add(record, of: log)
        }
      }
      if execution >= 0, chosen[execution], !isDropped[index] { drop(index, record) }
    }
  }

  private mutating func drop(_ index: Int, _ record: LogRecord) {
    isDropped[index] = true
    events += record.isExecuted ? 2 : 1
    excess -= 1
  }

  // MARK: Executions

  private mutating func readFates() {
    // The last execution at each place, and the one that encloses each scope.
    var current = ExecutionsByPlace(log)
    var enclosing: [UInt32: Int32] = [0: -1]
    // Most records are in the scope of the one before them.
    var known: (scope: UInt32, execution: Int32) = (0, -1)
    executionOfRecord.reserveCapacity(log.count)

    /// The execution that encloses a scope; scopes can be nested to any depth.
    func execution(enclosing inner: UInt32) -> Int32 {
      if known.scope == inner { return known.execution }
      var missing: [UInt32] = []
      var scope = inner
      var found: Int32 = -1
      while true {
        if let execution = enclosing[scope] {
          found = execution
          break
        }
        missing.append(scope)
        let (place, outer) = placeEnclosing(scope)
        if let execution = current[place] {
          found = execution
          break
        }
        scope = outer
      }
      for scope in missing { enclosing[scope] = found }
      known = (inner, found)
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
      if record.kind.isDetail { hasDetails = true }
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

/// How many executions there were at places: steps of flows, and groups as wholes.
struct ExecutionCounts {
  private(set) var sum = 0
  private var counts: [UInt32: ContiguousArray<Int>] = [:]
  /// Those of the scope that was counted last: most are of the same one. Only steps of flows count one by one:
  /// elsewhere a position is the index of an item, which may be any number.
  private var last: (scope: UInt32, hasSteps: Bool, counts: ContiguousArray<Int>)?

  mutating func add(_ record: LogRecord, of log: EventLog) {
    if last?.scope != record.scope {
      if let (scope, _, values) = last.take() { counts[scope] = values }
      let kind = log.scopes[Int(record.scope)].kind
      let known = counts.removeValue(forKey: record.scope) ?? []
      last = (record.scope, kind == .flow || kind == .top, known)
    }
    let index = last?.hasSteps == true ? Self.index(of: record.position) : 0
    let missing = index + 1 - (last?.counts.count ?? 0)
    if missing > 0 { last?.counts.append(contentsOf: repeatElement(0, count: missing)) }
    last?.counts[index] += 1
    sum += 1
  }

  /// Where the count of a position is. First comes the place of the scope itself, then the first step, the first final
  /// step, the second step and so on: the positions of final steps have the highest bit (`Blueprint.finallyBit`).
  private static func index(of position: UInt32) -> Int {
    Int((position << 1 | position >> 31) &+ 1)
  }

  private static func position(at index: Int) -> UInt32 {
    let turned = UInt32(truncatingIfNeeded: index) &- 1
    return turned >> 1 | turned << 31
  }

  /// Calls a function with each place that has executions.
  func forEach(_ body: (_ scope: UInt32, _ position: UInt32, _ count: Int) -> Void) {
    func each(_ scope: UInt32, _ values: ContiguousArray<Int>) {
      for (index, count) in values.enumerated() where count > 0 {
        body(scope, Self.position(at: index), count)
      }
    }
    for (scope, values) in counts { each(scope, values) }
    if let last { each(last.scope, last.counts) }
  }
}

/// The last execution at each place of a log's records: an array where the places lie close together, as the steps of
/// flows and the items of groups do. In a dictionary an op of a long flow cost 250 ns more.
private struct ExecutionsByPlace {
  /// Of each scope the first place, and where its numbers begin; -1 stands for no execution.
  private let firsts: ContiguousArray<UInt32>
  private let starts: ContiguousArray<Int>
  private var numbers: ContiguousArray<Int32> = []
  private var sparse: [UInt64: Int32] = [:]
  private let isSparse: Bool

  init(_ log: EventLog) {
    var firsts = ContiguousArray<UInt32>(repeating: .max, count: log.scopes.count)
    var ends = ContiguousArray<UInt32>(repeating: 0, count: log.scopes.count)
    log.forEachStoredRecord { _, record in
      let (scope, number) = Self.parts(of: log.id(of: record))
      firsts[scope] = min(firsts[scope], number)
      ends[scope] = max(ends[scope], number)
    }
    var starts: ContiguousArray<Int> = [0]
    starts.reserveCapacity(firsts.count + 1)
    var total = 0
    for (first, end) in zip(firsts, ends) {
      if first <= end { total += Int(end - first) + 1 }
      starts.append(total)
    }
    self.firsts = firsts
    self.starts = starts
    // A few items of a large group may be left.
    isSparse = total > 4 * log.count + 4096
    if !isSparse { numbers = ContiguousArray(repeating: -1, count: total) }
  }

  private static func parts(of place: UInt64) -> (scope: Int, number: UInt32) {
    (Int(place >> 32), UInt32(truncatingIfNeeded: place))
  }

  /// Where the number of a place is; nil for one without records.
  private func index(_ place: UInt64) -> Int? {
    let (scope, number) = Self.parts(of: place)
    guard number >= firsts[scope] else { return nil }
    let index = starts[scope] + Int(number - firsts[scope])
    return index < starts[scope + 1] ? index : nil
  }

  subscript(place: UInt64) -> Int32? {
    get {
      if isSparse { return sparse[place] }
      guard let index = index(place), numbers[index] >= 0 else { return nil }
      return numbers[index]
    }
    set {
      if isSparse {
        sparse[place] = newValue
      } else if let index = index(place) {
        numbers[index] = newValue ?? -1
      }
    }
  }
}
