// Undos: a flow that fails undoes what had succeeded in it, the last first. A flow that succeeds passes its
// list on to the enclosing one.
extension Execution {
  /// Lists the op of the context, which has succeeded, after those that it has executed.
  func listOp() {
    var ops = context.resources?.undos ?? []
    if let policy = opPolicy, let undo = policy.undo {
      ops.append(
        UndoableOp(
          context.op, undo: undo, policy: policy, of: self, scope: context.scope,
          position: context.position, index: context.index, attempt: context.attempt))
    }
    if ops.isEmpty { return }
    let lineage = context.keeping?.lineage ?? context.resources?.keptLineage
    let undone = context.resources?.undone ?? context.keeping.map { $0.keepUndone }
    for place in ops.indices {
      // The op doesn't count as finished either when one is undone that it has executed.
      if let undone { ops[place].undone.append(undone) }
    }
    if opPolicy?.undo != nil {
      if let lineage { ops[ops.count - 1].lineage = lineage }
      let inner = context.keeping.map { [$0.keepInnerUndone] } ?? context.resources?.innerUndone
      ops[ops.count - 1].undone += inner ?? []
    }
    list(ops)
  }

  /// Passes the list of a flow that has succeeded on, and lists the flow itself if it has an undo.
  func passUndosOn(_ top: Int) {
    let policy = frames[top].attempt.policy
    guard frames[top].cursor.hasUndos || policy?.undo != nil else { return }
    let frame = frames[top]
    var ops = frame.undos
    if let policy, let undo = policy.undo {
      ops.append(
        UndoableOp(
          frame.flow, undo: undo, policy: policy, of: self, scope: frame.outerScope,
          position: frame.position, index: top == 0 ? index : 0, attempt: frame.attempt.number))
    }
    if policy?.undo != nil { ops[ops.count - 1].undone += frames[top].kept }
    frames[top].undos = []
    list(ops, around: top)
  }

  /// Lists ops that have succeeded, for the flow that encloses them.
  ///
  /// - Parameters:
  ///   - ops: The ops, the last one last.
  ///   - level: The level of the flow, or nil of the op, that has executed them.
  func list(_ ops: ContiguousArray<UndoableOp>, around level: Int? = nil) {
    if isRehearsing { return }
    let top = (level ?? frames.count) - 1
    if top >= 0 {
      // Final steps are executed whatever the outcome.
      if frames[top].cursor.phase == .finalSteps { return }
      if frames[top].undos.isEmpty { frames[top].undos = ops } else { frames[top].undos += ops }
      frames[top].cursor.hasUndos = true
    } else if let group {
      group.list(ops)
    } else {
      run.undos?.append(contentsOf: ops)
    }
  }

  /// Undoes what has succeeded last in a flow, unless a kept run is only suspended; its error is reported as one that
  /// nobody observed.
  func undoLast(_ top: Int) -> Advance {
    if run.keeper?.isSuspended == true { frames[top].undos = [] }
    let last = frames[top].undos.popLast()
    if frames[top].undos.isEmpty { frames[top].cursor.hasUndos = false }
    guard let last else { return .moved }
    let error = frames[top].cursor.error
    let made = CallbackCompletion(owner: self, place: { nil }) { completion, error in
      (completion.state as? UndoExecution)?.cancel(error)
    }
    completion = made
    stopRequested = false
    let isDone = made.begin { begin(last, after: error, $0) }
    engine.stamp = 0
    guard isDone else {
      cutIfOverdue()
      return .waiting
    }
    endCallback()
    return .moved
  }

  /// Begins an undo, which reports its end to the completion.
  func begin(
    _ undo: UndoableOp, after error: FlowError?, _ completion: CallbackCompletion
  ) -> CallState {
    let execution = UndoExecution(undo, after: error, parent: self, completion)
    child = execution
    completion.state = execution
    execution.begin()
    return completion.isFinished ? .finished : .suspended
  }

  /// Starts the undo of an op, whose place it has in the log.
  func beginUndo() -> Advance {
    let time = engine.takeStamp()
    context.begin(
      op, generation: engine.nextGeneration(), scope: scope, position: position, index: index,
      time: time)
    if let attempt = (group as? UndoExecution)?.attempt {
      context.standIn(index: index, label: nil, attempt: attempt)
    }
    log.append(
      .undoStart, time: time, scope: scope, position: position, attempt: context.attempt)
    setOpPolicy(policy)
    stopRequested = false
    return beginAttempt()
  }
}

extension UndoableOp {
  /// The op of a context or flow, which has just succeeded.
  init(
    _ op: Op, undo: any OpBody, policy: OpPolicy, of execution: Execution, scope: UInt32,
    position: UInt32, index: Int, attempt: Int
  ) {
    self.init(
      op: op.undone(by: undo), policy: policy.ofUndo, bucket: execution.bucket,
      logsSets: execution.logsSets, index: index,
      attempt: attempt, scope: scope, position: position,
      lineage: execution.run.lineage(scope: scope, position: position),
      place: execution.run.placeLineage(scope: scope, position: position))
  }

  /// This op for the run of a machine's op, of which another run has executed a step.
  func outside(within machine: OpContext) -> UndoableOp {
    var moved = self
    moved.isOutside = true
    moved.scope = machine.scope
    moved.position = machine.position
    return moved
  }
}

extension AttemptResources {
  /// Has the undos called before the other cleanups, because the op has failed.
  func scheduleUndos() {
    if undos.isEmpty { return }
    for undo in undos { cleanups.append(UndoCleanup(undo)) }
    undos = []
  }
}

/// The undo of an op that was executed by another one, which has failed.
private final class UndoCleanup: OpCleanup {
  private let undo: UndoableOp

  init(_ undo: UndoableOp) {
    self.undo = undo
  }

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> CallState {
    guard let execution = context.execution else { return .finished }
    return execution.begin(undo, after: context.outcome, completion)
  }

  func cancel(_ context: OpContext, completion: CallbackCompletion, _ error: FlowError) {
    (completion.state as? UndoExecution)?.cancel(error)
  }
}

// The undos of ops that another op has executed over its own data, as decorators do. A kept run takes over the end of
// such an op as a whole, so that the undos within it are kept with that end.
extension Execution {
  /// The undos of what the op of the context has executed over its data.
  var keptUndos: [KeptUndo] {
    guard let undos = context.resources?.undos, !undos.isEmpty else { return [] }
    let known = context.op.executedUndos
    return undos.map { undo in
      var data: [(key: DataKey, value: FlowValue)] = []
      var next: DataBucket? = undo.bucket
      while let own = next, own !== bucket {
        for entry in own.entries where !data.contains(where: { $0.key == entry.key }) {
          data.append((entry.key, own.isSecret(entry.key) ? .secret(entry.value) : entry.value))
        }
        next = own.parent
      }
      return KeptUndo(
        name: undo.op.name,
        number: known.firstIndex {
          $0.op.name == undo.op.name && $0.policy.undo === undo.op.body
        },
        index: undo.index, attempt: undo.attempt, lineage: undo.lineage,
        place: undo.bucket === bucket ? .same : next == nil ? .apart : .within, data: data)
    }
  }

  /// The undos of what an op had executed in an earlier process. One that the script doesn't have any more is left
  /// out.
  func restored(_ undos: [KnownUndo], of op: Op) -> ContiguousArray<UndoableOp> {
    let known = op.executedUndos
    var restored: ContiguousArray<UndoableOp> = []
    for kept in undos {
      let undo = kept.undo
      // The code is the same, unless it has changed and is trusted.
      let sameNumber = undo.number.flatMap { known.indices.contains($0) ? known[$0] : nil }
      guard
        let found = [sameNumber].compactMap({ $0 }).first(where: { $0.op.name == undo.name })
          ?? known.first(where: { $0.op.name == undo.name }), let body = found.policy.undo
      else { continue }
      var data = bucket
      if undo.place != .same {
        data = DataBucket(keys: bucket.keys, parent: undo.place == .within ? bucket : nil)
        for (key, value) in undo.data { data.set(key, value) }
      }
      restored.append(
        UndoableOp(
          op: found.op.undone(by: body), policy: found.policy.ofUndo, bucket: data,
          logsSets: undo.place == .same && logsSets, index: undo.index, attempt: undo.attempt,
          scope: context.scope, position: context.position, lineage: undo.lineage,
          place: undo.lineage, isOutside: true, undone: [kept.undone]))
    }
    return restored
  }
}

extension Op {
  /// The ops and flows with an undo that an execution of this one may execute over its data, with their policies, in
  /// an order that the code alone decides.
  fileprivate var executedUndos: [(op: Op, policy: OpPolicy)] {
    var found: [(op: Op, policy: OpPolicy)] = []
    var visited: Set<ObjectIdentifier> = [ObjectIdentifier(self)]
    var ops: [Op] = [self]
    var next = 0
    // Ops may be nested at any depth.
    while next < ops.count {
      for (op, policy) in ops[next].executedParts {
        if let policy, policy.undo != nil { found.append((op, policy)) }
        if visited.insert(ObjectIdentifier(op)).inserted { ops.append(op) }
      }
      next += 1
    }
    return found
  }

  /// The ops directly within this one, except final steps, with the policies of their places.
  private var executedParts: [(op: Op, policy: OpPolicy?)] {
    guard let flow = self as? Flow else { return parts.map { ($0, $0.policy) } }
    return flow.blueprint.steps.filter(\.isOfOp).map { ($0.op, $0.policy) }
  }

  /// The op with its undo as the body.
  func undone(by undo: any OpBody) -> Op {
    Op(
      copying: self, name: name, body: undo, declarations: Declarations(needs: [], gives: []),
      policy: nil)
  }
}
