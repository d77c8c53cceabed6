@_spi(Scripting) internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// The methods and fields of every task, runs included.
struct TaskBindings {
  let host: ScriptHost

  /// The methods that a kind of task shares with all others.
  ///
  /// - Parameter kind: Its name in messages.
  /// - Returns: The methods, by name.
  static func methods(of kind: String) -> LuaFields<BoundMethod> {
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
        if task.isConcluded { return try Self(host: host).outcome(call, task) }
        try Self(host: host).checkLoop(of: task, call)
        if let limit { return try call.wait(StoppingWait(host, task, limit)) }
        try host.checkWait(for: task)
        return try call.wait(
          TaskWait(task, for: host.waitingTask, deadline: nil) { [unowned host] in
            try Self(host: host).outcome($0, task)
          })
      },
      "wait": BoundMethod { host, call in
        let (task, arguments) = try host.task(call, "wait", kind)
        let deadline =
          arguments.isNil(1) ? nil : host.loop.deadline(after: try arguments.duration(1))
        if task.isConcluded { return call.answer(.boolean(true)) }
        try Self(host: host).checkLoop(of: task, call)
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
    return methods + ContinuationBindings.methods(of: kind)
  }

  /// `local t <close> = …`: the end of the scope cancels the task and waits for it.
  static func metamethods(of kind: String) -> LuaFields<BoundMethod> {
    ScriptHost.describingMetamethods + [
      "__close": BoundMethod { host, call in
        guard let task = host.task(call, 1) else {
          throw Arguments(host, call, method: "__close").wrongSelf(kind)
        }
        task.cancel()
        if task.isConcluded { return call.answer() }
        try Self(host: host).checkLoop(of: task, call)
        return try call.wait(TaskWait(task, for: host.waitingTask, deadline: nil) { $0.answer() })
      }
    ]
  }

  /// The fields of a task that isn't a run.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let (task, _) = try host.task(call, "__index", "task")
    if call.bytes(2) == "index", let index = (task as? JoinTask<FlowValue>)?.firstIndex {
      return call.answer(.integer(Int64(index) + 1))
    }
    if let program = task as? ProcessTask,
      let field = try ExecBindings(host: host).programField(call, program)
    {
      return field
    }
    if let field = try Self(host: host).taskField(call, task) { return field }
    if task is HTTPTask, let name = call.bytes(2)?.description,
      (HTTPResponseBindings.fields + HTTPResponseBindings.methods.names).contains(name)
    {
      throw host.usage(call, "'\(name)' is of the response: await the request first")
    }
    var known = fields + methods(of: "task").names
    if task is ProcessTask {
      known +=
        ExecBindings.fields + (try ProgramMethods.of(host).methods.keys.map(\.description).sorted())
    }
    return try host.absentField(call, of: "a task", known: known)
  }

  private static let fields: [String] = [
    "completed", "cancelled", "state", "faulted", "error", "result",
  ]

  /// A field that every task has; nil for another name.
  func taskField(_ call: LuaCall, _ task: AnyFlowTask) throws -> LuaAnswer? {
    switch call.bytes(2).cases {
    case "completed": return call.answer(.boolean(task.state != .pending))
    case "cancelled": return call.answer(.boolean(task.state == .cancelled))
    case "state":
      task.markObserved()
      return try host.answer(call, .bytes(task.state.name))
    case "faulted":
      task.markObserved()
      return call.answer(.boolean(task.state == .failed))
    case "error":
      task.markObserved()
      guard let error = try host.error(of: task) else { return call.answer(.nil) }
      return call.answer(try host.luaError(error))
    case "result":
      task.markObserved()
      return call.answer(try host.luaResult(of: task))
    default: return nil
    }
  }

  /// Raises an error if a task belongs to a paused loop: waiting for it would never end.
  private func checkLoop(of task: AnyFlowTask, _ call: LuaCall) throws {
    guard task.foreignError(on: host.loop) != nil else { return }
    throw host.usage(
      call,
      "attempt to wait for '\(task.title)', which is paused: it wasn't started in the current "
        + "testing.run")
  }

  /// Returns the result of a settled task, or raises its error.
  func outcome(_ call: LuaCall, _ task: AnyFlowTask) throws -> LuaAnswer {
    if let error = try host.error(of: task) { throw host.raise(error) }
    return call.answer(try host.luaResult(of: task))
  }
}

/// The methods of the result of `flow.context()`.
enum TaskContextBindings {
  static var methods: LuaFields<BoundMethod> {
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
    _ settle: @escaping (ScriptHost, FlowPromise<FlowValue>, Arguments) throws -> Bool
  ) -> BoundMethod {
    BoundMethod(direct: direct) { host, call in
      let arguments = Arguments(host, call, method: name)
      guard let context = call.object(1, host.types.taskContext) else {
        throw arguments.wrongSelf("context")
      }
      let isFirst = try settle(host, context, arguments)
      if isTry { return call.answer(.boolean(isFirst)) }
      if !isFirst {
        let state = context.task.state.name
        throw host.usage(call, "bad use of '\(name)' (its task has settled already: \(state))")
      }
      return call.answer()
    }
  }

  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let context = call.object(1, host.types.taskContext) else {
      throw Arguments(host, call, method: "__index").wrongSelf("context")
    }
    guard call.bytes(2) == "task" else {
      return try host.absentField(call, of: "a context", known: ["task"] + methods.names)
    }
    return call.answer(context.task, host.types.task)
  }
}
