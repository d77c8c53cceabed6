/// Hears what becomes of the items of an `ItemExecutor`, on its loop's thread.
package protocol ItemExecutorOwner: AnyObject {
  /// Why an item that has succeeded can't hand over its output; nil when it can.
  func problem(with output: Value) -> FlowError?
  /// An item has ended, at `time`; it may cancel the executor.
  func itemEnded(_ index: Int, output: Value, error: FlowError?, time: Int64)
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
  ///   - owner: Who is told of the ends; not held. It must live until it has called `end`.
  package init(
    _ op: Op, on loop: EventLoop, data: [(ByteString, Value)], itemKey: ByteString,
    collectKey: ByteString?, limit: Int, stopsAtFailure: Bool, owner: any ItemExecutorOwner
  ) {
    let keys = loop.keys
    body = ExecutorBody(
      op, keys.intern(itemKey), collectKey.map { keys.intern($0) }, limit: max(1, limit),
      stopsAtFailure: stopsAtFailure, owner: owner)
    run = Op(name: op.name, body: body).start(on: loop, data: data)
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

  /// Whether something has happened since.
  package var hasNews: Bool { run.log.isFilled }

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
  private let limit: Int
  private let stopsAtFailure: Bool
  // Safe: as above.
  private unowned(unsafe) let owner: any ItemExecutorOwner

  // Unchecked exclusivity: the loop's thread alone touches them, and no access lasts into a call of a
  // body.

  @exclusivity(unchecked) private var pool = MemberPool()
  /// Items that haven't begun: runs of them, the next one at `next` of the first.
  @exclusivity(unchecked) private var waiting: [(first: Int, values: ContiguousArray<Value>)] = []
  @exclusivity(unchecked) private var next = 0
  /// How many items haven't ended.
  @exclusivity(unchecked) private(set) var open = 0
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
    waiting.append((first, values))
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
        item, at: index, of: self, run: parent.run, data: parent.bucket, op: op, policy: nil,
        key: itemKey, scope: ItemExecutor.scope)
      let depth = loop.works.count
      member.proceed()
      if loop.works.count > depth {
        // The member has pushed work, which comes before the next item.
        loop.works.insert(self, at: depth)
        return
      }
    }
    isScheduled = false
  }

  private func takeNext() -> (Int, Value)? {
    guard let run = waiting.first else { return nil }
    let place = next
    next += 1
    if next == run.values.count {
      next = 0
      waiting.removeFirst()
    }
    return (run.first + place, run.values[place])
  }

  private func askToStop() {
    guard let reason else { return }
    self.reason = nil
    dropWaiting(reason)
    pool.cancel(reason)
  }

  private func dropWaiting(_ error: FlowError) {
    while let (index, _) = takeNext() { ended(index, output: .null, error) }
  }

  /// Lets go of members that wait for items, which hold this group.
  func dropIdle() { pool.removeIdle() }

  /// The same of all, for a loop that is shut down.
  func abandonMembers() {
    isScheduled = true
    waiting = []
    var open = pool.removeAll()
    while let member = open.popLast() { open.append(contentsOf: member.abandon()) }
  }

  override func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collected else { return nil }
    guard let output = bucket.own(collected) else {
      return .missingOutput(loop.keys.name(of: collected))
    }
    return owner.problem(with: output)
  }

  override func memberFailed(_ error: FlowError) {
    if stopsAtFailure { hasFailed = true }
  }

  override func memberEnded(_ member: Strand, _ error: FlowError?) {
    let index = member.index &- 1
    var output = Value.null
    if error == nil, let collected, let value = member.bucket.own(collected) {
      let isSecret = parent.log.secrets != nil && member.bucket.isSecret(collected)
      output = isSecret ? .secret(value) : value
    }
    pool.remove(member, keeps: !waiting.isEmpty)
    ended(index, output: output, error)
    if !isScheduled, !waiting.isEmpty, !hasFailed {
      isScheduled = true
      loop.push(self)
    }
  }

  private func ended(_ index: Int, output: Value, _ error: FlowError?) {
    open -= 1
    owner.itemEnded(index, output: output, error: error, time: loop.takeStamp())
  }

  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.enqueue(self)
  }

  override func abandon() {
    isScheduled = true
    waiting = []
  }
}
