@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `task:next` and the other continuations.
extension ScriptHost {
  /// The methods that continue a task, by name.
  ///
  /// - Parameter kind: The name of the task in messages.
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
              // After a settled task the function runs at once.
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
            // The thread may be the first argument, as in the seed.
            let isThreadFirst = call.kind(arguments.place(1)) == .string
            let place = isThreadFirst ? 2 : 1
            let wanted =
              isThreadFirst ? try host.threadName(arguments) : try host.threadOption(arguments, 2)
            guard let function = try call.uniqueFunction(arguments.place(place)) else {
              throw arguments.wrong(place, expected: "function")
            }
            guard case .here(let thread) = wanted else {
              let made = try host.continueInWorker(
                task, continuation, arguments, place, isRemote: wanted == .remote)
              return call.answer(made, host.types.task)
            }
            let made = host.continue(task, continuation, thread, function, call.origin)
            return call.answer(made, host.types.task)
          }
        )
      })
  }

  /// Adds a continuation to a task, and returns the task of the continuation.
  private func `continue`(
    _ task: AnyFlowTask, _ kind: ContinuationKind, _ thread: ContinuationThread,
    _ function: consuming LuaUniqueReference, _ origin: UInt64
  ) -> FlowTask<FlowValue> {
    let made = ScriptTask(self, kind, thread, function)
    begin(made, origin)
    made.begin(after: task)
    return made
  }

  /// The same with a function that is called in a worker, of this or of another machine.
  private func continueInWorker(
    _ task: AnyFlowTask, _ kind: ContinuationKind, _ arguments: Arguments, _ place: Int,
    isRemote: Bool
  ) throws -> FlowTask<FlowValue> {
    if isWorker {
      throw place == 2
        ? arguments.wrong(1, "a worker has no workers of its own")
        : arguments.wrong(2, "field 'thread': a worker has no workers of its own")
    }
    if let problemOfWorkers {
      throw place == 2
        ? arguments.wrong(1, problemOfWorkers)
        : arguments.wrong(2, "field 'thread': \(problemOfWorkers)")
    }
    let function: WorkerFunction
    do {
      function = try WorkerFunction(
        self, try arguments.function(place), at: arguments.call.position)
    } catch let error as EncodeError {
      throw usage(arguments.call, error.description)
    }
    let made = WorkerContinuation(self, kind, function, isRemote: isRemote)
    begin(made, arguments.call.origin)
    made.begin(after: task)
    return made
  }

  /// Where a continuation's function is called.
  private enum Place: Equatable {
    /// On the loop.
    case here(ContinuationThread)
    case worker
    /// In a worker of any machine that has joined.
    case remote
  }

  /// The thread in `opts.thread`.
  private func threadOption(_ arguments: Arguments, _ index: Int) throws -> Place {
    if arguments.isNil(index) { return .here(.automatic) }
    let options = try arguments.options(index, known: ["thread"])
    guard let name = try options.string("thread") else { return .here(.automatic) }
    return try Self.thread(named: name) { arguments.wrong(index, "field 'thread': \($0)") }
  }

  /// The thread named by a first argument that is followed by the function only.
  private func threadName(_ arguments: Arguments) throws -> Place {
    if !arguments.isNil(3) {
      throw arguments.wrong(3, "the thread is given already, got \(arguments.got(3))")
    }
    return try Self.thread(named: try arguments.string(1)) { arguments.wrong(1, $0) }
  }

  private static func thread(
    named name: ByteString, _ wrong: (String) -> any Error
  ) throws -> Place {
    switch name {
    case "main": return .here(.main)
    case "immediate": return .here(.immediate)
    case "worker": return .worker
    case "remote": return .remote
    default:
      throw wrong("\"main\", \"immediate\", \"worker\" or \"remote\" expected, got \"\(name)\"")
    }
  }
}
