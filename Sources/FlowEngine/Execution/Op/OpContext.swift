/// One execution of an op, as its body sees it. Confined to its loop's thread.
///
/// Contexts are reused when nothing else holds them. A context that a body keeps beyond its end
/// stays closed: a later execution never uses it, and writing to it has no effect. After a success
/// that is a mistake, such as a callback that the body doesn't wait for: it is one of the loop's
/// `unobservedFailures`.
///
/// ```swift
/// let op = Op("CountOp") { context in
///   context.log("attempt \(context.attempt)")
///   let text = try context.value("text", as: String.self)
///   context.set("length", text.count)
/// }.with(retry: RetryPolicy(attempts: 3))
/// ```
public final class OpContext {
  enum Phase: UInt8 {
    case idle, inBody, suspended, ended
  }

  /// Where `FlowEventLoop.context(slot:generation:)` finds this context.
  package let slot: UInt32

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private(set) var phase: Phase = .idle
  @exclusivity(unchecked) private(set) var isSettled = true
  /// Whether the finish is in the log.
  @exclusivity(unchecked) private var isLogged = true
  /// A number unique to the execution on its loop; it changes when the op has settled.
  package var generation: UInt64 { number }
  // Not public, because another module would lose the attribute, as with `storedState`.
  @exclusivity(unchecked) private var number: UInt64 = 0
  /// The generation at which the present attempt started, also after the op has settled.
  @exclusivity(unchecked) package private(set) var attemptGeneration: UInt64 = 0
  /// State that belongs to the body, such as a coroutine; released when the body has ended.
  package var state: AnyObject? {
    get { storedState }
    set { storedState = newValue }
  }
  @exclusivity(unchecked) private var storedState: AnyObject?
  // Half the size of an Int: each waiting op has a context, and there can be many.
  @exclusivity(unchecked) private var index32: UInt32 = 0
  @exclusivity(unchecked) private var attempt32: UInt32 = 1
  /// The item's 1-based number in a group, 0 outside of one.
  public var index: Int { Int(index32) }
  /// The 1-based number of the attempt.
  public var attempt: Int { Int(attempt32) }
  /// Set while an op of a kept run executes.
  package internal(set) var keeping: (any KeptExecution)? {
    get { rare?.keeping }
    set { if rare != nil || newValue != nil { makeRareState().keeping = newValue } }
  }
  /// Cleanups and tasks of this attempt; nil for most.
  @exclusivity(unchecked) private(set) var resources: AttemptResources?

  // Unmanaged, because retains would cost more than the accesses. Safe: an execution owns its
  // context and clears this in its deinit; its run or group holds it while an op is open.
  @exclusivity(unchecked) private var owner: Unmanaged<Execution>?
  var execution: Execution? {
    get { owner?.takeUnretainedValue() }
    set { owner = newValue.map { .passUnretained($0) } }
  }
  // Safe: the blueprint that holds the op is alive while the context is open; a context that other
  // code keeps retains it in `resources`.
  private unowned(unsafe) var current: Op?

  // Unchecked exclusivity: see HotPath.swift.

  /// State that most contexts never have, because most ops succeed and aren't kept: there can be very many
  /// contexts.
  private final class RareState {
    @exclusivity(unchecked) var keeping: (any KeptExecution)?
    @exclusivity(unchecked) var outcome: FlowError?
    @exclusivity(unchecked) var lane: UInt8 = 0
    @exclusivity(unchecked) var hasReportedLateCall = false
  }
  @exclusivity(unchecked) private var rare: RareState?
  /// The error that the op has ended with.
  private(set) var outcome: FlowError? {
    get { rare?.outcome }
    set { if rare != nil || newValue != nil { makeRareState().outcome = newValue } }
  }
  /// The number in the log of what executes the body elsewhere, such as a worker; 0 for the loop itself.
  package var lane: UInt8 { rare?.lane ?? 0 }

  /// Sets the lane; see `LaneNames` for those of other nodes.
  package func setLane(_ lane: UInt8) { makeRareState().lane = lane }
  /// Whether it belongs to a step of a graph, which may not read and set all keys.
  @exclusivity(unchecked) package internal(set) var isGuarded = false
  @exclusivity(unchecked) private(set) var scope: UInt32 = 0
  @exclusivity(unchecked) private(set) var position: UInt32 = 0
  @exclusivity(unchecked) private var began: Int64 = 0

  init(slot: UInt32) {
    self.slot = slot
  }

  @inline(never)
  private func makeRareState() -> RareState {
    if let rare { return rare }
    let made = RareState()
    rare = made
    return made
  }

  // MARK: Owners

  /// The run that the op belongs to.
  public var run: Run {
    guard let run = execution?.run ?? resources?.keptRun else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return run
  }

  /// The op that is being executed.
  public var op: Op {
    guard let op = resources?.keptOp ?? current else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return op
  }

  /// The loop that runs the op.
  public var loop: FlowEventLoop { run.loop }

  /// The data of the flow, or of the item in a group.
  public var bucket: DataBucket { execution?.bucket ?? run.data }

  /// `UploadOp`, or in a group `UploadOp #3`, with the item's label if it has one:
  /// `UploadOp #3 cat.png`.
  package var displayName: ByteString {
    run.log.displayName(op.name, index: index, scope: scope, position: position)
  }

  /// The label of its item in a group, if it has one.
  public var label: ByteString? {
    index == 0 ? nil : run.log.label(scope: scope, position: position)
  }

  /// The path of the op through all enclosing runs and groups: `publish/ShardsOp #2/CountOp #1`.
  public var path: ByteString { run.path(scope: scope, position: position) }

  /// Whether the op, or a cleanup of it, still executes. Setting values and logging have an effect only then, so a callback
  /// that may come late asks before. On the loop's thread.
  ///
  /// ```swift
  /// loop.schedule(after: .seconds(5)) {
  ///   if context.isOpen { context.log("it takes longer than usual") }
  /// }
  /// ```
  public var isOpen: Bool { !isSettled }

  /// The time until this attempt, or a flow, group or run around it, times out, by the loop's clock; nil without a limit,
  /// and not negative. On the loop's thread.
  ///
  /// A limit stops an op that waits. Code of Swift that is busy for long has to look at it:
  ///
  /// ```swift
  /// for _ in 0..<1000 {
  ///   if context.timeLeft == .zero { throw FlowError(.timeout, "no time for the rest") }
  ///   save(image)
  /// }
  /// ```
  public var timeLeft: Duration? {
    let end = deadline
    return end == .max ? nil : .nanoseconds(max(end - loop.now(), 0))
  }

  /// Reports that the body waits for its turn elsewhere. That time doesn't count towards the op's
  /// own timeout.
  package func beginWaiting() {
    if isOpen { execution.map { $0.stopTimer(of: $0.opLevel) } }
  }

  /// Reports that the body's turn has come: the op's own timeout counts from now on.
  package func endWaiting() {
    if phase == .inBody || phase == .suspended, isOpen {
      execution.map { $0.startTimer(of: $0.opLevel) }
    }
  }

  /// The error that the op is ending with, for its cleanups; for a final step, the error that its
  /// flow is ending with. nil after success, and elsewhere.
  package var endingError: FlowError? { execution?.endingError(of: self) }

  /// Whether the time of its body is limited.
  package var hasTimeout: Bool { execution?.opPolicy?.timeout != nil }

  /// Seconds that its cleanups have after a stop; nil for the loop's `cleanupGrace`.
  package var grace: Duration? { execution?.opPolicy?.grace }

  /// The end of the grace of its cleanups, on the loop's clock, for a body that closes its
  /// resources because it was stopped. The grace begins now unless it has begun.
  package func beginGrace() -> Int64 {
    guard let execution else { return .max }
    return execution.graceEnd(of: execution.opLevel)
  }

  /// Reports that a `__close` of the body was cut off; `waits` is the function that it waited in,
  /// and where, or nil when it was busy.
  package func reportCutClose(waits: ByteString?) {
    guard let execution else { return }
    _ = execution.reportCut(
      "a __close of [\(displayName)]", at: nil, waits: waits, isBusy: waits == nil,
      level: execution.opLevel)
  }

  /// When a busy cleanup has to be stopped; `.max` for never.
  package var cleanupDeadline: Int64 { execution?.callbackDeadline ?? .max }

  /// Whether its cleanups execute.
  package var isCleaningUp: Bool { execution?.opCursor.isCleaningUp ?? false }

  /// When this attempt, or an enclosing flow, times out: nanoseconds of the loop's clock; `.max`
  /// for never. The loop stops a body that waits. A busy body has to check the deadline itself and
  /// then call `expire()`.
  package var deadline: Int64 { owner?.lend { $0.deadline } ?? .max }

  /// Why the code of the op is to stop; nil when nothing stops it, such as its cleanups.
  package var stopError: FlowError? { execution?.codeStop }

  /// Why the run is to stop when its starter stops; nil when nothing stops the starter.
  package var starterStopError: FlowError? { execution?.starterStop }

  // MARK: Data

  /// The value under a key; nil when there is none.
  package func get(_ key: DataKey) -> FlowValue? {
    if isGuarded, let error = refusal(reading: key) { fail(error) }
    return read(key)
  }

  /// The value under a key, for code that asks `refusal` when there is none.
  package func read(_ key: DataKey) -> FlowValue? {
    guard let owner else { return bucket.get(key) }
    if keeping != nil { willRead(key) }
    return owner.lend { $0.value(of: key) }
  }

  /// The error of a key that the op may not read, because it belongs to a graph; nil if it may.
  package func refusal(reading key: DataKey) -> FlowError? {
    guard let execution, isOpen else { return nil }
    return execution.group?.refusal(reading: key, by: execution)
  }

  /// The error of a key that the op may not set, because it belongs to a graph; nil if it may.
  package func refusal(setting key: DataKey) -> FlowError? {
    guard let execution, isOpen, execution.frames.isEmpty else { return nil }
    return execution.group?.refusal(setting: key, by: execution)
  }

  /// Notes a file whose content counts as an input of the op, although it isn't among its needs: a header that a compiler
  /// has read. When it has changed, was removed or made since then, a kept run and a cache execute the op again. Without a
  /// kept run it has no effect.
  ///
  /// - Parameter path: The path of the file. It is read when the op has succeeded.
  package func dependsOn(_ path: some FlowText) { keeping?.dependsOn(path.byteString) }

  /// Whether there is a value under a key.
  package func has(_ key: DataKey) -> Bool {
    if keeping != nil { willRead(key) }
    return bucket.has(key)
  }

  /// Starts no more items of the group that the op, or a flow around it, is executed for: those that execute end, and the
  /// group succeeds. On the loop's thread.
  ///
  /// ```swift
  /// let probe = Op("ProbeOp", needs: ["server": "string"]) { context in
  ///   if try context.value("server", as: String.self) == "db1" { context.endGroup() }
  /// }
  /// ```
  ///
  /// - Returns: Whether there is such a group, and the op hasn't ended.
  @discardableResult
  public func endGroup() -> Bool {
    guard let execution, isOpen else { return false }
    execution.loop.checkThread()
    return execution.endGroup()
  }

  /// Whether it executes an item of a group, or belongs to a flow that does.
  package var isGroupMember: Bool { execution?.group != nil }

  /// Stores and logs `value`; `.null` removes the key. Has no effect after the op has settled.
  package func set(_ key: DataKey, _ value: FlowValue) {
    if isGuarded, let error = refusal(setting: key) { return fail(error) }
    write(key, value)
  }

  /// Sets a value like `set`, unless that needs a look first, for code that then asks `refusal`; returns whether it
  /// was done.
  package func setUnguarded(_ key: DataKey, _ value: FlowValue) -> Bool {
    if isGuarded { return false }
    write(key, value)
    return true
  }

  @inline(__always)
  private func write(_ key: DataKey, _ value: FlowValue) {
    // The bucket checks the thread.
    guard let owner, !isSettled else {
      return cameTooLate("<\(bucket.keys.name(of: key))> was set")
    }
    owner.lend {
      $0.store(key, value, scope: scope, position: position, attempt: attempt)
    }
  }

  /// Stores and logs a value that was set elsewhere, at `time` of the loop's clock.
  package func set(_ key: DataKey, _ value: FlowValue, at time: Int64) {
    guard let execution, !isSettled else { return }
    if isGuarded, let error = refusal(setting: key) { return fail(error) }
    execution.store(
      key, value, scope: scope, position: position, attempt: attempt, at: plausible(time))
  }

  /// Logs a line that was written elsewhere, at `time` of the loop's clock.
  package func log(_ text: ByteString, at time: Int64) {
    guard let execution, !isSettled else { return }
    execution.loop.checkThread()
    keeping?.noteLine(text)
    execution.log.append(
      .log, time: plausible(time), scope: scope, position: position, attempt: attempt, lane: lane,
      first: execution.log.payload(text))
  }

  /// Reports a call that comes after the op's success, once. An op that has failed, or was stopped, may still have
  /// code that runs.
  @inline(never)
  private func cameTooLate(_ call: @autoclosure () -> ByteString) {
    guard isSettled, phase == .idle || phase == .ended, outcome == nil,
      let run = execution?.run ?? resources?.keptRun
    else { return }
    run.loop.checkThread()
    let rare = makeRareState()
    if rare.hasReportedLateCall { return }
    rare.hasReportedLateCall = true
    run.addLateError(FlowError(.usage, "[\(displayName)] had ended before \(call())"))
  }

  /// A time from another thread, limited to between the op's start and now.
  private func plausible(_ time: Int64) -> Int64 { max(began, min(time, loop.now())) }

  /// The value of `key`; when it is absent or of another type, the op fails immediately.
  package func require(_ key: DataKey, _ type: FlowValueType?) -> Result<FlowValue, FlowError> {
    let error: FlowError
    if let value = get(key) {
      guard let wanted = type?.mismatch(value) else { return .success(value) }
      error = .mismatchedInput(
        bucket.keys.name(of: key), bucket.shown(value, of: key), wanted: wanted,
        hiding: bucket.keys.secrets)
    } else {
      if let type, type.isOptional { return .success(.null) }
      error = bucket.missingInput(key)
    }
    return .failure(failing(error))
  }

  /// Adds a line of the op to the log. Has no effect after the op has settled.
  ///
  /// ```swift
  /// context.log("uploads \(context.index) of 12")
  /// ```
  @_specialize(where Text == ByteString)
  public func log<Text: FlowText>(_ text: Text) {
    guard let execution, !isSettled else { return cameTooLate("a line was logged") }
    execution.loop.checkThread()
    keeping?.noteLine(text.byteString)
    execution.log.append(
      .log, time: execution.loop.now(), scope: scope, position: position, attempt: attempt,
      first: execution.log.payload(text.byteString))
  }

  /// Writes a line of bytes to the log. Has no effect after the op has settled.
  package func log(_ bytes: UnsafeBufferPointer<UInt8>) {
    log(ByteString(bytes))
  }

  /// Reports the op's progress, in units of its own; `total` is nil when it isn't known.
  public func progress(_ done: Double, of total: Double? = nil) {
    guard let execution, !isSettled else { return }
    execution.loop.checkThread()
    let time = execution.loop.now()
    execution.log.append(
      .progress, time: time, scope: scope, position: position, attempt: attempt,
      first: .number(done), second: total.map { .number($0) } ?? .none)
    execution.engine.runWatch?.look(at: time)
  }

  // MARK: Cleanups and tasks

  /// Registers `cleanup`, to be called when this attempt ends, whatever the outcome; the cleanup
  /// registered last is called first. Has no effect after the op has settled.
  ///
  /// After success and failure, cleanups have unlimited time. When the op is stopped, at the latest
  /// during its cleanups, all of them together have its `grace` from that moment; a cleanup that is
  /// cut off then is one of `Run.lateErrors`. The error of a cleanup fails an op that had
  /// succeeded; otherwise it is reported as an unobserved failure.
  package func addCleanup(_ cleanup: any OpCleanup) {
    guard let execution, !isSettled else { return cameTooLate("a cleanup was registered") }
    execution.loop.checkThread()
    makeResources().cleanups.append(cleanup)
  }

  /// Registers a cleanup. Cleanups are called when the attempt ends, whatever the outcome, the last
  /// registered first.
  ///
  /// ```swift
  /// context.defer { context in context.log("the connection is closed") }
  /// ```
  public func `defer`(_ body: @escaping (OpContext) throws -> Void) {
    addCleanup(ClosureCleanup(body))
  }

  /// Makes this op own a task, as if it had started it: the task ends with the op. When the op has
  /// ended, the op's run owns the task.
  package func adopt(_ task: AnyFlowTask) {
    task.loop.checkThread()
    guard !task.isConcluded, task.owner == nil else { return }
    if phase == .idle || phase == .ended {
      run.adopt(task)
    } else {
      let resources = makeResources()
      let owned = resources.owned ?? OwnedTasks(of: self)
      resources.owned = owned
      owned.add(task)
    }
  }

  /// The number of the next idempotency key of this attempt, from 1.
  package func nextKeyNumber() -> Int {
    let resources = makeResources()
    resources.keyCount += 1
    return resources.keyCount
  }

  /// The number of the next op that this attempt starts or executes, from 1.
  func nextInnerNumber() -> UInt32 {
    let resources = makeResources()
    resources.innerCount &+= 1
    return resources.innerCount
  }

  func makeResources() -> AttemptResources {
    if let resources { return resources }
    let made = AttemptResources()
    resources = made
    return made
  }

  // MARK: Machines

  /// Adds a line about the state of a machine.
  func logState(_ state: Payload) {
    guard let owner, !isSettled else { return }
    owner.lend {
      $0.log.append(
        .state, time: $0.loop.now(), scope: scope, position: position, attempt: attempt,
        first: state)
    }
  }

  /// Adds a line about a transition of the op, whose text `payload` puts into the log. A line about
  /// the state precedes it when the state has changed.
  @inline(__always)
  func logTransition(state: Payload?, _ payload: (EventLog) -> Payload) {
    guard let owner, !isSettled else { return }
    owner.lend {
      // Safe: the run holds its log, and the execution its run.
      let log = Unmanaged.passUnretained($0.log)
      let time = $0.loop.now()
      log.lend {
        if let state {
          $0.append(
            .state, time: time, scope: scope, position: position, attempt: attempt, first: state)
        }
        $0.append(
          .transition, time: time, scope: scope, position: position, attempt: attempt,
          first: payload($0))
      }
      $0.engine.runWatch?.look(at: time)
    }
  }

  /// Records the value that a machine has finished with, if the run consists of that machine.
  func noteFinish(_ value: FlowValue) {
    guard let execution, !isSettled, execution.group == nil, execution.frames.isEmpty else {
      return
    }
    execution.run.noteFinish(value)
  }

  /// Records the steps that a machine has entered, under the same condition.
  func noteHistory(_ history: MachineHistory) {
    guard let execution, execution.group == nil, execution.frames.isEmpty else { return }
    execution.run.noteHistory(history)
  }

  // MARK: End

  /// Settles the op with `error` immediately; the body may continue to run. The first settle wins.
  public func fail(_ error: FlowError) {
    guard let execution, !isSettled else {
      return cameTooLate("it failed: \(error.message)")
    }
    execution.loop.checkThread()
    settle(error)
  }

  /// Fails with `error`; returns the error to unwind with: in a cleanup, whose error is its own,
  /// the same.
  func failing(_ error: FlowError) -> FlowError {
    fail(error)
    return execution?.opCursor.isCleaningUp == true ? error : outcome ?? error
  }

  /// Reports that the body has ended: settles the op if it isn't settled, then the execution
  /// continues.
  ///
  /// Called within `OpBody.start`, it continues after `start` returns, else as a job of the loop.
  package func end(_ error: FlowError? = nil) {
    // Retained, also for the calls below: a sink may do anything, even release the run.
    guard let execution, phase == .inBody || phase == .suspended else { return }
    // Unretained: see `Execution.init`.
    unretained(execution.loop) { $0.checkThread() }
    settle(error)
    let wasSuspended = phase == .suspended
    phase = .ended
    if wasSuspended { execution.wake(.body) }
  }

  /// Reports the end of a body that the engine runs as a work of its own. The execution continues
  /// as a work, too.
  func endAsWork() {
    guard let execution, phase == .suspended else { return }
    settle(nil)
    phase = .ended
    execution.continueAsWork(.body)
  }

  /// Reports that `deadline` has passed while the body was busy; returns the error to end with.
  package func expire() -> FlowError {
    guard let execution else { return .cancelled() }
    execution.loop.checkThread()
    return execution.expire()
  }

  // MARK: For the engine

  @inline(__always)
  func begin(
    _ op: Op, generation: UInt64, scope: UInt32, position: UInt32, index: Int, time: Int64
  ) {
    number = generation
    attemptGeneration = generation
    current = op
    self.scope = scope
    self.position = position
    index32 = UInt32(truncatingIfNeeded: index)
    attempt32 = 1
    began = time
    isSettled = false
    isLogged = false
    if let rare {
      rare.outcome = nil
      rare.lane = 0
      rare.hasReportedLateCall = false
    }
    phase = .inBody
  }

  /// Continues the state of an earlier attempt's context, which has been abandoned.
  func follow(_ earlier: OpContext) {
    current = earlier.resources?.keptOp
    scope = earlier.scope
    position = earlier.position
    index32 = earlier.index32
    attempt32 = earlier.attempt32
    began = earlier.began
    isLogged = false
    phase = .ended
  }

  /// Marks an op that has just started as executing for another loop: sets the attempt and, in a
  /// group, the index and the label there.
  package func standIn(index: Int, label: ByteString?, attempt: Int) {
    if let label { run.log.setLabel(label, scope: scope, position: position) }
    index32 = UInt32(truncatingIfNeeded: index)
    attempt32 = UInt32(truncatingIfNeeded: attempt)
  }

  /// Starts the next attempt.
  func beginAgain(generation: UInt64, attempt: Int) {
    number = generation
    attemptGeneration = generation
    attempt32 = UInt32(truncatingIfNeeded: attempt)
    isSettled = false
    outcome = nil
    resources = nil
    phase = .inBody
  }

  /// Records that `start` has returned; returns whether the body has ended.
  func bodyReturned(_ progress: CallState) -> Bool {
    if progress == .suspended, phase == .inBody {
      phase = .suspended
      return false
    }
    settle(nil)
    phase = .ended
    return true
  }

  /// Settles as succeeded, for an execution that logs it; `generation` is the new generation.
  @inline(__always)
  func succeed(generation: UInt64) {
    number = generation
    isSettled = true
    isLogged = true
    phase = .ended
  }

  /// Sets the outcome. It is logged at once, unless something follows: cleanups, tasks to wait for,
  /// or another attempt.
  func settle(_ error: FlowError?) {
    // The outcome is known while cleanups use the context: their errors are their own.
    guard !isSettled, let owner else { return }
    // Unretained. Safe: the caller holds the execution.
    owner.lend { execution in
      if execution.opCursor.isCleaningUp { return }
      isSettled = true
      // An op ends with the error that stopped it, whatever its body does after the stop.
      if let failure = execution.opStop?.located(as: error) ?? error
        ?? execution.outputError(of: op)
      {
        if let error { execution.locateStop(as: error) }
        outcome = failure.attributed(to: displayName, at: path)
      } else if outcome != nil {
        outcome = nil
      }
      if resources == nil, keeping == nil, execution.opPolicy?.retry == nil {
        logFinish(execution)
      }
    }
  }

  /// Logs the outcome, notifies a group of a failure, and advances the generation.
  func logFinish() {
    owner?.lend { logFinish($0) }
  }

  private func logFinish(_ execution: Execution) {
    if isLogged { return }
    isLogged = true
    number = execution.loop.engine.nextGeneration()
    let time = execution.loop.now()
    execution.loop.engine.stamp = time
    // Unretained. Safe: the run holds its log, and the execution its run.
    Unmanaged.passUnretained(execution.log).lend { log in
      if log.secrets != nil { outcome = outcome.map { log.redacted($0) } }
      if execution.opPolicy?.isUnlogged == true { return }
      log.append(
        execution.isUndo ? .undo : .finish, time: time, scope: scope, position: position,
        attempt: attempt, lane: lane, first: outcome.map { log.payload($0.logLine) } ?? .none,
        second: .integer(time &- began))
    }
    if let outcome, execution.frames.isEmpty { execution.group?.memberFailed(outcome) }
  }

  /// Logs the success of an op whose start line can't be completed any more.
  @inline(never)
  func logSuccess(_ log: EventLog, time: Int64) {
    log.append(
      .finish, time: time, scope: scope, position: position, attempt: attempt,
      second: .integer(time &- began))
  }

  /// Replaces the body's outcome before it is logged.
  func replaceOutcome(_ error: FlowError) {
    outcome = error.attributed(to: displayName, at: path)
  }

  /// Opens the context for cleanups, or closes it again.
  func setOpenForCleanups(_ isOpen: Bool) {
    isSettled = !isOpen
    // A handle from before the cleanups works again.
    phase = isOpen ? .inBody : .ended
  }

  /// Resets the context after the end, when only its execution should hold it.
  @inline(__always)
  func close() {
    phase = .idle
    if storedState != nil { storedState = nil }
    if keeping != nil { keeping = nil }
    if resources != nil { resources = nil }
  }

  /// Releases a context that other code holds: it keeps its run, op and data.
  func abandon() {
    let resources = makeResources()
    resources.keptOp = current
    resources.keptRun = execution?.run
    execution = nil
  }
}
