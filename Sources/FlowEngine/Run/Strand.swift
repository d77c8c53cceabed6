/// One line of execution: a run, or a member of a group. Ops of a strand come one after another.
final class Strand: Work {
  enum Resume: UInt8 {
    case none, begin
    /// The body of the op has ended.
    case op
    /// The tasks of the op have ended, or its next attempt is due.
    case leaf
    case group, callback
    /// The next attempt at the innermost flow is due.
    case frame
    /// All tasks of an op, or of the run, have ended.
    case owned
  }

  enum Progress {
    /// It has ended, with `lastError`.
    case ended
    /// It waits; `wake` will make the strand go on.
    case waiting
    /// A frame was entered or moved on.
    case moved
  }

  let run: Run
  var log: EventLog { run.log }
  // Safe: a group holds its members until they have ended.
  private let memberOf: Unmanaged<MemberGroup>?
  /// The group that it is a member of.
  var group: MemberGroup? { memberOf?.takeUnretainedValue() }
  /// For a member whose success depends on what it leaves under the group's `collectKey`.
  private let isCollected: Bool
  /// Whether what is set is logged: not in a bucket of an item.
  let logsSets: Bool

  // Unchecked exclusivity, of all these: the loop's thread alone touches them, and no access lasts
  // into a call of a body or callback. The checks would cost more than the accesses.
  //
  // There can be very many strands, each for an item that waits: what few need stands in `Rare`.

  @exclusivity(unchecked) var resume: Resume = .none
  @exclusivity(unchecked) var leafPhase: LeafPhase = .body
  /// Whether what the strand waits for was asked to stop.
  @exclusivity(unchecked) var isAsked = false
  /// Whether the member has an item.
  @exclusivity(unchecked) var isExecuting = false
  @exclusivity(unchecked) private(set) var bucket: DataBucket
  @exclusivity(unchecked) var frames: ContiguousArray<Frame> = []
  @exclusivity(unchecked) private(set) var context: OpContext
  @exclusivity(unchecked) private(set) var op: Op
  @exclusivity(unchecked) private var scope: UInt32 = 0
  @exclusivity(unchecked) private var position: UInt32 = 0
  @exclusivity(unchecked) private var index32: UInt32 = 0
  @exclusivity(unchecked) private var slot32: UInt32 = 0
  /// How the last thing of this strand ended.
  @exclusivity(unchecked) var lastError: FlowError?
  /// When what is around the op times out.
  @exclusivity(unchecked) var outerDeadline: Int64 = .max
  /// Whether stops of the group around it don't reach into it.
  @exclusivity(unchecked) private(set) var isShieldedAround = false
  @exclusivity(unchecked) private var rare: Rare?

  /// 1-based in a group, 0 outside of one.
  var index: Int { Int(index32) }

  /// The member's place in its runner.
  var memberSlot: Int {
    get { Int(slot32) }
    set { slot32 = UInt32(truncatingIfNeeded: newValue) }
  }

  /// What most items of a group never need.
  private final class Rare {
    @exclusivity(unchecked) var stop: Stop?
    @exclusivity(unchecked) var shields: ContiguousArray<Shield> = []
    @exclusivity(unchecked) var child: MemberGroup?
    @exclusivity(unchecked) var completion: CallbackCompletion?
    @exclusivity(unchecked) var delay: Timer?
    @exclusivity(unchecked) var decision: RetryDecision?
    @exclusivity(unchecked) var leafPolicy: OpPolicy?
    @exclusivity(unchecked) var leafTimer: Timer?
    @exclusivity(unchecked) var isCleaningUp = false
    @exclusivity(unchecked) var leafGraceEnd: Int64?
    @exclusivity(unchecked) var leafDeadline: Int64 = .max
    @exclusivity(unchecked) var inheritedDeadline: Int64 = .max
    @exclusivity(unchecked) var policy: OpPolicy?
  }

  @inline(never)
  private func makeRare() -> Rare {
    let made = Rare()
    rare = made
    return made
  }

  /// The policy of what is to be executed.
  private var policy: OpPolicy? {
    get { rare?.policy }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).policy = newValue } }
  }
  /// When what is around the strand times out.
  private(set) var inheritedDeadline: Int64 {
    get { rare?.inheritedDeadline ?? .max }
    set {
      if rare != nil || newValue != .max { (rare ?? makeRare()).inheritedDeadline = newValue }
    }
  }
  /// What stops what the strand does now.
  var stop: Stop? {
    @inline(__always) get { rare?.stop }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).stop = newValue } }
  }
  /// Levels that stops don't reach into now, the innermost last.
  var shields: ContiguousArray<Shield> {
    get { rare?.shields ?? [] }
    _modify { yield &(rare ?? makeRare()).shields }
  }
  /// Whether stops from outside don't reach what is executed now.
  var isShielded: Bool { isShieldedAround || rare?.shields.isEmpty == false }
  /// The group, callback or, asked to stop, the body that the strand waits for.
  var child: MemberGroup? {
    get { rare?.child }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).child = newValue } }
  }
  var completion: CallbackCompletion? {
    get { rare?.completion }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).completion = newValue } }
  }
  /// Set while the strand waits for the next attempt at something.
  var delay: Timer? {
    get { rare?.delay }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).delay = newValue } }
  }

  /// Set while it is decided whether something is tried again.
  var decision: RetryDecision? {
    get { rare?.decision }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).decision = newValue } }
  }

  // The op that executes, where it has a policy, cleanups or tasks; see Strand+Attempts.swift.

  var leafPolicy: OpPolicy? {
    @inline(__always) get { rare?.leafPolicy }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).leafPolicy = newValue } }
  }
  var leafTimer: Timer? {
    get { rare?.leafTimer }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).leafTimer = newValue } }
  }
  var isCleaningUp: Bool {
    get { rare?.isCleaningUp ?? false }
    set { if rare != nil || newValue { (rare ?? makeRare()).isCleaningUp = newValue } }
  }
  /// The end of the grace of the op's cleanups; nil until it has begun.
  var leafGraceEnd: Int64? {
    get { rare?.leafGraceEnd }
    set { if rare != nil || newValue != nil { (rare ?? makeRare()).leafGraceEnd = newValue } }
  }
  /// When the op times out.
  var leafDeadline: Int64 {
    get { rare?.leafDeadline ?? .max }
    set { if rare != nil || newValue != .max { (rare ?? makeRare()).leafDeadline = newValue } }
  }

  init(run: Run, bucket: DataBucket, group: MemberGroup?) {
    self.run = run
    self.bucket = bucket
    memberOf = group.map { .passUnretained($0) }
    logsSets = group?.logsSets ?? true
    op = run.op
    isCollected = group?.collectKey != nil
    context = run.loop.takeContext()
    super.init(loop: run.loop)
    context.strand = self
  }

  deinit {
    context.strand = nil
    if isKnownUniquelyReferenced(&context) {
      loop.recycle(context)
    } else {
      loop.dropSlot(of: context)
    }
  }

  /// Says what to execute; `proceed` begins with it.
  func prepare(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int) {
    if self.op !== op { self.op = op }
    if policy != nil || self.policy != nil { self.policy = policy }
    self.scope = scope
    self.position = position
    index32 = UInt32(truncatingIfNeeded: index)
    if stop != nil { stop = nil }
    isAsked = false
    if let memberOf {
      let (deadline, isShielded) = memberOf._withUnsafeGuaranteedRef { $0.surroundings }
      isShieldedAround = isShielded
      inheritedDeadline = deadline
      outerDeadline = deadline
    }
    resume = .begin
  }

  /// Has what was prepared time out at `deadline` at the latest, as what is around it does then.
  func limit(to deadline: Int64) {
    guard deadline < outerDeadline else { return }
    inheritedDeadline = deadline
    outerDeadline = deadline
  }

  /// Puts an item into the bucket of a member, which is empty.
  @inline(__always)
  func beginItem(_ key: Key, _ item: Value) {
    if item.isSecret { log.hide(item) }
    bucket.begin(key, item)
  }

  /// Empties the bucket of a member for the next item.
  @inline(__always)
  func resetBucket() {
    if isKnownUniquelyReferenced(&bucket) {
      unretained(bucket) { $0.reset() }
    } else {
      bucket = DataBucket(keys: bucket.keys, parent: bucket.parent)
    }
  }

  /// Has the loop go on with the strand, which waited for `reason`.
  func wake(_ reason: Resume) {
    resume = reason
    loop.enqueue(self)
  }

  /// Goes on at once, as the loop's next work: for what runs as one itself.
  func goOnAsWork(_ reason: Resume) {
    resume = reason
    loop.push(self)
  }

  /// Goes on because a timer was due.
  func timerFired(_ reason: Resume) {
    delay = nil
    resume = reason
    loop.drive(self)
  }

  override func proceed() {
    let reason = resume
    resume = .none
    var progress = Progress.moved
    switch reason {
    case .none: return
    case .begin:
      // Safe: it stays, or is replaced when something else is prepared, after this.
      progress = unretained(op) {
        launch($0, policy: rare?.policy, scope: scope, position: position, index: index)
      }
    case .op: progress = bodyEnded()
    case .leaf: progress = continueLeaf()
    case .owned: if context.extras != nil, leafPhase == .children { progress = continueLeaf() }
    case .callback:
      endCallback()
      if leafPhase == .cleanups || leafPhase == .deciding { progress = continueLeaf() }
    case .group, .frame: break
    }
    if progress == .waiting { return }
    while !frames.isEmpty {
      if loop.isTurnOver {
        wake(.frame)
        return
      }
      if advance() == .waiting { return }
    }
    if memberOf == nil, !endLeftovers() { return }
    conclude()
  }

  /// The end of all that the strand had to do.
  private func conclude() {
    let error = stop?.error ?? lastError
    if lastError != nil { lastError = nil }
    if let memberOf {
      memberOf._withUnsafeGuaranteedRef { $0.memberEnded(self, error) }
    } else {
      run.settle(error)
      run.conclude()
    }
  }

  /// Cancels the tasks that ops have left to the run; false while they have to be waited for.
  func endLeftovers() -> Bool {
    guard let owned = run.owned, !owned.isEmpty else { return true }
    owned.cancelAll(.cancelled())
    if owned.isEmpty { return true }
    owned.whenEmpty { [self] in wake(.owned) }
    return false
  }

  // MARK: Ops

  /// Starts an op or a flow.
  func launch(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int)
    -> Progress
  {
    if loop.replacements != nil, let fake = loop.replacements?.fake(for: op) {
      return begin(fake, policy: policy, scope: scope, position: position, index: index)
    }
    return begin(op, policy: policy, scope: scope, position: position, index: index)
  }

  @inline(__always)
  private func begin(
    _ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int
  ) -> Progress {
    if op.isFlow, let flow = op as? Flow {
      enter(flow, policy: policy, scope: scope, position: position)
      return .moved
    }
    return execute(op, policy: policy, scope: scope, position: position, index: index)
  }

  func execute(_ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int)
    -> Progress
  {
    let time = loop.takeStamp()
    if time >= loop.nextLook { look(at: time) }
    if op.mayBeBusy { loop.renewTurn() }
    // Unretained, because retains would cost as much as the rest. Safe: the strand holds its context
    // and lets go of it in `closeContext` alone, which nothing calls before the end of this.
    let context = Unmanaged.passUnretained(self.context)
    context._withUnsafeGuaranteedRef {
      $0.begin(
        op, generation: loop.nextGeneration(), scope: scope, position: position, index: index,
        time: time)
    }
    // Safe: the run holds its log, and the strand its run.
    let log = Unmanaged.passUnretained(self.log)
    let start = log._withUnsafeGuaranteedRef {
      $0.appendStart(time: time, scope: scope, position: position)
    }
    if policy != nil {
      leafPolicy = policy
      isAsked = false
      return beginAttempt()
    }
    if op.hasNeeds, let error = inputError(of: op) {
      context._withUnsafeGuaranteedRef { $0.end(error) }
    } else if let body = op.body {
      let isDone = context._withUnsafeGuaranteedRef {
        let progress = body.start($0)
        guard progress == .finished, !$0.isSettled, stop == nil, $0.extras == nil else {
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
        loop.stamp = 0
        isAsked = false
        askBody()
        return .waiting
      }
    }
    return bodyEnded()
  }

  /// The body of the op has ended: so has the op, unless there is more to it.
  @inline(__always)
  private func bodyEnded() -> Progress {
    if leafPolicy != nil || stop != nil || context.extras != nil { return endBody() }
    lastError = closeContext()
    return .ended
  }

  /// Logs the success of the op that has just returned.
  @inline(__always)
  private func succeed(
    _ context: OpContext, _ start: EventLog.Start, _ log: Unmanaged<EventLog>
  ) {
    let time = loop.now()
    loop.stamp = time
    context.succeed(generation: loop.nextGeneration())
    log._withUnsafeGuaranteedRef {
      if !$0.appendFinish(of: start, time: time) { context.logSuccess($0, time: time) }
    }
  }

  /// Returns the outcome of the op that has ended and makes the context ready for the next one.
  @inline(__always)
  func closeContext() -> FlowError? {
    // Unretained: a retain would make the context look shared. Safe: the strand holds it.
    let outcome = Unmanaged.passUnretained(context)._withUnsafeGuaranteedRef {
      $0.close()
      return $0.outcome
    }
    if !isKnownUniquelyReferenced(&context) { replaceContext() }
    return outcome
  }

  @inline(never)
  private func replaceContext() {
    context.abandon()
    context = loop.makeContext(context.slot)
    context.strand = self
  }

  /// Leaves a context that somebody else holds to the attempt that it was about.
  func renewContext() {
    if isKnownUniquelyReferenced(&context) { return }
    let old = context
    replaceContext()
    context.follow(old)
  }

  /// Lets a context that somebody else holds keep what it was about.
  func detachContext() {
    if !isKnownUniquelyReferenced(&context) { context.abandon() }
  }

  /// What the op needs and doesn't find.
  @inline(__always)
  private func inputError(of op: Op) -> FlowError? {
    let isMet = unretained(op.declarations) { declarations in
      unretained(bucket) { declarations.clearlyMeetsNeeds($0) }
    }
    return isMet ? nil : checking { op.declarations.inputError(in: bucket) }
  }

  func outputError(of op: Op) -> FlowError? {
    // Most ops declare nothing.
    guard op.hasGives || isCollected else { return nil }
    if op.hasGives {
      let isKept = unretained(op.declarations) { declarations in
        unretained(bucket) { declarations.clearlyKeepsGives($0) }
      }
      if !isKept, let error = checking({ op.declarations.outputError(in: bucket) }) {
        return error
      }
    }
    guard frames.isEmpty, let memberOf else { return nil }
    // Safe: the strand holds its bucket, and its group, which holds the strand, is held as long.
    return memberOf._withUnsafeGuaranteedRef { group in
      unretained(bucket) { group.collectError(in: $0) }
    }
  }

  /// Stores a value in the strand's bucket and logs it, unless the bucket is that of an item.
  /// `time` is when it happened, if not now.
  func store(
    _ key: Key, _ value: Value, scope: UInt32, position: UInt32, attempt: Int,
    at time: Int64? = nil
  ) {
    // Unretained. Safe: storing replaces no bucket.
    let old = Unmanaged.passUnretained(bucket)._withUnsafeGuaranteedRef { $0.set(key, value) }
    guard log.hasSecrets || value.isSecret else {
      logSet(
        key, value, replacing: old, scope: scope, position: position, attempt: attempt, at: time)
      return
    }
    let shown = log.shown(value, of: key, in: bucket)
    let oldShown = old.map { log.shown($0, of: key, in: bucket) }
    logSet(
      key, shown, replacing: oldShown, scope: scope, position: position, attempt: attempt, at: time)
  }

  @inline(__always)
  private func logSet(
    _ key: Key, _ value: Value, replacing old: Value?, scope: UInt32, position: UInt32,
    attempt: Int, at time: Int64?
  ) {
    if !logsSets || (old == nil && value.isNull) { return }
    let kind: LogKind = value.isNull ? .remove : old == nil ? .add : .replace
    let time = time ?? loop.stampedNow()
    // Unretained. Safe: the run holds its log, and the strand its run.
    Unmanaged.passUnretained(log)._withUnsafeGuaranteedRef {
      $0.append(
        kind, time: time, scope: scope, position: position, key: key.id, attempt: attempt,
        first: $0.payload(value), second: old.map($0.payload) ?? .none, value: value)
    }
  }
}
