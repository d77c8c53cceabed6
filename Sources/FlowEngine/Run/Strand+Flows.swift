// The flows that a strand is in, one frame each.
extension Strand {
  func enter(_ flow: Flow, policy: OpPolicy?, scope: UInt32, position: UInt32) {
    let time = loop.takeStamp()
    if time >= loop.nextLook { look(at: time) }
    // An empty flow counts into the loop's turn, too.
    _ = loop.nextGeneration()
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
          parent: scope, position: position, attempt: 1, kind: .flow, op: flow,
          blueprint: blueprint))
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
    if let error { frames[frames.count - 1].error = error }
    if policy?.timeout != nil { startTimer(frames.count - 1) }
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

  private func startTimer(_ top: Int) {
    guard let timeout = frames[top].policy?.timeout else { return }
    let deadline = loop.deadline(after: timeout)
    frames[top].deadline = deadline
    frames[top].timer = loop.schedule(at: deadline, LevelLimit(.timeout, self, level: top))
    frames[top].deadlineAround = outerDeadline
    outerDeadline = min(outerDeadline, deadline)
  }

  private func cancelTimer(_ top: Int) {
    guard let timer = frames[top].timer else { return }
    timer.cancel()
    frames[top].timer = nil
    frames[top].deadline = .max
    outerDeadline = frames[top].deadlineAround
    // The grace may have begun meanwhile.
    if isShielded, let end = shields.last?.graceEnd { outerDeadline = min(outerDeadline, end) }
  }

  /// Moves the innermost flow on.
  func advance() -> Progress {
    let top = frames.count - 1
    switch frames[top].phase {
    case .willStart:
      guard call(frames[top].blueprint.willStart) else { return .waiting }
      frames[top].error = stop?.error(at: top) ?? frames[top].error ?? startError()
      frames[top].callback = 0
      if frames[top].error == nil {
        frames[top].phase = .steps
      } else {
        // No step has begun, so there is nothing to end, nor to try again.
        cancelTimer(top)
        if let stop, stop.level >= top { self.stop = nil }
        frames[top].phase = .leftovers
      }
    case .steps:
      if lastError != nil || stop != nil {
        frames[top].error = stop?.error(at: top) ?? lastError
        lastError = nil
        enterFinally(top)
        return .moved
      }
      return frames[top].block < 0 ? runSteps(top) : decide(top)
    case .finally: return runFinally(top)
    case .attemptEnd: return endAttempt(top)
    case .deciding: return continueDeciding(top)
    case .delay:
      if stop == nil {
        beginAttempt(top)
      } else {
        frames[top].phase = .leftovers
      }
    case .leftovers:
      if top == 0, group == nil, !endLeftovers() { return .waiting }
      frames[top].phase = .finish
    case .finish:
      finish(top)
      frames[top].callback = 0
      frames[top].phase = .didFinish
    case .didFinish:
      let callbacks = frames[top].blueprint.didFinish
      if !callbacks.isEmpty {
        beginLastCallbacks(top)
        guard call(callbacks) else { return .waiting }
        endShield()
      }
      lastError = frames.removeLast().error
    }
    return .moved
  }

  /// Runs the steps of the innermost flow, one after another, until one waits, fails or is a frame.
  func runSteps(_ top: Int) -> Progress {
    let blueprint = frames[top].blueprint
    let steps = blueprint.steps
    let scope = frames[top].scope
    let end = frames[top].end
    var next = frames[top].next
    let replaces = loop.replacements != nil
    while next < end {
      let place = next
      let position = UInt32(truncatingIfNeeded: place)
      next += 1
      if steps[place].isPlain, !replaces {
        // Unretained, and without a copy of the step. Safe: the list holds the op.
        let op = Unmanaged.passUnretained(steps[place].op)
        let progress = op._withUnsafeGuaranteedRef {
          execute($0, policy: nil, scope: scope, position: position, index: 0)
        }
        switch progress {
        case .ended where lastError == nil && stop == nil && !loop.isTurnOver: continue
        case .waiting:
          frames[top].next = next
          return .waiting
        default:
          frames[top].next = next
          return .moved
        }
      }
      frames[top].next = next
      return begin(steps[place], scope: scope, position: position, top)
    }
    frames[top].next = next
    if frames[top].joint >= 0 {
      frames[top].next = frames[top].joint
      frames[top].joint = -1
      frames[top].end = blueprint.steps.count
    } else {
      enterFinally(top)
    }
    return .moved
  }

  /// Begins a step that isn't just an op.
  private func begin(_ step: Step, scope: UInt32, position: UInt32, _ top: Int) -> Progress {
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
      let first = frames[top].next
      frames[top].next = first + count
      enter(
        ParallelExecution(
          frames[top].blueprint.steps[first..<first + count], parent: self, scope: scope,
          position: position))
      return .waiting
    case .cases(let block):
      // The step stays the present one until a branch is taken.
      frames[top].next = Int(position)
      frames[top].block = block
      frames[top].branch = 0
      return decide(top)
    }
  }

  private func enter(_ group: MemberGroup) {
    child = group
    loop.push(group)
  }

  // MARK: The end of an attempt

  private func enterFinally(_ top: Int) {
    frames[top].block = -1
    frames[top].phase = .finally
    if stop != nil { frames[top].isStopped = true }
  }

  /// Runs the steps that are executed whatever happened, which nothing stops.
  private func runFinally(_ top: Int) -> Progress {
    let steps = frames[top].blueprint.finally
    if shields.last?.level != top {
      cancelTimer(top)
      if steps.isEmpty {
        frames[top].phase = .attemptEnd
        return .moved
      }
      beginShield(top)
      frames[top].next = 0
    }
    if let error = lastError {
      lastError = nil
      if frames[top].error == nil { frames[top].error = error }
    }
    guard frames[top].next < steps.count else {
      frames[top].phase = .attemptEnd
      endShield()
      return .moved
    }
    let next = frames[top].next
    frames[top].next = next + 1
    let position = UInt32(truncatingIfNeeded: next) | Blueprint.finallyBit
    let progress = launch(
      steps[next].op, policy: steps[next].policy, scope: frames[top].scope, position: position,
      index: 0)
    if progress != .ended { cutFinalStepIfOverdue(top) }
    return progress
  }

  private func endAttempt(_ top: Int) -> Progress {
    cancelTimer(top)
    if let error = stop?.error(at: top) {
      frames[top].error = error
      frames[top].isStopped = true
    }
    // What has stopped this flow alone is over with it.
    if let stop, stop.level >= top { self.stop = nil }
    if frames[top].error == nil, !frames[top].isFinishedEarly {
      var error = checking { frames[top].blueprint.declarations.outputError(in: bucket) }
      if error == nil, top == 0 { error = group?.collectError(in: bucket) }
      frames[top].error = error.map { attributed($0, to: top) }
    }
    let frame = frames[top]
    frames[top].phase = .leftovers
    if let error = frame.error, beginDecision(frame.policy?.retry, attempt: frame.attempt, error) {
      frames[top].phase = .deciding
    }
    return .moved
  }

  /// Decides whether there is another attempt at the innermost flow, as far as it can without a wait.
  private func continueDeciding(_ top: Int) -> Progress {
    guard let answer = decide() else { return .waiting }
    frames[top].phase = .leftovers
    if stop != nil { return .moved }
    let frame = frames[top]
    switch answer {
    case .end: break
    case .fail(let error): frames[top].error = attributed(error, to: top)
    case .again(let seconds):
      guard let error = frame.error, let policy = frame.policy?.retry else { break }
      delay = beginDelay(
        seconds, of: policy.attempts, attempt: frame.attempt, error, scope: frame.outerScope,
        position: frame.position, .frame)
      frames[top].phase = .delay
      return .waiting
    }
    return .moved
  }

  /// Begins the next attempt at the innermost flow.
  private func beginAttempt(_ top: Int) {
    frames[top].attempt += 1
    frames[top].rewind()
    let frame = frames[top]
    frames[top].scope = log.addScope(
      LogScope(
        parent: frame.outerScope, position: frame.position,
        attempt: UInt32(truncatingIfNeeded: frame.attempt), kind: .flow, op: frame.flow,
        blueprint: frame.blueprint))
    frames[top].phase = .steps
    startTimer(top)
  }

  /// What keeps the innermost flow from running its first step.
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

  /// An error as one of the flow at a level, when it isn't known yet where it happened.
  func attributed(_ error: FlowError, to level: Int) -> FlowError {
    error.attributed(to: frames[level].flow.name, at: path(of: level))
  }

  /// Where the flow at a level stands.
  func path(of level: Int) -> ByteString {
    run.path(scope: frames[level].outerScope, position: frames[level].position)
  }

  func finish(_ top: Int) {
    if let error = stop?.error(at: top) { frames[top].error = error }
    let frame = frames[top]
    if top == 0, group == nil {
      if frame.isFinishedEarly, frame.error == nil { run.noteFinishedEarly() }
      run.settle(frame.error)
      return
    }
    let time = loop.now()
    loop.stamp = time
    logFinish(frame, frame.error, time: time)
    if let error = frame.error, top == 0 { group?.memberFailed(error) }
  }

  func logFinish(_ frame: Frame, _ error: FlowError?, time: Int64) {
    log.append(
      .finish, time: time, scope: frame.outerScope, position: frame.position,
      attempt: frame.attempt, first: error.map { log.payload($0.logLine) } ?? .none,
      second: .integer(time - frame.began))
  }

  /// Called by the group of this strand when all its members have ended.
  func groupEnded(_ error: FlowError?) {
    child = nil
    lastError = error
    resume = .group
    loop.push(self)
  }
}
