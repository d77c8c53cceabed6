/// Is notified of the ends of items of an `ItemExecutor`, on its loop's thread.
///
/// Most items succeed with plain values. The owner isn't notified of these: it collects them with
/// `takeEnds`.
package protocol ItemExecutorOwner: AnyObject {
  /// Why an item that has succeeded can't hand over its output, which isn't plain; nil when it can.
  func problem(with output: any OpaqueValue) -> FlowError?
  /// An item has failed, or ended with an output that isn't plain: it is at `place` of `ends`.
  func itemEnded(at place: Int, of ends: borrowing ItemEnds)
  /// `ItemExecutor.dueTime` has been reached: an item has just ended, at `time`. May cancel the
  /// executor.
  func endsAreDue(at time: Int64)
}

/// Executes items of another loop's group on this loop. Workers use it.
///
/// Each item has an execution of its own, as items of a group of this loop have. So the engine itself
/// checks declarations and handles tasks, cleanups, waits and cancellation. A log keeps the events
/// until the owner takes them, to append them to the group's log.
package final class ItemExecutor {
  /// The run that items are part of.
  package let run: Run
  private let body: ExecutorBody
  private var items: ExecutedItems? { body.items }

  /// Creates an executor, which is ready to execute items.
  ///
  /// - Parameters:
  ///   - op: The op to execute for each item; without a policy.
  ///   - loop: The loop that executes the items.
  ///   - data: The data that items read through to.
  ///   - itemKey: The key under which an item's bucket holds the item.
  ///   - collectKey: The key whose value is the output of an item; nil when nothing is collected.
  ///   - limit: The most items that execute at the same time; at least 1.
  ///   - stopsAtFailure: Whether no further item starts after one has failed.
  ///   - endingError: See `ItemWork`.
  ///   - lineage: See `ItemWork`.
  ///   - spans: See `ItemWork`.
  ///   - owner: The owner to notify of the ends; not retained. It must live until it has called
  ///     `end`.
  package init(
    _ op: Op, on loop: FlowEventLoop, data: [(ByteString, FlowValue)], itemKey: ByteString,
    collectKey: ByteString?, limit: Int, stopsAtFailure: Bool, endingError: FlowError? = nil,
    lineage: UInt64 = 0, spans: SpanOrigin? = nil, owner: any ItemExecutorOwner
  ) {
    let keys = loop.keys
    body = ExecutorBody(
      op, keys.intern(itemKey), collectKey.map { keys.intern($0) }, limit: max(1, limit),
      stopsAtFailure: stopsAtFailure, owner: owner)
    run = Op(name: op.name, body: body).start(on: loop, data: data, owner: nil)
    run.isStandIn = true
    run.endingErrorAround = endingError
    run.lineage = lineage
    run.spanOrigin = spans
    // The owner is notified of its outcome.
    run.markObserved()
  }

  /// How many items haven't ended.
  package var count: Int { items?.open ?? 0 }

  /// Takes more items: the first one is at the 0-based index `first` of the group.
  package func add(first: Int, _ values: ContiguousArray<FlowValue>) {
    items?.add(first: first, values)
  }

  /// Sets the labels of items, which the names of their ops show: the first one belongs to the item at the 0-based
  /// index `first` of the group.
  package func setLabels(first: Int, _ labels: ContiguousArray<ByteString>) {
    for (place, label) in labels.enumerated() where !label.isEmpty {
      run.log.setLabel(
        label, scope: LogSlice.itemScope,
        position: UInt32(truncatingIfNeeded: first + place + 1))
    }
  }

  /// Drops items that haven't started, and stops running ones; each item ends.
  package func cancel(_ error: FlowError) { items?.cancel(error) }

  /// The time on the loop's clock from which each end of an item calls `endsAreDue`.
  package var dueTime: Int64 {
    get { items?.dueTime ?? .max }
    set { items?.dueTime = newValue }
  }

  /// Whether there are events or ends that the owner hasn't taken.
  package var hasNews: Bool { run.log.isFilled || items?.ends.indices.isEmpty == false }

  /// How items have ended since the last call.
  package func takeEnds() -> ItemEnds { items?.takeEnds() ?? ItemEnds() }

  /// The events since the last call.
  package func takeSlice() -> LogSlice { run.log.takeSlice() }

  /// Adds a secret whose text no log line may show.
  package func hide(_ value: FlowValue) { run.log.hide(value) }

  /// Releases everything that items have left; called when all items have ended and no more will
  /// come.
  package func end() { body.end() }
}

/// The body of the run that items are part of.
private final class ExecutorBody: OpBody, Abandonable {
  private let op: Op
  private let itemKey: DataKey
  private let collectKey: DataKey?
  private let limit: Int
  private let stopsAtFailure: Bool
  // Safe: see `ItemExecutor.init`. A weak reference would make every retain of the owner slow.
  private unowned(unsafe) let owner: any ItemExecutorOwner
  private(set) var items: ExecutedItems?
  private var context: OpContext?

  init(
    _ op: Op, _ itemKey: DataKey, _ collectKey: DataKey?, limit: Int, stopsAtFailure: Bool,
    owner: any ItemExecutorOwner
  ) {
    self.op = op
    self.itemKey = itemKey
    self.collectKey = collectKey
    self.limit = limit
    self.stopsAtFailure = stopsAtFailure
    self.owner = owner
  }

  func start(_ context: OpContext) -> CallState {
    guard let execution = context.execution else { return .finished }
    self.context = context
    _ = execution.log.addScope(
      LogScope(
        parent: 0, position: 0, attempt: 1, kind: .group, name: op.name,
        queued: execution.log.began))
    items = ExecutedItems(
      op, itemKey, collectKey, limit: limit, stopsAtFailure: stopsAtFailure, parent: execution,
      owner: owner)
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    items?.cancel(error)
  }

  func end() {
    items?.dropIdle()
    let ended = context
    context = nil
    ended?.end()
  }

  package func abandon() {
    items?.abandonMembers()
    items = nil
    context = nil
  }
}

/// The items of an executor.
private final class ExecutedItems: MemberGroup {
  private let op: Op
  private let itemKey: DataKey
  private let collected: DataKey?
  private let isOutputOptional: Bool
  private let limit: Int
  private let stopsAtFailure: Bool
  // Safe: as above.
  private unowned(unsafe) let owner: any ItemExecutorOwner

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var pool = MemberPool()
  /// Items; the next one to start is at `next`, and the first one has the index `first`.
  @exclusivity(unchecked) private var batch: ContiguousArray<FlowValue> = []
  @exclusivity(unchecked) private var first = 0
  @exclusivity(unchecked) private var next = 0
  /// Items that follow those of `batch`.
  @exclusivity(unchecked) private var later: [(first: Int, values: ContiguousArray<FlowValue>)] = []
  /// How many items haven't ended.
  @exclusivity(unchecked) private(set) var open = 0
  /// How items have ended since the owner last took the ends.
  @exclusivity(unchecked) private(set) var ends = ItemEnds()
  @exclusivity(unchecked) var dueTime: Int64 = 0
  @exclusivity(unchecked) private var hasFailed = false

  init(
    _ op: Op, _ itemKey: DataKey, _ collected: DataKey?, limit: Int, stopsAtFailure: Bool,
    parent: Execution, owner: any ItemExecutorOwner
  ) {
    self.op = op
    self.itemKey = itemKey
    self.collected = collected
    isOutputOptional = collected.map { op.mayLeaveOut(parent.loop.keys.name(of: $0)) } ?? false
    self.limit = limit
    self.stopsAtFailure = stopsAtFailure
    self.owner = owner
    super.init(parent: parent)
    isScheduled = false
  }

  override var collectKey: DataKey? { collected }
  override var members: [Execution] { pool.members }

  func add(first: Int, _ values: ContiguousArray<FlowValue>) {
    guard !values.isEmpty else { return }
    open += values.count
    later.append((first, values))
    if let stop { dropWaiting(stop) } else { schedule() }
  }

  override func cancel(_ error: FlowError) {
    guard stop == nil else { return }
    super.cancel(error)
    // Items that are busy below on the stack are stopped at once.
    pool.cancel(error)
  }

  override func proceed() {
    _ = startMembers {
      !hasFailed && pool.count < limit
    } _: {
      guard let (index, item) = takeNext() else { return nil }
      return pool.start(
        item, at: index, of: self, op: op, policy: nil, key: itemKey, scope: LogSlice.itemScope
      ) { (parent.run, parent.bucket) }
    }
  }

  private var hasWaiting: Bool { next < batch.count || !later.isEmpty }

  @inline(__always)
  private func takeNext() -> (Int, FlowValue)? {
    if next == batch.count, !takeBatch() { return nil }
    let place = next
    next = place &+ 1
    return (first &+ place, batch[place])
  }

  @inline(never)
  private func takeBatch() -> Bool {
    next = 0
    guard !later.isEmpty else {
      batch = []
      return false
    }
    (first, batch) = later.removeFirst()
    return true
  }

  private func dropAll() {
    batch = []
    next = 0
    later = []
  }

  override func cancelMembers(_ error: FlowError) {
    dropWaiting(error)
    pool.cancel(error)
  }

  private func dropWaiting(_ error: FlowError) {
    while let (index, _) = takeNext() { ended(index, .null, error) }
  }

  /// Releases members that wait for items, because they retain this group.
  func dropIdle() { pool.removeIdle() }

  /// Releases all members, for a loop that is shut down.
  func abandonMembers() {
    isScheduled = true
    dropAll()
    var open = pool.removeAll()
    while let member = open.popLast() { open.append(contentsOf: member.abandon()) }
  }

  override func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collected else { return nil }
    guard let output = bucket.ownValue(of: collected) else {
      return isOutputOptional ? nil : bucket.missingOutput(collected)
    }
    guard case .opaque(let opaque) = output else { return nil }
    return owner.problem(with: opaque)
  }

  override func memberFailed(_ error: FlowError) {
    if stopsAtFailure { hasFailed = true }
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    let index = member.index &- 1
    var output = FlowValue.null
    if error == nil, let collected {
      unretained(member.bucket) {
        guard let value = $0.ownValue(of: collected) else { return }
        output = hasSecrets && $0.isSecret(collected) ? .secret(value) : value
      }
    }
    pool.remove(member, keeps: hasWaiting)
    ended(index, output, error)
    if !hasFailed, hasWaiting { continueAsWork() }
  }

  @inline(__always)
  private func ended(_ index: Int, _ output: FlowValue, _ error: FlowError?) {
    open &-= 1
    ends.indices.append(Int32(truncatingIfNeeded: index))
    ends.outputs.append(output)
    if error != nil || output.kind == .opaque { endedSpecially(error) }
    let time = engine.takeStamp()
    if time >= dueTime { owner.endsAreDue(at: time) }
  }

  @inline(never)
  private func endedSpecially(_ error: FlowError?) {
    let place = ends.count - 1
    if let error { ends.failures.append((place, error)) }
    owner.itemEnded(at: place, of: ends)
  }

  func takeEnds() -> ItemEnds {
    let taken = ends
    ends = ItemEnds()
    ends.indices.reserveCapacity(taken.count)
    ends.outputs.reserveCapacity(taken.count)
    return taken
  }

  override func abandon() {
    isScheduled = true
    dropAll()
  }
}
