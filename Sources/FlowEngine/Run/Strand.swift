/// One line of execution: a run, or a member of a group. Ops of a strand come one after another.
final class Strand: Work {
  enum Resume: UInt8 {
    case none, begin, op, group, callback
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
  let log: EventLog
  // Safe: a group holds its members until they have ended.
  unowned(unsafe) let group: GroupExecution?
  /// For a member whose success depends on what it leaves under `collectKey`.
  private let isCollected: Bool
  private let collectKey: Key

  // Unchecked exclusivity, of all these: the loop's thread alone touches them, and no access lasts
  // into a call of a body or callback. The checks would cost more than the accesses.

  @exclusivity(unchecked) private(set) var bucket: DataBucket
  /// The member's place in its runner.
  @exclusivity(unchecked) var memberSlot = 0
  @exclusivity(unchecked) var frames: ContiguousArray<Frame> = []
  /// What stops this strand; whatever ends from now on ends with it.
  @exclusivity(unchecked) var cancellation: FlowError?
  @exclusivity(unchecked) private(set) var index = 0
  @exclusivity(unchecked) private(set) var context: OpContext
  @exclusivity(unchecked) private(set) var op: Op
  @exclusivity(unchecked) private var scope: UInt32 = 0
  @exclusivity(unchecked) private var position: UInt32 = 0
  @exclusivity(unchecked) var resume: Resume = .none
  /// How the last thing of this strand ended.
  @exclusivity(unchecked) var lastError: FlowError?
  /// The group, callback or, asked to stop, the body that the strand waits for.
  @exclusivity(unchecked) var child: GroupExecution?
  @exclusivity(unchecked) var completion: CallbackCompletion?
  @exclusivity(unchecked) var isAsked = false

  init(run: Run, bucket: DataBucket, group: GroupExecution?) {
    self.run = run
    self.bucket = bucket
    self.group = group
    log = run.log
    op = run.op
    isCollected = group?.collectKey != nil
    collectKey = group?.collectKey ?? Key(id: .max)
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
  func prepare(_ op: Op, scope: UInt32, position: UInt32, index: Int) {
    if self.op !== op { self.op = op }
    self.scope = scope
    self.position = position
    self.index = index
    if cancellation != nil { cancellation = nil }
    isAsked = false
    resume = .begin
  }

  /// Puts an item into the bucket of a member, which is empty.
  @inline(__always)
  func beginItem(_ key: Key, _ item: Value) {
    if item.isSecret { log.hide(item) }
    bucket.begin(key, item)
  }

  /// Empties the bucket of a member for the next item.
  func resetBucket() {
    if isKnownUniquelyReferenced(&bucket) {
      bucket.reset()
    } else {
      bucket = DataBucket(keys: bucket.keys, parent: bucket.parent)
    }
  }

  /// Has the loop go on with the strand, which waited for `reason`.
  func wake(_ reason: Resume) {
    resume = reason
    loop.enqueue(self)
  }

  override func proceed() {
    let reason = resume
    resume = .none
    switch reason {
    case .none: return
    case .begin:
      switch launch(op, scope: scope, position: position, index: index) {
      case .waiting: return
      case .ended, .moved: break
      }
    case .op: lastError = closeContext()
    case .group: break
    case .callback: endCallback()
    }
    while !frames.isEmpty {
      if advance() == .waiting { return }
    }
    conclude()
  }

  /// The end of all that the strand had to do.
  private func conclude() {
    let error = lastError
    lastError = nil
    if let group {
      group.memberEnded(self, error)
    } else {
      run.settle(error)
      run.conclude()
    }
  }

  // MARK: Ops

  /// Starts an op, a flow or, by `enterGroup`, a group.
  func launch(_ op: Op, scope: UInt32, position: UInt32, index: Int) -> Progress {
    if op.isFlow, let flow = op as? Flow {
      enter(flow, scope: scope, position: position)
      return .moved
    }
    return execute(op, scope: scope, position: position, index: index)
  }

  func execute(_ op: Op, scope: UInt32, position: UInt32, index: Int) -> Progress {
    let time = loop.takeStamp()
    // Unretained, because retains would cost as much as the rest. Safe: the strand holds its context
    // and lets go of it in `closeContext` alone, which nothing calls before the end of this.
    let context = Unmanaged.passUnretained(self.context)
    context._withUnsafeGuaranteedRef {
      $0.begin(
        op, generation: loop.nextGeneration(), scope: scope, position: position, index: index,
        time: time)
    }
    log.append(.start, time: time, scope: scope, position: position)
    let mark = log.count
    if op.hasNeeds, let error = op.declarations.inputError(in: bucket) {
      context._withUnsafeGuaranteedRef { $0.end(error) }
    } else if let body = op.body {
      let isDone = context._withUnsafeGuaranteedRef {
        let progress = body.start($0)
        guard progress == .finished, !$0.isSettled, cancellation == nil else {
          return $0.bodyReturned(progress)
        }
        if op.hasGives || isCollected, let error = outputError(of: op) {
          $0.end(error)
        } else {
          succeed($0, began: time, mark: mark, scope: scope, position: position)
        }
        return true
      }
      if !isDone {
        loop.stamp = 0
        askBody()
        return .waiting
      }
    }
    lastError = closeContext()
    return .ended
  }

  /// Logs the success of the op that has just returned: into the record of its start, when nothing
  /// has been logged since.
  @inline(__always)
  private func succeed(
    _ context: OpContext, began: Int64, mark: Int, scope: UInt32, position: UInt32
  ) {
    let time = loop.now()
    loop.stamp = time
    context.succeed(generation: loop.nextGeneration())
    if log.count == mark {
      log.appendFinishToStart(time: time)
    } else {
      log.append(
        .finish, time: time, scope: scope, position: position, second: .integer(time &- began))
    }
  }

  /// Returns the outcome of the op that has ended and makes the context ready for the next one.
  @inline(__always)
  private func closeContext() -> FlowError? {
    let outcome = context.outcome
    context.close()
    if !isKnownUniquelyReferenced(&context) { replaceContext() }
    return outcome
  }

  @inline(never)
  private func replaceContext() {
    context.abandon()
    context = loop.makeContext(context.slot)
    context.strand = self
  }

  /// Lets a context that somebody else holds keep what it was about.
  func detachContext() {
    if !isKnownUniquelyReferenced(&context) { context.abandon() }
  }

  func outputError(of op: Op) -> FlowError? {
    if let error = op.declarations.outputError(in: bucket) { return error }
    return frames.isEmpty ? group?.collectError(in: bucket) : nil
  }

  /// Stores a value in the strand's bucket and logs it, unless the bucket is that of an item.
  func store(_ key: Key, _ value: Value, scope: UInt32, position: UInt32, attempt: Int) {
    var old = bucket.set(key, value)
    var value = value
    if log.secrets != nil || value.isSecret {
      value = log.shown(value, of: key, in: bucket)
      old = old.map { log.shown($0, of: key, in: bucket) }
    }
    if group != nil || (old == nil && value.isNull) { return }
    let kind: LogKind = value.isNull ? .remove : old == nil ? .add : .replace
    log.append(
      kind, time: loop.stampedNow(), scope: scope, position: position, key: key.id,
      attempt: attempt,
      first: log.payload(value), second: old.map { log.payload($0) } ?? .none, value: value)
  }
}
