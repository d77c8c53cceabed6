// The flows that an execution is in, one frame each.
extension Execution {
  func enter(_ flow: Flow, policy: OpPolicy?, scope: UInt32, position: UInt32) {
    let time = engine.takeStamp()
    if time >= engine.nextLook { look(at: time) }
    // An empty flow also counts towards the loop's turn.
    _ = engine.nextGeneration()
    let isTop = group == nil && frames.isEmpty
    let blueprint = run.snapshot?.blueprint(of: flow) ?? flow.blueprint
    var inner = scope
    var error: FlowError?
    if isTop {
      error = run.dataError
    } else {
      log.append(.start, time: time, scope: scope, position: position)
      inner = log.addScope(
        LogScope(
          parent: scope, position: position, attempt: 1, kind: .flow, name: flow.name,
          parts: blueprint, queued: time))
      do {
        try storeData(of: blueprint, scope: scope, position: position)
      } catch let problem {
        error = .from(problem)
      }
    }
    frames.append(
      Frame(
        flow: flow, blueprint: blueprint, policy: policy, scope: inner, outerScope: scope,
        position: position, began: time))
    if let error { frames[frames.count - 1].cursor.error = error }
    if policy?.timeout != nil { startTimer(of: frames.count - 1) }
  }

  /// Fills the keys that are absent with copies of a nested flow's own data.
  private func storeData(of blueprint: Blueprint, scope: UInt32, position: UInt32) throws {
    var copies: ValueCopies?
    for (name, value) in blueprint.data {
      let key = loop.keys.intern(name)
      if !bucket.has(key) {
        let copy = try value.copyForRun(&copies)
        store(key, copy, scope: scope, position: position, attempt: 1)
      }
    }
  }

  /// Advances the innermost flow.
  func advance() -> Advance {
    let top = frames.count - 1
    let ended = lastError
    if let ended {
      lastError = nil
      reportIfSecond(ended, top)
    }
    let action = frames[top].cursor.advance(ended: ended, stop: stop, level: top)
    switch action {
    case .runSteps: return runSteps(top)
    case .callWillStart(let number): return call(frames[top].blueprint.willStart[number], top)
    case .start: start(top)
    case .test(let branch, let block): return test(branch, of: block, top)
    case .noCase: logCase(.noCase, nil, top)
    case .beginFinalSteps:
      stopTimer(of: top)
      beginShield(top, isStopped: frames[top].cursor.isStopped)
    case .undo: return undoLast(top)
    case .finalStep(let number): return runFinalStep(number, top)
    case .endFinalSteps: endShield()
    case .endAttempt: endAttempt(top)
    case .decide: return decideAttempt(top)
    case .beginAttempt: beginAttempt(top)
    case .finish:
      if top == 0, group == nil, !endLeftovers() { return .waiting }
      if frames[top].cursor.hasUndos, frames[top].cursor.error == nil,
        let error = stop?.error(at: top)
      {
        // Stopped after its last step, as while it waited for tasks.
        frames[top].cursor.undoSteps(error)
        return .moved
      }
      finish(top)
    case .beginCallbacks: beginShield(top, isStopped: frames[top].cursor.isStopped)
    case .callDidFinish(let number): return call(frames[top].blueprint.didFinish[number], top)
    case .endCallbacks: endShield()
    case .leave: leave(top)
    }
    return .moved
  }

  /// Continues the enclosing flow with the outcome of the innermost one.
  private func leave(_ top: Int) {
    let error = frames[top].cursor.error
    lastError = error
    if error == nil { passUndosOn(top) }
    if hasHolds { releaseHold(of: top) }
    frames.removeLast()
  }

  /// Starts the innermost flow, whose callbacks have returned.
  private func start(_ top: Int) {
    let error = stop?.error(at: top) ?? frames[top].cursor.error ?? startError()
    frames[top].cursor.started(error)
    if error == nil { return }
    stopTimer(of: top)
    endStop(of: top)
  }

  /// Runs the steps of the innermost flow, one after another, until one waits, fails or pushes a
  /// frame.
  func runSteps(_ top: Int) -> Advance {
    let blueprint = frames[top].blueprint
    let steps = blueprint.steps
    let scope = frames[top].scope
    if blueprint.graph != nil, frames[top].cursor.next < steps.count {
      return enterGraph(blueprint, scope, top)
    }
    let intercepts = engine.replacements != nil || run.keeper != nil
    while let place = frames[top].cursor.nextStep() {
      let position = UInt32(truncatingIfNeeded: place)
      if steps[place].isPlain, !intercepts {
        // Unretained, and without a copy of the step. Safe: the list holds the op.
        let op = Unmanaged.passUnretained(steps[place].op)
        let progress = op.lend {
          execute($0, policy: nil, scope: scope, position: position, index: 0)
        }
        switch progress {
        case .ended where lastError == nil && stop == nil && !engine.isTurnOver: continue
        case .waiting: return .waiting
        default: return .moved
        }
      }
      return begin(steps[place], scope: scope, position: position, top)
    }
    frames[top].cursor.endSteps(isStopped: false)
    return .moved
  }

  /// Starts a step that isn't just an op.
  private func begin(_ step: Step, scope: UInt32, position: UInt32, _ top: Int) -> Advance {
    switch step.kind {
    case .op, .flow:
      return launch(step.op, policy: step.policy, scope: scope, position: position, index: 0)
    case .group(let dispatcher):
      enter(
        GroupExecution(
          step.op, policy: step.policy, dispatcher, parent: self, scope: scope,
          position: position))
      return .waiting
    case .parallel(let count):
      let first = frames[top].cursor.next
      frames[top].cursor.skip(count)
      enter(
        ParallelExecution(
          ContiguousArray(frames[top].blueprint.steps[first..<first + count]), parent: self,
          scope: scope, position: position &+ 1))
      return .waiting
    case .cases(let block):
      frames[top].cursor.choose(
        block, branches: frames[top].blueprint.cases[block].branches.count)
      return .moved
    }
  }

  private func enter(_ group: MemberGroup) {
    child = group
    engine.push(group)
  }

  // MARK: Graphs

  /// Starts all steps of a graph.
  private func enterGraph(_ blueprint: Blueprint, _ scope: UInt32, _ top: Int) -> Advance {
    frames[top].cursor.skip(blueprint.steps.count)
    let flow = frames[top].flow
    let plan = blueprint.plan(run.snapshot)
    // Of a later attempt, earlier ones have given keys.
    let given =
      top == 0 && group == nil && frames[top].attempt.number == 1
      ? plan?.keys(of: loop.keys).given(in: bucket) : nil
    var problem = plan?.problem ?? plan?.clash
    if let given {
      problem =
        "<\(given.key)> is among the data given, but [\(blueprint.steps[given.giver].op.name)] gives it"
    }
    guard let plan, problem == nil else {
      lastError = attributed(.usage("graph '\(flow.name)': \(problem ?? "")"), to: top)
      return .moved
    }
    if let error = outerInputError(plan, blueprint, scope, top) {
      lastError = error
      return .moved
    }
    enter(
      ParallelExecution(
        blueprint.steps, parent: self, scope: scope, position: 0, graph: (plan, blueprint)))
    return .waiting
  }

  /// The error about data that a step of a graph needs, that none gives, and that aren't there: nothing has executed then.
  private func outerInputError(
    _ plan: GraphPlan, _ blueprint: Blueprint, _ scope: UInt32, _ top: Int
  ) -> FlowError? {
    if isRehearsing || frames[top].attempt.number > 1 { return nil }
    for (step, declared) in plan.outerNeeds {
      guard let error = checking({ declared.inputError(in: bucket) }) else { continue }
      if blueprint.steps[step].isGroup {
        return error.attributed(to: "Group", at: "\(path(of: top))/Group")
      }
      return error.attributed(
        to: blueprint.steps[step].op.name,
        at: run.path(scope: scope, position: UInt32(truncatingIfNeeded: step)))
    }
    return nil
  }

  /// Executes the op, or the group, of a step of a graph.
  func beginStep(_ step: Step) -> Advance {
    guard case .group(let dispatcher) = step.kind else {
      return launch(step.op, policy: step.policy, scope: scope, position: position, index: 0)
    }
    enter(
      GroupExecution(
        step.op, policy: step.policy, dispatcher, parent: self, scope: scope, position: position))
    return .waiting
  }

  // MARK: The end of an attempt

  /// Starts a final step. It is executed whatever the outcome, and no stop reaches it.
  private func runFinalStep(_ number: Int, _ top: Int) -> Advance {
    let step = frames[top].blueprint.finally[number]
    let progress = launch(
      step.op, policy: step.policy, scope: frames[top].scope,
      position: UInt32(truncatingIfNeeded: number) | Blueprint.finallyBit, index: 0)
    if progress != .ended { cutFinalStepIfOverdue(top) }
    return progress
  }

  /// Reports the error of a final step of a flow that fails for another reason. One that was cut off has been reported.
  private func reportIfSecond(_ error: FlowError, _ top: Int) {
    let cursor = frames[top].cursor
    guard cursor.phase == .finalSteps, error.kind != .cancelled,
      cursor.error != nil || stop?.error(at: top) != nil
    else { return }
    run.addLateError(error)
  }

  private func endAttempt(_ top: Int) {
    stopTimer(of: top)
    endStop(of: top)
    var error = frames[top].cursor.error
    if error == nil, !frames[top].cursor.isFinishedEarly {
      error = checking { frames[top].blueprint.declarations.outputError(in: bucket) }
      // Lists of streams that a rehearsal doesn't write are given as what they are.
      if error != nil,
        lacksItems(frames[top].blueprint.declarations.gives.map { loop.keys.intern($0.name) })
      {
        error = nil
      }
      if error == nil, top == 0 { error = group?.collectError(in: bucket) }
      error = error.map { attributed($0, to: top) }
    }
    if let error, frames[top].cursor.hasUndos {
      frames[top].cursor.undoSteps(error)
      return
    }
    let decides = error.map { beginDecision(top, $0) } ?? false
    frames[top].cursor.endAttempt(error, decides: decides)
  }

  private func decideAttempt(_ top: Int) -> Advance {
    switch decide(top, scope: frames[top].outerScope, position: frames[top].position) {
    case .waiting: return .waiting
    case .delayed:
      frames[top].cursor.delayed()
      return .waiting
    case .ended(let error):
      let ending = stop?.error(at: top) ?? error.map { attributed($0, to: top) }
      frames[top].cursor.stopRetrying(ending ?? frames[top].cursor.error)
      endStop(of: top)
      return .moved
    }
  }

  /// Starts the next attempt at the innermost flow.
  private func beginAttempt(_ top: Int) {
    frames[top].attempt.repeats()
    let frame = frames[top]
    logAttempt(top, scope: frame.outerScope, position: frame.position)
    frames[top].scope = log.addScope(
      LogScope(
        parent: frame.outerScope, position: frame.position,
        attempt: UInt32(truncatingIfNeeded: frame.attempt.number), kind: .flow,
        name: frame.flow.name, parts: frame.blueprint, queued: engine.takeStamp()))
    startTimer(of: top)
  }

  /// The error that keeps the innermost flow from running its first step.
  func startError() -> FlowError? {
    let frame = frames[frames.count - 1]
    if frames.count == 1, group == nil, let circular = run.snapshot?.circular {
      return .usage("flow '\(circular.name)' contains itself")
    }
    guard let error = checking({ frame.blueprint.declarations.inputError(in: bucket) }) else {
      return nil
    }
    // The one DidFinish that a flow at the top logs.
    if frames.count == 1, group == nil { logFinish(frame, error, time: loop.now()) }
    return attributed(error, to: frames.count - 1)
  }

  /// Attributes an error without a known place to the flow at a level.
  func attributed(_ error: FlowError, to level: Int) -> FlowError {
    error.attributed(to: frames[level].flow.name, at: path(of: level))
  }

  /// The path of the flow at a level.
  func path(of level: Int) -> ByteString {
    run.path(scope: frames[level].outerScope, position: frames[level].position)
  }

  private func finish(_ top: Int) {
    let error = stop?.error(at: top) ?? frames[top].cursor.error
    frames[top].cursor.finish(error)
    if top == 0, group == nil {
      if frames[top].cursor.isFinishedEarly, error == nil { run.noteFinishedEarly() }
      run.settle(error)
      return
    }
    let time = loop.now()
    engine.stamp = time
    logFinish(frames[top], error, time: time)
    if let error, top == 0 { group?.memberFailed(error) }
  }

  private func logFinish(_ frame: Frame, _ error: FlowError?, time: Int64) {
    log.append(
      .finish, time: time, scope: frame.outerScope, position: frame.position,
      attempt: frame.attempt.number, first: error.map { log.payload($0.logLine) } ?? .none,
      second: .integer(time - frame.began))
  }

  /// Called by the group of this execution when all its members have ended.
  func groupEnded(_ error: FlowError?) {
    child = nil
    lastError = error
    resume = .group
    engine.push(self)
  }
}

// How an execution chooses the branch of a flow.
extension Execution {
  /// Tests the condition of a branch.
  func test(_ branch: Int, of block: Int, _ top: Int) -> Advance {
    switch frames[top].blueprint.cases[block].branches[branch].condition {
    case .equals(let key, let value):
      if run.keeper != nil { noteRead(loop.keys.intern(key)) }
      if case .bytes(let held)? = bucket.get(loop.keys.intern(key)), held == value {
        takeBranch(branch, of: block, top)
      } else {
        frames[top].cursor.skipBranch()
      }
    case .otherwise: takeBranch(branch, of: block, top)
    case .predicate(let predicate): return ask(predicate)
    }
    return .moved
  }

  /// Asks a predicate; `.moved` when its reply is there.
  func ask(_ predicate: any CasePredicate) -> Advance {
    let run = run
    // Nobody knows which keys a predicate reads.
    if run.keeper != nil { for each in bucket.visibleEntries { noteRead(each.entry.key) } }
    let made = CallbackCompletion(owner: self, place: { nil }) { completion, error in
      predicate.cancel(run, completion: completion, error)
    }
    completion = made
    stopRequested = false
    let isDone = made.begin { predicate.matches(bucket, in: run, completion: $0) }
    engine.stamp = 0
    guard isDone else {
      stopCallback()
      return .waiting
    }
    endCallback()
    return .moved
  }

  /// Takes the answer of the present branch's predicate.
  func endPredicate(_ completion: CallbackCompletion, _ top: Int) {
    if let error = completion.error?.attributed(to: "Cases", at: "\(path(of: top))/Cases") {
      let shown = stop?.error(at: frames.count) ?? error
      logCase(.caseFailed, shown.logLine, top)
      lastError = error
      return
    }
    if completion.isMatch, let block = frames[top].cursor.block {
      takeBranch(frames[top].cursor.branch, of: block, top)
    } else {
      frames[top].cursor.skipBranch()
    }
  }

  private func takeBranch(_ number: Int, of block: Int, _ top: Int) {
    let blueprint = frames[top].blueprint
    let block = blueprint.cases[block]
    let branch = block.branches[number]
    logCase(.caseMatched, branch.condition.label(number: number + 1), top)
    let count = blueprint.steps.count
    frames[top].cursor.takeBranch(
      branch.first..<block.end(of: number, count: count), joint: block.end ?? count)
  }

  func logCase(_ kind: LogKind, _ text: ByteString?, _ top: Int) {
    log.append(
      kind, time: engine.stampedNow(), scope: frames[top].scope,
      position: UInt32(truncatingIfNeeded: frames[top].cursor.next),
      first: text.map { log.payload($0) } ?? .none)
  }
}

/// Storing of an op's values, with a check whether they are those that it has declared.
extension Execution {
  /// The error of a value that the op should have set.
  func outputError(of op: Op) -> FlowError? {
    // Most ops declare nothing.
    guard op.hasGives || isCollected else { return nil }
    if op.hasGives {
      let isKept = unretained(op.declarations) { declarations in
        unretained(bucket) { declarations.clearlyKeepsGives($0) }
      }
      if !isKept, let error = checking({ op.declarations.outputError(in: bucket) }) {
        return error
      }
    }
    guard frames.isEmpty, let memberOf else { return nil }
    // Safe: the execution holds its bucket, and its group, which holds the execution, is held as long.
    return memberOf.lend { group in
      unretained(bucket) { group.collectError(in: $0) }
    }
  }

  /// Stores a value in the execution's bucket and logs it, unless the bucket is an item's.
  /// `time` is when it happened, if not now.
  func store(
    _ key: DataKey, _ value: FlowValue, scope: UInt32, position: UInt32, attempt: Int,
    at time: Int64? = nil
  ) {
    if run.keeper != nil { noteSet(key) }
    // Unretained. Safe: storing replaces no bucket.
    let old = Unmanaged.passUnretained(bucket).lend { $0.set(key, value) }
    guard log.hasSecrets || value.isSecret else {
      logSet(
        key, value, replacing: old, scope: scope, position: position, attempt: attempt, at: time)
      return
    }
    let shown = log.shown(value, of: key, in: bucket)
    let oldShown = old.map { log.shown($0, of: key, in: bucket) }
    logSet(
      key, shown, replacing: oldShown, scope: scope, position: position, attempt: attempt, at: time)
  }

  @inline(__always)
  private func logSet(
    _ key: DataKey, _ value: FlowValue, replacing old: FlowValue?, scope: UInt32, position: UInt32,
    attempt: Int, at time: Int64?
  ) {
    if !logsSets || (old == nil && value.isNull) { return }
    let kind: LogKind = value.isNull ? .remove : old == nil ? .add : .replace
    let time = time ?? engine.stampedNow()
    // Unretained. Safe: the run holds its log, and the execution its run.
    Unmanaged.passUnretained(log).lend {
      $0.append(
        kind, time: time, scope: scope, position: position, key: key.id, attempt: attempt,
        first: $0.payload(value), second: $0.payload(old), value: value)
    }
  }
}
