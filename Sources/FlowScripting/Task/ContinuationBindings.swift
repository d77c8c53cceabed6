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
            guard let thread = try host.thread(arguments, 2) else {
              let made = try host.continueInWorker(task, continuation, arguments)
              return call.answer(made, host.types.task)
            }
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

  /// The same with a function that is called in a worker.
  private func continueInWorker(
    _ task: AnyFlowTask, _ kind: ContinuationKind, _ arguments: Arguments
  ) throws -> FlowTask<Value> {
    if isWorker {
      throw arguments.wrong(2, "field 'thread': a worker has no workers of its own")
    }
    let function: WorkerFunction
    do {
      function = try WorkerFunction(
        self, try arguments.function(1), at: arguments.call.position)
    } catch let error as TravelError {
      throw usage(arguments.call, error.description)
    }
    let made = WorkerContinuation(self, kind, function)
    begin(made, arguments.call.origin)
    made.begin(after: task)
    return made
  }

  /// What `opts.thread` asks for; nil for a worker.
  private func thread(_ arguments: Arguments, _ index: Int) throws -> ContinuationThread? {
    if arguments.isNil(index) { return .automatic }
    let options = try arguments.options(index, known: ["thread"])
    switch try options.string("thread") {
    case nil: return .automatic
    case "main": return .main
    case "immediate": return .immediate
    case "worker": return nil
    case let name?:
      throw arguments.wrong(
        index, "field 'thread': \"main\", \"immediate\" or \"worker\" expected, got \"\(name)\"")
    }
  }
}
