// The ops that a strand executes: their attempts, cleanups, and what they leave behind.
extension Strand {
  /// Where an op is that has more to do than its body.
  enum LeafPhase: UInt8 {
    case body
    /// Waits for the tasks that it started.
    case children
    case cleanups
    /// Decides whether there is another attempt.
    case deciding
    /// Waits before the next attempt.
    case delay
  }

  /// Begins an attempt at the op of the context, which has begun.
  func beginAttempt() -> Progress {
    leafPhase = .body
    let op = context.op
    startLeafTimer()
    if op.hasNeeds, let error = checking({ op.declarations.inputError(in: bucket) }) {
      context.end(error)
      return endBody()
    }
    guard let body = op.body else { return endBody() }
    guard context.bodyReturned(body.start(context)) else {
      loop.stamp = 0
      askBody()
      return .waiting
    }
    return endBody()
  }

  /// Limits the time of the attempt from now on.
  func startLeafTimer() {
    guard let timeout = leafPolicy?.timeout else { return }
    stopLeafTimer()
    leafDeadline = loop.deadline(after: timeout)
    leafTimer = loop.schedule(at: leafDeadline, LevelLimit(.timeout, self, level: frames.count))
  }

  func stopLeafTimer() {
    guard let leafTimer else { return }
    leafTimer.cancel()
    self.leafTimer = nil
    leafDeadline = .max
  }

  /// Goes on after the body has ended.
  func endBody() -> Progress {
    stopLeafTimer()
    guard context.extras != nil else { return endAttempt() }
    leafPhase = .children
    return continueLeaf()
  }

  /// Goes on with what the op has left: waits for its tasks, and calls its cleanups.
  func continueLeaf() -> Progress {
    if leafPhase == .deciding { return continueDeciding() }
    while let extras = context.extras {
      switch leafPhase {
      case .body, .deciding: return .waiting
      case .children:
        if !letGo(extras) { return .waiting }
        guard !extras.cleanups.isEmpty else {
          endCleanups()
          return endAttempt()
        }
        beginCleanups()
      case .cleanups:
        guard let cleanup = extras.cleanups.popLast() else {
          context.setOpenForCleanups(false)
          leafPhase = .children
          continue
        }
        if !call(cleanup) { return .waiting }
      case .delay: return nextAttempt()
      }
    }
    return leafPhase == .delay ? nextAttempt() : endAttempt()
  }

  /// Passes the tasks of an op that has succeeded to its run, else cancels them; false while they
  /// have to be waited for.
  private func letGo(_ extras: OpExtras) -> Bool {
    guard endInner(extras) else { return false }
    guard let owned = extras.owned, !owned.isEmpty else { return true }
    guard let outcome = context.outcome else {
      run.adopt(all: owned)
      return true
    }
    owned.cancelAll(outcome.asReason)
    // Those that were idle have ended at once.
    if owned.isEmpty { return true }
    owned.whenEmpty { [self] in wake(.owned) }
    return false
  }

  /// Cancels the ops that the op still executes over its own data, and what it has started if it
  /// failed; false while they have to be waited for.
  private func endInner(_ extras: OpExtras) -> Bool {
    guard let inner = extras.inner, !inner.isEmpty else { return true }
    let reason = context.outcome?.asReason
    if let reason { extras.owned?.cancelAll(reason) }
    inner.cancelAll(reason ?? .cancelled())
    if inner.isEmpty { return true }
    inner.whenEmpty { [self] in wake(.owned) }
    return false
  }

  // MARK: The end of an attempt

  /// Ends the op, or waits for its next attempt.
  private func endAttempt() -> Progress {
    leafGraceEnd = nil
    // What has stopped this op alone is over with it.
    if let stop, stop.level >= frames.count { self.stop = nil }
    guard let error = context.outcome,
      beginDecision(leafPolicy?.retry, attempt: context.attempt, error)
    else { return endLeaf() }
    leafPhase = .deciding
    return continueDeciding()
  }

  /// Decides whether there is another attempt, as far as it can without a wait.
  private func continueDeciding() -> Progress {
    let attempts = leafPolicy?.retry?.attempts ?? 0
    guard let answer = decide() else { return .waiting }
    if let leafStop {
      context.replaceOutcome(leafStop)
      return endLeaf()
    }
    switch answer {
    case .end: return endLeaf()
    case .fail(let error):
      context.replaceOutcome(error)
      return endLeaf()
    case .again(let seconds):
      guard let error = context.outcome else { return endLeaf() }
      delay = beginDelay(
        seconds, of: attempts, attempt: context.attempt, error, scope: context.scope,
        position: context.position, .leaf)
      context.state = nil
      leafPhase = .delay
      return .waiting
    }
  }

  private func endLeaf() -> Progress {
    context.logFinish()
    leafPolicy = nil
    leafPhase = .body
    lastError = closeContext()
    return .ended
  }

  private func nextAttempt() -> Progress {
    if let leafStop {
      context.replaceOutcome(leafStop)
      return endLeaf()
    }
    renewContext()
    context.beginAgain(generation: loop.nextGeneration())
    isAsked = false
    return beginAttempt()
  }
}
