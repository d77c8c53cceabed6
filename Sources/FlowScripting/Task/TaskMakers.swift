@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The functions of the module that make tasks.
struct TaskMakers {
  let host: ScriptHost

  func install() throws {
    host.loop.describeOrigin = { [unowned vm = host.vm] in vm.text(ofOrigin: $0) }
    host.vm.positionOfStart = { [unowned host] in
      guard let origin = host.currentTask?.origin, origin != 0 else { return "" }
      return "\(host.vm.text(ofOrigin: origin)): "
    }
    host.loop.onLeftProgram = { [unowned host] in host.warnOnce($0) }
    host.define("spawn") { host, call in
      guard let function = try call.uniqueFunction(1) else {
        throw Arguments(host, call, "spawn").wrong(1, expected: "function")
      }
      let arguments = try (0..<max(0, call.count - 1)).map { try call.value($0 + 2) }
      return call.answer(
        host.spawn(function, arguments, origin: call.origin), host.types.task)
    }
    host.define("resolved") { host, call in
      call.answer(
        FlowTask.resolved(FlowValue(try call.value(1)), on: host.loop), host.types.task)
    }
    host.define("failed") { host, call in
      let error = try host.error(Arguments(host, call, "failed"), 1)
      return call.answer(Self(host: host).settled(error, call), host.types.task)
    }
    host.define("cancelled") { host, call in
      let arguments = Arguments(host, call, "cancelled")
      let reason = arguments.isNil(1) ? nil : try arguments.string(1)
      return call.answer(
        Self(host: host).settled(.cancelled(reason: reason), call), host.types.task)
    }
    host.define("with_delay") { host, call in
      let delay = try Arguments(host, call, "with_delay").duration(1)
      let task = FlowTask.withDelay(delay, FlowValue(try call.value(2)), on: host.loop)
      host.begin(task, call.origin)
      return call.answer(task, host.types.task)
    }
    host.define("context") { host, call in
      // A script that drops it can't settle the task any more; no work outside of the loop will.
      let context = FlowPromise<FlowValue>(on: host.loop, keepsLoop: false)
      host.begin(context.task, call.origin)
      return call.answer(context, host.types.taskContext)
    }
    try installJoins()
    TimedWaits.install(in: host)
  }

  private func installJoins() throws {
    host.define("when_all_succeed") { host, call in
      let tasks = try Self(host: host).tasks(Arguments(host, call, "when_all_succeed"), 1)
      return Self(host: host).join(.allSucceed, tasks, call) {
        .reference(try Self(host: host).list(ofResults: $0))
      }
    }
    host.define("when_all_finish") { host, call in
      let tasks = try Self(host: host).tasks(Arguments(host, call, "when_all_finish"), 1)
      return Self(host: host).join(.allFinish, tasks, call) {
        .reference(try Self(host: host).outcomes(of: $0))
      }
    }
    host.define("when_any_finish") { host, call in
      let tasks = try Self(host: host).tasks(
        Arguments(host, call, "when_any_finish"), 1, first: "finish")
      return Self(host: host).join(.anyFinish, tasks, call) {
        try $0.first.map { try host.luaResult(of: $0) } ?? .nil
      }
    }
    host.define("when_any_succeeds") { host, call in
      let arguments = Arguments(host, call, "when_any_succeeds")
      let tasks = try Self(host: host).tasks(arguments, 1, first: "succeed")
      let options = try arguments.fileOptions(2, known: ["cancel"])
      let cancelsRest = try options.boolean("cancel") ?? false
      return Self(host: host).join(.anySucceeds, tasks, call, cancelsRest: cancelsRest) { ended in
        guard let first = ended.first, first.state == .succeeded else {
          throw try Self(host: host).failure(ofAll: ended)
        }
        return try host.luaResult(of: first)
      }
    }
  }

  /// The error of several tasks none of which has succeeded: `others` has those of all, in order.
  private func failure(ofAll tasks: [AnyFlowTask]) throws -> FlowError {
    let errors = tasks.compactMap { host.outcomeError(of: $0) }
    let kinds = Set(errors.map(\.kind))
    let limit = 5
    var texts = errors.prefix(limit).map(\.text)
    if errors.count > limit { texts.append("and \(errors.count - limit) more") }
    let error = FlowError(
      kinds.count == 1 ? kinds.first ?? .error : .error,
      "none of \(errors.count) tasks has succeeded: \(texts.joined(separator: "; "))"
    ).with { $0.others = errors }
    return error.with(payload: try host.makeError(error), on: host.loop)
  }

  private func join(
    _ goal: JoinTask<FlowValue>.Goal, _ tasks: [AnyFlowTask], _ call: LuaCall,
    cancelsRest: Bool = false, _ result: @escaping ([AnyFlowTask]) throws -> LuaValue
  ) -> LuaAnswer {
    let join = JoinTask<FlowValue>(goal, on: host.loop, error: { host.outcomeError(of: $0) }) {
      FlowValue(try result($0))
    }
    host.begin(join, call.origin)
    join.begin(tasks, cancelsRest: cancelsRest)
    return call.answer(join, host.types.task)
  }

  private func list(ofResults tasks: [AnyFlowTask]) throws -> LuaReference {
    try host.vm.makeTable(values: try tasks.map { try host.luaResult(of: $0) })
  }

  /// The number of tasks, their results, and the errors of tasks without a result.
  private func outcomes(of tasks: [AnyFlowTask]) throws -> LuaReference {
    let errors = try host.vm.makeTable()
    for (index, task) in tasks.enumerated() {
      guard let error = try host.error(of: task) else { continue }
      try host.vm.set(try host.luaError(error), at: index + 1, in: errors)
    }
    return try host.vm.makeTable(
      values: try tasks.map { try host.luaResult(of: $0) },
      fields: [("n", .integer(Int64(tasks.count))), ("errors", .reference(errors))])
  }

  /// A task that has failed or was cancelled.
  private func settled(_ error: FlowError, _ call: LuaCall) -> FlowTask<FlowValue> {
    let task = FlowTask.makeOfValues(on: host.loop)
    task.origin = call.origin
    task.count(AnyFlowTask.usualSize)
    task.end(error: error)
    return task
  }

  /// The tasks of a list without holes and without other keys. One of them is to be the `first` to do something, if that
  /// is given.
  private func tasks(
    _ arguments: Arguments, _ index: Int, first: String? = nil
  ) throws -> [AnyFlowTask] {
    let table = try arguments.table(index, expected: "list of tasks")
    guard let count = host.vm.listCount(table) else {
      throw arguments.wrong(
        index, "list of tasks expected, got \(try host.problem(ofNoList: table))")
    }
    if count == 0, let first {
      throw arguments.wrong(index, "no task of an empty list can be the first to \(first)")
    }
    return try (0..<count).map { place in
      let value = try host.vm.element(place + 1, of: table)
      guard let task = host.task(in: value) else {
        throw arguments.wrong(
          index, "element \(place + 1): task expected, got \(host.kindName(of: value))")
      }
      if host.mayLackOutcomes { try host.needOutcome(of: task, arguments.call) }
      return task
    }
  }
}

/// `task:next` and the other continuations.
struct ContinuationBindings {
  let host: ScriptHost

  /// The methods that continue a task, by name.
  ///
  /// - Parameter kind: The name of the task in messages.
  /// - Returns: The methods, by name.
  static func methods(of kind: String) -> LuaFields<BoundMethod> {
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
            // The thread may be the first argument, as it is for Flow-Swift.
            let isThreadFirst = call.kind(arguments.place(1)) == .string
            let place = isThreadFirst ? 2 : 1
            let wanted =
              isThreadFirst
              ? try Self(host: host).threadName(arguments)
              : try Self(host: host).threadOption(arguments, 2)
            guard let function = try call.uniqueFunction(arguments.place(place)) else {
              throw arguments.wrong(place, expected: "function")
            }
            guard case .here(let thread) = wanted else {
              let made = try Self(host: host).continueInWorker(
                task, continuation, arguments, place, isRemote: wanted == .remote)
              return call.answer(made, host.types.task)
            }
            let made = Self(host: host).continue(task, continuation, thread, function, call.origin)
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
    let made = ScriptTask(host, kind, thread, function)
    host.begin(made, origin)
    made.begin(after: task)
    return made
  }

  /// Continues with a function that is called in a worker, of this or of another node.
  private func continueInWorker(
    _ task: AnyFlowTask, _ kind: ContinuationKind, _ arguments: Arguments, _ place: Int,
    isRemote: Bool
  ) throws -> FlowTask<FlowValue> {
    if host.isWorker {
      throw place == 2
        ? arguments.wrong(1, "a worker has no workers of its own")
        : arguments.wrong(2, "field 'thread': a worker has no workers of its own")
    }
    if let problem = host.problemOfWorkers {
      throw place == 2
        ? arguments.wrong(1, problem)
        : arguments.wrong(2, "field 'thread': \(problem)")
    }
    let function: WorkerFunction
    do {
      function = try WorkerFunction(
        host, try arguments.function(place), at: arguments.call.position)
    } catch let error as EncodeError {
      throw host.usage(arguments.call, ByteString(describing: error))
    }
    let made = WorkerContinuation(host, kind, function, isRemote: isRemote)
    host.begin(made, arguments.call.origin)
    made.begin(after: task)
    return made
  }

  /// Where a continuation's function is called.
  private enum Place: Equatable {
    /// On the loop.
    case here(ContinuationThread)
    case worker
    /// In a worker of any node that has joined.
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
    named name: ByteString, _ wrong: (ByteString) -> any Error
  ) throws -> Place {
    switch name.cases {
    case "main": return .here(.main)
    case "immediate": return .here(.immediate)
    case "worker": return .worker
    case "remote": return .remote
    default:
      throw wrong("\"main\", \"immediate\", \"worker\" or \"remote\" expected, got \"\(name)\"")
    }
  }
}
