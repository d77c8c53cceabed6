// How ops and flows hold the limits of their policies while they execute.

extension Execution {
  /// Begins an op or flow whose policy has limits, when it holds them.
  @inline(never)
  func queue(_ op: Op, _ policy: OpPolicy, scope: UInt32, position: UInt32, index: Int) -> Advance {
    let limits = policy.limits.filter { !isHeldAround($0) }
    if limits.isEmpty {
      return launchNow(op, policy: policy, scope: scope, position: position, index: index)
    }
    let run = run
    let hold = LimitHold(limits, on: loop) { [unowned run] in
      run.log.displayName(op.name, index: index, scope: scope, position: position)
    }
    let queued = QueuedOp(
      op, policy, scope: scope, position: position, index: index, hold)
    guard hold.take({ [self] in wake(.limit) }) else {
      self.queued = queued
      stopRequested = false
      log.append(
        .queues, time: engine.stampedNow(), scope: scope, position: position,
        first: log.payload(hold.awaitedName ?? ""))
      group?.memberIsQueued(true)
      engine.stamp = 0
      return .waiting
    }
    return begin(queued)
  }

  private func begin(_ queued: QueuedOp) -> Advance {
    holds.append(LevelHold(level: frames.count, hold: queued.hold))
    return launchNow(
      queued.op, policy: queued.policy, scope: queued.scope, position: queued.position,
      index: queued.index)
  }

  /// Begins the op that has waited, unless it was stopped meanwhile.
  func limitsAreHeld() -> Advance {
    guard let queued else { return .ended }
    self.queued = nil
    group?.memberIsQueued(false)
    guard stop != nil else {
      logWait(of: queued.hold, scope: queued.scope, position: queued.position, attempt: 1)
      return begin(queued)
    }
    queued.hold.drop()
    let error = opStop
    endStop(of: opLevel)
    lastError = error
    if let error, error.kind == .stalled {
      // Else nothing of it is in the log: it hasn't begun.
      let time = loop.now()
      log.append(.start, time: time, scope: queued.scope, position: queued.position)
      log.append(
        .finish, time: time, scope: queued.scope, position: queued.position,
        first: log.payload(error.logLine), second: .integer(0))
    }
    return .ended
  }

  private func logWait(of hold: LimitHold, scope: UInt32, position: UInt32, attempt: Int) {
    guard let (names, time) = hold.wait else { return }
    let text: ByteString = "Queued \(FlowValue.text(of: .nanoseconds(time))) for limit \(names)"
    log.append(
      .queued, time: engine.stampedNow(), scope: scope, position: position, attempt: attempt,
      first: log.payload(text), second: .integer(time))
  }

  /// Takes the limits of the op again, before its next attempt; else `wake` continues the op when it holds them.
  func takeAgain() -> Bool {
    guard let last = holds.last, last.level == opLevel else { return true }
    let hold = last.hold
    if !hold.isComplete {
      stopRequested = false
      guard hold.take({ [self] in wake(.op) }) else {
        engine.stamp = 0
        return false
      }
    }
    logWait(
      of: hold, scope: context.scope, position: context.position,
      attempt: self[attempt: opLevel].number + 1)
    return true
  }

  /// An op that waits for its next attempt gives its limits back; a flow keeps them.
  func pauseHold(of level: Int) {
    if level == opLevel, let last = holds.last, last.level == level { last.hold.release() }
  }

  /// The op or flow of a level has ended.
  func releaseHold(of level: Int) {
    guard let last = holds.last, last.level == level else { return }
    holds.removeLast()
    last.hold.drop()
  }

  /// Gives back all that it holds and waits for.
  func dropHolds() {
    queued?.hold.drop()
    queued = nil
    while hasHolds { holds.removeLast().hold.drop() }
  }

  /// The hold that waits for limits now; nil if there is none.
  var waitingHold: LimitHold? {
    let hold = queued?.hold ?? (hasHolds ? holds.last?.hold : nil)
    return hold?.isWaiting == true ? hold : nil
  }

  // MARK: Around

  /// Ends the group around it early; false if there is none.
  func endGroup() -> Bool {
    var execution = self
    while let group = execution.group {
      if let items = group as? GroupExecution {
        items.close()
        return true
      }
      execution = group.parent
    }
    return false
  }

  /// Whether something around what it executes holds a limit.
  func isHeldAround(_ limit: Limit) -> Bool {
    holdsWithin(limit) || run.owner?.hold(limit) == true
  }

  /// Whether a flow of this execution holds a limit, around the run's own tasks.
  func flowsHold(_ limit: Limit) -> Bool {
    hasHolds && holds.contains { $0.level < frames.count && $0.hold.contains(limit) }
  }

  /// Whether something around what it executes in its run holds a limit.
  func holdsWithin(_ limit: Limit) -> Bool {
    var execution = self
    while true {
      if execution.hasHolds, execution.holds.contains(where: { $0.hold.contains(limit) }) {
        return true
      }
      guard let group = execution.group else { return false }
      if group.tasksAround?.hold(limit) == true { return true }
      execution = group.parent
    }
  }
}
