/// A started op, flow or machine: a task with data, an event log and a summary.
///
/// ```swift
/// let run = makeFlow("cat.png").start(on: loop)
/// let data = try await run.value
/// print(run.state, run.duration, data.value("url") ?? "none")
/// print(run.summary())
/// ```
public final class Run: FlowTask<DataBucket> {
  /// The name of the op, flow or machine that was started.
  public let name: ByteString
  /// The op, flow or machine that was started.
  public let op: Op
  /// The run's data, during it and afterwards.
  public let data: DataBucket
  /// The events, in order.
  package let log: EventLog
  /// Errors of `didFinish` callbacks, undos and cleanups, and calls of contexts after the success of their ops; each is
  /// also one of the loop's `unobservedFailures`.
  package private(set) var lateErrors: [FlowError] = []

  /// Whether a monitor of the loop has kept it from being executed: it then ends as succeeded,
  /// without having executed a step.
  package private(set) var isSkipped = false

  /// Whether no case of the flow matched, so that it ended before its last step.
  package private(set) var isFinishedEarly = false

  /// The value that a machine has finished with, for a run of a machine; `.null` means none.
  package private(set) var finishValue: FlowValue?

  /// The steps that an ended machine had entered.
  private(set) var endedHistory: MachineHistory?

  let snapshot: FlowSnapshot?
  /// Why the flow's data couldn't be copied.
  private(set) var dataError: FlowError?
  /// Tasks that ops have left to the run.
  private(set) var owned: OwnedTasks?
  /// The tasks that its ops and callbacks wait for.
  private var awaited = AwaitedTasks()
  /// The iterators whose items groups take, or have taken and not executed.
  var iterators = IteratorUses()
  /// The run whose op has started this one, and the scope of this run's lines there.
  private(set) var outer: (run: Run, scope: UInt32)?
  /// Whether it only executes items of another loop's group. That group knows the whole path.
  @exclusivity(unchecked) var isStandIn = false
  /// The lineage of the whole run: drawn at random, unless an op has started the run; see Lineage.swift.
  package lazy var lineage = UInt64.random(in: 0 ... .max)
  /// Its trace if that isn't the loop's, and where its spans are if it executes a part of another loop's run.
  package var spanOrigin: SpanOrigin?
  /// The error that another loop's flow is ending with, when this run executes items of one of its
  /// final steps.
  package var endingErrorAround: FlowError?
  /// The task-local values that its Swift code has; nil for those of the code that happens to run.
  @exclusivity(unchecked) package var taskContext: TaskContext?
  /// Keeps what its ops finish; set before anything of it is executed. Runs that its ops start have the
  /// same one.
  @exclusivity(unchecked) package var keeper: (any RunKeeper)?
  /// Whether a final step, an undo or a cleanup has started it, perhaps through other runs.
  private(set) var isWithinEnding = false
  /// The keeping of the op that has started it, or of the nearest one around that.
  @exclusivity(unchecked) private(set) var outerKeeping: (any KeptExecution)?
  /// Whether anything around it in the run of that op has an undo.
  private(set) var isWithinUndo = false
  /// The ops that are kept as finished in the run of a machine's step.
  private(set) var kept: [UndoneKeeping] = []
  /// Of the run of a machine's step, what steps beside the machine had set when it started, with the values before.
  var changesBeside: [DataKey: FlowValue?] = [:]
  /// Whether a kept run has executed something, instead of knowing its end.
  @exclusivity(unchecked) var hasExecuted = false
  /// How often something was undone at a place, by the lineage of the place, in this run and those that it started.
  private(set) var undoneCounts: [UInt64: UInt64] = [:]
  /// Messages to it, once there was one or a wait for one, unless a keeper has them.
  var ownMessages: MessageBox?
  /// The run whose op has started it.
  var outerRun: Run? { outer?.run }
  /// Whether its keeper only finds out what would be executed, see Execution+Keeping.swift; set with the keeper.
  package var isRehearsal = false
  /// Whether it was a rehearsal whose end depends on what wasn't executed.
  package var isOutcomeUnknown = false
  /// Whether its outcome is one that it has reached by executing its ops.
  package var hasOutcome: Bool { !isSkipped && !isOutcomeUnknown }
  /// The ops that have succeeded and can be undone, when the run executes a step of a machine; else nil.
  var undos: ContiguousArray<UndoableOp>?
  /// Set until the run has concluded.
  private(set) var execution: Execution?
  /// Why a callback or predicate of the run is to stop; nil when nothing stops it.
  package var callbackStopError: FlowError? { execution?.callbackStop ?? execution?.starterStop }
  private(set) var ended: Int64?
  /// Whether the loop's monitors are notified of it: no op of another run has started it.
  private var isMonitored = false

  package override var title: ByteString { name }

  init(_ op: Op, on loop: FlowEventLoop, name: ByteString, sinks: [any EventSink]) {
    self.op = op
    self.name = name
    data = DataBucket(keys: loop.keys)
    log = EventLog(
      title: name, keys: loop.keys, clock: loop.timeSource, began: loop.now(), sinks: sinks)
    snapshot = (op as? Flow)?.currentSnapshot()
    if let memory = loop.engine.memory { log.count(in: memory) }
    super.init(on: loop)
  }

  /// The most events that its log keeps, 1,000,000 by default; at least 1. Beyond it the oldest lines of
  /// ops that have succeeded are dropped, then what else isn't about a failure or something that still
  /// executes. The start and the end of an op that didn't wait count as one.
  public var logLimit: Int {
    get { log.bound.limit }
    set { log.bound.limit = max(1, newValue) }
  }

  /// How many events its log has dropped because of `logLimit`.
  public var droppedEvents: Int { log.bound.droppedEvents }

  /// The time from its start to its end, or to now while it is pending.
  public var duration: Duration { .passed((ended ?? loop.now()) - log.began) }

  /// The id of the run, unique across processes; `id` is its number on its loop.
  public var identifier: ByteString { log.runID }

  /// When it started: seconds since 1970-01-01 00:00:00 UTC, as `Date(timeIntervalSince1970:)` takes them.
  package var started: Double { Double(log.wallBase.later(by: log.began)) / 1e9 }

  /// The execution that stands for this run in the run whose op has started it: the id of that run,
  /// and the `id` of its events there. nil for a run that no op has started, and when it has ended.
  package var outerExecution: (run: ByteString, id: UInt64)? {
    outer.map { ($0.run.identifier, $0.run.log.id(ofScope: $0.scope)) }
  }

  /// The events so far, in order.
  public var events: some Sequence<RunEvent> {
    loop.checkThread()
    return log.events
  }

  /// Runs the loop until the run has concluded; blocks the calling thread, the loop's own.
  ///
  /// As `value`, without `await`. `waitUntilEnd()` leaves the run's error to be read.
  ///
  /// ```swift
  /// func upload() throws -> String? {
  ///   try makeUploadFlow().start(on: loop).wait().value("url", as: String.self)
  /// }
  /// ```
  ///
  /// - Returns: The run's data.
  /// - Throws: The run's error when it failed or was cancelled. A run that nothing can make end fails as
  ///   `stalled`.
  @discardableResult
  public func wait() throws(FlowError) -> DataBucket {
    try waitUntilEnd()
    markObserved()
    if let error { throw error }
    return data
  }

  /// Runs the loop until the run has concluded, whatever its outcome; blocks the calling thread, the loop's own.
  ///
  /// For code that reads `state` and `error` afterwards; `wait()` throws the run's error.
  ///
  /// - Throws: A `FlowError` of kind `stalled` when the run was stalled: nothing could make it end.
  public func waitUntilEnd() throws(FlowError) {
    while !isConcluded {
      if !loop.turn(until: { isConcluded }), !failStalled() {
        // For example in a body of this very run.
        throw FlowError(.stalled, "stalled: nothing can end this wait")
      }
    }
    if let error, error.kind == .stalled {
      markObserved()
      throw error
    }
  }

  /// Fails a run that nothing can make end any more: stops each innermost op that waits, with an
  /// error of kind `stalled`. An op that had already been stopped is ended. Returns whether there
  /// was one.
  @discardableResult
  package func failStalled() -> Bool { stopStalled() }

  @discardableResult
  package override func stopStalled() -> Bool {
    loop.checkThread()
    guard let execution else { return false }
    // Who waits for the other side of a stream can continue when that was stopped.
    return failStalled(execution, onStreams: false) || failStalled(execution, onStreams: true)
  }

  /// Stops what is stalled of an execution and its members; `onStreams` also stops those that wait for streams.
  private func failStalled(_ execution: Execution, onStreams: Bool) -> Bool {
    var open = [execution]
    var hasStopped = false
    while let next = open.popLast() {
      if next.failStalled(onStreams: onStreams) { hasStopped = true }
      open.append(contentsOf: next.members)
    }
    return hasStopped
  }

  // MARK: For the engine

  /// The path of an op of this run through all enclosing runs and groups, from its place in the
  /// log: `publish/ShardsOp #2/CountOp #1`.
  func path(scope: UInt32, position: UInt32) -> ByteString {
    if let around, around.scope == scope, position != LogRecord.ownPosition {
      return around.path + log.displayName(scope: scope, position: position)
    }
    var names = log.names(scope: scope, position: position)
    if isStandIn { return names.last ?? name }
    var outer = outer
    while let (run, scope) = outer, names.count <= Self.longestPath {
      let owner = run.log.scopes[Int(scope)]
      names = run.log.names(scope: owner.parent, position: owner.position) + names
      outer = run.outer
    }
    if names.count > Self.longestPath { names = ["…"] + names.suffix(Self.longestPath) }
    let own = names.removeLast()
    let path = ByteString(names.flatMap { $0.bytes + [UInt8(ascii: "/")] })
    if position != LogRecord.ownPosition { around = (scope, path) }
    return path + own
  }

  /// The path of what encloses the ops of a scope, with a slash at its end: the last one, because a kept run needs
  /// the path of each item of a group.
  @exclusivity(unchecked) private var around: (scope: UInt32, path: ByteString)?

  /// The most names of a path; of a longer one the outer ones are left out.
  private static let longestPath = 32

  /// Starts and runs until its first wait: at once or, if a work of the loop starts it, as the next
  /// work.
  ///
  /// - Parameters:
  ///   - given: The initial data.
  ///   - owner: The op that starts it.
  ///   - adopt: Attaches it to another owner, before anything of it is executed.
  ///   - asWork: Whether it runs as the loop's next work.
  ///   - isMonitored: Whether the loop's monitors are notified of it: no op has started it.
  func begin(
    _ given: [(ByteString, FlowValue)], owner: OpContext?, adopt: ((Run) -> Void)? = nil,
    asWork: Bool = false, isMonitored: Bool = true
  ) {
    if loop.isShutDown { misuse("an op was started on an event loop that was shut down") }
    let flow = op as? Flow
    if let flow { begin(withDataOf: flow.blueprint) }
    for (name, value) in given { begin(with: name, value) }
    loop.engine.pending[id] = self
    let scope = LogScope(
      parent: 0, position: LogRecord.ownPosition, attempt: 1, kind: .top, name: op.name,
      parts: flow?.blueprint, queued: log.began)
    _ = log.addScope(scope)
    logData(.startWith, time: log.began)
    if let owner {
      isWithinEnding = owner.isWithinEnding
      keeper = isWithinEnding ? nil : owner.run.keeper
      if keeper != nil, let execution = owner.execution {
        outerKeeping = execution.outerKeeping
        isWithinUndo = owner.keeping?.isWithinUndo ?? execution.isWithinUndo
      }
      if owner.run.isRehearsal { isRehearsal = owner.isRehearsed }
      if let origin = owner.run.spanOrigin {
        // The spans of this run are its own.
        spanOrigin = origin.place == nil ? origin : SpanOrigin(origin.trace)
      }
      owner.adopt(self)
      adopt?(self)
      logStart(in: owner)
    } else if isMonitored, !loop.engine.runMonitors.isEmpty, !isExecuted() {
      isSkipped = true
      settle(nil)
      conclude()
      return
    }
    notifySinksOfStart()
    if let watch = loop.engine.runWatch { log.dropObserver = watch }
    let execution = Execution(run: self, data: data, group: nil)
    self.execution = execution
    if owner == nil { adopt?(self) }
    execution.prepare(
      op, policy: op.policy, scope: 0, position: LogRecord.ownPosition, index: 0)
    if asWork {
      loop.engine.push(execution)
    } else {
      loop.asCurrent { loop.engine.drive(execution) }
    }
  }

  /// Notifies the monitors of its start; returns whether all of them let it be executed.
  private func isExecuted() -> Bool {
    isMonitored = true
    var isExecuted = true
    for monitor in loop.engine.runMonitors where !monitor.runBegins(self) { isExecuted = false }
    return isExecuted
  }

  /// Stores copies of a flow's data. An error fails the flow when it starts.
  private func begin(withDataOf blueprint: Blueprint) {
    var copies: ValueCopies?
    do {
      for (name, value) in blueprint.data { begin(with: name, try value.copyForRun(&copies)) }
    } catch {
      dataError = .from(error)
    }
  }

  private func begin(with name: ByteString, _ value: FlowValue) {
    if value.isSecret { log.hide(value) }
    data.set(loop.keys.intern(name), value)
  }

  /// Sets the outcome and logs the final data.
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
    execution?.cancel(error)
    return nil
  }

  /// Whether callbacks after its flow's end are executing.
  package var isCallingBack: Bool { execution?.frames.last?.cursor.phase == .didFinish }

  /// When one of these callbacks that is busy has to be stopped; `.max` for never.
  package var cleanupDeadline: Int64 { execution?.callbackDeadline ?? .max }

  func noteKept(undone: @escaping UndoneKeeping) {
    if undos != nil {
      kept.append(undone)
    } else {
      outerKeeping?.noteInner(undone: undone)
    }
  }

  func countUndone(_ place: UInt64) { undoneCounts[place, default: 0] += 1 }

  func noteFinishedEarly() { isFinishedEarly = true }

  func noteFinish(_ value: FlowValue) { finishValue = value }

  func noteHistory(_ history: MachineHistory) { endedHistory = history }

  /// Makes the run own a task, as if its callbacks had started it: the task ends with the run at
  /// the latest.
  package func adopt(_ task: AnyFlowTask) {
    guard state == .pending, !task.isConcluded, task.owner == nil else { return }
    let owned = owned ?? OwnedTasks(of: self)
    self.owned = owned
    owned.add(task)
  }

  /// Takes over the tasks of an op that has succeeded.
  func adopt(all other: OwnedTasks) {
    other.releaseOwn()
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
        parent: owner.scope, position: owner.position, attempt: 1,
        number: owner.nextInnerNumber(), kind: .child, name: op.name, queued: log.began,
        isStep: undos != nil))
    self.outer = (outer, scope)
    outer.log.shareSecrets(with: log)
    // Execution of items for another loop has no views.
    if !outer.isStandIn { outer.log.children.add(log, of: scope) }
    lineage = outer.lineage(scope: scope, position: LogRecord.ownPosition)
    outer.log.append(
      .start, time: log.began, scope: scope, position: LogRecord.ownPosition)
  }

  private func logFinish(_ time: Int64) {
    guard let (run, scope) = outer else { return }
    outer = nil
    run.log.shareSecrets(with: log)
    guard run.state == .pending else { return }
    loop.engine.runWatch?.innerRunEnds(self, in: run.log, scope: scope, at: time)
    run.log.append(
      .finish, time: time, scope: scope, position: LogRecord.ownPosition,
      first: error.map { run.log.payload($0.logLine) } ?? .none,
      second: .integer(time - log.began))
    let dropped = run.log.children.end(scope, hasFailed: error != nil, limit: run.logLimit)
    run.log.bound.noteDropped(events: dropped)
  }

  override func conclude() {
    execution = nil
    taskContext = nil
    owned?.abandon()
    owned = nil
    awaited.removeAll()
    loop.engine.pending[id] = nil
    log.dropObserver = nil
    if !isSkipped { notifySinksOfEnd() }
    loop.engine.runWatch?.runConcluded(self)
    if isMonitored {
      isMonitored = false
      for monitor in loop.engine.runMonitors { monitor.runEnded(self) }
    }
    super.conclude()
  }

  /// Releases its execution without an outcome, for a loop that is shut down.
  func abandon() -> Execution? {
    giveUpObservers()
    awaited.removeAll()
    owned?.abandon()
    owned = nil
    outer = nil
    defer { execution = nil }
    return execution
  }

  func addLateError(_ error: FlowError) {
    let error = log.redacted(error)
    lateErrors.append(error)
    loop.registry.reportLate(error, of: self)
  }

  package override func reportLate(_ error: FlowError) { addLateError(error) }

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
