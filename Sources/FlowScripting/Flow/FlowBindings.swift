internal import FlowEngine
internal import LuaVM

/// `flow.new` and the builder's calls.
extension ScriptHost {
  func installFlows() throws {
    try define("new") { host, call in
      let name = try Arguments(host, call, "new").name(1)
      return call.answer(Flow(name), host.types.flow)
    }
  }

  static var flowMethods: [String: BoundMethod] {
    opMethods.merging([
      "needs": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "needs")
        let table = try arguments.table(1)
        let added = try host.declaration(table) { arguments.wrong(1, $0) }
        // As with `data`, several calls add up, and the later one wins.
        let kept = flow.needs.filter { old in !added.contains { $0.name == old.name } }
        flow.needs(kept + added)
        return call.answer(argument: 1)
      },
      "data": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "data")
        _ = try arguments.table(1)
        flow.data(try arguments.data(1))
        return call.answer(argument: 1)
      },
      "add": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "add")
        let op = try arguments.op(1)
        if !arguments.isNil(2) {
          throw arguments.wrong(2, "a policy for one place isn't supported in this version")
        }
        try host.checkNesting(op, in: flow, arguments)
        flow.add(op)
        return call.answer(argument: 1)
      },
      "add_grouped": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "add_grouped")
        let op = try arguments.op(1)
        try host.checkNesting(op, in: flow, arguments)
        flow.addGrouped(op, try host.dispatcher(arguments, 2, for: op))
        return call.answer(argument: 1)
      },
      "will_start": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "will_start")
        flow.willStart(ScriptCallback(host, try arguments.function(1)))
        return call.answer(argument: 1)
      },
      "did_finish": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "did_finish")
        flow.didFinish(ScriptCallback(host, try arguments.function(1)))
        return call.answer(argument: 1)
      },
      "copy": BoundMethod { host, call in
        let (flow, _) = try host.builder(call, "copy")
        return call.answer(flow.copy(), host.types.flow)
      },
    ]) { $1 }
  }

  static var flowMetamethods: [String: BoundMethod] {
    describingMetamethods.merging([
      "__call": BoundMethod { host, call in
        throw host.usage(call, "a flow takes no arguments: give it data")
      }
    ]) { $1 }
  }

  /// The flow that a builder call changes.
  private func builder(_ call: LuaCall, _ function: String) throws -> (Flow, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let flow = call.object(1, types.flow) else { throw arguments.wrongSelf("flow") }
    return (flow, arguments)
  }

  private func checkNesting(_ op: Op, in flow: Flow, _ arguments: Arguments) throws {
    if let inner = op as? Flow, inner === flow || inner.contains(flow) {
      throw arguments.wrong(1, "flow '\(flow.name)' would contain itself")
    }
  }
}

/// A `will_start` or `did_finish` written in Lua: a coroutine, so it may wait.
final class ScriptCallback: RunCallback {
  // A Swift program may hold the flow longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  private let function: LuaReference

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.host = host
    self.function = function
  }

  func call(_ run: Run, completion: CallbackCompletion) -> OpProgress {
    do {
      let argument = try host.vm.value(of: run, host.types.run)
      host.runFiber(function, [argument]) { end in
        switch end {
        case .returned: completion.finish(nil)
        case .failed(let error): completion.finish(error)
        }
      }
    } catch {
      completion.finish(host.flowError(thrown: error, op: nil))
    }
    return .suspended
  }
}
