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
  @exclusivity(unchecked) private(set) var bucket: DataBucket
  /// The member's place in its runner, and which attempt at its item this is.
  @exclusivity(unchecked) var memberSlot = 0
  @exclusivity(unchecked) var itemAttempt: UInt32 = 1
  // Safe: a group holds its members until they have ended.
  unowned(unsafe) let group: GroupExecution?
  @exclusivity(unchecked) private(set) var frames: ContiguousArray<Frame> = []
  /// What stops this strand; whatever ends from now on ends with it.
  @exclusivity(unchecked) private(set) var cancellation: FlowError?
  @exclusivity(unchecked) private(set) var index = 0

  @exclusivity(unchecked) private var context: OpContext
  /// For a member whose success depends on what it leaves under `collectKey`.
  private let isCollected: Bool
  private let collectKey: Key
  @exclusivity(unchecked) private var op: Op
  @exclusivity(unchecked) private var scope: UInt32 = 0
  @exclusivity(unchecked) private var position: UInt32 = 0
  @exclusivity(unchecked) private var resume: Resume = .none
  /// How the last thing of this strand ended.
  @exclusivity(unchecked) private var lastError: FlowError?
  @exclusivity(unchecked) private var child: GroupExecution?
  @exclusivity(unchecked) private var completion: CallbackCompletion?
  @exclusivity(unchecked) private var isAsked = false

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
  private func launch(_ op: Op, scope: UInt32, position: UInt32, index: Int) -> Progress {
    if op.isFlow, let flow = op as? Flow {
      enter(flow, scope: scope, position: position)
      return .moved
    }
    return execute(op, scope: scope, position: position, index: index)
  }

  @inline(__always)
  private func execute(_ op: Op, scope: UInt32, position: UInt32, index: Int) -> Progress {
    let time = loop.takeStamp()
    context.begin(
      op, generation: loop.nextGeneration(), scope: scope, position: position, index: index,
      time: time)
    log.append(.start, time: time, scope: scope, position: position)
    let mark = log.count
    if op.hasNeeds, let error = op.declarations.inputError(in: bucket) {
      context.end(error)
    } else if let body = op.body {
      let progress = body.start(context)
      if progress == .finished, !context.isSettled, cancellation == nil,
        !op.hasGives, !isCollected || bucket.own(collectKey) != nil
      {
        let end = loop.now()
        loop.stamp = end
        context.succeed(generation: loop.nextGeneration())
        if log.count == mark {
          log.appendFinishToStart(time: end)
        } else {
          log.append(
            .finish, time: end, scope: scope, position: position,
            second: .integer(end &- time))
        }
      } else if !context.bodyReturned(progress) {
        loop.stamp = 0
        askBody()
        return .waiting
      }
    }
    lastError = closeContext()
    return .ended
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

  func outputError(of op: Op) -> FlowError? {
    if let error = op.declarations.outputError(in: bucket) { return error }
    return frames.isEmpty ? group?.collectError(in: bucket) : nil
  }

  /// Stores a value in the strand's bucket and logs it, unless the bucket is that of an item.
  func store(_ key: Key, _ value: Value, scope: UInt32, position: UInt32, attempt: Int) {
    let old = bucket.set(key, value)
    if group != nil || (old == nil && value.isNull) { return }
    let kind: LogKind = value.isNull ? .remove : old == nil ? .add : .replace
    log.append(
      kind, time: loop.stampedNow(), scope: scope, position: position, key: key.id,
      attempt: attempt,
      first: log.payload(value), second: old.map { log.payload($0) } ?? .none, value: value)
  }

  // MARK: Flows

  private func enter(_ flow: Flow, scope: UInt32, position: UInt32) {
    let time = loop.takeStamp()
    let isTop = group == nil && frames.isEmpty
    let blueprint = run.snapshot?.blueprint(of: flow) ?? flow.blueprint
    var inner = scope
    if !isTop {
      log.append(.start, time: time, scope: scope, position: position)
      inner = log.addScope(
        LogScope(
          parent: scope, position: position, attempt: 1, kind: .flow, op: flow,
          blueprint: blueprint))
      for (name, value) in blueprint.data {
        let key = loop.keys.intern(name)
        if !bucket.has(key) {
          store(key, value, scope: scope, position: position, attempt: 1)
        }
      }
    }
    frames.append(
      Frame(
        flow: flow, blueprint: blueprint, scope: inner, outerScope: scope, position: position,
        began: time))
  }

  /// Moves the innermost flow on.
  private func advance() -> Progress {
    let top = frames.count - 1
    switch frames[top].phase {
    case .willStart:
      guard call(frames[top].blueprint.willStart) else { return .waiting }
      frames[top].error = frames[top].error ?? startError()
      frames[top].callback = 0
      frames[top].phase = frames[top].error == nil ? .steps : .finish
    case .steps:
      if let error = lastError ?? cancellation {
        lastError = nil
        frames[top].error = error
        frames[top].phase = .finish
        return .moved
      }
      return runSteps(top)
    case .finish:
      finish(top)
      frames[top].phase = .didFinish
    case .didFinish:
      guard call(frames[top].blueprint.didFinish) else { return .waiting }
      lastError = frames.removeLast().error
    }
    return .moved
  }

  /// Runs the steps of the innermost flow, one after another, until one waits, fails or is a frame.
  private func runSteps(_ top: Int) -> Progress {
    let blueprint = frames[top].blueprint
    let scope = frames[top].scope
    let count = blueprint.steps.count
    var next = frames[top].next
    while next < count {
      let step = blueprint.steps[next]
      let position = UInt32(truncatingIfNeeded: next)
      next += 1
      if step.dispatcher == nil, !step.op.isFlow {
        switch execute(step.op, scope: scope, position: position, index: 0) {
        case .ended where lastError == nil && cancellation == nil: continue
        case .waiting:
          frames[top].next = next
          return .waiting
        default:
          frames[top].next = next
          return .moved
        }
      }
      frames[top].next = next
      if let dispatcher = step.dispatcher {
        enterGroup(step.op, dispatcher, scope: scope, position: position)
        return .waiting
      }
      return launch(step.op, scope: scope, position: position, index: 0)
    }
    frames[top].next = next
    frames[top].phase = .finish
    return .moved
  }

  /// What keeps the innermost flow from running its first step.
  private func startError() -> FlowError? {
    let frame = frames[frames.count - 1]
    if let cancellation { return cancellation }
    if frames.count == 1, group == nil, let circular = run.snapshot?.circular {
      return .usage("flow '\(circular.name)' contains itself")
    }
    guard let error = frame.blueprint.declarations.inputError(in: bucket) else { return nil }
    // The one DidFinish that a flow at the top logs.
    if frames.count == 1, group == nil { logFinish(frame, error, time: loop.now()) }
    return error.attributed(to: frame.flow.name)
  }

  private func finish(_ top: Int) {
    let frame = frames[top]
    let isMember = top == 0 && group != nil
    var error = cancellation ?? frame.error
    if error == nil {
      error = frame.blueprint.declarations.outputError(in: bucket)
      if error == nil, isMember { error = group?.collectError(in: bucket) }
      error = error?.attributed(to: frame.flow.name)
    }
    frames[top].error = error
    if top == 0, group == nil {
      run.settle(error)
      return
    }
    let time = loop.now()
    loop.stamp = time
    logFinish(frame, error, time: time)
    if let error, isMember { group?.memberFailed(error) }
  }

  private func logFinish(_ frame: Frame, _ error: FlowError?, time: Int64) {
    log.append(
      .finish, time: time, scope: frame.outerScope, position: frame.position,
      first: error.map { log.payload($0.logLine) } ?? .none,
      second: .integer(time - frame.began))
  }

  // MARK: Callbacks

  /// Calls the callbacks of `list` that weren't called yet; false when one of them waits.
  private func call(_ list: [any RunCallback]) -> Bool {
    let top = frames.count - 1
    while frames[top].callback < list.count, !isDoneWithCallbacks(top) {
      let made = CallbackCompletion(list[frames[top].callback], strand: self)
      frames[top].callback += 1
      completion = made
      let isDone = made.call(run)
      loop.stamp = 0
      guard isDone else {
        askCallback()
        return false
      }
      endCallback()
    }
    return true
  }

  /// The first error of a `willStart` ends them; a `didFinish` is never left out.
  private func isDoneWithCallbacks(_ top: Int) -> Bool {
    frames[top].phase == .willStart && frames[top].error != nil
  }

  private func endCallback() {
    let error = completion?.error
    completion = nil
    guard let error, let top = frames.indices.last else { return }
    let attributed = error.attributed(to: frames[top].flow.name)
    if frames[top].phase == .willStart {
      frames[top].error = attributed
    } else {
      run.addLateError(attributed)
    }
  }

  // MARK: Groups

  private func enterGroup(_ op: Op, _ dispatcher: GroupDispatcher, scope: UInt32, position: UInt32)
  {
    let made = GroupExecution(
      op, dispatcher, parent: self, scope: scope, position: position)
    child = made
    loop.push(made)
  }

  /// Called by the group of this strand when all its members have ended.
  func groupEnded(_ error: FlowError?) {
    child = nil
    lastError = error
    resume = .group
    loop.push(self)
  }

  // MARK: Stopping

  /// Asks the strand to stop because of `error`; the first error counts.
  func cancel(_ error: FlowError) {
    guard cancellation == nil else { return }
    cancellation = error
    if let child {
      child.cancel(error)
    } else if completion != nil {
      askCallback()
    } else {
      askBody()
    }
  }

  /// Asks a suspended body to stop, once.
  private func askBody() {
    guard let error = cancellation, !isAsked, context.phase == .suspended else { return }
    isAsked = true
    context.op.body?.cancel(context, error)
  }

  private func askCallback() {
    // What a callback of a settled flow does isn't part of what was cancelled.
    guard let error = cancellation, !isAsked, let completion, !completion.isFinished,
      frames.last?.phase == .willStart
    else { return }
    isAsked = true
    completion.callback.cancel(run, completion: completion, error)
  }

  /// The strands that this one waits for.
  var members: [Strand] { child?.members ?? [] }

  /// Stops what waits in this strand itself as stalled; answers whether anything did.
  func failStalled() -> Bool {
    if child != nil { return false }
    if let completion, !completion.isFinished {
      completion.finish(.stalled(op: frames.last?.flow.name ?? op.name))
      return true
    }
    if context.phase == .suspended {
      let error = FlowError.stalled(op: context.displayName)
      if isAsked {
        context.end(cancellation ?? error)
      } else if cancellation == nil {
        cancellation = error
        askBody()
      }
      return true
    }
    return false
  }
}
