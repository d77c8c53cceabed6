/// An op, flow or machine that was started: a task with data, an event log and a summary.
public final class Run: FlowTask<DataBucket> {
  /// The name of the op, flow or machine that was started.
  public let name: ByteString
  /// What was started.
  public let op: Op
  /// The run's data, during it and afterwards.
  public let data: DataBucket
  /// What happened, in order.
  public let log: EventLog
  /// Errors of `didFinish` callbacks; each is also one of the loop's `unobservedFailures`.
  public private(set) var lateErrors: [FlowError] = []

  /// Whether a monitor of the loop has kept it from being executed: it has no outcome of its own then,
  /// and ends as one that has succeeded without a step.
  public private(set) var isSkipped = false

  /// Whether no case of the flow matched, so that it ended before its last step.
  public private(set) var isFinishedEarly = false

  /// The value that a machine has finished with, of a run that consists of one; `.null` is none.
  public private(set) var finishValue: Value?

  /// The same, unless only the machine's own functions understand it.
  public var plainFinishValue: Value? {
    (op as? MachineOp)?.logic.hasPlainStates == true ? finishValue : nil
  }

  /// The names of the steps that a machine has entered, the present or last one included, of a run that
  /// consists of one; nil of any other. `MachineOp.start` takes them to continue there.
  public var history: [ByteString]? {
    loop.checkThread()
    guard let logic = (op as? MachineOp)?.logic else { return nil }
    return enteredSteps?.map { logic.name(ofStep: $0) }
  }

  /// The same steps by their numbers.
  var enteredSteps: [Int]? {
    endedHistory?.entered ?? (strand?.context.state as? MachineExecution)?.enteredSteps
  }

  /// What a machine has entered that has ended.
  private var endedHistory: MachineHistory?

  let snapshot: FlowSnapshot?
  /// Why the flow's data couldn't be copied.
  private(set) var dataError: FlowError?
  /// Tasks that ops have left to the run.
  private(set) var owned: OwnedTasks?
  /// What its ops and callbacks wait for.
  private var awaited = AwaitedTasks()
  /// The run whose op has started this one, and the scope of this run's lines there.
  private var outer: (run: Run, scope: UInt32)?
  /// Whether it only holds what is executed for a group of another loop, which knows the whole path.
  @exclusivity(unchecked) var isStandIn = false
  /// What the flow of another loop is ending with, where this run executes for one of its final steps.
  package var endingErrorAround: FlowError?
  /// Set until the run is concluded.
  private(set) var strand: Strand?
  /// Why a callback or predicate of it is to stop; nil when nothing stops it.
  package var callbackStopError: FlowError? { strand?.callbackStop ?? strand?.starterStop }
  private var ended: Int64?
  /// Whether the loop's monitors know it: no op of another run has started it.
  private var isMonitored = false

  /// The same as `data`.
  public var bucket: DataBucket { data }

  public override var title: ByteString { name }

  init(_ op: Op, on loop: EventLoop, name: ByteString, sinks: [any EventSink]) {
    self.op = op
    self.name = name
    data = DataBucket(keys: loop.keys)
    log = EventLog(title: name, loop: loop, began: loop.now(), sinks: sinks)
    snapshot = (op as? Flow)?.currentSnapshot()
    super.init(on: loop)
  }

  /// Seconds from its begin to its end, or to now while it is pending.
  public var duration: Double {
    Double((ended ?? loop.now()) - log.began) / 1e9
  }

  /// What happened so far, in order.
  public var events: EventSequence {
    loop.checkThread()
    return log.events
  }

  /// The log as people read it.
  public func summary(_ options: SummaryOptions = SummaryOptions()) -> ByteString {
    loop.checkThread()
    return log.summary(options, isSuccess: state == .pending ? nil : state == .succeeded)
  }

  /// Runs the loop until the run is concluded.
  ///
  /// Throws the run's error when it was stalled: when nothing could make it end. Other errors are
  /// the run's own, see `error`.
  public func wait() throws(FlowError) {
    while !isConcluded {
      if !loop.run(until: { isConcluded }), !failStalled() {
        // For example in a body of this very run.
        throw FlowError(.stalled, "stalled: nothing can end this wait")
      }
    }
    if let error, error.kind == .stalled {
      markObserved()
      throw error
    }
  }

  /// Fails a run that nothing can make end any more: each innermost op that waits is stopped with
  /// an error of kind `stalled`, and ended when it had been asked before. Answers whether there was
  /// one.
  @discardableResult
  public func failStalled() -> Bool { stopStalled() }

  @discardableResult
  package override func stopStalled() -> Bool {
    loop.checkThread()
    guard let strand else { return false }
    var open = [strand]
    var hasStopped = false
    while let next = open.popLast() {
      if next.failStalled() { hasStopped = true }
      open.append(contentsOf: next.members)
    }
    return hasStopped
  }

  // MARK: For the engine

  /// Where something of this run stands among all that is executed, from its place in the log:
  /// `publish/ShardsOp #2/CountOp #1`.
  func path(scope: UInt32, position: UInt32) -> ByteString {
    var names = log.names(scope: scope, position: position)
    if isStandIn { return names.last ?? name }
    var outer = outer
    while let (run, scope) = outer, names.count <= Self.longestPath {
      let owner = run.log.scopes[Int(scope)]
      names = run.log.names(scope: owner.parent, position: owner.position) + names
      outer = run.outer
    }
    if names.count > Self.longestPath { names = ["…"] + names.suffix(Self.longestPath) }
    return ByteString(Array(names.map(\.bytes).joined(separator: [UInt8(ascii: "/")])))
  }

  /// The most names of a path; of a longer one the outer ones are left out.
  private static let longestPath = 32

  /// Begins and goes on until its first wait: at once or, asked by a work of the loop, as the work
  /// that comes next.
  ///
  /// - Parameters:
  ///   - given: The data to begin with.
  ///   - owner: The op that starts it.
  ///   - adopt: Makes it belong to what else starts it, before anything of it is executed.
  ///   - asWork: Whether it is the work that comes next.
  ///   - isMonitored: Whether the loop's monitors are notified of it: no op has started it.
  func begin(
    _ given: [(ByteString, Value)], owner: OpContext?, adopt: ((Run) -> Void)? = nil,
    asWork: Bool = false, isMonitored: Bool = true
  ) {
    if loop.isShutDown { misuse("an op was started on an event loop that was shut down") }
    let flow = op as? Flow
    if let flow { begin(withDataOf: flow.blueprint) }
    for (name, value) in given { begin(with: name, value) }
    loop.pending[id] = self
    let scope = LogScope(
      parent: 0, position: LogRecord.ownPosition, attempt: 1, kind: .top, op: op,
      blueprint: flow?.blueprint)
    _ = log.addScope(scope)
    logData(.startWith, time: log.began)
    if let owner {
      owner.adopt(self)
      adopt?(self)
      logStart(in: owner)
    } else if isMonitored, !loop.runMonitors.isEmpty, !isExecuted() {
      isSkipped = true
      settle(nil)
      conclude()
      return
    }
    let strand = Strand(run: self, bucket: data, group: nil)
    self.strand = strand
    if owner == nil { adopt?(self) }
    strand.prepare(
      op, policy: op.policy, scope: 0, position: LogRecord.ownPosition, index: 0)
    if asWork { loop.push(strand) } else { loop.drive(strand) }
  }

  /// Tells the monitors that it begins; answers whether all of them let it be executed.
  private func isExecuted() -> Bool {
    isMonitored = true
    var isExecuted = true
    for monitor in loop.runMonitors where !monitor.runBegins(self) { isExecuted = false }
    return isExecuted
  }

  /// Sets copies of a flow's data. A failure is that of the flow, once it has begun.
  private func begin(withDataOf blueprint: Blueprint) {
    var copies: ValueCopies?
    do {
      for (name, value) in blueprint.data { begin(with: name, try value.copyForRun(&copies)) }
    } catch {
      dataError = .from(error)
    }
  }

  private func begin(with name: ByteString, _ value: Value) {
    if value.isSecret { log.hide(value) }
    data.set(loop.keys.intern(name), value)
  }

  /// Sets the outcome and logs the data it ended with.
  override func settle(_ error: FlowError?) {
    guard state == .pending else { return }
    let time = loop.now()
    ended = time
    logData(.endWith, time: time)
    if error == nil { keep(data) }
    super.settle(error.map { log.redacted($0) })
    logFinish(time)
  }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    strand?.cancel(error)
    return nil
  }

  /// Whether what its flow calls after the end executes.
  package var isCallingBack: Bool { strand?.frames.last?.phase == .didFinish }

  /// When one of these that is busy has to be stopped; `.max` for never.
  package var cleanupDeadline: Int64 { strand?.callbackDeadline ?? .max }

  func noteFinishedEarly() { isFinishedEarly = true }

  func noteFinish(_ value: Value) { finishValue = value }

  func noteHistory(_ history: MachineHistory) { endedHistory = history }

  /// Makes a task end with this run at the latest, as one that its callbacks started.
  public func adopt(_ task: AnyFlowTask) {
    guard state == .pending, !task.isConcluded, task.owner == nil else { return }
    let owned = owned ?? OwnedTasks(of: self)
    self.owned = owned
    owned.add(task)
  }

  /// Takes over the tasks of an op that has succeeded.
  func adopt(all other: OwnedTasks) {
    let owned = owned ?? OwnedTasks(of: self)
    self.owned = owned
    owned.takeAll(from: other)
  }

  override var awaitedCount: Int { awaited.count }

  override func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) { awaited.add(to: &tasks) }

  package override func beginAwaiting(_ task: AnyFlowTask) { awaited.begin(task) }

  package override func endAwaiting(_ task: AnyFlowTask) { awaited.end(task) }

  /// Logs the start in the run of the op that has started this one.
  private func logStart(in owner: OpContext) {
    let outer = owner.run
    guard outer.state == .pending else { return }
    let scope = outer.log.addScope(
      LogScope(
        parent: owner.scope, position: owner.position, attempt: 1, kind: .child, op: op,
        blueprint: nil))
    self.outer = (outer, scope)
    outer.log.append(
      .start, time: log.began, scope: scope, position: LogRecord.ownPosition)
  }

  private func logFinish(_ time: Int64) {
    guard let (run, scope) = outer else { return }
    outer = nil
    guard run.state == .pending else { return }
    run.log.append(
      .finish, time: time, scope: scope, position: LogRecord.ownPosition,
      first: error.map { run.log.payload($0.logLine) } ?? .none,
      second: .integer(time - log.began))
  }

  override func conclude() {
    strand = nil
    owned?.abandon()
    owned = nil
    awaited.removeAll()
    loop.pending[id] = nil
    if isMonitored {
      isMonitored = false
      for monitor in loop.runMonitors { monitor.runEnded(self) }
    }
    super.conclude()
  }

  /// Lets its strand go without an outcome, for a loop that is shut down.
  func abandon() -> Strand? {
    giveUpObservers()
    awaited.removeAll()
    owned?.abandon()
    owned = nil
    outer = nil
    defer { strand = nil }
    return strand
  }

  func addLateError(_ error: FlowError) {
    let error = log.redacted(error)
    lateErrors.append(error)
    loop.reportLate(error, of: self)
  }

  private func logData(_ kind: LogKind, time: Int64) {
    let position = LogRecord.ownPosition
    log.append(kind, time: time, scope: 0, position: position)
    for entry in data.entries {
      let value = log.shown(entry.value, of: entry.key, in: data)
      log.append(
        .snapshotEntry, time: time, scope: 0, position: position, key: entry.key.id,
        first: log.payload(value), value: value)
    }
  }
}
