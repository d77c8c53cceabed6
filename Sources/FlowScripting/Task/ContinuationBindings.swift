@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// `task:next` and its kin.
extension ScriptHost {
  /// The methods that continue a task, by name.
  ///
  /// - Parameter kind: What messages call the task.
  /// - Returns: The methods, by name.
  static func continuationMethods(of kind: String) -> LuaFields<BoundMethod> {
    let kinds: [(String, ContinuationKind)] = [
      ("next", .next), ("next_on_success", .nextOnSuccess), ("next_on_error", .nextOnError),
      ("finally", .finally), ("finally_on_success", .finallyOnSuccess),
    ]
    return LuaFields(
      kinds.map { name, continuation in
        (
          name,
          BoundMethod(
            direct: { host, call in
              // After one that has ended the function runs at once.
              guard let task = call.uncountedObject(host.types.task),
                !task._withUnsafeGuaranteedRef({ $0.isConcluded }),
                let function = call.uniqueFunction()
              else { return call.pass() }
              let made = ScriptTask(host, continuation, .automatic, function)
              host.begin(made, call.origin)
              task._withUnsafeGuaranteedRef { made.begin(after: $0) }
              return call.answer(made, host.types.task)
            }
          ) { host, call in
            let (task, arguments) = try host.task(call, name, kind)
            guard let function = try call.uniqueFunction(arguments.place(1)) else {
              throw arguments.wrong(1, expected: "function")
            }
            let thread = try host.thread(arguments, 2)
            let made = host.continue(task, continuation, thread, function, call.origin)
            return call.answer(made, host.types.task)
          }
        )
      })
  }

  /// Has a task go on with a function, and answers the task of that.
  private func `continue`(
    _ task: AnyFlowTask, _ kind: ContinuationKind, _ thread: ContinuationThread,
    _ function: consuming LuaUniqueReference, _ origin: UInt64
  ) -> FlowTask<Value> {
    let made = ScriptTask(self, kind, thread, function)
    begin(made, origin)
    made.begin(after: task)
    return made
  }

  /// What `opts.thread` asks for.
  private func thread(_ arguments: Arguments, _ index: Int) throws -> ContinuationThread {
    if arguments.isNil(index) { return .automatic }
    let options = try arguments.options(index, known: ["thread"])
    switch try options.string("thread") {
    case nil: return .automatic
    case "main": return .main
    case "immediate": return .immediate
    case "worker":
      throw arguments.wrong(
        index, "field 'thread': \"worker\" isn't supported in this version")
    case let name?:
      throw arguments.wrong(
        index, "field 'thread': \"main\", \"immediate\" or \"worker\" expected, got \"\(name)\"")
    }
  }
}
