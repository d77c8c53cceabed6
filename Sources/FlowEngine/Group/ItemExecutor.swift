/// Hears what becomes of the items of an `ItemExecutor`, on its loop's thread.
///
/// Of items that have succeeded with plain values, which are the most, it hears nothing until it takes
/// the ends.
package protocol ItemExecutorOwner: AnyObject {
  /// Why an item that has succeeded can't hand over its output, which isn't plain; nil when it can.
  func problem(with output: any OpaqueValue) -> FlowError?
  /// An item has failed, or ended with an output that isn't plain: it is at `place` of `ends`.
  func itemEnded(at place: Int, of ends: borrowing ItemEnds)
  /// `ItemExecutor.dueTime` has come: an item has just ended, at `time`. It may cancel the executor.
  func endsAreDue(at time: Int64)
}

/// Executes items of a group that belongs to another loop, on this one: what a worker does.
///
/// Each item is executed by a strand of its own, as in a group of this loop, so that the checks of
/// what the op declares, its tasks and cleanups, waits and cancellation are the engine's. What
/// happens is kept in a log until the owner takes it, to be appended to the group's own.
package final class ItemExecutor {
  /// The scope of the items in slices.
  static let scope: UInt32 = 1

  /// The run that items are part of.
  package let run: Run
  private let body: ExecutorBody
  private var items: ExecutedItems? { body.items }

  /// Begins to execute items.
  ///
  /// - Parameters:
  ///   - op: What is executed for each; without a policy.
  ///   - loop: Where.
  ///   - data: What items read through to.
  ///   - itemKey: The key under which an item's bucket holds the item.
  ///   - collectKey: The key whose value is the output of an item; nil when nothing is collected.
  ///   - limit: The most items that execute at the same time; at least 1.
  ///   - stopsAtFailure: Whether none begins any more once one has failed.
  ///   - endingError: See `ItemWork`.
  ///   - owner: Who is told of the ends; not held. It must live until it has called `end`.
  package init(
    _ op: Op, on loop: EventLoop, data: [(ByteString, Value)], itemKey: ByteString,
    collectKey: ByteString?, limit: Int, stopsAtFailure: Bool, endingError: FlowError? = nil,
    owner: any ItemExecutorOwner
  ) {
    let keys = loop.keys
    body = ExecutorBody(
      op, keys.intern(itemKey), collectKey.map { keys.intern($0) }, limit: max(1, limit),
      stopsAtFailure: stopsAtFailure, owner: owner)
    run = Op(name: op.name, body: body).start(on: loop, data: data)
    run.isStandIn = true
    run.endingErrorAround = endingError
    // Its outcome is what the owner is told.
    run.markObserved()
  }

  /// How many items haven't ended.
  package var count: Int { items?.open ?? 0 }

  /// Takes more items: the first one is at the 0-based index `first` of the group.
  package func add(first: Int, _ values: ContiguousArray<Value>) {
    items?.add(first: first, values)
  }

  /// Drops what hasn't begun, and asks what executes to stop; each item ends.
  package func cancel(_ error: FlowError) { items?.cancel(error) }

  /// When `endsAreDue` is to be called, on the loop's clock; at each end from then on.
  package var dueTime: Int64 {
    get { items?.dueTime ?? .max }
    set { items?.dueTime = newValue }
  }

  /// Whether something has happened that wasn't taken.
  package var hasNews: Bool { run.log.isFilled || items?.ends.indices.isEmpty == false }

  /// How items have ended since this was called last.
  package func takeEnds() -> ItemEnds { items?.takeEnds() ?? ItemEnds() }

  /// What has happened since this was called last.
  package func takeSlice() -> LogSlice { run.log.takeSlice() }

  /// Adds a secret whose text no line may show.
  package func hide(_ value: Value) { run.log.hide(value) }

  /// Lets go of what items have left behind; called when there are none, and none come any more.
  package func end() { body.end() }
}

/// The body of the run that items are part of.
private final class ExecutorBody: OpBody, AbandonableBody {
  private let op: Op
  private let itemKey: Key
  private let collectKey: Key?
  private let limit: Int
  private let stopsAtFailure: Bool
  // Safe: see `ItemExecutor.init`. A weak reference would make every retain of the owner slow.
  private unowned(unsafe) let owner: any ItemExecutorOwner
  private(set) var items: ExecutedItems?
  private var context: OpContext?

  init(
    _ op: Op, _ itemKey: Key, _ collectKey: Key?, limit: Int, stopsAtFailure: Bool,
    owner: any ItemExecutorOwner
  ) {
    self.op = op
    self.itemKey = itemKey
    self.collectKey = collectKey
    self.limit = limit
    self.stopsAtFailure = stopsAtFailure
    self.owner = owner
  }

  func start(_ context: OpContext) -> OpProgress {
    guard let strand = context.strand else { return .finished }
    self.context = context
    _ = strand.log.addScope(
      LogScope(
        parent: 0, position: 0, attempt: 1, kind: .group, op: op, blueprint: nil))
    items = ExecutedItems(
      op, itemKey, collectKey, limit: limit, stopsAtFailure: stopsAtFailure, parent: strand,
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

  func abandon() {
    items?.abandonMembers()
    items = nil
    context = nil
  }
}

/// The items of an executor.
private final class ExecutedItems: MemberGroup {
  private let op: Op
  private let itemKey: Key
  private let collected: Key?
  private let isOutputOptional: Bool
  private let limit: Int
  private let stopsAtFailure: Bool
  // Safe: as above.
  private unowned(unsafe) let owner: any ItemExecutorOwner

  // Unchecked exclusivity: the loop's thread alone touches them, and no access lasts into a call of a
  // body.

  @exclusivity(unchecked) private var pool = MemberPool()
  /// Items of which the next one to begin is at `next`; the first one has the index `first`.
  @exclusivity(unchecked) private var batch: ContiguousArray<Value> = []
  @exclusivity(unchecked) private var first = 0
  @exclusivity(unchecked) private var next = 0
  /// Items that come after these.
  @exclusivity(unchecked) private var later: [(first: Int, values: ContiguousArray<Value>)] = []
  /// How many items haven't ended.
  @exclusivity(unchecked) private(set) var open = 0
  /// How items have ended since the owner took it last.
  @exclusivity(unchecked) private(set) var ends = ItemEnds()
  @exclusivity(unchecked) var dueTime: Int64 = 0
  /// Why nothing more starts.
  @exclusivity(unchecked) private var stop: FlowError?
  /// Why what executes has to be asked to stop.
  @exclusivity(unchecked) private var reason: FlowError?
  @exclusivity(unchecked) private var hasFailed = false
  @exclusivity(unchecked) private var isScheduled = false

  init(
    _ op: Op, _ itemKey: Key, _ collected: Key?, limit: Int, stopsAtFailure: Bool,
    parent: Strand, owner: any ItemExecutorOwner
  ) {
    self.op = op
    self.itemKey = itemKey
    self.collected = collected
    isOutputOptional = collected.map { op.mayLeaveOut(parent.loop.keys.name(of: $0)) } ?? false
    self.limit = limit
    self.stopsAtFailure = stopsAtFailure
    self.owner = owner
    super.init(parent: parent)
  }

  override var collectKey: Key? { collected }
  override var members: [Strand] { pool.members }

  func add(first: Int, _ values: ContiguousArray<Value>) {
    guard !values.isEmpty else { return }
    open += values.count
    later.append((first, values))
    if let stop { dropWaiting(stop) } else { schedule() }
  }

  override func cancel(_ error: FlowError) {
    guard stop == nil else { return }
    stop = error
    reason = error
    schedule()
    // What is busy below on the stack is told at once.
    pool.cancel(error)
  }

  override func proceed() {
    isScheduled = true
    while true {
      askToStop()
      guard stop == nil, !hasFailed, pool.count < limit, let (index, item) = takeNext() else {
        break
      }
      let member = pool.start(
        item, at: index, of: self, op: op, policy: nil, key: itemKey, scope: ItemExecutor.scope
      ) { (parent.run, parent.bucket) }
      let depth = loop.works.count
      // Safe: the pool lets go of it when it has returned.
      member._withUnsafeGuaranteedRef { $0.proceed() }
      if loop.works.count > depth {
        // The member has pushed work, which comes before the next item.
        loop.works.insert(self, at: depth)
        return
      }
    }
    isScheduled = false
  }

  private var hasWaiting: Bool { next < batch.count || !later.isEmpty }

  @inline(__always)
  private func takeNext() -> (Int, Value)? {
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

  private func askToStop() {
    guard let reason else { return }
    self.reason = nil
    dropWaiting(reason)
    pool.cancel(reason)
  }

  private func dropWaiting(_ error: FlowError) {
    while let (index, _) = takeNext() { ended(index, .null, error) }
  }

  /// Lets go of members that wait for items, which hold this group.
  func dropIdle() { pool.removeIdle() }

  /// The same of all, for a loop that is shut down.
  func abandonMembers() {
    isScheduled = true
    dropAll()
    var open = pool.removeAll()
    while let member = open.popLast() { open.append(contentsOf: member.abandon()) }
  }

  override func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collected else { return nil }
    guard let output = bucket.own(collected) else {
      return isOutputOptional ? nil : bucket.missingOutput(collected)
    }
    guard case .opaque(let opaque) = output else { return nil }
    return owner.problem(with: opaque)
  }

  override func memberFailed(_ error: FlowError) {
    if stopsAtFailure { hasFailed = true }
  }

  override func memberEnded(_ member: Strand, _ error: FlowError?) {
    let index = member.index &- 1
    var output = Value.null
    if error == nil, let collected {
      unretained(member.bucket) {
        guard let value = $0.own(collected) else { return }
        output = hasSecrets && $0.isSecret(collected) ? .secret(value) : value
      }
    }
    pool.remove(member, keeps: hasWaiting)
    ended(index, output, error)
    if !isScheduled, !hasFailed, hasWaiting {
      isScheduled = true
      loop.push(self)
    }
  }

  @inline(__always)
  private func ended(_ index: Int, _ output: Value, _ error: FlowError?) {
    open &-= 1
    ends.indices.append(Int32(truncatingIfNeeded: index))
    ends.outputs.append(output)
    if error != nil || output.kind == .opaque { endedSpecially(error) }
    let time = loop.takeStamp()
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

  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.enqueue(self)
  }

  override func abandon() {
    isScheduled = true
    dropAll()
  }
}
