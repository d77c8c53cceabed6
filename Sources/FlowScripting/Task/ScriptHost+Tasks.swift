@_spi(Scripting) internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// Tasks of every kind as scripts see them, runs included, and what they belong to.
extension ScriptHost {
  /// Runs a function as a task, immediately up to its first wait.
  func spawn(
    _ function: consuming LuaUniqueReference, _ arguments: [LuaValue], origin: UInt64 = 0
  ) -> AnyFlowTask {
    let task = SpawnedTask(self, function, arguments)
    begin(task, origin)
    task.begin()
    return task
  }

  /// Records the place where a new task is made, and its owner.
  func begin(_ task: AnyFlowTask, _ origin: UInt64) {
    task.origin = origin
    task.count(AnyFlowTask.usualSize)
    adopt(task)
  }

  /// Runs a function as a task of a run; of none once that has ended.
  func spawn(
    for run: Run?, _ function: consuming LuaUniqueReference, _ arguments: [LuaValue], origin: UInt64
  ) -> AnyFlowTask {
    let outer = current
    current = Current(run: run.map { .passUnretained($0) })
    defer { current = outer }
    return spawn(function, arguments, origin: origin)
  }

  /// The error in an argument: an error table unchanged, any other value as the cause of a new one.
  func error(_ arguments: Arguments, _ index: Int) throws -> FlowError {
    let value = try arguments.call.value(arguments.place(index))
    if case .nil = value { throw arguments.wrong(index, expected: "an error, any value but nil,") }
    return try flowError(raised: value, at: arguments.call.position)
  }

  /// The task or run in an argument.
  func task(_ call: LuaCall, _ index: Int) -> AnyFlowTask? {
    call.object(index, types.run) ?? call.object(index, types.task)
  }

  /// The task or run on which a method is called.
  func task(_ call: LuaDirectCall) -> AnyFlowTask? {
    call.object(types.task) ?? call.object(types.run)
  }

  /// The task or run in a value.
  func task(in value: LuaValue) -> AnyFlowTask? {
    vm.object(in: value, types.run) ?? vm.object(in: value, types.task)
  }

  /// The task or run on which a method is called, and the arguments of the call.
  func task(
    _ call: LuaCall, _ function: String, _ kind: String
  ) throws -> (AnyFlowTask, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let task = task(call, 1) else { throw arguments.wrongSelf(kind) }
    if mayLackOutcomes { try needOutcome(of: task, call) }
    return (task, arguments)
  }

  /// A task as scripts see it.
  func value(of task: AnyFlowTask) throws -> LuaValue {
    if let run = task as? Run { return try vm.value(of: run, types.run) }
    return try vm.value(of: task, types.task)
  }

  /// The result of a task that succeeded; nil for another.
  func luaResult(of task: AnyFlowTask) throws -> LuaValue {
    guard task.state == .succeeded else { return .nil }
    if task.isOfValues { return try luaValue(task.resultValue ?? .null) }
    switch task {
    case let run as Run:
      if let value = run.plainFinishValue { return try luaValue(value) }
      return .reference(try dataView(of: run))
    case let program as ProcessTask:
      if let kept = program.attachment as? LuaReference { return .reference(kept) }
      guard let result = program.result else { return .nil }
      let table = try vm.makeTable(fields: result.luaFields)
      program.attachment = table
      return .reference(table)
    case let request as HTTPTask:
      return try request.result.map { try HTTPBindings(host: self).value(of: $0) } ?? .nil
    default: return .nil
    }
  }

  /// The result as an engine value.
  func result(of task: AnyFlowTask) throws -> FlowValue {
    if task.isOfValues { return task.resultValue ?? .null }
    return FlowValue(try luaResult(of: task))
  }

  /// The error of a task with its one table for scripts.
  func error(of task: AnyFlowTask) throws -> FlowError? {
    guard let error = task.error, error.payload == nil else { return task.error }
    if let kept = task.attachment as? FlowError { return kept }
    let owned = error.with(payload: try makeError(error), on: loop)
    task.attachment = owned
    return owned
  }

  /// The task whose code is running, which can't end before its waits; nil in the main chunk.
  var waitingTask: AnyFlowTask? { currentTask ?? currentOp?.run ?? currentRun }

  /// The run around the running code that nothing of another run has started; nil outside of runs.
  var outermostRun: AnyFlowTask? {
    if let currentTask { return currentTask.tasksAround?.outermostRun }
    return (currentOp?.run ?? currentRun)?.outermostOwner
  }

  /// The tasks that the running code belongs to: the runs around it, the outermost first, and its own one.
  var tasksOfCode: [AnyFlowTask] {
    guard let innermost = waitingTask else { return [] }
    return (innermost.owner?.runs ?? []) + [innermost]
  }

  /// Refuses a wait for a task that waits for the waiter: a stall that is known at once.
  func checkWait(for task: AnyFlowTask) throws {
    guard let waitingTask, WaitCycle.isClosed(by: waitingTask, awaiting: task) else { return }
    guard currentTask == nil, let currentOp else {
      throw raise(withTable(.waitsForItself(waitingTask), of: nil))
    }
    // As with every stall, the op's handling of the error doesn't count.
    let error = withTable(.stalled(op: currentOp.displayName), of: currentOp)
    currentOp.fail(error)
    throw raise(error)
  }

  /// The error of a settled task, to pass on: the same table wherever scripts see it.
  func outcomeError(of task: AnyFlowTask) -> FlowError? {
    (try? error(of: task)) ?? task.error
  }

  /// `adopt`, which also sets the options of the run that is about to begin.
  func adopter(_ options: RunOptions?) throws -> (Run) -> Void {
    guard let options else { return adopt }
    let keeping = options.keeps ? try keepingOfScript() : nil
    return { [unowned self] run in
      if let limit = options.logLimit { run.logLimit = limit }
      keeping?.keep(run)
      adopt(run)
    }
  }

  /// Makes a task belong to the task, op, callback or session chunk that starts it, if there is
  /// one.
  func adopt(_ task: AnyFlowTask) {
    if let currentTask {
      if currentOp == nil, let run = task as? Run { run.taskContext = currentTask.taskContext }
      currentTask.adopt(task)
    } else if let currentOp {
      currentOp.adopt(task)
    } else if let currentRun {
      currentRun.adopt(task)
    } else {
      chunkTasks?.add(task)
    }
  }

  /// The live context of a handle, on any loop; nil if its op has finished.
  func context(slot: UInt32, generation: UInt64) -> OpContext? {
    if let context = loop.context(slot: slot, generation: generation) { return context }
    for outer in waitingLoops.reversed() {
      if let context = outer.context(slot: slot, generation: generation) { return context }
    }
    return nil
  }

  /// Returns a run once it has settled.
  func waitAndAnswer(_ call: LuaCall, _ run: Run) throws -> LuaAnswer {
    if run.isConcluded { return call.answer(run, types.run) }
    try checkWait(for: run)
    let value = try vm.value(of: run, types.run)
    return try call.wait(TaskWait(run, for: waitingTask, deadline: nil) { $0.answer(value) })
  }
}
