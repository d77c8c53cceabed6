/// A group that is executing: it hands out items, counts running items, collects outputs, and stops
/// at a failure.
final class GroupExecution: MemberGroup, ProgressSource {
  private let op: Op
  private let dispatcher: GroupDispatcher
  private let policy: OpPolicy?
  private let scope: UInt32
  private let position: UInt32
  private var source: ListSource?
  // One of these two executes the items. It is set at the start and cleared at the end.
  @exclusivity(unchecked) private var runner: LoopItemRunner?
  @exclusivity(unchecked) private var handout: ItemHandout?
  private var collected: Key?
  /// Whether items may succeed without an output.
  private var isOutputOptional = false

  private var failed: [(index: Int, error: FlowError)] = []
  private var hasBegun = false
  private var hasEnded = false
  /// Whether an output is secret, which makes the list of outputs secret.
  private var isOutputSecret = false
  private let limit: Int

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var succeeded = 0
  @exclusivity(unchecked) private var outputs: ContiguousArray<Value> = []

  init(
    _ op: Op, policy: OpPolicy?, _ dispatcher: GroupDispatcher, parent: Execution, scope: UInt32,
    position: UInt32
  ) {
    self.op = parent.loop.engine.replacements?.fake(for: op) ?? op
    self.policy = policy
    self.dispatcher = dispatcher
    self.scope = scope
    self.position = position
    limit = dispatcher.maxConcurrent
    super.init(parent: parent)
  }

  deinit { handout?.detach() }

  override var collectKey: Key? { isOutputOptional ? nil : collected }
  override var members: [Execution] { runner?.members ?? [] }

  override func proceed() {
    if !hasBegun {
      hasBegun = true
      if let error = begin() {
        parent.groupEnded(error)
        return
      }
    }
    if let runner { proceed(runner) } else if let handout { proceed(handout) }
  }

  private func proceed(_ runner: LoopItemRunner) {
    let waits = startMembers {
      runner.count < limit
    } _: {
      runner.startNext()
    }
    if waits, runner.count == 0 { finish() }
  }

  private func proceed(_ handout: ItemHandout) {
    isScheduled = true
    stopMembers()
    while stop == nil, handout.startNext() {}
    stopMembers()
    isScheduled = false
    // Executing the items has taken time.
    engine.stamp = 0
    if handout.count == 0, stop != nil || handout.isExhausted { finish() }
  }

  override func cancelMembers(_ error: FlowError) {
    runner?.cancel(error)
    handout?.cancel(error)
  }

  // MARK: Start

  /// Looks up the list; returns why the group can't start.
  private func begin() -> FlowError? {
    if let problem = dispatcher.problem(with: op) {
      return refuse(.usage(problem))
    }
    let keys = loop.keys
    let input = keys.intern(dispatcher.input)
    guard let value = parent.bucket.get(input) else {
      return refuse(parent.bucket.missingInput(input))
    }
    // Checked only when the log has secrets, because it searches all enclosing buckets.
    let isSecret = parent.log.hasSecrets && parent.bucket.isSecret(input)
    guard let source = ListSource(value, isSecret: isSecret) else {
      let shown = parent.bucket.shown(value, of: input)
      return refuse(
        .mismatchedInput(dispatcher.input, shown, wanted: "any[]", hiding: loop.secrets))
    }
    log(.groupCreated, .integer(Int64(source.count)))
    if source.count == 0, !dispatcher.allowEmpty {
      let text: ByteString = """
        no operation to run for group; please make sure the input data: \
        <\(dispatcher.input)> is not empty
        """
      log(.groupEmpty, parent.log.payload(text))
      return attributed(FlowError(.insufficientInput, text))
    }
    guard let itemKey = dispatcher.itemKey ?? op.primaryInput else { return nil }
    self.source = source
    if dispatcher.output != nil {
      let name = dispatcher.collect ?? op.primaryOutput
      collected = name.map { keys.intern($0) }
      isOutputOptional = op.mayLeaveOut(name)
      outputs = ContiguousArray(repeating: .null, count: source.count)
    }
    makeRunner(source, itemKey: keys.intern(itemKey))
    engine.progressMonitor?.progressChanged(self)
    return nil
  }

  /// The op decides which runner executes its items, then the loop; by default the loop executes
  /// them itself.
  private func makeRunner(_ source: ListSource, itemKey: Key) {
    let inner = parent.log.addScope(
      LogScope(
        parent: scope, position: position, attempt: 1, kind: .group, name: op.name,
        queued: engine.stampedNow()))
    let work = ItemWork(
      op: op, run: parent.run, data: parent.bucket, count: source.count, maxConcurrent: limit,
      itemKey: itemKey, collectKey: collected, isOutputOptional: isOutputOptional,
      allowFailure: dispatcher.allowFailure, parent: parent, policy: policy)
    if let made = (op.body as? any ItemRunnerProvider)?.itemRunner(for: work)
      ?? engine.makeItemRunner?(work)
    {
      handout = ItemHandout(work, source, scope: inner, group: self, runner: made)
    } else {
      runner = LoopItemRunner(work, policy: policy, source, scope: inner, group: self)
    }
  }

  private func refuse(_ error: FlowError) -> FlowError {
    log(.groupRefused, parent.log.payload(error.logLine))
    return attributed(error)
  }

  private func attributed(_ error: FlowError) -> FlowError {
    let around = parent.path(of: parent.frames.count - 1)
    return error.attributed(to: "Group", at: "\(around)/Group")
  }

  // MARK: Items

  override func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collectKey, !bucket.hasOwn(collectKey) else { return nil }
    return bucket.missingOutput(collectKey)
  }

  override func memberFailed(_ error: FlowError) {
    guard !dispatcher.allowFailure, stop == nil else { return }
    stop = error
    stopReason = .cancelled(reason: "group failed")
    log(.groupStopped, .none)
    schedule()
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    let index = member.index &- 1
    if let error {
      fail(index, error)
    } else {
      succeeded &+= 1
      if let collectKey = collected {
        unretained(member.bucket) {
          guard let output = $0.ownValue(of: collectKey) else { return }
          outputs[index] = output
          if hasSecrets, $0.isSecret(collectKey) { isOutputSecret = true }
        }
      }
    }
    if let runner { unretained(runner) { $0.remove(member) } }
    if engine.progressMonitor != nil { engine.progressMonitor?.progressChanged(self) }
    continueAsWork()
  }

  /// Called when an item that was handed out has ended. Its runner may call this at any time.
  @inline(__always)
  func itemEnded(_ index: Int, output: Value, error: FlowError?) {
    if let error {
      fail(index, error)
    } else {
      succeeded += 1
      if collected != nil {
        outputs[index] = output.plain
        if output.isSecret { isOutputSecret = true }
      }
    }
    if engine.progressMonitor != nil { engine.progressMonitor?.progressChanged(self) }
    schedule()
  }

  private func fail(_ index: Int, _ error: FlowError) {
    failed.append((index, error))
    memberFailed(error)
  }

  /// Stops items that a runner doesn't end, or waits until the runner takes more items.
  override func failStalled() -> Bool {
    guard let handout else { return false }
    if !handout.failStalled() {
      guard stop == nil else { return false }
      stop = .stalled(op: op.name)
    }
    schedule()
    return true
  }

  override func abandon() {
    runner = nil
    handout = nil
    isScheduled = true
  }

  // MARK: End

  /// How many of the items have ended, and the state of the others; nil before the start and after
  /// the end.
  var progress: Progress? {
    guard let source, !hasEnded else { return nil }
    return Progress(
      run: parent.log.shown(parent.run.name), op: parent.log.shown(op.name),
      done: Double(succeeded + failed.count),
      total: Double(source.count),
      items: Progress.Items(
        running: runner?.count ?? handout?.count ?? 0, failed: failed.count))
  }

  private func finish() {
    isScheduled = true
    hasEnded = true
    engine.progressMonitor?.progressChanged(self)
    if let stop {
      parent.groupEnded(stop)
      return
    }
    failed.sort { $0.index < $1.index }
    let list = outputList()
    log(.groupFinished, .integer(Int64(list?.count ?? succeeded)))
    if let list, let output = dispatcher.output {
      let made = engine.makeList(list)
      store(output, isOutputSecret ? .secret(made) : made)
    }
    if let key = dispatcher.failures {
      let records = failed.map {
        engine.makeFailure($0.index, source?.item(at: $0.index) ?? .null, $0.error)
      }
      store(key, engine.makeList(ContiguousArray(records)))
    }
    parent.groupEnded(nil)
  }

  private func outputList() -> ContiguousArray<Value>? {
    guard dispatcher.output != nil else { return nil }
    // Besides failed items, one may have left out an optional output, or be a flow that ended early.
    if !outputs.contains(where: \.isNull) { return outputs }
    guard let absent = dispatcher.absent else { return outputs.filter { !$0.isNull } }
    if absent.isSecret { isOutputSecret = true }
    return ContiguousArray(outputs.map { $0.isNull ? absent.plain : $0 })
  }

  private func store(_ name: ByteString, _ value: Value) {
    parent.store(
      loop.keys.intern(name), value, scope: scope, position: position, attempt: 1)
  }

  private func log(_ kind: LogKind, _ payload: Payload) {
    parent.log.append(
      kind, time: engine.stampedNow(), scope: scope, position: position, first: payload)
  }
}
