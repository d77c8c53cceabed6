// How a strand, and what it waits for, is stopped.
extension Strand {
  /// With what the op that executes has to end; nil when nothing stops it.
  var leafStop: FlowError? { stop?.error(at: frames.count) }

  /// Asks all that the strand does to stop because of `error`; the first error counts.
  func cancel(_ error: FlowError) { request(.everything(error)) }

  /// Stops what `new` is about, unless a stop further out, or an earlier one, does.
  func request(_ new: Stop) {
    // The outermost that keeps it away: one further in may hold a stop of its own meanwhile.
    if let shield = shields.firstIndex(where: { new.level <= $0.level }) {
      // It comes when what is shielded is done.
      if let held = shields[shield].held, held.level <= new.level { return }
      shields[shield].held = new
      beginGrace(shield)
      return
    }
    if let stop, stop.level <= new.level { return }
    stop = new
    ask()
  }

  /// Asks what the strand waits for to stop.
  private func ask() {
    guard let stop else { return }
    if let child {
      child.cancel(stop.inner)
    } else if completion != nil {
      askCallback()
    } else if let delay {
      delay.cancel()
      self.delay = nil
      wake(frames.last?.phase == .delay ? .frame : .leaf)
    } else if context.phase == .inBody, !isCleaningUp, let error = leafStop {
      context.op.body?.interrupt(context, error)
    } else {
      askBody()
    }
  }

  /// Asks a suspended body to stop, once.
  func askBody() {
    guard !isAsked, context.phase == .suspended, let error = leafStop else { return }
    isAsked = true
    context.op.body?.cancel(context, error)
  }

  func askCallback() {
    // One that runs now isn't asked before it waits.
    guard let stop, !isAsked, let completion, !completion.isFinished, !completion.isInCall else {
      return
    }
    isAsked = true
    completion.cancel(stop.inner)
  }

  /// With what code of the op has to end that waits where it can't be told; nil when nothing stops it.
  var codeStop: FlowError? {
    if let leafStop { return leafStop }
    // It has been cut, which is reported.
    if shields.last?.isOver == true { return .cancelled() }
    var around = isShielded ? nil : group?.parent
    while let outer = around {
      if let stop = outer.stop { return stop.inner }
      around = outer.isShielded ? nil : outer.group?.parent
    }
    return nil
  }

  /// The same of a callback or predicate of a flow.
  var callbackStop: FlowError? { codeStop?.asReason }

  /// With what the run has to end because what has started it does; nil when nothing stops that.
  var starterStop: FlowError? { isShielded ? nil : run.owner?.stopError }

  /// Checks what an op or flow declares. Functions of scripts may do that, which stop with the op.
  func checking(_ check: () -> FlowError?) -> FlowError? {
    let outer = loop.checking
    loop.checking = .passUnretained(self)
    let error = check()
    loop.checking = outer
    return stop == nil ? error : leafStop ?? error
  }

  // MARK: Time

  /// When the innermost of the timeouts around the present op is over.
  var deadline: Int64 { min(leafDeadline, deadlineAround) }

  /// When that of the flows around it is, or of what has started the run.
  var deadlineAround: Int64 {
    isShielded ? outerDeadline : min(outerDeadline, run.ownerDeadline)
  }

  /// The part of `deadline` that what has started the run has no part in; of what ops have left to the
  /// run that of the whole of it.
  func ownDeadline(leftovers: Bool) -> Int64 {
    guard leftovers else { return min(leafDeadline, outerDeadline) }
    return isShielded ? .max : frames.first?.deadline ?? .max
  }

  /// Called by the timer of a level.
  func timeIsUp(_ level: Int) {
    let policy = level < frames.count ? frames[level].policy : leafPolicy
    guard let seconds = policy?.timeout else { return }
    let error = FlowError.timeout(seconds: seconds)
    request(
      .one(
        level,
        level < frames.count
          ? attributed(error, to: level)
          : error.attributed(to: context.displayName, at: context.path)))
  }

  /// Has a timeout that stops more than the op say where the op was.
  func locateStop(as error: FlowError) {
    guard let stop, stop.level < frames.count, stop.error.kind == .timeout, error.place != nil
    else { return }
    self.stop = Stop(level: stop.level, error: stop.error.located(as: error), inner: stop.inner)
  }

  /// Stops what is over at `deadline`, for a body that was busy; answers what the body ends with.
  func expire() -> FlowError {
    // The body ends by itself now.
    isAsked = true
    if let leafStop { return leafStop }
    stopWhatIsDue(at: deadline)
    return leafStop ?? .cancelled()
  }

  /// Stops what is over at `deadline`, for a task of the op that was busy; answers why that ends.
  func expireTask() -> FlowError {
    stopWhatIsDue(at: deadline)
    return (leafStop ?? .cancelled()).asReason
  }

  /// Stops what is over for something busy that an op has left; answers why that ends.
  func expireLeftover() -> FlowError {
    if isShielded { return .cancelled() }
    stopWhatIsDue(at: min(ownDeadline(leftovers: true), run.ownerDeadline))
    return stop?.inner ?? .cancelled()
  }

  /// Stops what times out at `due`: the op, or what is around it.
  private func stopWhatIsDue(at due: Int64) {
    if leafDeadline == due {
      timeIsUp(frames.count)
    } else if let level = frames.firstIndex(where: { $0.deadline == due }) {
      timeIsUp(level)
    } else if let shield = shields.firstIndex(where: { $0.limit == due }) {
      // Had it waited, the timeout around would have begun the grace.
      if shields[shield].graceEnd == nil { stopWhatIsDueAround(shield) }
      graceIsOver(shields[shield].level)
    } else if run.ownerDeadline == due {
      let error = run.expire()
      // From the outside, so that it isn't a failure for the groups in between.
      var around = [self]
      while let group = around.last?.group { around.append(group.parent) }
      for strand in around.reversed() { strand.request(.everything(error)) }
    } else if var outer = group?.parent {
      // Members are asked later, by their group.
      while outer.inheritedDeadline == due, let next = outer.group?.parent { outer = next }
      if outer.leafDeadline == due || outer.frames.contains(where: { $0.deadline == due })
        || outer.shields.contains(where: { $0.limit == due })
      {
        outer.stopWhatIsDue(at: due)
        if let error = outer.stop?.inner { request(.everything(error)) }
      }
    }
  }

  /// Gives the loop its look, and stops what is over: of what is busy starting this, nothing else does.
  @inline(never)
  func look(at time: Int64) {
    guard loop.look(at: time), stop == nil else { return }
    let due = deadlineAround
    if due <= time, due != .max { stopWhatIsDue(at: due) }
  }

  /// Stops what times out around a shield.
  func stopWhatIsDueAround(_ index: Int) {
    let around = shields[index].deadlineAround
    stopWhatIsDue(at: index > 0 || isShieldedAround ? around : min(around, run.ownerDeadline))
  }

  // MARK: The end of a loop

  /// Lets go of all it holds and waits for, and hands over the strands that it waited for.
  func abandon() -> [Strand] {
    let open = members
    child?.abandon()
    child = nil
    completion?.abandon()
    completion = nil
    leafTimer?.cancel()
    leafTimer = nil
    delay?.cancel()
    delay = nil
    for frame in frames { frame.timer?.cancel() }
    if isShielded { for shield in shields { shield.timer?.cancel() } }
    frames = []
    context.extras?.owned?.abandon()
    for task in context.extras?.inner?.all ?? [] { (task as? InnerTask)?.abandon() }
    context.extras?.inner?.abandon()
    machine?.abandon()
    // What a body keeps there may hold the context.
    context.close()
    detachContext()
    return open
  }

  /// The strands that this one waits for.
  var members: [Strand] {
    if let child { return child.members }
    if let inner { return inner.all.compactMap { ($0 as? InnerTask)?.member } }
    return machine?.child?.strand.map { [$0] } ?? []
  }

  /// The ops that the op executes over its own data, while there are some.
  private var inner: OwnedTasks? { context.extras?.inner.flatMap { $0.isEmpty ? nil : $0 } }

  /// The machine that the op is, while it executes.
  private var machine: MachineExecution? { context.state as? MachineExecution }

  /// Stops what waits in this strand itself as stalled; answers whether anything did.
  func failStalled() -> Bool {
    if let child { return child.failStalled() }
    if let completion, !completion.isFinished {
      let isOfOp = leafPhase == .cleanups || leafPhase == .deciding
      let name = isOfOp ? context.displayName : frames.last?.flow.name
      let error = FlowError.stalled(op: name ?? op.name)
      completion.cancel(error)
      completion.finish(error)
      return true
    }
    if machine?.waitsForRun == true || inner != nil, stop == nil { return false }
    if context.phase == .suspended {
      let error = FlowError.stalled(op: context.displayName)
      if isAsked {
        context.end(leafStop ?? error)
      } else if stop == nil {
        request(Stop(level: frames.count, error: error, inner: error))
      } else {
        askBody()
      }
      return true
    }
    return false
  }
}
