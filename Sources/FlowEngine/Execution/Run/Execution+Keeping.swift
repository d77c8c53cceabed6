// How an execution leaves it to the keeper of its run whether an op executes, and when it has finished.
extension Execution {
  /// Whether the keeper of the run has a say in an op at a position: not in a machine, whose steps are kept one by
  /// one, and not in what each process executes.
  func isKept(_ op: Op, _ position: UInt32) -> Bool {
    run.keeper != nil && !(op is MachineOp)
      && (position & Blueprint.finallyBit == 0 || position == LogRecord.ownPosition)
      && !isWithinEnding
  }

  /// Whether it belongs to a final step, an undo or a cleanup: each process executes these, whatever was kept.
  var isWithinEnding: Bool {
    var execution = self
    while true {
      if execution.opCursor.isCleaningUp
        || execution.frames.contains(where: { $0.cursor.phase == .finalSteps })
      {
        return true
      }
      guard let group = execution.group else { return false }
      if group is UndoExecution { return true }
      execution = group.parent
    }
  }

  /// Has the keeper mark what was executed within an op or flow, when its own undo has undone all of that.
  func marksInner(_ undo: inout UndoableOp, at path: ByteString) {
    guard let keeper = run.keeper else { return }
    undo.undone.append { keeper.undone(within: path) }
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
    if group != nil { for need in op.needs(on: loop) { noteRead(need.key) } }
    switch keeper.decide(work(op, policy, position: position)) {
    case .finished(let known):
      context.log(known.line)
      for key in known.reads { noteRead(key) }
      noteUndo(of: op, policy, known)
      for (key, value) in known.writes { context.set(key, value) }
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
      return keep { keeping.keepStart(then: $0) } ? startIsKept() : .waiting
    }
  }

  /// The description of an op that is about to be executed.
  private func work(_ op: Op, _ policy: OpPolicy?, position: UInt32) -> KeptWork {
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
      cache: undo(of: op, policy) == nil ? op.cache : nil, loop: loop)
  }

  /// An op reads a key: each op that executes it, through whatever flows and groups, does that, too.
  @inline(never)
  func noteRead(_ key: Key) {
    var execution = self
    while true {
      execution.context.keeping?.willRead(key, in: execution.bucket)
      guard let group = execution.group, !(group is UndoExecution) else { return }
      // An item reads from the data around it what it hasn't itself.
      if group.hasItems, execution.bucket.hasOwn(key) { return }
      execution = group.parent
    }
  }

  /// An op sets a key: each op that executes it over the same data does that, too.
  @inline(never)
  func noteSet(_ key: Key) {
    var execution = self
    while true {
      execution.context.keeping?.willSet(key)
      guard let group = execution.group, !group.hasItems, !(group is UndoExecution) else { return }
      execution = group.parent
    }
  }

  /// Has an op that an earlier process has finished listed for its undo, or for that of the op that it executes over
  /// its own data.
  private func noteUndo(of op: Op, _ policy: OpPolicy?, _ known: KnownEnd) {
    guard let undo = undo(of: op, policy) else { return }
    setOpPolicy(.make(policy, undo: undo))
    let hasInner = op.body?.inner != nil
    let resources = context.makeResources()
    resources.undone = { known.undone(hasInner) }
    resources.keptLineage = known.lineage
  }

  /// The undo of an op at its place, or of the op that it executes over its own data.
  private func undo(of op: Op, _ policy: OpPolicy?) -> (any OpBody)? {
    var (undo, inner) = (policy?.undo, op.body?.inner)
    while undo == nil, let next = inner { (undo, inner) = (next.undo, next.body?.inner) }
    return undo
  }

  private func beginKept(_ policy: OpPolicy?) -> Advance {
    setOpPolicy(policy)
    return beginAttempt()
  }

  /// Continues an op whose start is kept, or can't be.
  func startIsKept() -> Advance {
    if let error = opStop ?? context.outcome {
      // Its body wasn't called.
      if context.outcome == nil {
        let end = KeptEnd(error: error, attempt: 0, data: nil, outputs: [])
        context.keeping?.keepEnd(end) { _ in }
      }
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
    let hasSucceeded = context.outcome == nil
    return keep { then in
      keeping.keepEnd(end) { [self] problem in
        // Its effect is there: the flow, which fails now, undoes it.
        if problem != nil, hasSucceeded { listOp() }
        then(problem)
      }
    }
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
