// How an execution, and everything it waits for, is stopped.
extension Execution {
  /// The error that the executing op has to end with; nil when nothing stops it.
  var opStop: FlowError? { stop?.error(at: frames.count) }

  /// Stops everything the execution does because of `error`; the first error counts.
  func cancel(_ error: FlowError) { request(.everything(error)) }

  /// Stops the level of `new`, unless a stop of an enclosing level, or an earlier one, does.
  func request(_ new: Stop) {
    switch stops.request(new) {
    case .none: break
    case .beginGrace(let shield): beginGrace(shield)
    case .stopWait: stopWait()
    }
  }

  /// Removes a stop that reaches `level` and no enclosing one: it ends with the level.
  func endStop(of level: Int) {
    if stop != nil { stops.endStop(of: level) }
  }

  /// Stops the thing that the execution waits for.
  private func stopWait() {
    guard let stop else { return }
    if let child {
      child.cancel(stop.inner)
    } else if completion != nil {
      stopCallback()
    } else if let delay {
      delay.cancel()
      self.delay = nil
      stopPause()
      wake(frames.last?.cursor.phase == .delay ? .frame : .op)
    } else if let hold = waitingHold {
      hold.drop()
      wake(queued == nil ? .op : .limit)
    } else if let undecided {
      undecided.work.reading?.cancel()
    } else if context.phase == .inBody, !opCursor.isCleaningUp, let error = opStop {
      context.op.body?.interrupt(context, error)
    } else {
      stopBody()
    }
  }

  /// Stops a suspended body, once.
  func stopBody() {
    guard !stopRequested, context.phase == .suspended, let error = opStop else { return }
    stopRequested = true
    context.op.body?.cancel(context, error)
  }

  /// Stops the callback that the execution waits for, once.
  func stopCallback() {
    // A callback that is running now is stopped only when it waits.
    guard let stop, !stopRequested, let completion, !completion.isFinished, !completion.isInCall
    else {
      return
    }
    stopRequested = true
    completion.cancel(stop.inner)
  }

  /// The error for code of the op that waits where a stop can't reach it; nil when nothing stops
  /// it.
  var codeStop: FlowError? {
    if let opStop { return opStop }
    // The code has been cut off, which is reported.
    if shields.last?.isOver == true { return .cancelled() }
    var around = isShielded ? nil : group?.parent
    while let outer = around {
      if let stop = outer.stop { return stop.inner }
      around = outer.isShielded ? nil : outer.group?.parent
    }
    return nil
  }

  /// The error of `codeStop` for a callback or predicate of a flow.
  var callbackStop: FlowError? { codeStop?.asReason }

  /// The error that the run has to end with because its starter ends; nil when nothing stops the
  /// starter.
  var starterStop: FlowError? { isShielded ? nil : run.owner?.stopError }

  /// Checks declarations of an op or flow, or calls functions of a group. They may be a script's; they stop with the op.
  func checking(_ check: () -> FlowError?) -> FlowError? {
    let outer = engine.checking
    engine.checking = CheckingExecution(execution: .passUnretained(self))
    let error = check()
    engine.checking = outer
    return stop == nil ? error : opStop ?? error
  }

  // MARK: Time

  /// The earliest deadline of the present code, also the one of the run's starter.
  var earliestLimit: Deadline {
    let own = earliestDeadline
    if isShielded { return own }
    return .earlier(own, Deadline(source: .starter, time: run.ownerDeadline))
  }

  /// When the present code has to end at the latest.
  var deadline: Int64 { earliestLimit.time }

  /// The deadline imposed by this run alone, ignoring the run's starter; for tasks that ops have
  /// left to the run, the deadline of the whole run.
  func ownDeadline(leftovers: Bool) -> Int64 {
    guard leftovers else { return earliestDeadline.time }
    // An op that runs alone has no leftovers before its own end.
    if isShielded || frames.isEmpty { return .max }
    return stops.deadline(of: .attempt(level: 0))
  }

  /// Stops a level whose attempt has timed out.
  func attemptTimedOut(_ level: Int) {
    guard let timeout = self[attempt: level].policy?.timeout else { return }
    let error = FlowError.timeout(after: timeout)
    request(
      .one(
        level,
        level < frames.count
          ? attributed(error, to: level)
          : error.attributed(to: context.displayName, at: context.path)))
  }

  /// Adds the op's place to the error of a timeout that stops more than the op.
  func locateStop(as error: FlowError) {
    guard let stop, stop.level < frames.count, stop.error.kind == .timeout, error.stopPlace != nil
    else { return }
    stops.replaceStop(
      Stop(level: stop.level, error: stop.error.located(as: error), inner: stop.inner))
  }

  /// Stops what ends at `deadline`, for a body that was busy; returns the error that the body ends
  /// with.
  func expire() -> FlowError {
    // The body ends by itself now.
    stopRequested = true
    if let opStop { return opStop }
    stopWhatIsDue(at: earliestLimit)
    return opStop ?? .cancelled()
  }

  /// Stops what ends at `deadline`, for a task of the op that was busy; returns the error that the
  /// task ends with.
  func expireTask() -> FlowError {
    stopWhatIsDue(at: earliestLimit)
    return (opStop ?? .cancelled()).asReason
  }

  /// Stops the levels whose time is over, for a busy task that an op has left; returns the error
  /// that the task ends with.
  func expireLeftover() -> FlowError {
    if isShielded { return .cancelled() }
    let run = Deadline(source: .attempt(level: 0), time: ownDeadline(leftovers: true))
    let starter = Deadline(source: .starter, time: self.run.ownerDeadline)
    stopWhatIsDue(at: .earlier(run, starter))
    return stop?.inner ?? .cancelled()
  }

  /// Stops the level, or the enclosing code, that ends at a deadline.
  private func stopWhatIsDue(at due: Deadline) {
    if due.time == .max { return }
    switch due.source {
    case .attempt(let level): attemptTimedOut(level)
    case .grace(let level):
      // If the code had waited, the enclosing timeout would have begun the grace.
      if let shield = shields.firstIndex(where: { $0.level == level && $0.graceEnd == nil }) {
        stopWhatIsDue(around: shield)
      }
      graceEnded(level)
    case .starter:
      let error = run.expire()
      // Starts with the outermost, so that the stop isn't a failure for the groups in between.
      var around = [self]
      while let group = around.last?.group { around.append(group.parent) }
      for execution in around.reversed() { execution.request(.everything(error)) }
    case .code:
      if let error = group?.tasksAround?.expire() { request(.everything(error.asReason)) }
    case .enclosing:
      // Members are stopped later, by their group.
      var outer = group?.parent
      while let next = outer, next.earliestDeadline.source == .enclosing {
        outer = next.group?.parent
      }
      guard let outer, outer.earliestDeadline.time <= due.time else { return }
      outer.stopWhatIsDue(at: outer.earliestDeadline)
      if let error = outer.stop?.inner { request(.everything(error)) }
    }
  }

  /// Calls the loop's `look`, and stops the levels whose time is over: a busy starter would not do
  /// it.
  @inline(never)
  func look(at time: Int64) {
    engine.look(at: time)
    guard stop == nil else { return }
    let due = earliestLimit
    if due.time <= time { stopWhatIsDue(at: due) }
  }

  /// Stops the code around a shield that ends first.
  func stopWhatIsDue(around shield: Int) {
    let due = earliestDeadline(around: shield)
    if shield > 0 || isShieldedAround {
      stopWhatIsDue(at: due)
    } else {
      stopWhatIsDue(at: .earlier(due, Deadline(source: .starter, time: run.ownerDeadline)))
    }
  }

  // MARK: The end of a loop

  /// Releases everything it holds and waits for, and returns the executions that it waited for.
  func abandon() -> [Execution] {
    let open = members
    child?.abandon()
    child = nil
    completion?.abandon()
    completion = nil
    stopTimer(of: opLevel)
    delay?.cancel()
    delay = nil
    for frame in frames { frame.attempt.limit?.end() }
    dropHolds()
    for shield in shields { shield.timer?.cancel() }
    frames = []
    context.resources?.owned?.abandon()
    for task in context.resources?.inner?.all ?? [] { (task as? InnerTask)?.abandon() }
    context.resources?.inner?.abandon()
    // The state may hold the context.
    (context.state as? any Abandonable)?.abandon()
    context.close()
    detachContext()
    return open
  }

  /// The executions that this one waits for.
  var members: [Execution] {
    if let child { return child.members }
    if let inner { return inner.all.compactMap { ($0 as? InnerTask)?.member } }
    return machine?.child?.execution.map { [$0] } ?? []
  }

  /// The ops that the op executes over its own data, if there are any.
  private var inner: OwnedTasks? { context.resources?.inner.flatMap { $0.isEmpty ? nil : $0 } }

  /// The machine of the op, while it executes.
  private var machine: MachineExecution? { context.state as? MachineExecution }

  /// Stops the waits of this execution itself as stalled, a wait for a stream only with `onStreams`; returns whether anything
  /// did.
  func failStalled(onStreams: Bool) -> Bool {
    if let child { return child.failStalled(onStreams: onStreams) }
    if let completion, !completion.isFinished {
      let isOfOp = opCursor.phase == .cleanups || opCursor.phase == .deciding
      let name = isOfOp ? context.displayName : frames.last?.flow.name
      let error = FlowError.stalled(op: name ?? op.name)
      completion.cancel(error)
      completion.finish(error)
      return true
    }
    if let hold = waitingHold {
      let name = queued?.name(in: log) ?? context.displayName
      let path = queued.map { run.path(scope: $0.scope, position: $0.position) } ?? context.path
      let error = hold.stalled(name).attributed(to: name, at: path)
      request(Stop(level: opLevel, error: error, inner: error))
      return true
    }
    if undecided != nil {
      // Nobody can answer the question of the keeper.
      let error = FlowError.stalled(op: context.displayName)
      request(Stop(level: opLevel, error: error, inner: error))
      return true
    }
    if machine?.waitsForRun == true || inner != nil, stop == nil { return false }
    if context.phase == .suspended {
      let stall = streamStall
      if stall != nil, !onStreams, stop == nil, !stopRequested { return false }
      let error = stall ?? .stalled(op: context.displayName)
      if stopRequested {
        context.end(opStop ?? error)
      } else if stop == nil {
        request(Stop(level: frames.count, error: error, inner: error))
      } else {
        stopBody()
      }
      return true
    }
    return false
  }
}

/// Ends the cleanups and final steps of a level of an execution when their time is over.
final class GraceLimit: LimitJob {
  private let execution: Execution
  private let level: Int

  init(_ execution: Execution, level: Int) {
    self.execution = execution
    self.level = level
  }

  func run() { execution.graceEnded(level) }
}

/// Has an execution continue.
final class WakeUp: LoopJob {
  private let execution: Execution
  private let reason: Execution.Resume

  init(_ execution: Execution, _ reason: Execution.Resume) {
    self.execution = execution
    self.reason = reason
  }

  func run() { execution.timerFired(reason) }
}

extension FlowError {
  /// Makes the error of a cleanup that was cut off.
  ///
  /// - Parameters:
  ///   - what: The cleanup, as the subject of a sentence.
  ///   - place: Where its code begins, if that is known.
  ///   - waits: The function that it waited in, and where, if that is known.
  ///   - isBusy: Whether it executed without waiting.
  ///   - grace: The time that it had.
  /// - Returns: The error.
  static func cut(
    _ what: ByteString, at place: ByteString?, waits: ByteString?, isBusy: Bool, grace: Duration
  ) -> FlowError {
    let place: ByteString = place.map { " at \($0)" } ?? ""
    let state: ByteString = waits.map { "waited in \($0)" } ?? (isBusy ? "was busy" : "waited")
    return FlowError(
      .error,
      """
      \(what)\(place) was cut after a grace of \(FlowValue.text(of: grace)), \
      while it \(state)
      """)
  }
}

/// An execution that waits for a function on the calling thread.
package struct CheckingExecution {
  // Unmanaged: it is on the stack.
  fileprivate let execution: Unmanaged<Execution>

  /// Its run.
  package var run: Run { execution.takeUnretainedValue().run }

  /// Why the function is to stop; nil when nothing stops it.
  package var stopError: FlowError? {
    let execution = execution.takeUnretainedValue()
    return execution.codeStop ?? execution.starterStop
  }

  /// When the function has to be stopped if it is busy, as `OpContext.deadline`.
  package var deadline: Int64 { execution.takeUnretainedValue().deadline }

  /// Reports that `deadline` has passed while the function was busy; returns the error to end with.
  package func expire() -> FlowError { execution.takeUnretainedValue().expireTask() }
}
