// How an execution leaves it to the keeper of its run whether an op executes, and when it has finished.
extension Execution {
  /// Whether the keeper of the run has a say in an op at a position: not in a final step, which is
  /// executed whatever was kept, and not in a machine, whose steps are kept one by one.
  func isKept(_ op: Op, _ position: UInt32) -> Bool {
    run.keeper != nil && !(op is MachineOp)
      && (position & Blueprint.finallyBit == 0 || position == LogRecord.ownPosition)
  }

  /// Executes an op, unless the keeper knows that it has finished already.
  @inline(never)
  func executeKept(
    _ op: Op, policy: OpPolicy?, scope: UInt32, position: UInt32, index: Int
  ) -> Advance {
    let time = engine.takeStamp()
    if time >= engine.nextLook { look(at: time) }
    if op.mayBeBusy { engine.renewTurn() }
    context.begin(
      op, generation: engine.nextGeneration(), scope: scope, position: position, index: index,
      time: time)
    _ = log.appendStart(time: time, scope: scope, position: position)
    stopRequested = false
    if let error = checking({ op.declarations.inputError(in: bucket) }) {
      // An attempt reports it, which a policy may repeat: another op may set the key meanwhile.
      setOpPolicy(policy)
      if policy != nil { return beginAttempt() }
      context.end(error)
      return endBody()
    }
    guard let keeper = run.keeper else { return beginKept(policy) }
    if group is InnerExecution { for need in op.needs(on: loop) { noteRead(need.key) } }
    switch keeper.decide(work(op, position: position)) {
    case .finished(let writes, _, let line, let undone):
      context.log(line)
      noteUndo(of: op, policy, undone)
      for (key, value) in writes { context.set(key, value) }
      context.end()
      return endBody()
    case .refuse(let error):
      context.end(error)
      return endBody()
    case .execute(let keeping, let line):
      if let line { context.log(line) }
      context.keeping = keeping
      guard keeping.keepsStart else { return beginKept(policy) }
      opCursor.keepsStart()
      setOpPolicy(policy)
      return keep { keeping.keepStart(then: $0) } ? beginKept(policy) : .waiting
    }
  }

  /// The description of an op that is about to be executed.
  private func work(_ op: Op, position: UInt32) -> KeptWork {
    // A member of a group executes the op for an item; other items of the group follow.
    let isItem = frames.isEmpty && group?.hasItems == true
    var keys = op.needs(on: loop).map(\.key)
    if isItem {
      for entry in bucket.entries where !keys.contains(entry.key) { keys.append(entry.key) }
    }
    let (run, scope) = (run, context.scope)
    return KeptWork(
      name: op.name, shownName: context.displayName, label: context.label, path: context.path,
      code: { try op.codeForm().map { ($0.bytes, $0.place) } },
      codeOrigin: isItem
        ? KeptWork.CodeOrigin(op: ObjectIdentifier(op), run: run.id, scope: scope) : nil,
      inputs: keys.map { (loop.keys.name(of: $0), bucket.get($0)) }, given: keys, data: bucket,
      lineage: run.lineage(scope: scope, position: position), isOnce: op.effect == .once,
      cache: op.cache, loop: loop)
  }

  /// The op reads a key, or sets one: each op that executes another one over its own data does that, too.
  @inline(never)
  func noteRead(_ key: Key) { forEachKeeping { $0.willRead(key, in: bucket) } }

  @inline(never)
  func noteSet(_ key: Key) { forEachKeeping { $0.willSet(key) } }

  private func forEachKeeping(_ body: (any KeptExecution) -> Void) {
    var execution = self
    while true {
      if let keeping = execution.context.keeping { body(keeping) }
      guard let inner = execution.group as? InnerExecution else { return }
      execution = inner.parent
    }
  }

  /// Has an op that an earlier process has finished listed for its undo, or for that of the op that it executes over
  /// its own data.
  private func noteUndo(
    of op: Op, _ policy: OpPolicy?, _ undone: @escaping (_ withInner: Bool) -> Void
  ) {
    var (undo, inner) = (policy?.undo, op.body?.inner)
    while undo == nil, let next = inner { (undo, inner) = (next.undo, next.body?.inner) }
    guard let undo else { return }
    setOpPolicy(.make(policy, undo: undo))
    let hasInner = op.body?.inner != nil
    context.makeResources().undone = { undone(hasInner) }
  }

  private func beginKept(_ policy: OpPolicy?) -> Advance {
    setOpPolicy(policy)
    return beginAttempt()
  }

  /// Continues an op whose start is kept, or can't be.
  func startIsKept() -> Advance {
    if let error = opStop ?? context.outcome {
      context.keeping = nil
      context.end(error)
      return endBody()
    }
    return beginAttempt()
  }

  /// Whether the end of the op is kept; else `wake` continues the op when it is.
  func keepEnd(_ keeping: any KeptExecution) -> Bool {
    opCursor.keepsEnd()
    let end = KeptEnd(
      error: context.outcome, attempt: context.attempt, data: bucket, outputs: [])
    return keep { keeping.keepEnd(end, then: $0) }
  }

  /// Performs something that may end later; returns whether it has ended.
  private func keep(_ body: (@escaping (FlowError?) -> Void) -> Void) -> Bool {
    var isDone = false
    var isInCall = true
    body { [self] error in
      if let error { context.replaceOutcome(error) }
      isDone = true
      if !isInCall { wake(.op) }
    }
    isInCall = false
    if !isDone { engine.stamp = 0 }
    return isDone
  }
}
