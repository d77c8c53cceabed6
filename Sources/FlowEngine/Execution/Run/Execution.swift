/// The sequential execution of a run or of a member of a group: its ops execute one after another.
final class Execution: Work {
  enum Resume: UInt8 {
    case none, begin
    /// The body of the op has ended.
    case body
    /// The next attempt at the op is due.
    case op
    case group, callback
    /// The next attempt at the innermost flow is due.
    case frame
    /// All tasks of an op, or of the run, have ended.
    case owned
    /// The op, which is an undo, begins.
    case undo
    /// The step of a graph begins.
    case step
    /// The op that has waited for its limits begins.
    case limit
  }

  /// The state of an execution after a part of its work.
  enum Advance {
    /// The execution has ended, with `lastError`.
    case ended
    /// The execution waits; `wake` makes it continue.
    case waiting
    /// A frame was entered or advanced.
    case moved
  }

  let run: Run
  var log: EventLog { run.log }
  var loop: FlowEventLoop { run.loop }
  // Safe: a group holds its members until they have ended.
  let memberOf: Unmanaged<MemberGroup>?
  /// The group that it is a member of.
  var group: MemberGroup? { memberOf?.takeUnretainedValue() }

  // Unchecked exclusivity: see HotPath.swift.
  //
  // There can be very many executions, one for each item that waits: properties that few of them
  // need are in `Supervision`. The smallest ones stand together, where they fill the rest of a word.

  /// The item of a member that has no bucket yet.
  @exclusivity(unchecked) private var item: FlowValue = .null
  /// Whether it is a member whose success depends on a value under the group's `collectKey`.
  let isCollected: Bool
  /// Whether stored values are logged: not those in a bucket of an item.
  let logsSets: Bool
  @exclusivity(unchecked) var resume: Resume = .none
  @exclusivity(unchecked) var opCursor = OpCursor()
  /// Whether the thing that the execution waits for has been stopped.
  @exclusivity(unchecked) var stopRequested = false
  /// Whether a kept run has executed an op of a member's item, instead of knowing its end; set only in a group that
  /// limits its starts.
  @exclusivity(unchecked) var hasExecuted = false
  /// Whether the member has given its slot to another item until its end is kept.
  @exclusivity(unchecked) var isBeingKept = false
  /// Whether the member has an item.
  @exclusivity(unchecked) var isExecuting = false
  /// Whether stops of the enclosing group don't reach into it.
  @exclusivity(unchecked) private(set) var isShieldedAround = false
  @exclusivity(unchecked) private var hasBucket: Bool
  /// The key of `item`; without one a key that no value has.
  @exclusivity(unchecked) private var itemKey = DataKey(id: .max)
  @exclusivity(unchecked) private(set) var scope: UInt32 = 0
  @exclusivity(unchecked) private(set) var position: UInt32 = 0
  @exclusivity(unchecked) private var index32: UInt32 = 0
  @exclusivity(unchecked) private var slot32: UInt32 = 0
  /// The bucket of the execution, or the one around it as long as a member has no bucket of its own.
  @exclusivity(unchecked) private var data: DataBucket
  @exclusivity(unchecked) var frames: ContiguousArray<Frame> = []
  @exclusivity(unchecked) private(set) var context: OpContext
  @exclusivity(unchecked) private(set) var op: Op
  /// When the code that encloses the execution times out.
  @exclusivity(unchecked) private var enclosingDeadline: Int64 = .max
  @exclusivity(unchecked) private var supervision: Supervision?

  /// The item's 1-based number in a group, 0 outside of one.
  var index: Int { Int(index32) }

  /// The member's place in its runner.
  var memberSlot: Int {
    get { Int(slot32) }
    set { slot32 = UInt32(truncatingIfNeeded: newValue) }
  }

  /// The limits, stops and repetitions of the work of an execution, and its waits. Most
  /// items of a group need none of it.
  private final class Supervision {
    @exclusivity(unchecked) var stops = StopState()
    @exclusivity(unchecked) var child: MemberGroup?
    @exclusivity(unchecked) var completion: CallbackCompletion?
    @exclusivity(unchecked) var delay: LoopTimer?
    @exclusivity(unchecked) var isPaused = false
    @exclusivity(unchecked) var decision: RetryDecision?
    @exclusivity(unchecked) var opAttempt = Attempt(nil)
    @exclusivity(unchecked) var policy: OpPolicy?
    @exclusivity(unchecked) var undecided: UndecidedOp?
    @exclusivity(unchecked) var lastError: FlowError?
    @exclusivity(unchecked) var queued: QueuedOp?
    @exclusivity(unchecked) var holds: ContiguousArray<LevelHold> = []
  }

  @inline(never)
  private func makeSupervision() -> Supervision {
    let made = Supervision()
    supervision = made
    return made
  }

  /// The policy of the op to execute.
  private(set) var policy: OpPolicy? {
    get { supervision?.policy }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).policy = newValue
      }
    }
  }
  /// The stop, the shields and the deadlines of the present work.
  var stops: StopState {
    get { supervision?.stops ?? StopState() }
    _modify { yield &(supervision ?? makeSupervision()).stops }
  }
  /// The stop of the present work.
  var stop: Stop? {
    @inline(__always) get { supervision?.stops.stop }
  }
  /// Levels that stops don't reach into now, the innermost last.
  var shields: ContiguousArray<Shield> { supervision?.stops.shields ?? [] }
  /// Whether stops from outside don't reach the present work.
  var isShielded: Bool {
    @inline(__always) get { isShieldedAround || supervision?.stops.shields.isEmpty == false }
  }
  /// The group that the execution waits for.
  var child: MemberGroup? {
    get { supervision?.child }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).child = newValue
      }
    }
  }
  /// The callback, predicate or cleanup that the execution waits for.
  var completion: CallbackCompletion? {
    get { supervision?.completion }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).completion = newValue
      }
    }
  }
  /// Set while the execution waits for the next attempt; when its time has come, the group may let the
  /// execution wait on: see `isPaused`.
  var delay: LoopTimer? {
    get { supervision?.delay }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).delay = newValue
      }
    }
  }
  /// Whether the group of the member, which waits for its next attempt, decides when that begins.
  var isPaused: Bool {
    get { supervision?.isPaused == true }
    set { supervision?.isPaused = newValue }
  }
  /// Set while the execution decides about a retry.
  var decision: RetryDecision? {
    get { supervision?.decision }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).decision = newValue
      }
    }
  }
  /// The op about which the keeper of the run can't decide yet.
  var undecided: UndecidedOp? {
    get { supervision?.undecided }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).undecided = newValue
      }
    }
  }
  /// The op that waits for its limits before it begins.
  var queued: QueuedOp? {
    get { supervision?.queued }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).queued = newValue
      }
    }
  }
  /// The limits that its levels hold, or wait for before their next attempt; the innermost last.
  var holds: ContiguousArray<LevelHold> {
    get { supervision?.holds ?? [] }
    _modify { yield &(supervision ?? makeSupervision()).holds }
  }
  /// Whether there are any.
  var hasHolds: Bool {
    @inline(__always) get { supervision?.holds.isEmpty == false }
  }
  /// The error of the latest op, flow or predicate of this execution; nil after success.
  var lastError: FlowError? {
    get { supervision?.lastError }
    set {
      if supervision != nil || newValue != nil {
        (supervision ?? makeSupervision()).lastError = newValue
      }
    }
  }
  /// The attempt at the executing op.
  private var opAttempt: Attempt {
    get { supervision?.opAttempt ?? Attempt(nil) }
    _modify { yield &(supervision ?? makeSupervision()).opAttempt }
  }
  /// The policy of the executing op.
  var opPolicy: OpPolicy? {
    @inline(__always) get { supervision?.opAttempt.policy }
  }

  /// Begins the first attempt at an op; nil when the op has no policy.
  func setOpPolicy(_ policy: OpPolicy?) {
    if supervision != nil || policy != nil { opAttempt = Attempt(policy) }
  }

  /// The attempt at the flow or op of a level.
  subscript(attempt level: Int) -> Attempt {
    get { level < frames.count ? frames[level].attempt : opAttempt }
    _modify {
      if level < frames.count { yield &frames[level].attempt } else { yield &opAttempt }
    }
  }

  /// When the code that encloses the op times out, and what times out then.
  var earliestDeadline: Deadline {
    @inline(__always) get {
      hasDeadlines ? stops.earliest(enclosing: enclosingLimit) : enclosingLimit
    }
  }

  private var enclosingLimit: Deadline {
    @inline(__always) get { Deadline(source: .enclosing, time: enclosingDeadline) }
  }

  /// Whether it has deadlines or shields of its own.
  private var hasDeadlines: Bool {
    @inline(__always) get { supervision?.stops.hasDeadlines == true }
  }

  /// Takes over the time limits of what encloses the execution, which have changed.
  func renewEnclosingDeadline() {
    if let memberOf { enclosingDeadline = memberOf.lend { $0.surroundings.deadline } }
  }

  /// Limits the time of the prepared op to the deadline of the code that executes it.
  func limit(to deadline: Int64) {
    if deadline != .max { stops.setDeadline(.code, deadline) }
  }

  /// When the code that encloses a shield times out.
  func earliestDeadline(around shield: Int) -> Deadline {
    stops.earliest(around: shield, enclosing: enclosingLimit)
  }

  /// The limits for executions within this one: when they time out, and whether stops from outside
  /// reach them.
  var surroundings: (deadline: Int64, isShielded: Bool) {
    @inline(__always) get {
      hasDeadlines ? (earliestDeadline.time, isShielded) : (enclosingDeadline, isShieldedAround)
    }
  }

  /// `data` is its bucket, or with `hasBucket` false the one around the bucket that it gets when it needs one.
  init(run: Run, data: DataBucket, hasBucket: Bool = true, group: MemberGroup?) {
    // Unretained: there are weak references to the loop, so that a retain and a release would take 170 instructions.
    // Safe: the run holds it, and it holds its engine.
    let engine = unretained(run.loop) { $0.engine }
    self.run = run
    self.data = data
    self.hasBucket = hasBucket
    memberOf = group.map { .passUnretained($0) }
    logsSets = group?.logsSets ?? true
    op = run.op
    isCollected = group?.collectKey != nil
    context = engine.takeContext()
    super.init(scheduler: engine)
    context.execution = self
    context.isGuarded = group?.separatesData == true && group?.hasItems == false
  }

  deinit {
    context.execution = nil
    // A context that other code has held keeps its run, which would keep the engine.
    if context.resources == nil, isKnownUniquelyReferenced(&context) {
      engine.recycle(context)
    } else {
      engine.dropSlot(of: context)
    }
  }

  /// Sets the op to execute; `proceed` starts it.
  func prepare(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int) {
    if self.op !== op { self.op = op }
    if policy != nil || self.policy != nil { self.policy = policy }
    self.scope = scope
    self.position = position
    index32 = UInt32(truncatingIfNeeded: index)
    if stop != nil { stops.clearStop() }
    stopRequested = false
    if let memberOf {
      (enclosingDeadline, isShieldedAround) = memberOf.lend { $0.surroundings }
    }
    resume = .begin
  }

  /// Has `proceed` start the prepared op as an undo.
  func prepareUndo() { resume = .undo }

  /// Has `proceed` begin the prepared step of a graph.
  func prepareStep() { resume = .step }

  /// Whether it undoes an op.
  var isUndo: Bool { opPolicy?.isOfUndo == true }

  // MARK: Data

  /// The data of the run, or of the item. The bucket of an item is made when it is needed: an op that waits has
  /// often set nothing yet, and the bucket would take half as much memory as the execution.
  var bucket: DataBucket {
    @inline(__always) get {
      if !hasBucket { makeBucket() }
      return data
    }
  }

  @inline(never)
  private func makeBucket() {
    data.keys.identity.check()
    let made = DataBucket(keys: data.keys, parent: data)
    if !item.isNull { made.begin(itemKey, item) }
    dropItem()
    data = made
    hasBucket = true
  }

  private func dropItem() {
    item = .null
    itemKey = DataKey(id: .max)
  }

  /// The value under a key; nil when there is none.
  @inline(__always)
  func value(of key: DataKey) -> FlowValue? {
    // Unretained. Safe: a lookup replaces no bucket.
    unretained(data) {
      if key != itemKey { return $0.get(key) }
      $0.keys.identity.check()
      return item
    }
  }

  /// Gives a member, which has no data, its item.
  @inline(__always)
  func beginItem(_ key: DataKey, _ item: FlowValue) {
    if item.isSecret {
      log.hide(item)
      bucket.begin(key, item)
    } else if hasBucket {
      unretained(data) { $0.begin(key, item) }
    } else if !item.isNull {
      self.item = item
      itemKey = key
    }
  }

  /// Removes the data of a member for the next item.
  @inline(__always)
  func resetBucket() {
    if !hasBucket {
      dropItem()
    } else if isKnownUniquelyReferenced(&data) {
      unretained(data) { $0.reset() }
    } else {
      data = DataBucket(keys: data.keys, parent: data.parent)
    }
  }

  // MARK: Progress

  /// Has the loop continue the execution, which waited for `reason`.
  func wake(_ reason: Resume) {
    resume = reason
    unretained(loop) { $0.enqueue(self) }
  }

  /// Continues at once, as the loop's next work: for callers that run as a work themselves.
  func continueAsWork(_ reason: Resume) {
    resume = reason
    engine.push(self)
  }

  /// Continues because a timer was due, or has the group continue the execution.
  func timerFired(_ reason: Resume) {
    resume = reason
    if isPaused, let memberOf {
      memberOf.lend { $0.memberIsDue(self) }
      return
    }
    delay = nil
    engine.drive(self)
  }

  /// The group continues the member, whose next attempt is due.
  func endPause() {
    isPaused = false
    delay = nil
  }

  /// Has the group decide when the next attempt begins, if it wants to: when this is the attempt at the
  /// item as a whole.
  func pause(_ level: Int, for time: Duration) {
    guard level == 0, let memberOf else { return }
    isPaused = memberOf.lend { $0.memberPauses(self, for: time) }
  }

  /// The pause is stopped.
  func stopPause() {
    guard isPaused else { return }
    isPaused = false
    memberOf?.lend { $0.memberPauseStopped(self) }
  }

  override func proceed() {
    let reason = resume
    resume = .none
    var progress = Advance.moved
    switch reason {
    case .none: return
    case .begin:
      // Safe: it stays, or is replaced when something else is prepared, after this.
      progress = unretained(op) {
        launch($0, policy: supervision?.policy, scope: scope, position: position, index: index)
      }
    case .body: progress = bodyEnded()
    case .op: progress = continueOp()
    case .owned: if context.resources != nil, opCursor.phase == .tasks { progress = continueOp() }
    case .callback:
      let asks = frames.isEmpty && opCursor.phase == .body
      endCallback()
      if opCursor.phase == .cleanups || opCursor.phase == .deciding {
        progress = continueOp()
      } else if asks {
        progress = group?.conditionEnded(self) ?? .ended
      }
    case .undo: progress = beginUndo()
    case .step: progress = group?.begin(self) ?? .ended
    case .limit: progress = limitsAreHeld()
    case .group, .frame: break
    }
    if progress == .waiting { return }
    while !frames.isEmpty {
      if engine.isTurnOver {
        wake(.frame)
        return
      }
      if advance() == .waiting { return }
    }
    if memberOf == nil, !endLeftovers() { return }
    conclude()
  }

  /// Ends the execution, when all its work is done.
  private func conclude() {
    let error = stop?.error ?? lastError
    if lastError != nil { lastError = nil }
    if hasHolds { dropHolds() }
    if let memberOf {
      memberOf.lend { $0.memberEnded(self, error) }
    } else {
      run.settle(error)
      run.conclude()
    }
  }

  /// Cancels the tasks that ops have left to the run; false while they have to be awaited.
  func endLeftovers() -> Bool {
    guard let owned = run.owned, !owned.isEmpty else { return true }
    if let report = loop.registry.onLeftProgram, stop == nil, lastError == nil {
      for case let program as ProcessTask in owned.all {
        if let warning = program.warning(ofEndOf: run.name) { report(warning) }
      }
    }
    owned.cancelAll(.cancelled())
    if owned.isEmpty { return true }
    owned.whenEmpty { [self] in wake(.owned) }
    return false
  }

  // MARK: Ops

  /// Starts an op or a flow.
  func launch(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int)
    -> Advance
  {
    if let policy, !policy.limits.isEmpty, !isRehearsing {
      return queue(op, policy, scope: scope, position: position, index: index)
    }
    return launchNow(op, policy: policy, scope: scope, position: position, index: index)
  }

  /// Starts an op or a flow, which holds its limits.
  func launchNow(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int)
    -> Advance
  {
    if engine.replacements != nil, let fake = engine.replacements?.fake(for: op) {
      let policy = OpPolicy.standIn(policy, for: fake)
      return begin(fake, policy: policy, scope: scope, position: position, index: index)
    }
    return begin(op, policy: policy, scope: scope, position: position, index: index)
  }

  @inline(__always)
  private func begin(
    _ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int
  ) -> Advance {
    if op.isFlow, let flow = op as? Flow {
      enter(flow, policy: policy, scope: scope, position: position)
      return .moved
    }
    if run.keeper != nil {
      if isKept(op, position) {
        return executeKept(op, policy: policy, scope: scope, position: position, index: index)
      }
      if run.isRehearsal, isLeftOut(op) { return .ended }
      noteExecution(of: op)
    }
    return execute(op, policy: policy, scope: scope, position: position, index: index)
  }

  func execute(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int)
    -> Advance
  {
    let time = engine.takeStamp()
    if time >= engine.nextLook { look(at: time) }
    if op.mayBeBusy { engine.renewTurn() }
    // Unretained, because retains would cost as much as the rest. Safe: the execution holds its
    // context and releases it only in `closeContext`, which isn't called before the end of this
    // function.
    let context = Unmanaged.passUnretained(self.context)
    context.lend {
      $0.begin(
        op, generation: engine.nextGeneration(), scope: scope, position: position, index: index,
        time: time)
    }
    // Safe: the run holds its log, and the execution its run.
    let log = Unmanaged.passUnretained(self.log)
    let start = log.lend {
      $0.appendStart(time: time, scope: scope, position: position)
    }
    if policy != nil {
      setOpPolicy(policy)
      stopRequested = false
      return beginAttempt()
    }
    if op.hasNeeds, let error = inputError(of: op) {
      context.lend { $0.end(error) }
    } else if let body = op.body {
      let isDone = context.lend {
        let progress = body.start($0)
        guard progress == .finished, !$0.isSettled, stop == nil, $0.resources == nil else {
          return $0.bodyReturned(progress)
        }
        if op.hasGives || isCollected, let error = outputError(of: op) {
          $0.end(error)
        } else {
          succeed($0, start, log)
        }
        return true
      }
      if !isDone {
        engine.stamp = 0
        stopRequested = false
        stopBody()
        return .waiting
      }
    }
    return bodyEnded()
  }

  /// Handles the end of the op's body: the op ends too, unless it has more to do.
  @inline(__always)
  private func bodyEnded() -> Advance {
    if opPolicy != nil || stop != nil || context.resources != nil || context.keeping != nil {
      return endBody()
    }
    lastError = closeContext()
    return .ended
  }

  /// Logs the success of the op that has just returned.
  @inline(__always)
  private func succeed(
    _ context: OpContext, _ start: EventLog.Start, _ log: Unmanaged<EventLog>
  ) {
    let time = loop.now()
    engine.stamp = time
    context.succeed(generation: engine.nextGeneration())
    log.lend {
      if !$0.appendFinish(of: start, time: time) { context.logSuccess($0, time: time) }
    }
  }

  /// Returns the outcome of the op that has ended and makes the context ready for the next one.
  @inline(__always)
  func closeContext() -> FlowError? {
    // Unretained: a retain would make the context look shared. Safe: the execution holds it.
    let outcome = Unmanaged.passUnretained(context).lend {
      $0.close()
      return $0.outcome
    }
    if !isKnownUniquelyReferenced(&context) { replaceContext() }
    return outcome
  }

  @inline(never)
  private func replaceContext() {
    context.abandon()
    let isGuarded = context.isGuarded
    context = engine.makeContext(context.slot)
    context.execution = self
    context.isGuarded = isGuarded
  }

  /// Gives the execution a new context when other code holds the present one, which keeps its
  /// attempt.
  func renewContext() {
    if isKnownUniquelyReferenced(&context) { return }
    let old = context
    replaceContext()
    context.follow(old)
  }

  /// Lets a context that other code holds keep its run, op and data.
  func detachContext() {
    if !isKnownUniquelyReferenced(&context) { context.abandon() }
  }

  /// The error of a needed value that is missing.
  @inline(__always)
  private func inputError(of op: Op) -> FlowError? {
    let isMet = unretained(op.declarations) { declarations in
      unretained(data) { declarations.clearlyMeetsNeeds($0, and: itemKey, item.kind) }
    }
    return isMet ? nil : checking { op.declarations.inputError(in: bucket) }
  }
}
