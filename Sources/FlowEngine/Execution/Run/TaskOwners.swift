extension OpContext: TaskOwner {
  var taskDeadline: Int64 { execution?.ownDeadline(leftovers: false) ?? .max }

  var taskStopError: FlowError? { execution?.tasksStop }

  var enclosingTasks: OwnedTasks? { execution?.enclosingTasks }

  /// Stops the levels whose time is over, for a busy task of the op; returns the error that the
  /// task ends with.
  func expireTask() -> FlowError? {
    guard let execution else { return .cancelled() }
    execution.loop.checkThread()
    return execution.expireTask()
  }

  func failOwner(_ error: FlowError) { execution?.failEverything(error) }

  func holds(_ limit: Limit) -> Bool { execution?.holdsWithin(limit) == true }

  var tasksAround: OwnedTasks? { execution?.run.owner }

  var attemptLimits: [any PausableLimit] { execution?.limitsWithinRun ?? [] }

  var owningRun: AnyFlowTask? { execution?.run }
}

extension Run: TaskOwner {
  var taskDeadline: Int64 { execution?.ownDeadline(leftovers: true) ?? .max }

  var taskStopError: FlowError? { execution?.tasksStop }

  var enclosingTasks: OwnedTasks? { execution?.enclosingTasks }

  /// Stops the levels whose time is over, for a busy task of the run; returns the error that the
  /// task ends with.
  func expireTask() -> FlowError? { execution?.expireLeftover() }

  func failOwner(_ error: FlowError) { execution?.failEverything(error) }

  func holds(_ limit: Limit) -> Bool { execution?.flowsHold(limit) == true }

  var tasksAround: OwnedTasks? { owner }

  var attemptLimits: [any PausableLimit] { execution?.limitsWithinRun ?? [] }

  var owningRun: AnyFlowTask? { self }

  /// The run around this one, or this one, that nothing of another run has started: neither an op nor a callback nor
  /// a task.
  package var outermostOwner: AnyFlowTask { owner?.outermostRun ?? self }
}

extension OpContext {
  /// Whether the op, or anything around it, holds a limit.
  package func isHeld(_ limit: Limit) -> Bool { execution?.isHeldAround(limit) == true }
}

extension Run {
  /// Whether the run, or anything around it, holds a limit while one of its callbacks is called.
  package func isHeld(_ limit: Limit) -> Bool { execution?.isHeldAround(limit) == true }
}

extension Execution {
  /// Why tasks of the executing op are to stop.
  fileprivate var tasksStop: FlowError? { opStop ?? stop?.inner }

  fileprivate var enclosingTasks: OwnedTasks? { isShielded ? nil : run.owner }
}
