/// What the runs of a loop execute now, for a live display: a sink of their logs.
///
/// It follows the starts and ends in the logs, and makes rows when they are asked for. An op that starts and
/// ends with nothing in between gets no node. Confined to its loop's thread. Add it to
/// `EventLoop.eventSinks` before the first run.
public final class ProgressTree: RunSink, RecordSink, GroupSink {
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
  public var onNotice: ((ProgressNotice) -> Void)?
  package weak var observer: (any Observer)?
  private var nextChange: Int64 = 0

  unowned let loop: EventLoop
  var nodes = ProgressNodes()
  private var logs: [ObjectIdentifier: ProgressLog] = [:]
  private var lastLog: ProgressLog?
  /// The start of an execution that has no node yet: most end right after it.
  private var held: (record: LogRecord, log: ProgressLog)?
  /// The groups that are executing, for the numbers of their running items.
  var groups: [Int32: RunningGroup] = [:]
  var estimates: [Int32: RemainingTime] = [:]
  /// How often items of a group have failed with a message.
  var failureCounts: [Int32: [ByteString: Int]] = [:]

  struct RunningGroup { weak var execution: GroupExecution? }

  /// How many failures of a group with the same message are reported.
  package static let failureLimit = 10
  /// How many messages of a group's failures are remembered.
  static let messageLimit = 1000
  /// How many ended steps of a flow have rows.
  static let endedStepLimit = 4

  /// Makes a tree of the runs of a loop.
  public init(of loop: EventLoop) { self.loop = loop }

  /// Whether nothing is in progress.
  public var isEmpty: Bool { nodes.isEmpty && held == nil }

  // MARK: Runs

  public func runBegan(_ run: Run) {
    guard run.loop === loop else { return }
    addHeld()
    let log = run.log
    if let outer = run.outer, let outerLog = logs[ObjectIdentifier(outer.run.log)],
      let node = outerLog.known[outer.run.log.id(ofScope: outer.scope)]
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

  public func runEnded(_ run: Run) {
    let id = ObjectIdentifier(run.log)
    guard let tracked = logs[id] else { return }
    addHeld()
    logs[id] = nil
    if lastLog === tracked { lastLog = nil }
    let root = tracked.root
    if root != ProgressNodes.none {
      // The end of a run that an op has started is in the log of that op.
      if nodes[root].child === tracked {
        nodes[root].child = nil
        if nodes[root].log?.root == ProgressNodes.none { remove(root, isStopped: true) }
      } else {
        if run.state == .failed, let error = run.error, error.kind != .cancelled {
          report(error.message, of: root)
        }
        remove(root, isStopped: run.state != .succeeded)
      }
    }
    if isEmpty { observer?.progressEnded() }
  }

  // MARK: Records

  public func append(_ event: Event, value: Value?, in log: EventLog) {}

  func append(_ record: LogRecord, in log: EventLog) {
    guard let log = tracked(log) else { return }
    switch record.kind {
    case .start:
      addHeld()
      held = (record, log)
    case .finish:
      if let held, held.log === log, held.record.scope == record.scope,
        held.record.position == record.position, record.firstPayload.tag == .none
      {
        self.held = nil
        endHeld(held.record, record, log)
      } else {
        addHeld()
        finish(
          record, log,
          record.firstPayload.tag == .none ? nil : log.log.text(record.firstPayload))
      }
    case .retry, .attempt, .progress, .transition, .groupCreated, .groupFinished, .groupStopped,
      .groupRefused, .groupEmpty:
      addHeld()
      addRare(record, log)
    default: return
    }
    if record.time >= nextChange { change(at: record.time) }
  }

  /// Notifies the observer if its time has come.
  package func change(at time: Int64) {
    nextChange = observer?.progressChanged(at: time) ?? .max
  }

  /// Has the observer be notified of the next change.
  package func awaitChange() { nextChange = 0 }

  private func tracked(_ log: EventLog) -> ProgressLog? {
    if let lastLog, lastLog.log === log { return lastLog }
    lastLog = logs[ObjectIdentifier(log)]
    return lastLog
  }

  private func addRare(_ record: LogRecord, _ log: ProgressLog) {
    let text = { log.log.text(record.firstPayload) }
    switch record.kind {
    case .groupCreated: addGroup(record, log)
    case .groupFinished: finish(record, log, nil)
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
        nodes[index].due = record.time.later(by: max(0, Int64(bitPattern: record.second)))
        nodes[index].ended = 0
        nodes[index].endedSteps = []
        nodes[index].reported = nil
        estimates[index] = nil
      case .attempt: nodes[index].due = nil
      case .progress:
        nodes[index].reported = (record.firstPayload.number ?? 0, record.secondPayload.number)
      case .transition: nodes[index].transition = text()
      case .groupStopped: nodes[index].isStopped = true
      default: break
      }
    }
  }

  // MARK: Starts

  /// Adds the node of the start that was held.
  func addHeld() {
    guard let (record, log) = held.take() else { return }
    let id = log.log.id(of: record)
    // The run itself; or what executed an item was lost, and the item starts again.
    if id == 0 || log.known[id] != nil { return }
    add(record, log, id, .op)
  }

  private func add(_ record: LogRecord, _ log: ProgressLog, _ id: UInt64, _ kind: ProgressRow.Kind)
  {
    let parent = parent(of: record, log)
    guard parent != ProgressNodes.none else { return }
    let scope = log.log.scopes[Int(record.scope)]
    let isItem = scope.kind == .group && record.position != LogRecord.ownPosition
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
    if record.kind == .groupCreated {
      nodes[index].total = Int(exactly: Int64(bitPattern: record.first))
    }
  }

  /// Makes the number of a group's running items known.
  func groupStarted(_ group: GroupExecution, id: UInt64, in log: EventLog) {
    guard let index = logs[ObjectIdentifier(log)]?.known[id] else { return }
    groups[index] = RunningGroup(execution: group)
  }

  /// The node that encloses an execution; closes a group of it that has ended without a line.
  func parent(of record: LogRecord, _ log: ProgressLog) -> Int32 {
    let parent = log.parent(of: record)
    guard parent != ProgressNodes.none else { return parent }
    let scope = log.log.scopes[Int(record.scope)]
    if scope.kind == .flow, nodes[parent].kind != .flow {
      nodes[parent].kind = .flow
      nodes[parent].total = scope.parts?.partCount
    }
    if nodes[parent].kind == .flow, nodes[parent].last != ProgressNodes.none {
      let last = nodes[parent].last
      if nodes[last].kind == .group, nodes[last].isStopped { remove(last, isStopped: true) }
    }
    return parent
  }
}
