/// One execution of an op, as its body sees it. Confined to its loop's thread.
///
/// Contexts are reused once nothing else holds them. A body that keeps one beyond its end sees it
/// closed: it never becomes a later execution's, and writing to it does nothing.
public final class OpContext {
  enum Phase: UInt8 {
    case idle, inBody, suspended, ended
  }

  /// Where `EventLoop.context(slot:generation:)` finds this context.
  public let slot: UInt32

  // Unchecked exclusivity, here and below: the loop's thread alone touches them, and no access
  // lasts into a call of a body. The checks would cost more than the accesses.

  @exclusivity(unchecked) private(set) var phase: Phase = .idle
  @exclusivity(unchecked) private(set) var isSettled = true
  /// Whether the finish stands in the log.
  @exclusivity(unchecked) private var isLogged = true
  /// Unique to the execution on its loop; moves on when the op has settled.
  public var generation: UInt64 { number }
  // Not public, because the attribute is lost on the way to another module, as with `storedState`.
  @exclusivity(unchecked) private var number: UInt64 = 0
  /// The generation that the present attempt began with, also once the op has settled.
  @exclusivity(unchecked) public private(set) var attemptGeneration: UInt64 = 0
  /// The body's own, such as a coroutine; released when the body has ended.
  public var state: AnyObject? {
    get { storedState }
    set { storedState = newValue }
  }
  @exclusivity(unchecked) private var storedState: AnyObject?
  // Of half the size: a context stands for each op that waits, and there can be many.
  @exclusivity(unchecked) private var index32: UInt32 = 0
  @exclusivity(unchecked) private var attempt32: UInt32 = 1
  /// 1-based in a group, 0 outside of one.
  public var index: Int { Int(index32) }
  /// 1-based.
  public var attempt: Int { Int(attempt32) }
  /// Cleanups and tasks of this attempt; nil for most.
  @exclusivity(unchecked) private(set) var extras: OpExtras?

  // Unmanaged, because retains would cost more than what it is asked for. Safe: a strand owns its
  // context and clears this in its deinit; its run or group holds it while an op is open.
  @exclusivity(unchecked) private var owner: Unmanaged<Strand>?
  var strand: Strand? {
    get { owner?.takeUnretainedValue() }
    set { owner = newValue.map { .passUnretained($0) } }
  }
  // Safe: the blueprint that holds the op is alive while the context is open; a context that
  // somebody keeps keeps it in `extras`.
  private unowned(unsafe) var current: Op?

  // Unchecked exclusivity: as above.

  @exclusivity(unchecked) private(set) var outcome: FlowError?
  @exclusivity(unchecked) private(set) var scope: UInt32 = 0
  @exclusivity(unchecked) private(set) var position: UInt32 = 0
  @exclusivity(unchecked) private var began: Int64 = 0

  init(slot: UInt32) {
    self.slot = slot
  }

  // MARK: What it belongs to

  /// The run that the op belongs to.
  public var run: Run {
    guard let run = strand?.run ?? extras?.keptRun else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return run
  }

  /// The op that is executed.
  public var op: Op {
    guard let op = extras?.keptOp ?? current else {
      misuse("an OpContext was used that belongs to no execution")
    }
    return op
  }

  /// The loop that everything of the op runs on.
  public var loop: EventLoop { run.loop }

  /// The data of the flow, or of the item in a group.
  public var bucket: DataBucket { strand?.bucket ?? run.data }

  /// `UploadOp`, or `UploadOp #3` in a group.
  public var displayName: ByteString { index == 0 ? op.name : "\(op.name) #\(index)" }

  /// Where the op stands among all that is executed: `publish/ShardsOp #2/CountOp #1`.
  public var path: ByteString { run.path(scope: scope, position: position) }

  /// Whether the op is still going on: neither settled nor ended.
  public var isOpen: Bool { !isSettled }

  /// Says that the body waits for its turn elsewhere, which doesn't count into the op's own timeout.
  package func beginWaiting() {
    if isOpen { strand?.stopLeafTimer() }
  }

  /// Says that it is the body's turn: the op's own timeout counts from now on.
  package func endWaiting() {
    if phase == .inBody || phase == .suspended, isOpen { strand?.startLeafTimer() }
  }

  /// What the op is ending with, for its cleanups; for a final step, what its flow is ending with. nil
  /// after success, and elsewhere.
  public var endingError: FlowError? { strand?.endingError(of: self) }

  /// Seconds that its cleanups have once it was stopped; nil for the loop's `cleanupGrace`.
  package var grace: Double? { strand?.leafPolicy?.grace }

  /// The end of the grace of its cleanups, on the loop's clock, for a body that closes what it holds
  /// because it was stopped: the grace begins now unless it has begun.
  package func beginGrace() -> Int64 {
    guard let strand else { return .max }
    return strand.graceEnd(of: strand.frames.count)
  }

  /// Reports that a `__close` of the body was cut; `waits` is what it waited in, and where, or nil when
  /// it was busy.
  package func reportCutClose(waits: ByteString?) {
    guard let strand else { return }
    _ = strand.reportCut(
      "a __close of [\(displayName)]", at: nil, waits: waits, isBusy: waits == nil,
      level: strand.frames.count)
  }

  /// When a cleanup that is busy has to be stopped; `.max` for never.
  package var cleanupDeadline: Int64 { strand?.callbackDeadline ?? .max }

  /// Whether its cleanups execute.
  package var isCleaningUp: Bool { strand?.isCleaningUp ?? false }

  /// When this attempt, or a flow around it, times out: nanoseconds of the loop's clock; `.max` for
  /// never. The loop stops a body that waits; one that is busy has to see to it, and to call
  /// `expire()` then.
  public var deadline: Int64 { owner?._withUnsafeGuaranteedRef { $0.deadline } ?? .max }

  /// Why the code of the op is to stop; nil when nothing stops it, as its cleanups.
  package var stopError: FlowError? { strand?.codeStop }

  /// Why the run is to stop: because what has started it is. Nil when nothing stops that.
  package var starterStopError: FlowError? { strand?.starterStop }

  // MARK: Data

  /// The value under a key; nil when there is none.
  public func get(_ key: Key) -> Value? {
    guard let owner else { return bucket.get(key) }
    // Unretained. Safe: looking something up replaces no bucket.
    let bucket = owner._withUnsafeGuaranteedRef { Unmanaged.passUnretained($0.bucket) }
    return bucket._withUnsafeGuaranteedRef { $0.get(key) }
  }

  /// Whether there is a value under a key.
  public func has(_ key: Key) -> Bool { bucket.has(key) }

  /// Whether it executes an item of a group, or a flow that does.
  package var isGroupMember: Bool { strand?.group != nil }

  /// Stores and logs `value`; `.null` removes the key. Does nothing once the op has settled.
  public func set(_ key: Key, _ value: Value) {
    // The bucket checks the thread.
    guard let owner, !isSettled else { return }
    owner._withUnsafeGuaranteedRef {
      $0.store(key, value, scope: scope, position: position, attempt: attempt)
    }
  }

  /// The same for what happened elsewhere, at `time` of the loop's clock.
  package func set(_ key: Key, _ value: Value, at time: Int64) {
    guard let strand, !isSettled else { return }
    strand.store(
      key, value, scope: scope, position: position, attempt: attempt, at: plausible(time))
  }

  /// The same for a line.
  package func log(_ text: ByteString, at time: Int64) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    strand.log.append(
      .log, time: plausible(time), scope: scope, position: position, attempt: attempt,
      first: strand.log.payload(text))
  }

  /// A time that another thread gave, not before the op's begin and not after now.
  private func plausible(_ time: Int64) -> Int64 { max(began, min(time, loop.now())) }

  /// The value of `key`; when it is absent or of another type, the op fails right there.
  public func require(_ key: Key, _ type: ValueType?) -> Result<Value, FlowError> {
    let error: FlowError
    if let value = bucket.get(key) {
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

  /// Adds a line of the op to the log. Does nothing once the op has settled.
  public func log(_ text: ByteString) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    strand.log.append(
      .log, time: strand.loop.now(), scope: scope, position: position, attempt: attempt,
      first: strand.log.payload(text))
  }

  /// Writes a line of bytes to the log. Does nothing once the op has settled.
  public func log(_ bytes: UnsafeBufferPointer<UInt8>) {
    log(ByteString(bytes))
  }

  /// Tells how far the op is, in units of its own; `total` is nil when that isn't known.
  public func progress(_ done: Double, of total: Double? = nil) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    strand.log.append(
      .progress, time: strand.loop.now(), scope: scope, position: position, attempt: attempt,
      first: .number(done), second: total.map { .number($0) } ?? .none)
    guard let monitor = strand.loop.progressMonitor else { return }
    let extras = makeExtras()
    let note = extras.progress ?? OpProgressNote(monitor)
    extras.progress = note
    let log = strand.log
    note.update(
      Progress(
        run: log.shown(strand.run.name), op: log.shown(displayName), done: done, total: total))
  }

  // MARK: What it leaves behind

  /// Has `cleanup` called when this attempt ends, whatever its outcome: the last one first. Does
  /// nothing once the op has settled.
  ///
  /// After success and failure they have all the time they need. Of an op that is stopped, at the
  /// latest during its cleanups, these have its `grace` in all from then on; what is cut then is
  /// reported as one of `Run.lateErrors`. The error of a cleanup fails an op that had succeeded, else
  /// it is reported like a failure that nobody observed.
  public func addCleanup(_ cleanup: any OpCleanup) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    makeExtras().cleanups.append(cleanup)
  }

  /// Registers a cleanup, run last in first out when the attempt ends, whatever the outcome.
  public func `defer`(_ body: @escaping (OpContext) throws -> Void) {
    addCleanup(ClosureCleanup(body))
  }

  /// Starts another op from this one; goes on until its first wait.
  ///
  /// It has data and a log of its own; this op's run logs its start and finish. It ends with this op
  /// when that fails or is stopped, else with this op's run.
  public func start(_ op: Op, data: [(ByteString, Value)] = [], name: ByteString? = nil) -> Run {
    op.start(on: loop, data: data, name: name, owner: self)
  }

  /// Makes a task end with this op, as one that it started. A task of an op that has ended belongs to
  /// the op's run.
  public func adopt(_ task: AnyFlowTask) {
    task.loop.checkThread()
    guard !task.isConcluded, task.owner == nil else { return }
    if phase == .idle || phase == .ended {
      run.adopt(task)
    } else {
      let extras = makeExtras()
      let owned = extras.owned ?? OwnedTasks(of: self)
      extras.owned = owned
      owned.add(task)
    }
  }

  /// Notes an op that this one executes; see `execute`.
  func addInner(_ task: InnerTask) {
    let extras = makeExtras()
    let inner = extras.inner ?? OwnedTasks(of: self)
    extras.inner = inner
    inner.add(task)
  }

  private func makeExtras() -> OpExtras {
    if let extras { return extras }
    let made = OpExtras()
    extras = made
    return made
  }

  // MARK: Machines

  /// The names of the steps that the machine has entered whose op this is, the present one included; nil
  /// of any other op, and once the machine has ended.
  public var history: [ByteString]? { (state as? MachineExecution)?.enteredNames }

  /// Adds a line about the state of a machine.
  func logState(_ state: Payload) {
    guard let owner, !isSettled else { return }
    owner._withUnsafeGuaranteedRef {
      $0.log.append(
        .state, time: $0.loop.now(), scope: scope, position: position, attempt: attempt,
        first: state)
    }
  }

  /// Adds a line about a transition of the op, whose text `payload` puts into the log, after one about
  /// the state if that is another one than before.
  @inline(__always)
  func logTransition(state: Payload?, _ payload: (EventLog) -> Payload) {
    guard let owner, !isSettled else { return }
    owner._withUnsafeGuaranteedRef {
      // Safe: the run holds its log, and the strand its run.
      let log = Unmanaged.passUnretained($0.log)
      let time = $0.loop.now()
      log._withUnsafeGuaranteedRef {
        if let state {
          $0.append(
            .state, time: time, scope: scope, position: position, attempt: attempt, first: state)
        }
        $0.append(
          .transition, time: time, scope: scope, position: position, attempt: attempt,
          first: payload($0))
      }
    }
  }

  /// Notes with which value a machine has finished, if it is all that the run consists of.
  func noteFinish(_ value: Value) {
    guard let strand, !isSettled, strand.group == nil, strand.frames.isEmpty else { return }
    strand.run.noteFinish(value)
  }

  /// Notes which steps a machine has entered, under the same condition.
  func noteHistory(_ history: MachineHistory) {
    guard let strand, strand.group == nil, strand.frames.isEmpty else { return }
    strand.run.noteHistory(history)
  }

  // MARK: The end

  /// Settles the op with `error` at this call; the body may run on. The first settle wins.
  public func fail(_ error: FlowError) {
    guard let strand, !isSettled else { return }
    strand.loop.checkThread()
    settle(error)
  }

  /// Fails with `error`; answers what to unwind with: in a cleanup, whose error is its own, the same.
  private func failing(_ error: FlowError) -> FlowError {
    fail(error)
    return strand?.isCleaningUp == true ? error : outcome ?? error
  }

  /// Says that the body has ended: settles the op if it isn't yet, then what comes next goes on.
  ///
  /// Within `OpBody.start` that is after it returns, else as a job of the loop.
  public func end(_ error: FlowError? = nil) {
    // Retained, also for what this calls: a sink may do anything, even let go of the run.
    guard let strand, phase == .inBody || phase == .suspended else { return }
    strand.loop.checkThread()
    settle(error)
    let wasSuspended = phase == .suspended
    phase = .ended
    if wasSuspended { strand.wake(.op) }
  }

  /// Says that a body has ended that the engine runs as a work of its own: what comes next goes on as
  /// one, too.
  func endAsWork() {
    guard let strand, phase == .suspended else { return }
    settle(nil)
    phase = .ended
    strand.goOnAsWork(.op)
  }

  /// Says that `deadline` has passed while the body was busy; answers what to end with.
  public func expire() -> FlowError {
    guard let strand else { return .cancelled() }
    strand.loop.checkThread()
    return strand.expire()
  }

  /// Says that `deadline` has passed while a task of the op was busy; answers why that ends.
  func expireTask() -> FlowError {
    guard let strand else { return .cancelled() }
    strand.loop.checkThread()
    return strand.expireTask()
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
    if outcome != nil { outcome = nil }
    phase = .inBody
  }

  /// Takes over from the context of an earlier attempt, which has been abandoned.
  func follow(_ earlier: OpContext) {
    current = earlier.extras?.keptOp
    scope = earlier.scope
    position = earlier.position
    index32 = earlier.index32
    attempt32 = earlier.attempt32
    began = earlier.began
    isLogged = false
    phase = .ended
  }

  /// Says that an op that has just begun does so for another loop: the attempt and, in a group, the
  /// index there.
  package func standIn(index: Int, attempt: Int) {
    index32 = UInt32(truncatingIfNeeded: index)
    attempt32 = UInt32(truncatingIfNeeded: attempt)
  }

  /// Begins the next attempt.
  func beginAgain(generation: UInt64) {
    number = generation
    attemptGeneration = generation
    attempt32 += 1
    isSettled = false
    outcome = nil
    extras?.progress?.update(nil)
    extras = nil
    phase = .inBody
  }

  /// Notes that `start` has returned; answers whether the body has ended.
  func bodyReturned(_ progress: OpProgress) -> Bool {
    if progress == .suspended, phase == .inBody {
      phase = .suspended
      return false
    }
    settle(nil)
    phase = .ended
    return true
  }

  /// Settles as succeeded, for a strand that logs it; `generation` is the one that begins now.
  @inline(__always)
  func succeed(generation: UInt64) {
    number = generation
    isSettled = true
    isLogged = true
    phase = .ended
  }

  /// Sets the outcome. It is logged at once, unless there is more to come: cleanups, tasks to wait
  /// for, or another attempt.
  func settle(_ error: FlowError?) {
    // The outcome is known while cleanups use the context: their errors are their own.
    guard !isSettled, let owner else { return }
    // Unretained. Safe: who calls this holds the strand.
    owner._withUnsafeGuaranteedRef { strand in
      if strand.isCleaningUp { return }
      isSettled = true
      // Whatever a body makes of being asked to stop, the op ends with what stopped it.
      if let failure = strand.leafStop?.located(as: error) ?? error ?? strand.outputError(of: op) {
        if let error { strand.locateStop(as: error) }
        outcome = failure.attributed(to: displayName, at: path)
      } else if outcome != nil {
        outcome = nil
      }
      if extras == nil, strand.leafPolicy?.retry == nil { logFinish(strand) }
    }
  }

  /// Logs the outcome, tells a group of a failure, and moves the generation on.
  func logFinish() {
    owner?._withUnsafeGuaranteedRef { logFinish($0) }
  }

  private func logFinish(_ strand: Strand) {
    if isLogged { return }
    isLogged = true
    number = strand.loop.nextGeneration()
    let time = strand.loop.now()
    strand.loop.stamp = time
    // Unretained. Safe: the run holds its log, and the strand its run.
    Unmanaged.passUnretained(strand.log)._withUnsafeGuaranteedRef { log in
      if log.secrets != nil { outcome = outcome.map { log.redacted($0) } }
      log.append(
        .finish, time: time, scope: scope, position: position, attempt: attempt,
        first: outcome.map { log.payload($0.logLine) } ?? .none, second: .integer(time &- began))
    }
    extras?.progress?.update(nil)
    if let outcome, strand.frames.isEmpty { strand.group?.memberFailed(outcome) }
  }

  /// Logs the success of an op whose start can't be completed any more.
  @inline(never)
  func logSuccess(_ log: EventLog, time: Int64) {
    log.append(
      .finish, time: time, scope: scope, position: position, attempt: attempt,
      second: .integer(time &- began))
  }

  /// Ends with another outcome than the body's, before that is logged.
  func replaceOutcome(_ error: FlowError) {
    outcome = error.attributed(to: displayName, at: path)
  }

  /// Opens the context for cleanups, or closes it again.
  func setOpenForCleanups(_ isOpen: Bool) {
    isSettled = !isOpen
    // A handle of before works again.
    phase = isOpen ? .inBody : .ended
  }

  /// After the end, when nothing but its strand should hold the context.
  @inline(__always)
  func close() {
    phase = .idle
    if storedState != nil { storedState = nil }
    if extras != nil { extras = nil }
  }

  /// Lets a context go that somebody else holds: it keeps what it was about.
  func abandon() {
    let extras = makeExtras()
    extras.keptOp = current
    extras.keptRun = strand?.run
    strand = nil
  }
}

// MARK: - Typed access for Swift

extension OpContext {
  /// The value under `name` as a Swift type; fails the op and throws when there is none.
  public func value<Wanted: ValueConvertible>(
    _ name: ByteString, as type: Wanted.Type = Wanted.self
  ) throws(FlowError) -> Wanted {
    let error: FlowError
    if let value = bucket[name] {
      if let result = Wanted(flowValue: value) { return result }
      error = .mismatchedInput(
        name, bucket.shown(value, of: bucket.keys.intern(name)), wanted: Wanted.flowTypeName,
        hiding: bucket.keys.secrets)
    } else {
      error = bucket.missingInput(bucket.keys.intern(name))
    }
    throw failing(error)
  }

  /// Stores and logs a value of Swift. Does nothing once the op has settled.
  public func set(_ name: ByteString, _ value: some ValueConvertible) {
    set(bucket.keys.intern(name), value.flowValue)
  }

  /// Stores and logs a value; `.null` removes the key. Does nothing once the op has settled.
  public func set(_ name: ByteString, _ value: Value) {
    set(bucket.keys.intern(name), value)
  }
}
