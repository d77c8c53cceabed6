// Cleanups: those of an op, the final steps of a flow, and the callbacks after its end. Stops don't
// reach into them; a stop limits their time.
extension Execution {
  // MARK: Shields

  /// Shields the code that follows from stops of `level` and of enclosing levels. A stop that is
  /// there already, or was there before (`isStopped`), begins the grace.
  func beginShield(_ level: Int, isStopped: Bool = false) {
    let limit = limit(ofShield: shields.count, level)
    stopRequested = false
    if stops.beginShield(level, isStopped: isStopped, limit: limit) {
      beginGrace(shields.count - 1)
    }
  }

  /// When the code within a shield of a level ends at the latest, as long as its grace hasn't begun.
  private func limit(ofShield index: Int, _ level: Int) -> Int64 {
    var limit = earliestDeadline(around: index)
    if index == 0, !isShieldedAround {
      limit = .earlier(limit, Deadline(source: .starter, time: run.ownerDeadline))
    }
    return limit.time.later(by: grace(of: level).clampedNanoseconds)
  }

  /// Takes the limit of a level's shield away, or finds it again, unless its grace has begun.
  func setShieldLimit(_ level: Int, isPaused: Bool) {
    guard let index = shields.lastIndex(where: { $0.level == level }),
      shields[index].graceEnd == nil, !shields[index].isOver
    else { return }
    stops.setDeadline(
      .grace(level: level), isPaused ? .max : limit(ofShield: index, level))
  }

  /// Delivers the stop that was held meanwhile.
  func endShield() {
    let (held, timer) = stops.endShield()
    timer?.cancel()
    if let held { request(held) }
  }

  // MARK: Grace

  /// The time that the cleanups of a level have after a stop.
  private func grace(of level: Int) -> Duration {
    self[attempt: level].policy?.grace ?? engine.cleanupGrace
  }

  /// The end of the grace of a level, which begins now unless it has begun.
  func graceEnd(of level: Int) -> Int64 {
    if let end = self[attempt: level].graceEnd { return end }
    let end = loop.deadline(after: grace(of: level))
    self[attempt: level].graceEnd = end
    return end
  }

  /// Limits the time of a shield's code from now on; the first call counts.
  func beginGrace(_ index: Int) {
    let level = shields[index].level
    switch stops.beginGrace(index, end: graceEnd(of: level), now: loop.now()) {
    case .none: break
    case .cut: endGrace(index)
    case .setTimer(let end):
      stops.setTimer(loop.schedule(at: end, GraceLimit(self, level: level)), of: index)
    }
  }

  /// Cuts off the code within a level's shield, whose grace is over.
  func graceEnded(_ level: Int) {
    guard let index = shields.lastIndex(where: { $0.level == level }) else { return }
    endGrace(index)
    if let completion, isCallbackShielded(by: index) {
      cut(completion)
    } else {
      cutFinalStep(level)
    }
  }

  private func endGrace(_ index: Int) {
    stops.endGrace(index, limit: loop.now().later(by: engine.gracePeriod))?.cancel()
  }

  /// Whether the innermost shield is the callback's own, and doesn't belong to enclosing steps.
  private func isCallbackShielded(by index: Int) -> Bool {
    index == shields.count - 1
      && (opCursor.phase == .cleanups || frames.last?.cursor.callsBack == true)
  }

  /// Whether the grace of the executing callback is over.
  private var isOverdue: Bool {
    guard let last = shields.indices.last else { return false }
    return shields[last].isOver && isCallbackShielded(by: last)
  }

  // MARK: Cleanups of an op

  /// Calls a cleanup; false while it waits.
  func call(_ cleanup: any OpCleanup) -> Bool {
    let context = context
    let made = CallbackCompletion(owner: self, place: { cleanup.place }) { completion, error in
      cleanup.cancel(context, completion: completion, error)
    }
    completion = made
    let isDone = made.begin { cleanup.cleanUp(context, completion: $0) }
    engine.stamp = 0
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
      // A cleanup that was cut off has been reported.
      run.addLateError(error)
    }
  }

  // MARK: Cutting off

  /// Cuts off a callback that waits although the grace is over.
  func cutIfOverdue() {
    if isOverdue, let completion { cut(completion) }
  }

  private func cut(_ completion: CallbackCompletion) {
    guard !completion.isFinished, !completion.isCut else { return }
    completion.cancel(reportCut(of: completion))
  }

  /// Reports that a cleanup or callback is cut off; returns the error that it ends with.
  private func reportCut(of completion: CallbackCompletion) -> FlowError {
    let undo = completion.state as? UndoExecution
    let waits = (undo?.code ?? completion.code)?.whereItWaits
    completion.isCut = true
    let isCleanup = opCursor.phase == .cleanups
    let what: ByteString =
      if let undo {
        "the undo of [\(undo.displayName)]"
      } else if isCleanup {
        "the cleanup of [\(context.displayName)]"
      } else {
        "the did_finish of [\(frames.last?.flow.name ?? op.name)]"
      }
    return reportCut(
      what, at: completion.place, waits: waits, isBusy: undo?.isBusy ?? completion.isBusy,
      level: isCleanup ? frames.count : frames.count - 1)
  }

  /// Stops the final step that waits although the grace of its flow is over.
  private func cutFinalStep(_ level: Int) {
    guard level < frames.count, frames[level].cursor.phase == .finalSteps else { return }
    let name = context.isOpen ? context.displayName : frames.last?.flow.name ?? op.name
    let code = context.isOpen ? context.state as? any ExecutingCode : nil
    let error = reportCut(
      "[\(name)], a final step of [\(frames[level].flow.name)],", at: nil,
      waits: code?.whereItWaits, isBusy: context.phase == .inBody, level: level)
    request(.one(level + 1, FlowError(.cancelled, "cancelled: \(error.message)")))
  }

  /// Prevents waits in a final step of a flow whose grace is over.
  func cutFinalStepIfOverdue(_ level: Int) {
    if shields.last?.level == level, shields.last?.isOver == true { cutFinalStep(level) }
  }

  /// Reports that something was cut off, and returns it as an error.
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
  var callbackDeadline: Int64 { deadline }

  /// Called for a callback or cleanup that was stopped at `callbackDeadline`.
  func expireCallback() -> FlowError {
    guard let last = shields.indices.last, isCallbackShielded(by: last), let completion else {
      return expire()
    }
    if !shields[last].isOver {
      // If it had waited, the enclosing timeout would have begun the grace.
      if shields[last].graceEnd == nil { stopWhatIsDue(around: last) }
      endGrace(last)
    }
    return reportCut(of: completion)
  }

  // MARK: The error that a cleanup follows

  /// The error that the op of the context is ending with, or the flow whose final step it is; nil
  /// when neither is ending, or after success.
  func endingError(of context: OpContext) -> FlowError? {
    if opCursor.isCleaningUp, context === self.context, !isUndo || context.outcome != nil {
      return context.outcome
    }
    return endingErrorAround
  }

  /// The error that a flow is ending with, when this execution is part of one of its final steps, or
  /// undoes an op of it.
  var endingErrorAround: FlowError? {
    var execution = self
    while true {
      if let frame = execution.frames.last(where: { $0.cursor.phase == .finalSteps }) {
        return frame.cursor.error
      }
      if let undo = execution.group as? UndoExecution { return undo.endingError }
      guard let outer = execution.group?.parent else { return execution.run.endingErrorAround }
      execution = outer
    }
  }
}
