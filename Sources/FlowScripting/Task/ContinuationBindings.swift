@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// `task:next` and its kin.
extension ScriptHost {
  /// The methods that continue a task, by name.
  ///
  /// - Parameter kind: What messages call the task.
  static func continuationMethods(of kind: String) -> [String: BoundMethod] {
    let kinds: [(String, ContinuationKind)] = [
      ("next", .next), ("next_on_success", .nextOnSuccess), ("next_on_error", .nextOnError),
      ("finally", .finally), ("finally_on_success", .finallyOnSuccess),
    ]
    return Dictionary(
      uniqueKeysWithValues: kinds.map { name, continuation in
        (
          name,
          BoundMethod { host, call in
            let (task, arguments) = try host.task(call, name, kind)
            let function = try arguments.function(1)
            let thread = try host.thread(arguments, 2)
            let made = FlowTask<Value>(on: host.loop)
            host.begin(made, call)
            ScriptContinuation(host, of: made, continuation, thread, function).begin(after: task)
            return call.answer(made, host.types.task)
          }
        )
      })
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
