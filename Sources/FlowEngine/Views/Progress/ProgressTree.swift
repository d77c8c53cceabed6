/// The present work of a loop's runs, for a live display: a sink of their logs.
///
/// It follows the starts and ends in the logs, and makes rows when they are asked for. An op that starts and
/// ends with nothing in between gets no node. Confined to its loop's thread. Add it to
/// `FlowEventLoop.eventSinks` before the first run, or call `followLate(after:)`.
package final class ProgressTree: RunSink, RecordSink, GroupSink {
  /// Is notified on the loop's thread.
  package protocol Observer: AnyObject {
    /// Something has changed. Returns the time of the loop's clock before which this needn't be called
    /// again.
    func progressChanged(at time: Int64) -> Int64
    /// Something is to be reported once.
    func progressNoticed(_ notice: ProgressNotice)
    /// Nothing is in progress any more.
    func progressEnded()
  }

  /// Called with what is to be reported once, on the loop's thread.
  package var onNotice: ((ProgressNotice) -> Void)?
  package weak var observer: (any Observer)?

  unowned let loop: FlowEventLoop
  private var logs: [ObjectIdentifier: ProgressLog] = [:]

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) var nodes = ProgressNodes()
  /// The time from which on the observer is notified of changes.
  @exclusivity(unchecked) private var nextChange: Int64 = 0
  /// The log of the last record. Unretained: `logs` holds it.
  @exclusivity(unchecked) private var lastLog: Unmanaged<ProgressLog>?
  /// The start of an execution in that log that has no node yet: most end right after it.
  @exclusivity(unchecked) private var held: LogRecord?
  /// Whether that one is kept.
  @exclusivity(unchecked) private var isHeldKept = false

  /// The groups that are executing, for the numbers of their running items.
  var groups: [Int32: RunningGroup] = [:]
  var estimates: [Int32: RemainingTime] = [:]
  /// How often items of a group have failed with a message.
  var failureCounts: [Int32: [ByteString: Int]] = [:]

  struct RunningGroup { weak var execution: GroupExecution? }

  /// Set if runs are followed only when they are executed for long; see ProgressTree+Late.swift.
  var late: LateFollowing?

  /// How many failures of a group with the same message are reported.
  package static let failureLimit = 10
  /// How many messages of a group's failures are remembered.
  static let messageLimit = 1000

  /// Makes a tree of the runs of a loop.
  package init(of loop: FlowEventLoop) { self.loop = loop }

  /// Whether nothing is in progress.
  package var isEmpty: Bool { nodes.isEmpty && held == nil }

  // MARK: Runs

  package func runBegan(_ run: Run) {
    // It is followed already if that has begun just now.
    guard run.loop === loop, logs[ObjectIdentifier(run.log)] == nil else { return }
    begin(run.log, in: run.outer.map { ($0.run.log, $0.scope) })
  }

  /// Begins to follow the log of a run; `outer` is its scope in the log of the op that has started it.
  func begin(_ log: EventLog, in outer: (log: EventLog, scope: UInt32)?) {
    addHeld()
    if let outer, let outerLog = logs[ObjectIdentifier(outer.log)],
      let node = outerLog.known[outer.log.id(ofScope: outer.scope)]
    {
      let child = ProgressLog(log, root: node)
      nodes[node].child = child
      logs[ObjectIdentifier(log)] = child
      markFlow(node, log)
      return
    }
    let tracked = ProgressLog(log, root: ProgressNodes.none)
    tracked.root = nodes.add(
      ProgressNode(log: tracked, position: LogRecord.ownPosition, start: log.began),
      to: ProgressNodes.top)
    tracked.known = [0: tracked.root]
    logs[ObjectIdentifier(log)] = tracked
    markFlow(tracked.root, log)
  }

  private func markFlow(_ index: Int32, _ log: EventLog) {
    guard let parts = log.scopes.first?.parts else { return }
    nodes[index].kind = .flow
    nodes[index].total = parts.partCount
  }

  package func runEnded(_ run: Run) {
    guard end(run.log, RunEnd(of: run)) else { return }
    guard isEmpty else { return }
    stopFollowing()
    observer?.progressEnded()
  }

  /// Follows the log of a run no more; false if it hasn't been followed.
  @discardableResult
  func end(_ log: EventLog, _ end: RunEnd) -> Bool {
    let id = ObjectIdentifier(log)
    guard let tracked = logs[id] else { return false }
    addHeld()
    if lastLog?.toOpaque() == Unmanaged.passUnretained(tracked).toOpaque() { lastLog = nil }
    logs[id] = nil
    let root = tracked.root
    if root != ProgressNodes.none {
      // The end of a run that an op has started is in the log of that op.
      if nodes[root].child === tracked {
        nodes[root].child = nil
        if nodes[root].log?.root == ProgressNodes.none { remove(root, isStopped: true) }
      } else {
        if let failure = end.failure { report(failure, of: root) }
        remove(root, isStopped: end.isStopped)
      }
    }
    return true
  }

  // MARK: Records

  package func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}

  func append(_ record: LogRecord, in log: EventLog) {
    guard let log = tracked(log) else { return }
    // Safe: no record ends a run.
    if log.lend({ take(record, $0) }), record.time >= nextChange { change(at: record.time) }
  }

  /// Takes a record that was appended before.
  func replay(_ record: LogRecord, in log: EventLog) {
    if let log = tracked(log) { _ = log.lend { take(record, $0) } }
  }

  /// Takes a record; returns whether rows may have changed.
  @inline(__always)
  private func take(_ record: LogRecord, _ log: ProgressLog) -> Bool {
    switch record.kind {
    case .start:
      if held != nil { addHeld() }
      held = record
      isHeldKept = false
    case .finish:
      if let held, held.scope == record.scope, held.position == record.position,
        record.firstPayload.tag == .none
      {
        self.held = nil
        endHeld(held, record, log, isKept: isHeldKept)
      } else {
        addHeld()
        finish(
          record, log,
          record.firstPayload.tag == .none ? nil : log.log.text(record.firstPayload))
      }
    case .retry, .attempt, .progress, .transition, .groupCreated, .groupFinished, .groupStopped,
      .groupRefused, .groupEmpty, .undoStart, .undo, .programStart, .requestStart, .program,
      .request, .queues:
      addHeld()
      addRare(record, log)
    case .kept:
      isHeldKept = true
      return false
    default: return false
    }
    return true
  }

  /// Notifies the observer if its time has come.
  package func change(at time: Int64) {
    nextChange = observer?.progressChanged(at: time) ?? .max
  }

  /// Notifies the observer of no change before the next call of `change`.
  func pauseChanges() { nextChange = .max }

  /// Has the observer be notified of the next change.
  package func awaitChange() { nextChange = 0 }

  /// Returns what is known of a log, for the next record of it.
  @inline(__always)
  func tracked(_ log: EventLog) -> Unmanaged<ProgressLog>? {
    if let lastLog, lastLog.lend({ $0.log === log }) { return lastLog }
    return otherTracked(log)
  }

  @inline(never)
  private func otherTracked(_ log: EventLog) -> Unmanaged<ProgressLog>? {
    addHeld()
    lastLog = logs[ObjectIdentifier(log)].map { .passUnretained($0) }
    return lastLog
  }

  private func addRare(_ record: LogRecord, _ log: ProgressLog) {
    let text = { log.log.text(record.firstPayload) }
    switch record.kind {
    case .queues:
      let id = log.log.id(of: record)
      if id == 0 || log.known[id] != nil { return }
      add(record, log, id, .op)
      if let index = log.known[id] { nodes[index].limit = text() }
    case .groupCreated: addGroup(record, log)
    case .groupFinished: finish(record, log, nil)
    case .undoStart: startUndo(record, log)
    case .undo:
      endUndo(record, log, record.firstPayload.tag == .none ? nil : text())
    case .groupEmpty: finish(record, log, "withInsufficientInputData: \(text())")
    case .groupRefused:
      if log.known[log.log.id(of: record)] == nil { addGroup(record, log) }
      finish(record, log, text())
    default:
      guard let index = log.known[log.log.id(of: record)] else { return }
      switch record.kind {
      case .retry:
        closeChildren(of: index)
        nodes[index].attempt = record.attempt + 1
        let due = record.time.later(by: max(0, Int64(bitPattern: record.second)))
        nodes[index].due = due
        nodes[index].attemptStart = due
        nodes[index].ended = 0
        nodes[index].endedSteps = EndedSteps()
        nodes[index].reported = nil
        nodes[index].works = []
        estimates[index] = nil
      case .attempt: nodes[index].due = nil
      case .progress:
        nodes[index].reported = (record.firstPayload.number ?? 0, record.secondPayload.number)
      case .transition: nodes[index].transition = text()
      case .groupStopped: nodes[index].isStopped = true
      case .programStart, .requestStart: nodes[index].works.append(log.log.work(of: record))
      case .program, .request: endWork(log.log.work(of: record), of: index)
      default: break
      }
    }
  }

  private func endWork(_ work: LoggedWork, of index: Int32) {
    let works = nodes[index].works
    // A redirect changes the URL of a request.
    let place =
      works.firstIndex { $0.kind == work.kind && $0.title == work.title }
      ?? works.firstIndex { $0.kind == work.kind }
    if let place { nodes[index].works.remove(at: place) }
  }

  // MARK: Starts

  /// Adds the node of the start that was held.
  func addHeld() {
    guard let record = held.take(), let log = lastLog?.takeUnretainedValue() else { return }
    let id = log.log.id(of: record)
    // The run itself; or what executed an item was lost, and the item starts again.
    if id == 0 { return }
    guard let known = log.known[id] else { return add(record, log, id, .op) }
    if nodes[known].limit != nil {
      nodes[known].limit = nil
      nodes[known].start = record.time
    }
  }

  private func add(_ record: LogRecord, _ log: ProgressLog, _ id: UInt64, _ kind: ProgressRow.Kind)
  {
    let parent = parent(of: record, log)
    guard parent != ProgressNodes.none else { return }
    let isItem =
      record.position != LogRecord.ownPosition
      && log.log.scopes[Int(record.scope)].kind == .group
    var node = ProgressNode(log: log, id: id, scope: record.scope, position: record.position)
    node.isItem = isItem
    node.kind = kind
    node.start = record.time
    log.known[id] = nodes.add(node, to: parent)
  }

  private func addGroup(_ record: LogRecord, _ log: ProgressLog) {
    let id = log.log.id(of: record)
    add(record, log, id, .group)
    guard let index = log.known[id], nodes[index].kind == .group else { return }
    if record.kind == .groupCreated, record.firstPayload.tag == .integer {
      nodes[index].total = Int(exactly: Int64(bitPattern: record.first))
    }
  }

  /// Makes the number of a group's running items known.
  func groupStarted(_ group: GroupExecution) {
    let (log, id) = group.place
    guard let index = logs[ObjectIdentifier(log)]?.known[id] else { return }
    groups[index] = RunningGroup(execution: group)
  }

  /// The node that encloses an execution; closes a group of it that has ended without a line.
  @inline(__always)
  func parent(of record: LogRecord, _ log: ProgressLog) -> Int32 {
    let parent = log.parent(of: record)
    guard parent != ProgressNodes.none else { return parent }
    if nodes[parent].kind != .flow {
      if nodes[parent].kind == .op { noteFlow(parent, record, log) }
    } else if nodes[parent].last != ProgressNodes.none {
      closeStoppedGroup(in: parent)
    }
    return parent
  }

  /// Records that an op is a flow, if the execution is one of its steps.
  @inline(never)
  private func noteFlow(_ index: Int32, _ record: LogRecord, _ log: ProgressLog) {
    let scope = log.log.scopes[Int(record.scope)]
    guard scope.kind == .flow else { return }
    nodes[index].kind = .flow
    nodes[index].total = scope.parts?.partCount
  }

  @inline(never)
  private func closeStoppedGroup(in parent: Int32) {
    let last = nodes[parent].last
    if nodes[last].kind == .group, nodes[last].isStopped { remove(last, isStopped: true) }
  }
}
