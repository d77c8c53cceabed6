// Cleanups: those of an op, the final steps of a flow, and what is called after its end. Stops don't
// reach into them; a stop limits their time.
extension Strand {
  // MARK: Shields

  /// Keeps stops of `level` and further out away from what comes next. One that is there already, or
  /// was there before (`isStopped`), begins the grace.
  func beginShield(_ level: Int, isStopped: Bool = false) {
    let held = stop.flatMap { $0.level <= level ? $0 : nil }
    if held != nil { stop = nil }
    let around = isShielded ? outerDeadline : min(outerDeadline, run.ownerDeadline)
    var shield = Shield(level: level, held: held, deadlineAround: outerDeadline)
    shield.limit = loop.deadline(after: grace(of: level), from: around)
    shields.append(shield)
    outerDeadline = shield.limit
    isAsked = false
    if held != nil || isStopped { beginGrace(shields.count - 1) }
  }

  /// Lets the stops through that have come meanwhile.
  func endShield() {
    let shield = shields.removeLast()
    shield.timer?.cancel()
    outerDeadline = shield.deadlineAround
    if let held = shield.held { request(held) }
  }

  // MARK: Grace

  /// Seconds that the cleanups of a level have once it was stopped.
  private func grace(of level: Int) -> Double {
    let policy = level < frames.count ? frames[level].policy : leafPolicy
    return policy?.grace ?? loop.defaultGrace
  }

  /// The end of the grace of a level, which begins now unless it has begun.
  func graceEnd(of level: Int) -> Int64 {
    if let end = level < frames.count ? frames[level].graceEnd : leafGraceEnd { return end }
    let end = loop.deadline(after: grace(of: level))
    if level < frames.count { frames[level].graceEnd = end } else { leafGraceEnd = end }
    return end
  }

  /// Limits what a shield is around from now on; the first call counts.
  func beginGrace(_ index: Int) {
    guard shields[index].graceEnd == nil, !shields[index].isOver else { return }
    let level = shields[index].level
    let end = graceEnd(of: level)
    shields[index].graceEnd = end
    shields[index].limit = end
    outerDeadline = min(outerDeadline, end)
    if end == .max { return }
    if end <= loop.now() {
      endGrace(index)
    } else {
      shields[index].timer = loop.schedule(at: end, LevelLimit(.grace, self, level: level))
    }
  }

  /// Cuts what a level's shield is around.
  func graceIsOver(_ level: Int) {
    guard let index = shields.lastIndex(where: { $0.level == level }) else { return }
    endGrace(index)
    if let completion, isCallbackShielded(by: index) {
      cut(completion)
    } else {
      cutFinalStep(level)
    }
  }

  private func endGrace(_ index: Int) {
    shields[index].timer?.cancel()
    shields[index].timer = nil
    shields[index].isOver = true
    // What hasn't begun is called all the same: it is cut where it waits, and when this is over.
    shields[index].limit = loop.now().later(by: loop.gracePeriod)
    if index == shields.count - 1 { outerDeadline = shields[index].limit }
  }

  /// Whether the innermost shield is that of the callback, and not of steps in which that is.
  private func isCallbackShielded(by index: Int) -> Bool {
    index == shields.count - 1 && (leafPhase == .cleanups || frames.last?.phase == .didFinish)
  }

  /// Whether the callback that executes is one whose grace is over.
  private var isOverdue: Bool {
    guard let last = shields.indices.last else { return false }
    return shields[last].isOver && isCallbackShielded(by: last)
  }

  // MARK: Cleanups of an op

  func beginCleanups() {
    context.setOpenForCleanups(true)
    leafPhase = .cleanups
    if isCleaningUp { return }
    isCleaningUp = true
    beginShield(frames.count)
  }

  func endCleanups() {
    guard isCleaningUp else { return }
    isCleaningUp = false
    endShield()
  }

  /// Calls a cleanup; false while it waits.
  func call(_ cleanup: any OpCleanup) -> Bool {
    let context = context
    let made = CallbackCompletion(strand: self, place: { cleanup.place }) { completion, error in
      cleanup.cancel(context, completion: completion, error)
    }
    completion = made
    let isDone = made.begin { cleanup.cleanUp(context, completion: $0) }
    loop.stamp = 0
    if isDone {
      endCleanup()
    } else {
      cutIfOverdue()
    }
    return isDone
  }

  func endCleanup() {
    guard let ended = completion else { return }
    completion = nil
    let failure = ended.error?.attributed(to: context.displayName, at: context.path)
    guard let error = failure else { return }
    if context.outcome == nil {
      context.replaceOutcome(error)
    } else if !ended.isCut {
      // One that was cut has been reported.
      run.addLateError(error)
    }
  }

  // MARK: Callbacks after the end of a flow

  /// Limits the callbacks after the end of a flow, of which there are some, when that was stopped.
  func beginLastCallbacks(_ top: Int) {
    if shields.last?.level != top { beginShield(top, isStopped: frames[top].isStopped) }
  }

  /// Cuts a callback that waits although the grace is over.
  func cutIfOverdue() {
    if isOverdue, let completion { cut(completion) }
  }

  // MARK: What is cut

  private func cut(_ completion: CallbackCompletion) {
    guard !completion.isFinished, !completion.isCut else { return }
    completion.cancel(reportCut(of: completion))
  }

  /// Reports that a cleanup or callback is cut; returns with what it ends.
  private func reportCut(of completion: CallbackCompletion) -> FlowError {
    let waits = completion.code?.whereItWaits
    completion.isCut = true
    let isCleanup = leafPhase == .cleanups
    let what: ByteString =
      isCleanup
      ? "the cleanup of [\(context.displayName)]"
      : "the did_finish of [\(frames.last?.flow.name ?? op.name)]"
    return reportCut(
      what, at: completion.place, waits: waits, isBusy: completion.isBusy,
      level: isCleanup ? frames.count : frames.count - 1)
  }

  /// Stops the final step that waits although the grace of its flow is over.
  private func cutFinalStep(_ level: Int) {
    guard level < frames.count, frames[level].phase == .finally else { return }
    let name = context.isOpen ? context.displayName : frames.last?.flow.name ?? op.name
    let code = context.isOpen ? context.state as? any ExecutingCode : nil
    let error = reportCut(
      "[\(name)], a final step of [\(frames[level].flow.name)],", at: nil,
      waits: code?.whereItWaits, isBusy: context.phase == .inBody, level: level)
    request(.one(level + 1, FlowError(.cancelled, "cancelled: \(error.message)")))
  }

  /// Begins no wait in a final step of a flow whose grace is over.
  func cutFinalStepIfOverdue(_ level: Int) {
    if shields.last?.level == level, shields.last?.isOver == true { cutFinalStep(level) }
  }

  /// Reports that something was cut, and returns it as an error.
  func reportCut(
    _ what: ByteString, at place: ByteString?, waits: ByteString?, isBusy: Bool, level: Int
  ) -> FlowError {
    let error = FlowError.cut(
      what, at: place, waits: waits, isBusy: isBusy, grace: grace(of: level))
    run.addLateError(error)
    return error
  }

  // MARK: Busy callbacks

  /// When a busy callback or cleanup has to be stopped.
  var callbackDeadline: Int64 { deadlineAround }

  /// Called for a callback or cleanup that was stopped at `callbackDeadline`.
  func expireCallback() -> FlowError {
    guard let last = shields.indices.last, isCallbackShielded(by: last), let completion else {
      return expire()
    }
    if !shields[last].isOver {
      // Had it waited, the timeout around would have begun the grace.
      if shields[last].graceEnd == nil { stopWhatIsDueAround(last) }
      endGrace(last)
    }
    return reportCut(of: completion)
  }

  // MARK: What a cleanup is about

  /// What the op of the context, or the flow whose final step it is, is ending with; nil where nothing
  /// ends, or after success.
  func endingError(of context: OpContext) -> FlowError? {
    if isCleaningUp, context === self.context { return context.outcome }
    return endingErrorAround
  }

  /// What the flow is ending with of whose final step this is a part.
  var endingErrorAround: FlowError? {
    var strand = self
    while true {
      if let frame = strand.frames.last(where: { $0.phase == .finally }) { return frame.error }
      guard let outer = strand.group?.parent else { return strand.run.endingErrorAround }
      strand = outer
    }
  }
}
