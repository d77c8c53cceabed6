@_spi(Scripting) internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// The methods and fields of every task, runs included.
extension ScriptHost {
  /// The methods that a kind of task shares with all others.
  ///
  /// - Parameter kind: Its name in messages.
  /// - Returns: The methods, by name.
  static func taskMethods(of kind: String) -> LuaFields<BoundMethod> {
    let methods: LuaFields<BoundMethod> = [
      "await": BoundMethod(
        direct: { host, call in
          guard !call.hasArgument, let task = host.task(call), task.isConcluded,
            let result = task.resultValue
          else { return call.pass() }
          task.markObserved()
          return call.answer(copyOf: result)
        }
      ) { host, call in
        let (task, arguments) = try host.task(call, "await", kind)
        let limit = try TimedWaits.limit(arguments)
        task.markObserved()
        if task.isConcluded { return try host.outcome(call, task) }
        try host.checkLoop(of: task, call)
        if let limit { return try call.wait(StoppingWait(host, task, limit)) }
        try host.checkWait(for: task)
        return try call.wait(
          TaskWait(task, for: host.waitingTask, deadline: nil) { [unowned host] in
            try host.outcome($0, task)
          })
      },
      "wait": BoundMethod { host, call in
        let (task, arguments) = try host.task(call, "wait", kind)
        let deadline =
          arguments.isNil(1) ? nil : host.loop.deadline(after: try arguments.duration(1))
        if task.isConcluded { return call.answer(.boolean(true)) }
        try host.checkLoop(of: task, call)
        if deadline == nil { try host.checkWait(for: task) }
        return try call.wait(
          TaskWait(task, for: deadline == nil ? host.waitingTask : nil, deadline: deadline) {
            $0.answer(.boolean(task.isConcluded))
          })
      },
      "cancel": BoundMethod { host, call in
        let (task, arguments) = try host.task(call, "cancel", kind)
        let reason = arguments.isNil(1) ? nil : try arguments.string(1)
        return call.answer(.boolean(task.cancel(reason: reason)))
      },
    ]
    return methods + continuationMethods(of: kind)
  }

  /// `local t <close> = …`: the end of the scope cancels the task and waits for it.
  static func taskMetamethods(of kind: String) -> LuaFields<BoundMethod> {
    describingMetamethods + [
      "__close": BoundMethod { host, call in
        guard let task = host.task(call, 1) else {
          throw Arguments(host, call, method: "__close").wrongSelf(kind)
        }
        task.cancel()
        if task.isConcluded { return call.answer() }
        try host.checkLoop(of: task, call)
        return try call.wait(TaskWait(task, for: host.waitingTask, deadline: nil) { $0.answer() })
      }
    ]
  }

  /// The fields of a task that isn't a run.
  static func taskProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let (task, _) = try host.task(call, "__index", "task")
    if call.bytes(2) == "index", let index = (task as? JoinTask<FlowValue>)?.firstIndex {
      return call.answer(.integer(Int64(index) + 1))
    }
    if let program = task as? ProcessTask, let field = try host.programField(call, program) {
      return field
    }
    if let field = try host.taskField(call, task) { return field }
    if task is HTTPTask, let name = call.bytes(2)?.description,
      (responseFields + responseMethods.names).contains(name)
    {
      throw host.usage(call, "'\(name)' is of the response: await the request first")
    }
    var known = taskFields + taskMethods(of: "task").names
    if task is ProcessTask {
      known += programFields + (try host.programs().methods.keys.map(\.description).sorted())
    }
    return try host.absentField(call, of: "a task", known: known)
  }

  private static let taskFields: [String] = [
    "completed", "cancelled", "state", "faulted", "error", "result",
  ]

  /// A field that every task has; nil for another name.
  func taskField(_ call: LuaCall, _ task: AnyFlowTask) throws -> LuaAnswer? {
    switch call.bytes(2).cases {
    case "completed": return call.answer(.boolean(task.state != .pending))
    case "cancelled": return call.answer(.boolean(task.state == .cancelled))
    case "state":
      task.markObserved()
      return try answer(call, .bytes(task.state.name))
    case "faulted":
      task.markObserved()
      return call.answer(.boolean(task.state == .failed))
    case "error":
      task.markObserved()
      guard let error = try error(of: task) else { return call.answer(.nil) }
      return call.answer(try luaError(error))
    case "result":
      task.markObserved()
      return call.answer(try luaResult(of: task))
    default: return nil
    }
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

  func task(
    _ call: LuaCall, _ function: String, _ kind: String
  ) throws -> (AnyFlowTask, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let task = task(call, 1) else { throw arguments.wrongSelf(kind) }
    if mayLackOutcomes { try needOutcome(of: task, call) }
    return (task, arguments)
  }

  /// Returns the result of a settled task, or raises its error.
  func outcome(_ call: LuaCall, _ task: AnyFlowTask) throws -> LuaAnswer {
    if let error = try error(of: task) { throw raise(error) }
    return call.answer(try luaResult(of: task))
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
      let table = try vm.makeTable(fields: fields(of: result))
      program.attachment = table
      return .reference(table)
    case let request as HTTPTask: return try request.result.map { try value(of: $0) } ?? .nil
    default: return .nil
    }
  }

  /// The same as an engine value.
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
}

extension ScriptHost {
  /// The task whose code is running, which can't end before its waits; nil in the main chunk.
  var waitingTask: AnyFlowTask? { currentTask ?? currentOp?.run ?? currentRun }

  /// Raises an error if a task belongs to a paused loop: waiting for it would never end.
  fileprivate func checkLoop(of task: AnyFlowTask, _ call: LuaCall) throws {
    guard task.foreignError(on: loop) != nil else { return }
    throw usage(
      call,
      "attempt to wait for '\(task.title)', which is paused: it wasn't started in the current "
        + "testing.run")
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
}

/// The methods of the result of `flow.context()`.
extension ScriptHost {
  static var taskContextMethods: LuaFields<BoundMethod> {
    [
      "set_result": settling(
        "set_result", isTry: false,
        direct: { host, call in
          guard let context = call.object(host.types.taskContext), call.hasValue,
            context.trySetValue(FlowValue(call.value))
          else { return call.pass() }
          return call.answer()
        }
      ) { host, context, arguments in
        context.trySetResult(FlowValue(try arguments.call.value(2)))
      },
      "try_set_result": settling("try_set_result", isTry: true) { host, context, arguments in
        context.trySetResult(FlowValue(try arguments.call.value(2)))
      },
      "set_error": settling("set_error", isTry: false) { host, context, arguments in
        context.trySetError(try host.error(arguments, 1))
      },
      "try_set_error": settling("try_set_error", isTry: true) { host, context, arguments in
        context.trySetError(try host.error(arguments, 1))
      },
      "cancel": settling("cancel", isTry: false) { _, context, _ in context.tryCancel() },
      "try_cancel": settling("try_cancel", isTry: true) { _, context, _ in context.tryCancel() },
    ]
  }

  private static func settling(
    _ name: String, isTry: Bool, direct: BoundDirectFunction? = nil,
    _ settle: @escaping (ScriptHost, FlowContext<FlowValue>, Arguments) throws -> Bool
  ) -> BoundMethod {
    BoundMethod(direct: direct) { host, call in
      let arguments = Arguments(host, call, method: name)
      guard let context = call.object(1, host.types.taskContext) else {
        throw arguments.wrongSelf("context")
      }
      let isFirst = try settle(host, context, arguments)
      if isTry { return call.answer(.boolean(isFirst)) }
      if !isFirst {
        throw host.usage(call, FlowContext<FlowValue>.settledMessage.description)
      }
      return call.answer()
    }
  }

  static func taskContextProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let context = call.object(1, host.types.taskContext) else {
      throw Arguments(host, call, method: "__index").wrongSelf("context")
    }
    guard call.bytes(2) == "task" else { return call.answer(.nil) }
    return call.answer(context.task, host.types.task)
  }
}
