// The flows that a strand is in, one frame each.
extension Strand {
  func enter(_ flow: Flow, scope: UInt32, position: UInt32) {
    let time = loop.takeStamp()
    let isTop = group == nil && frames.isEmpty
    let blueprint = run.snapshot?.blueprint(of: flow) ?? flow.blueprint
    var inner = scope
    if !isTop {
      log.append(.start, time: time, scope: scope, position: position)
      inner = log.addScope(
        LogScope(
          parent: scope, position: position, attempt: 1, kind: .flow, op: flow,
          blueprint: blueprint))
      for (name, value) in blueprint.data {
        let key = loop.keys.intern(name)
        if !bucket.has(key) {
          store(key, value, scope: scope, position: position, attempt: 1)
        }
      }
    }
    frames.append(
      Frame(
        flow: flow, blueprint: blueprint, scope: inner, outerScope: scope, position: position,
        began: time))
  }

  /// Moves the innermost flow on.
  func advance() -> Progress {
    let top = frames.count - 1
    switch frames[top].phase {
    case .willStart:
      guard call(frames[top].blueprint.willStart) else { return .waiting }
      frames[top].error = frames[top].error ?? startError()
      frames[top].callback = 0
      frames[top].phase = frames[top].error == nil ? .steps : .finish
    case .steps:
      if let error = lastError ?? cancellation {
        lastError = nil
        frames[top].error = error
        frames[top].phase = .finish
        return .moved
      }
      return runSteps(top)
    case .finish:
      finish(top)
      frames[top].phase = .didFinish
    case .didFinish:
      guard call(frames[top].blueprint.didFinish) else { return .waiting }
      lastError = frames.removeLast().error
    }
    return .moved
  }

  /// Runs the steps of the innermost flow, one after another, until one waits, fails or is a frame.
  func runSteps(_ top: Int) -> Progress {
    let blueprint = frames[top].blueprint
    let scope = frames[top].scope
    let count = blueprint.steps.count
    var next = frames[top].next
    while next < count {
      let step = blueprint.steps[next]
      let position = UInt32(truncatingIfNeeded: next)
      next += 1
      if step.dispatcher == nil, !step.op.isFlow {
        switch execute(step.op, scope: scope, position: position, index: 0) {
        case .ended where lastError == nil && cancellation == nil: continue
        case .waiting:
          frames[top].next = next
          return .waiting
        default:
          frames[top].next = next
          return .moved
        }
      }
      frames[top].next = next
      if let dispatcher = step.dispatcher {
        enterGroup(step.op, dispatcher, scope: scope, position: position)
        return .waiting
      }
      return launch(step.op, scope: scope, position: position, index: 0)
    }
    frames[top].next = next
    frames[top].phase = .finish
    return .moved
  }

  /// What keeps the innermost flow from running its first step.
  func startError() -> FlowError? {
    let frame = frames[frames.count - 1]
    if let cancellation { return cancellation }
    if frames.count == 1, group == nil, let circular = run.snapshot?.circular {
      return .usage("flow '\(circular.name)' contains itself")
    }
    guard let error = frame.blueprint.declarations.inputError(in: bucket) else { return nil }
    // The one DidFinish that a flow at the top logs.
    if frames.count == 1, group == nil { logFinish(frame, error, time: loop.now()) }
    return error.attributed(to: frame.flow.name)
  }

  func finish(_ top: Int) {
    let frame = frames[top]
    let isMember = top == 0 && group != nil
    var error = cancellation ?? frame.error
    if error == nil {
      error = frame.blueprint.declarations.outputError(in: bucket)
      if error == nil, isMember { error = group?.collectError(in: bucket) }
      error = error?.attributed(to: frame.flow.name)
    }
    frames[top].error = error
    if top == 0, group == nil {
      run.settle(error)
      return
    }
    let time = loop.now()
    loop.stamp = time
    logFinish(frame, error, time: time)
    if let error, isMember { group?.memberFailed(error) }
  }

  func logFinish(_ frame: Frame, _ error: FlowError?, time: Int64) {
    log.append(
      .finish, time: time, scope: frame.outerScope, position: frame.position,
      first: error.map { log.payload($0.logLine) } ?? .none,
      second: .integer(time - frame.began))
  }

  func enterGroup(_ op: Op, _ dispatcher: GroupDispatcher, scope: UInt32, position: UInt32) {
    let made = GroupExecution(
      op, dispatcher, parent: self, scope: scope, position: position)
    child = made
    loop.push(made)
  }

  /// Called by the group of this strand when all its members have ended.
  func groupEnded(_ error: FlowError?) {
    child = nil
    lastError = error
    resume = .group
    loop.push(self)
  }
}
