/// A group that is executing: it hands out items, counts running items, collects outputs, and stops
/// at a failure.
final class GroupExecution: MemberGroup {
  private let op: Op
  private let dispatcher: GroupDispatcher
  private let policy: OpPolicy?
  private let scope: UInt32
  private let position: UInt32
  private var source: ListSource?
  /// Instead of a list, an iterator that gives the items while others execute.
  private var feed: ItemFeed?
  /// The value whose items it gives, unless that is a stream.
  private var iterator: FlowValue?
  /// Whether no more items start, and the group succeeds when those that execute have ended.
  private var isClosed = false
  /// Other steps of a graph get each result in it as soon as it and those before it are there.
  private var passed: ItemStream?
  /// Whether a list of the results is made.
  private var keepsOutputs = true
  /// Results that wait for others before them; nil for an item that has failed.
  private var unpassed: [Int: FlowValue?] = [:]
  @exclusivity(unchecked) private var nextPassed = 0
  private var waitsForRoom = false
  /// The graph around it, if that limits how many ops and items execute.
  private let graph: ParallelExecution?
  /// Decides after each item whether that is the case.
  private var stopRule: GroupStopRule?
  // One of these two executes the items. It is set at the start and cleared at the end.
  @exclusivity(unchecked) private var runner: LoopItemRunner?
  @exclusivity(unchecked) private var handout: ItemHandout?
  private var collected: DataKey?
  /// Whether items may succeed without an output.
  private var isOutputOptional = false

  private var failed: [(index: Int, error: FlowError)] = []
  private var hasBegun = false
  private let isRehearsed: Bool
  /// Whether an output is secret, which makes the list of outputs secret.
  private var isOutputSecret = false

  // Unchecked exclusivity: see HotPath.swift.

  /// How many members there may be: one more than `maxConcurrent` for each that has given its slot
  /// to another item.
  @exclusivity(unchecked) private var limit: Int
  /// How many members have given their slots to others until their ends are kept.
  @exclusivity(unchecked) private var keptCount = 0
  /// How many members wait for limits before they start.
  private var waitingForLimits = 0
  /// Set when there is a limit of starts, or when a member has waited for its next attempt.
  @exclusivity(unchecked) private var queue: StartQueue?
  /// Whether `queue` is set: cheaper to read.
  @exclusivity(unchecked) private var isQueued: Bool
  @exclusivity(unchecked) private var succeeded = 0
  @exclusivity(unchecked) private var outputs: ContiguousArray<FlowValue> = []
  /// Counts the memory of the outputs; nil unless something limits it.
  private let account: MemoryAccount?
  /// The bytes that are counted there, besides large texts.
  private var counted = 0

  init(
    _ op: Op, policy: OpPolicy?, _ dispatcher: GroupDispatcher, parent: Execution, scope: UInt32,
    position: UInt32
  ) {
    let fake = parent.loop.engine.replacements?.fake(for: op)
    self.op = fake ?? op
    let own = OpPolicy.adding(dispatcher.limits, to: policy)
    self.policy = fake.map { .standIn(own, for: $0) } ?? own
    self.dispatcher = dispatcher
    self.scope = scope
    self.position = position
    limit = Self.slots(dispatcher)
    isRehearsed = parent.isRehearsing
    queue = isRehearsed ? nil : dispatcher.rate.map { StartQueue($0) }
    isQueued = queue != nil
    account = parent.loop.engine.memory
    let graph = parent.frames.isEmpty ? parent.group as? ParallelExecution : nil
    self.graph = graph?.isLimited == true ? graph : nil
    super.init(parent: parent)
  }

  deinit {
    handout?.detach()
    account?.release(counted)
  }

  /// Counts the memory of an output.
  @inline(never)
  private func count(_ output: FlowValue, in account: MemoryAccount) {
    guard case .bytes(let bytes) = output.plain else { return }
    if bytes.count >= HeldBlocks.smallest { return account.add(bytes) }
    counted += bytes.count
    account.change(by: bytes.count)
  }

  /// How many items may execute; less than the greatest integer, so that `limit` can grow.
  private static func slots(_ dispatcher: GroupDispatcher) -> Int {
    min(dispatcher.maxConcurrent, Int.max / 2)
  }

  override var collectKey: DataKey? { isOutputOptional ? nil : collected }
  override var keptOutput: DataKey? { collected }
  override var hasItems: Bool { true }
  override var needsSlots: Bool { graph != nil }
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
      feed?.endTurn()
      return (graph?.hasRoom(forItemOf: parent) ?? true) && (passed == nil || roomToPass() > 0)
        && (isQueued ? queueAllowsStart(runner) : runner.count < limit)
    } _: {
      let member = isQueued ? startQueued(runner) : runner.startNext()
      if let graph, member != nil { graph.takeSlot() }
      return member
    }
    guard waits else { return }
    graph?.passRoom(of: parent)
    if let feed, !isFinished(feed, besides: runner.count) { return }
    guard runner.count == 0 else { return }
    if graph != nil || passed != nil, stop == nil, runner.hasNext { return }
    if stop != nil || queue?.timer == nil { finish() }
  }

  /// Has the iterator called while items execute, and fails if it has failed, or the writer of the stream.
  ///
  /// - Returns: Whether it has ended, after all items that it has given.
  @inline(never)
  private func isFinished(_ feed: ItemFeed, besides executing: Int) -> Bool {
    // If its code ends meanwhile, nothing has to continue for that. Code that runs the loop in place may also end items.
    isScheduled = true
    let hadRoom = graph?.hasRoom == true
    if stop == nil { feed.fetch() }
    if stop == nil, let (error, item) = feed.failure {
      let text: ByteString = "<\(dispatcher.input)> failed at item #\(item): \(error.message)"
      stop = attributed(
        error.with {
          $0.message = text
          $0.payload = nil
        })
      stopReason = .cancelled(reason: "group failed")
      log(.groupStopped, .none)
    }
    if let stop { feed.close(stop.asReason) }
    isScheduled = false
    let hasNewRoom = !hadRoom && graph?.hasRoom == true
    if (stopReason != nil && executing > 0) || runner?.count != executing || hasNewRoom {
      schedule()
    }
    return feed.hasEnded
  }

  /// Passes the result of an item on, after those of the items before it.
  @inline(never)
  private func pass(_ output: FlowValue?, _ index: Int) {
    guard dispatcher.isOrdered else {
      if let item = output ?? dispatcher.absent { passed?.put(item) }
      return
    }
    if index == nextPassed, unpassed.isEmpty {
      nextPassed += 1
      if let item = output ?? dispatcher.absent { passed?.put(item) }
      return
    }
    unpassed[index] = .some(output)
    while let next = unpassed.removeValue(forKey: nextPassed) {
      nextPassed += 1
      if let item = next ?? dispatcher.absent { passed?.put(item) }
    }
  }

  /// How many more items may start for the results that aren't read yet.
  private var roomForResults: Int {
    let executing = runner?.count ?? handout?.count ?? 0
    return passed?.roomForResults(besides: unpassed.count + executing) ?? .max
  }

  /// As `roomForResults`, but the group continues when it may start an item.
  private func roomToPass() -> Int {
    let room = roomForResults
    guard let passed, room <= 0, !waitsForRoom else { return room }
    waitsForRoom = true
    passed.whenRoom { [weak self] in
      self?.waitsForRoom = false
      self?.schedule()
    }
    return room
  }

  /// Starts no more items: the group succeeds when those that execute have ended.
  func close() {
    guard stop == nil, !isClosed else { return }
    isClosed = true
    runner?.close()
    feed?.close(.cancelled(reason: "no more items are needed"))
    schedule()
  }

  /// Asks, after an item has ended, whether more are needed.
  @inline(never)
  private func applyStopRule(_ output: FlowValue?) {
    guard let stopRule, stop == nil, !isClosed, !isRehearsed else { return }
    let error = parent.checking {
      do {
        if try stopRule(output, succeeded + failed.count) { close() }
        return nil
      } catch {
        return .from(error)
      }
    }
    guard let error, stop == nil else { return }
    stop = attributed(error)
    stopReason = .cancelled(reason: "group failed")
    log(.groupStopped, .none)
    schedule()
  }

  private func proceed(_ handout: ItemHandout) {
    isScheduled = true
    stopMembers()
    while stop == nil {
      let time = queue == nil ? 0 : loop.now()
      let executed = handout.executed
      let room = roomToPass()
      if room <= 0 { break }
      let count = handout.startNext(atMost: min(queue?.available(at: time) ?? .max, room))
      queue?.starts(handout.executed - executed, at: time)
      if count > 0 { continue }
      _ = isStart(queue?.nextAction(at: time, hasNew: !handout.isExhausted))
      break
    }
    stopMembers()
    isScheduled = false
    // Executing the items has taken time.
    engine.stamp = 0
    if handout.count == 0, stop != nil || handout.isExhausted { finish() }
  }

  /// Whether an item may start now; else, if only the limit of starts keeps it, the group continues when
  /// that allows it.
  @inline(never)
  private func queueAllowsStart(_ runner: LoopItemRunner) -> Bool {
    guard let hasDue = queue?.hasDue else { return false }
    guard runner.count < limit || (hasDue && dispatcher.holdsSlots) else { return false }
    feed?.fetch()
    let hasNew = runner.hasNext && runner.count < limit
    return isStart(queue?.nextAction(at: loop.now(), hasNew: hasNew))
  }

  /// Whether the action is a start; waits for its time if that is to come.
  private func isStart(_ action: StartQueue.Action?) -> Bool {
    switch action {
    case .start:
      queue?.setTimer(nil)
      return true
    case .wait(let time):
      queue?.setTimer(
        loop.schedule(at: time) { [self] in
          queue?.setTimer(nil)
          schedule()
        })
      return false
    case nil, .some(.none): return false
    }
  }

  /// Prepares the member that has waited for its next attempt for the longest time, else one for the next
  /// item.
  @inline(never)
  private func startQueued(_ runner: LoopItemRunner) -> Unmanaged<Execution>? {
    queue?.starts(at: loop.now())
    guard let member = queue?.popDue() else {
      let member = runner.startNext()
      if parent.run.keeper != nil { member?.lend { $0.hasExecuted = false } }
      return member
    }
    takeSlot()
    member.lend { $0.endPause() }
    return member
  }

  override func memberPauses(_ member: Execution, for time: Duration) -> Bool {
    let isLimited = queue?.isLimited == true
    if !isLimited, dispatcher.holdsSlots || time == .zero { return false }
    if queue == nil { queue = StartQueue(nil) }
    isQueued = true
    if !dispatcher.holdsSlots {
      limit += 1
      continueAsWork()
    }
    graph?.slotIsFree()
    return true
  }

  override func memberIsDue(_ member: Execution) {
    queue?.add(member)
    schedule()
  }

  override func memberPauseStopped(_ member: Execution) {
    queue?.remove(member)
    takeSlot()
    // Its end gives it back.
    graph?.takeSlot()
  }

  /// A member that has given its slot to another item takes one, or ends.
  private func takeSlot() {
    if !dispatcher.holdsSlots { limit -= 1 }
  }

  /// A member that waits until its end is on the disk gives its slot to another item, so that the time of a commit
  /// doesn't slow the group down. At most as many do as others execute: what a crash leaves in doubt stays limited.
  override func memberIsBeingKept(_ member: Execution) {
    guard keptCount < Self.slots(dispatcher) - 1 else { return }
    keptCount += 1
    member.isBeingKept = true
    limit += 1
    continueAsWork()
  }

  override func memberIsQueued(_ isQueued: Bool) { waitingForLimits += isQueued ? 1 : -1 }

  /// How many items execute.
  var runningCount: Int {
    runner.map { $0.count - (limit - Self.slots(dispatcher)) - waitingForLimits } ?? handout?.count
      ?? 0
  }

  override func cancelMembers(_ error: FlowError) {
    queue?.removeAll()
    queue?.setTimer(nil)
    runner?.cancel(error)
    handout?.cancel(error)
    feed?.close(error)
  }

  // MARK: Start

  /// Looks up the list; returns why the group can't start.
  private func begin() -> FlowError? {
    if let problem = dispatcher.problem(with: op) {
      return refuse(.usage(problem))
    }
    let keys = loop.keys
    let input = keys.intern(dispatcher.input)
    if parent.run.keeper != nil { parent.noteRead(input) }
    guard let value = parent.bucket.get(input) else {
      return refuse(parent.bucket.missingInput(input))
    }
    // Checked only when the log has secrets, because it searches all enclosing buckets.
    let isSecret = parent.log.hasSecrets && parent.bucket.isSecret(input)
    let list = ListSource(value, isSecret: isSecret)
    // An object that can be called may look like an empty list.
    if list?.count ?? 0 == 0 {
      if let problem = parent.run.iterators.problem(of: value) { return refuse(.usage(problem)) }
      if let feed = ItemFeed(value, of: self, isSecret: isSecret, on: loop) {
        if !feed.isOfStream {
          iterator = value
          parent.run.iterators.begin(value, dispatcher.input, of: op.name)
        }
        return begin(feed)
      }
    }
    guard let source = list else {
      let shown = parent.bucket.shown(value, of: input)
      return refuse(
        .mismatchedInput(
          dispatcher.input, shown, wanted: FlowValueType.any.list.mismatch(shown.plain) ?? "any[]",
          hiding: loop.secrets))
    }
    log(.groupCreated, .integer(Int64(source.count)))
    if source.count == 0, !dispatcher.allowEmpty { return emptyError() }
    guard let itemKey = dispatcher.itemKey ?? op.primaryInput else { return nil }
    self.source = source
    let inner = prepareItems(source.count)
    if let label = dispatcher.label, let error = setLabels(of: source, in: inner, label) {
      return refuse(error)
    }
    makeRunner(source, scope: inner, itemKey: keys.intern(itemKey))
    notifySinksOfStart()
    return nil
  }

  /// Begins with the items of an iterator, of which there may be any number.
  private func begin(_ feed: ItemFeed) -> FlowError? {
    guard let itemKey = dispatcher.itemKey ?? op.primaryInput else { return nil }
    log(
      .groupCreated,
      parent.log.payload(feed.isOfStream ? "items of a stream" : "items of an iterator"))
    self.feed = feed
    let inner = prepareItems(0)
    runner = LoopItemRunner(
      work(0, scope: inner, itemKey: loop.keys.intern(itemKey)), policy: policy, feed, scope: inner,
      keepsItems: dispatcher.failures != nil, group: self)
    notifySinksOfStart()
    return nil
  }

  /// Prepares for the outputs of items, and returns their scope.
  private func prepareItems(_ count: Int) -> UInt32 {
    stopRule = dispatcher.stopRule?()
    if dispatcher.output != nil, parent.frames.isEmpty,
      let output = parent.group?.passItems(from: parent)
    {
      passed = output.stream
      keepsOutputs = output.isKept
    }
    if dispatcher.output != nil {
      let name = dispatcher.collect ?? op.primaryOutput
      collected = name.map { loop.keys.intern($0) }
      isOutputOptional = op.mayLeaveOut(name)
      outputs = ContiguousArray(repeating: .null, count: count)
    }
    return parent.log.addScope(
      LogScope(
        parent: scope, position: position, attempt: 1, kind: .group, name: op.name,
        queued: engine.stampedNow()))
  }

  /// Sets the label of an item that comes from an iterator, before it starts.
  func setLabel(of item: FlowValue, at index: Int, in scope: UInt32) {
    guard let label = dispatcher.label, !item.isSecret else { return }
    let error = parent.checking {
      do {
        guard let text = try label(item)?.byteString else { return nil }
        parent.log.setLabel(
          text, scope: scope, position: UInt32(truncatingIfNeeded: index + 1))
        return nil
      } catch {
        return .from(error)
      }
    }
    if let error, stop == nil {
      stop = attributed(error)
      stopReason = .cancelled(reason: "group failed")
      log(.groupStopped, .none)
    }
  }

  private func emptyError() -> FlowError {
    let text: ByteString = """
      no operation to run for group; please make sure the input data: \
      <\(dispatcher.input)> is not empty
      """
    log(.groupEmpty, parent.log.payload(text))
    return attributed(FlowError(.insufficientInput, text))
  }

  private func notifySinksOfStart() {
    for sink in parent.log.sinks { (sink as? any GroupSink)?.groupStarted(self) }
  }

  /// The log that has its events, and its id there.
  var place: (log: EventLog, id: UInt64) {
    (parent.log, parent.log.id(scope: scope, position: position))
  }

  /// The op decides which runner executes its items, then the loop; by default the loop executes
  /// them itself.
  private func makeRunner(_ source: ListSource, scope inner: UInt32, itemKey: DataKey) {
    let work = work(source.count, scope: inner, itemKey: itemKey)
    // The loop waits until the start of each item is kept, and hands out none that may not be needed.
    let keepsStarts = parent.run.keeper != nil && (policy?.effect ?? op.effect) == .once
    if !keepsStarts, stopRule == nil, graph == nil,
      let made = (op.body as? any ItemRunnerProvider)?.itemRunner(for: work)
        ?? engine.makeItemRunner?(work)
    {
      handout = ItemHandout(work, source, scope: inner, group: self, runner: made)
    } else {
      runner = LoopItemRunner(work, policy: policy, source, scope: inner, group: self)
    }
  }

  private func work(_ count: Int, scope inner: UInt32, itemKey: DataKey) -> ItemWork {
    ItemWork(
      op: op, run: parent.run, data: parent.bucket, count: count,
      maxConcurrent: dispatcher.maxConcurrent,
      itemKey: itemKey, collectKey: collected, isOutputOptional: isOutputOptional,
      allowFailure: dispatcher.allowFailure, parent: parent, policy: policy,
      scope: scope, position: position, itemScope: inner, hasRate: dispatcher.rate != nil)
  }

  /// Sets the labels of all items; returns the error that a function of a script has raised.
  @inline(never)
  private func setLabels(
    of source: ListSource, in scope: UInt32, _ label: (FlowValue) throws -> (any FlowText)?
  ) -> FlowError? {
    parent.checking {
      do {
        for index in 0..<source.count {
          let item = source.item(at: index)
          guard !item.isSecret, let text = try label(item)?.byteString else { continue }
          let position = UInt32(truncatingIfNeeded: index + 1)
          parent.log.setLabel(text, scope: scope, position: position)
        }
        return nil
      } catch {
        return .from(error)
      }
    }
  }

  private func refuse(_ error: FlowError) -> FlowError {
    log(.groupRefused, parent.log.payload(error.logLine))
    return attributed(error)
  }

  private func attributed(_ error: FlowError) -> FlowError {
    // A step of a graph has no flow of its own around it.
    let flow = parent.frames.isEmpty ? parent.group?.parent ?? parent : parent
    let around = flow.frames.isEmpty ? "" : flow.path(of: flow.frames.count - 1)
    return error.attributed(to: "Group", at: "\(around)/Group")
  }

  // MARK: Items

  override func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collectKey, !bucket.hasOwn(collectKey) else { return nil }
    return bucket.missingOutput(collectKey)
  }

  override func memberFailed(_ error: FlowError) {
    guard !dispatcher.allowFailure, stop == nil, !isRehearsed else { return }
    stop = error
    stopReason = .cancelled(reason: "group failed")
    log(.groupStopped, .none)
    schedule()
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    let index = member.index &- 1
    if keptCount > 0, member.isBeingKept {
      member.isBeingKept = false
      keptCount -= 1
      limit -= 1
    }
    if isQueued, parent.run.keeper != nil, !member.hasExecuted { queue?.cancelStart() }
    if let error {
      fail(index, error)
    } else {
      succeeded &+= 1
      if let collectKey = collected, keepsOutputs {
        unretained(member.bucket) {
          guard let output = $0.ownValue(of: collectKey) else { return }
          if let account { count(output, in: account) }
          if hasSecrets, $0.isSecret(collectKey) { isOutputSecret = true }
          if feed != nil { addPlaces(upTo: index) }
          outputs[index] = output
        }
      }
    }
    graph?.slotIsFree()
    if feed != nil, error == nil { runner?.forget(index) }
    // A failure ends the stream, so that nothing passes over a failed item unless it is allowed.
    if passed != nil, stop == nil {
      let output =
        error == nil
        ? unretained(member.bucket) { data in collected.flatMap { data.ownValue(of: $0) } } : nil
      let isSecret = hasSecrets && collected.map { member.bucket.isSecret($0) } == true
      pass(isSecret ? output.map { .secret($0) } : output, index)
    }
    if stopRule != nil {
      applyStopRule(error == nil ? collected.flatMap { member.bucket.ownValue(of: $0) } : nil)
    }
    if let runner { unretained(runner) { $0.remove(member) } }
    continueAsWork()
  }

  /// Called when an item that was handed out has ended. Its runner may call this at any time.
  @inline(__always)
  func itemEnded(_ index: Int, output: FlowValue, error: FlowError?) {
    if let error {
      fail(index, error)
    } else {
      succeeded += 1
      if collected != nil {
        outputs[index] = output.plain
        if let account { count(output, in: account) }
        if output.isSecret { isOutputSecret = true }
      }
    }
    if passed != nil, stop == nil { pass(error == nil && !output.isNull ? output : nil, index) }
    schedule()
  }

  /// Fails the whole run because of an item.
  func failRun(_ error: FlowError) {
    if stop == nil { stop = error }
    parent.failEverything(error)
  }

  /// Makes places for the outputs of items of an iterator.
  @inline(never)
  private func addPlaces(upTo index: Int) {
    while outputs.count <= index { outputs.append(.null) }
  }

  private func fail(_ index: Int, _ error: FlowError) {
    failed.append((index, error))
    memberFailed(error)
  }

  /// Stops items that a runner doesn't end, or waits until the runner takes more items.
  override func failStalled(onStreams: Bool) -> Bool {
    if let feed, feed.failStalled() { return true }
    guard let handout else { return false }
    if !handout.failStalled() {
      guard stop == nil, onStreams || roomForResults > 0 else { return false }
      stop = .stalled(op: op.name)
    }
    schedule()
    return true
  }

  override func abandon() {
    isScheduled = true
    queue?.setTimer(nil)
    runner = nil
    handout = nil
    feed?.abandon()
  }

  // MARK: End

  private func finish() {
    isScheduled = true
    queue?.setTimer(nil)
    if let iterator, let feed {
      if stop != nil, feed.count > 0 {
        parent.run.iterators.fail(iterator, dispatcher.input, count: feed.count)
      } else {
        parent.run.iterators.end(iterator)
      }
    }
    if let stop {
      parent.groupEnded(stop)
      return
    }
    failed.sort { $0.index < $1.index }
    if isRehearsed, let first = failed.first {
      parent.groupEnded(first.error)
      return
    }
    if let feed {
      if let lost = feed.lost { return lose(lost) }
      if feed.count == 0, !dispatcher.allowEmpty, !isClosed {
        parent.groupEnded(emptyError())
        return
      }
      if dispatcher.output != nil, dispatcher.absent != nil { addPlaces(upTo: feed.count - 1) }
    }
    let list = keepsOutputs ? outputList() : nil
    log(.groupFinished, .integer(Int64(list?.count ?? succeeded)))
    if let list, let output = dispatcher.output {
      let made = engine.makeList(list)
      store(output, isOutputSecret ? .secret(made) : made)
    }
    if let key = dispatcher.failures {
      let records = failed.map {
        let item = source?.item(at: $0.index) ?? runner?.item(at: $0.index)
        return engine.makeFailure($0.index, item ?? .null, $0.error)
      }
      store(key, engine.makeList(ContiguousArray(records)))
    }
    parent.groupEnded(nil)
  }

  /// Ends a group of a rehearsal whose items nobody knows: nor are its results known.
  private func lose(_ items: ItemReader) {
    passed?.isLost = true
    parent.run.keeper?.noteLostItems(of: parent.run.path(scope: scope, position: position))
    let output = keepsOutputs ? dispatcher.output : nil
    for key in [output, dispatcher.failures].compactMap(\.self) {
      parent.bucket.set(loop.keys.intern(key), .opaque(items))
    }
    log(.groupFinished, .integer(0))
    parent.groupEnded(nil)
  }

  private func outputList() -> ContiguousArray<FlowValue>? {
    guard dispatcher.output != nil else { return nil }
    // Besides failed items, one may have left out an optional output, or be a flow that ended early.
    if !outputs.contains(where: \.isNull) { return outputs }
    guard let absent = dispatcher.absent else { return outputs.filter { !$0.isNull } }
    if absent.isSecret { isOutputSecret = true }
    return ContiguousArray(outputs.map { $0.isNull ? absent.plain : $0 })
  }

  private func store(_ name: ByteString, _ value: FlowValue) {
    parent.store(
      loop.keys.intern(name), value, scope: scope, position: position, attempt: 1)
  }

  private func log(_ kind: LogKind, _ payload: Payload) {
    parent.log.append(
      kind, time: engine.stampedNow(), scope: scope, position: position, first: payload)
  }
}

/// A sink that is also notified of each group that starts.
protocol GroupSink: EventSink {
  /// A group has started, after the event of its start.
  func groupStarted(_ group: GroupExecution)
}
