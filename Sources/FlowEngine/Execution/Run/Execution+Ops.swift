// The ops that an execution executes: their attempts, cleanups, and remaining tasks.
extension Execution {
  /// The level of the executing op.
  var opLevel: Int { frames.count }

  /// Starts an attempt at the op of the context, which has begun.
  func beginAttempt() -> Advance {
    opCursor.begin()
    let op = context.op
    startTimer(of: opLevel)
    if op.hasNeeds, let error = checking({ op.declarations.inputError(in: bucket) }) {
      context.end(error)
      return endBody()
    }
    guard let body = op.body else { return endBody() }
    guard context.bodyReturned(body.start(context)) else {
      engine.stamp = 0
      stopBody()
      return .waiting
    }
    return endBody()
  }

  /// Continues after the body has ended.
  func endBody() -> Advance {
    stopTimer(of: opLevel)
    guard context.resources != nil else { return endAttempt() }
    opCursor.bodyEnded()
    return continueOp()
  }

  /// Continues with the remaining work of the op: waits for its tasks, calls its cleanups, and decides
  /// about another attempt.
  func continueOp() -> Advance {
    var action = nextOpAction()
    while true {
      switch action {
      case .wait: return .waiting
      case .endTasks:
        guard let resources = context.resources else { return endAttempt() }
        if !endTasks(resources) { return .waiting }
        if context.outcome != nil {
          if run.keeper?.isSuspended == true { resources.undos = [] }
          resources.scheduleUndos()
        }
        action = opCursor.tasksEnded(hasCleanups: !resources.cleanups.isEmpty)
        continue
      case .beginCleanups:
        context.setOpenForCleanups(true)
        beginShield(opLevel)
      case .openCleanups: context.setOpenForCleanups(true)
      case .callCleanup:
        if let cleanup = context.resources?.cleanups.popLast(), !call(cleanup) { return .waiting }
      case .closeCleanups: context.setOpenForCleanups(false)
      case .endCleanups:
        endShield()
        return endAttempt()
      case .endAttempt: return endAttempt()
      case .decide: return decideAttempt()
      case .beginAttempt: return beginNextAttempt()
      case .decideKept: return decideAgain()
      case .beginKept: return startIsKept()
      case .endKept: return finishOp()
      }
      action = nextOpAction()
    }
  }

  private func nextOpAction() -> OpCursor.Action {
    let resources = context.resources
    return opCursor.advance(
      hasResources: resources != nil, hasCleanups: resources?.cleanups.isEmpty == false)
  }

  /// Passes the tasks of an op that has succeeded to its run, else cancels them; false while they
  /// have to be awaited.
  private func endTasks(_ resources: AttemptResources) -> Bool {
    guard endInner(resources) else { return false }
    guard let owned = resources.owned, !owned.isEmpty else { return true }
    guard let outcome = context.outcome else {
      run.adopt(all: owned)
      return true
    }
    owned.cancelAll(outcome.asReason)
    // Idle tasks have ended at once.
    if owned.isEmpty { return true }
    owned.whenEmpty { [self] in wake(.owned) }
    return false
  }

  /// Cancels the ops that the op still executes over its own data, and, if it failed, the tasks
  /// that it started; false while they have to be awaited.
  private func endInner(_ resources: AttemptResources) -> Bool {
    guard let inner = resources.inner, !inner.isEmpty else { return true }
    let reason = context.outcome?.asReason
    if let reason { resources.owned?.cancelAll(reason) }
    inner.cancelAll(reason ?? .cancelled())
    if inner.isEmpty { return true }
    inner.whenEmpty { [self] in wake(.owned) }
    return false
  }

  // MARK: The end of an attempt

  /// Ends the op, or waits for its next attempt.
  private func endAttempt() -> Advance {
    endStop(of: opLevel)
    // Of a stream nothing passes twice.
    guard let error = context.outcome, context.resources?.hasPassedItems != true,
      beginDecision(opLevel, error)
    else { return endOp() }
    opCursor.decides()
    return decideAttempt()
  }

  private func decideAttempt() -> Advance {
    switch decide(opLevel, scope: context.scope, position: context.position) {
    case .waiting: return .waiting
    case .delayed:
      context.state = nil
      opCursor.delayed()
      return .waiting
    case .ended(let error):
      if let error = opStop ?? error { context.replaceOutcome(error) }
      endStop(of: opLevel)
      return endOp()
    }
  }

  private func endOp() -> Advance {
    if let keeping = context.keeping, !keepEnd(keeping) { return .waiting }
    return finishOp()
  }

  private func finishOp() -> Advance {
    if hasHolds { releaseHold(of: opLevel) }
    context.logFinish()
    if context.outcome == nil { listOp() }
    setOpPolicy(nil)
    opCursor.begin()
    lastError = closeContext()
    return .ended
  }

  private func beginNextAttempt() -> Advance {
    if let opStop {
      endStop(of: opLevel)
      context.replaceOutcome(opStop)
      return endOp()
    }
    if hasHolds, !takeAgain() { return .waiting }
    renewContext()
    self[attempt: opLevel].repeats()
    logAttempt(opLevel, scope: context.scope, position: context.position)
    context.beginAgain(generation: engine.nextGeneration(), attempt: self[attempt: opLevel].number)
    stopRequested = false
    return beginAttempt()
  }
}

// How an execution decides whether a failed op or flow is retried.
extension Execution {
  enum Decision {
    /// A function of the policy waits.
    case waiting
    /// The next attempt follows after a delay.
    case delayed
    /// There is no other attempt; the level ends with this error, or with its own.
    case ended(FlowError?)
  }

  /// Begins to decide about another attempt at the op or flow of a level; false when there is none.
  func beginDecision(_ level: Int, _ error: FlowError) -> Bool {
    if isRehearsing, level < frames.count || context.keeping == nil { return false }
    let attempt = self[attempt: level]
    guard let policy = attempt.policy?.retry, stop == nil,
      policy.allows(attemptAfter: attempt.number, error)
    else { return false }
    decision = RetryDecision(policy, error, attempt: attempt.number)
    // The functions that decide have together as much time as an attempt.
    if policy.rule != nil { startTimer(of: level) }
    return true
  }

  /// Decides about another attempt at the op or flow of a level, as far as it can without a wait.
  ///
  /// - Parameters:
  ///   - level: The level.
  ///   - scope: The scope of its line in the log.
  ///   - position: The position of its line in the log.
  /// - Returns: The decision that follows.
  func decide(_ level: Int, scope: UInt32, position: UInt32) -> Decision {
    guard let decision else { return .ended(nil) }
    guard askPolicy(decision) else { return .waiting }
    if decision.policy.rule != nil { stopTimer(of: level) }
    self.decision = nil
    if stop != nil { return .ended(nil) }
    switch decision.answer(using: &engine.randomNumberGenerator) {
    case .end: return .ended(nil)
    case .fail(let error): return .ended(error)
    case .again(let time):
      delay = beginDelay(time, decision, level, scope: scope, position: position)
      if hasHolds { pauseHold(of: level) }
      pause(level, for: time)
      return .delayed
    }
  }

  /// Calls the functions of the policy; false while one of them waits.
  private func askPolicy(_ decision: RetryDecision) -> Bool {
    let run = run
    while stop == nil, let question = decision.nextQuestion(), let rule = decision.policy.rule {
      let made = CallbackCompletion(owner: self, place: { nil }) { completion, error in
        rule.cancel(run, completion: completion, error)
      }
      completion = made
      stopRequested = false
      let isDone = made.begin {
        rule.answer(
          question, decision.error, attempt: decision.attempt, in: run, completion: $0)
      }
      engine.stamp = 0
      guard isDone else {
        stopCallback()
        return false
      }
      endQuestion()
    }
    return true
  }

  /// Takes the awaited answer.
  func endQuestion() {
    guard let ended = completion else { return }
    completion = nil
    decision?.takeAnswer(ended)
  }

  /// Logs that the next attempt at the op or flow of a level starts.
  func logAttempt(_ level: Int, scope: UInt32, position: UInt32) {
    log.append(
      .attempt, time: engine.stampedNow(), scope: scope, position: position,
      attempt: self[attempt: level].number)
  }

  /// Logs that another attempt follows, and has the execution continue when it is due.
  private func beginDelay(
    _ time: Duration, _ decision: RetryDecision, _ level: Int, scope: UInt32, position: UInt32
  ) -> LoopTimer {
    let text: ByteString = """
      Retry \(decision.attempt + 1)/\(decision.policy.attempts) in \
      \(FlowValue.text(of: time)): \(decision.error.message)
      """
    log.append(
      .retry, time: engine.stampedNow(), scope: scope, position: position,
      attempt: decision.attempt, first: log.payload(text), second: .integer(time.clampedNanoseconds)
    )
    return loop.schedule(
      at: loop.deadline(after: time), WakeUp(self, level < frames.count ? .frame : .op))
  }
}
