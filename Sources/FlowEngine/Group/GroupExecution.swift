/// A group that is executing: hands out items, counts what executes, collects, stops at a failure.
final class GroupExecution: Work, ItemGroup {
  private let op: Op
  private let dispatcher: GroupDispatcher
  // Safe: the parent holds this group until it has ended.
  private unowned let parent: Strand
  private let scope: UInt32
  private let position: UInt32
  private var source: ListSource?
  private var runner: LoopItemRunner?
  private(set) var collectKey: Key?

  private var count = 0
  @exclusivity(unchecked) private var next = 0
  @exclusivity(unchecked) private var executing = 0
  @exclusivity(unchecked) private var succeeded = 0
  /// The items that have to be started again, and the attempt of each item that was.
  @exclusivity(unchecked) private var lost: [Int] = []
  @exclusivity(unchecked) private var attempts: [Int: UInt32] = [:]
  @exclusivity(unchecked) private var outputs: ContiguousArray<Value> = []
  private var failed: [(index: Int, error: FlowError)] = []
  /// Why nothing more starts.
  private var stop: FlowError?
  private var reason: FlowError?
  private var hasBegun = false
  @exclusivity(unchecked) private var isScheduled = true

  init(
    _ op: Op, _ dispatcher: GroupDispatcher, parent: Strand, scope: UInt32, position: UInt32
  ) {
    self.op = op
    self.dispatcher = dispatcher
    self.parent = parent
    self.scope = scope
    self.position = position
    super.init(loop: parent.loop)
  }

  var members: [Strand] { runner?.members ?? [] }

  override func proceed() {
    isScheduled = false
    if !hasBegun {
      hasBegun = true
      if let error = begin() {
        parent.groupEnded(error)
        return
      }
    }
    if let reason {
      self.reason = nil
      runner?.cancel(reason)
    }
    if stop == nil, executing < dispatcher.maxConcurrent, startNext() { return }
    if executing == 0 { finish() }
  }

  // MARK: The begin

  /// Looks up the list; returns why the group can't begin.
  private func begin() -> FlowError? {
    if let problem = dispatcher.problem(with: op) {
      return refuse(.usage(problem))
    }
    let keys = loop.keys
    guard let value = parent.bucket.get(keys.intern(dispatcher.input)) else {
      return refuse(.missingInput(dispatcher.input))
    }
    guard let source = ListSource(value) else {
      return refuse(.mismatchedInput(dispatcher.input, value, wanted: "any[]"))
    }
    log(.groupCreated, .integer(Int64(source.count)))
    if source.count == 0, !dispatcher.allowEmpty {
      let text: ByteString = """
        no operation to run for group; please make sure the input data: \
        <\(dispatcher.input)> is not empty
        """
      log(.groupEmpty, parent.log.payload(text))
      return FlowError(.insufficientInput, text, op: "Group")
    }
    guard let itemKey = dispatcher.itemKey ?? op.primaryInput else { return nil }
    self.source = source
    count = source.count
    if dispatcher.output != nil {
      collectKey = (dispatcher.collect ?? op.primaryOutput).map { keys.intern($0) }
      outputs = ContiguousArray(repeating: .null, count: count)
    }
    let inner = parent.log.addScope(
      LogScope(
        parent: scope, position: position, attempt: 1, kind: .group, op: op, blueprint: nil))
    runner = LoopItemRunner(
      op, itemKey: keys.intern(itemKey), parent: parent.bucket, run: parent.run, scope: inner)
    return nil
  }

  private func refuse(_ error: FlowError) -> FlowError {
    log(.groupRefused, parent.log.payload(error.logLine))
    return error.attributed(to: "Group")
  }

  // MARK: Items

  func item(at index: Int) -> Value { source?.item(at: index) ?? .null }

  /// Starts the next item; false when there is none.
  private func startNext() -> Bool {
    guard let runner else { return false }
    let index: Int
    if next < count {
      index = next
      next += 1
    } else if let again = lost.popLast() {
      index = again
    } else {
      return false
    }
    executing += 1
    // Below the member, so that the next one starts when this one waits or has ended.
    isScheduled = true
    loop.push(self)
    runner.start(index, attempt: attempts.isEmpty ? 1 : attempts[index] ?? 1, for: self)
    return true
  }

  /// The error of a member that succeeded, but has nothing to collect.
  func collectError(in bucket: DataBucket) -> FlowError? {
    guard let collectKey, bucket.own(collectKey) == nil else { return nil }
    return .missingOutput(loop.keys.name(of: collectKey))
  }

  /// Called at the DidFinish of a member that failed; it may still be executing.
  func memberFailed(_ error: FlowError) {
    guard !dispatcher.allowFailure, stop == nil else { return }
    stop = error
    reason = .cancelled(reason: "group failed")
    log(.groupStopped, .none)
    schedule()
  }

  /// Called when a member has ended and executes no more.
  func memberEnded(_ member: Strand, _ error: FlowError?) {
    let output = collectKey.flatMap { member.bucket.own($0) } ?? .null
    let index = member.index - 1
    let attempt = member.itemAttempt
    runner?.remove(member)
    itemEnded(index, attempt: attempt, output: output, error: error)
  }

  func itemEnded(_ index: Int, attempt: UInt32, output: Value, error: FlowError?) {
    guard attempts.isEmpty || attempts[index] ?? 1 == attempt else { return }
    executing -= 1
    if let error {
      failed.append((index, error))
      memberFailed(error)
    } else {
      succeeded += 1
      if collectKey != nil { outputs[index] = output }
    }
    if !isScheduled {
      isScheduled = true
      loop.push(self)
    }
  }

  func itemLost(_ index: Int, attempt: UInt32) {
    guard attempts[index] ?? 1 == attempt else { return }
    attempts[index] = attempt &+ 1
    executing -= 1
    lost.append(index)
    schedule()
  }

  /// Asks all members to stop because of `error`.
  func cancel(_ error: FlowError) {
    if stop == nil { stop = error }
    reason = error
    schedule()
  }

  /// Goes on as a job of its own: what calls this may be in the middle of a body.
  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.enqueue(self)
  }

  // MARK: The end

  private func finish() {
    if let stop {
      parent.groupEnded(stop)
      return
    }
    failed.sort { $0.index < $1.index }
    let list = collected()
    log(.groupFinished, .integer(Int64(list?.count ?? succeeded)))
    if let list, let output = dispatcher.output { store(output, loop.makeList(list)) }
    if let key = dispatcher.failures {
      let records = failed.map { loop.makeFailure($0.index, item(at: $0.index), $0.error) }
      store(key, loop.makeList(ContiguousArray(records)))
    }
    parent.groupEnded(nil)
  }

  private func collected() -> ContiguousArray<Value>? {
    guard dispatcher.output != nil else { return nil }
    if failed.isEmpty { return outputs }
    return outputs.filter { !$0.isNull }
  }

  private func store(_ name: ByteString, _ value: Value) {
    parent.store(
      loop.keys.intern(name), value, scope: scope, position: position, attempt: 1)
  }

  private func log(_ kind: LogKind, _ payload: Payload) {
    parent.log.append(
      kind, time: loop.stampedNow(), scope: scope, position: position, first: payload)
  }
}
