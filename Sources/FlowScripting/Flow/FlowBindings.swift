internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.new`, the methods of the builder, and descriptions of a flow: `check`, `dot`, `mermaid`.
struct FlowBindings {
  let host: ScriptHost

  func install() {
    host.define("new") { host, call in
      let flow = Flow(try Arguments(host, call, "new").name(1))
      host.noteDeclared(flow, call)
      return call.answer(flow, host.types.flow)
    }
  }

  static var methods: LuaFields<BoundMethod> {
    OpBindings.methods + [
      "needs": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "needs")
        if call.count == 1 { return call.answer(.reference(try host.vm.table(of: flow.needs))) }
        let table = try arguments.table(1)
        let added = try host.declaration(table) { arguments.wrong(1, $0) }
        flow.needs(flow.ownNeeds.adding(added))
        return try Self(host: host).changed(flow, call)
      },
      "gives": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "gives")
        if call.count == 1 { return call.answer(.reference(try host.vm.table(of: flow.gives))) }
        let table = try arguments.table(1)
        flow.gives(
          flow.ownGives.adding(try host.declaration(table) { arguments.wrong(1, $0) }))
        return try Self(host: host).changed(flow, call)
      },
      "primary": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "primary")
        // One of them may be nil.
        let input = arguments.isNil(1) && !arguments.isNil(2) ? nil : try arguments.string(1)
        flow.primary(
          input: input, output: arguments.isNil(2) ? nil : try arguments.string(2))
        return try Self(host: host).changed(flow, call)
      },
      "data": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "data")
        _ = try arguments.table(1)
        let data = try arguments.data(1)
        if let graph = flow as? Graph {
          for (key, _) in data {
            if let problem = graph.problem(ofData: key) { throw arguments.wrong(1, problem) }
          }
        }
        flow.data(InitialData(data))
        return try Self(host: host).changed(flow, call)
      },
      "add": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "add")
        let op = try Self(host: host).step(1, of: flow, arguments)
        if let graph = flow as? Graph {
          try GraphBindings(host).add(op, to: graph, arguments)
        } else if arguments.isNil(2) {
          flow.add(op)
        } else {
          let policy = try PolicyBindings(host: host).policy(arguments, 2, for: op)
          flow.add(policy.op, policy: policy.policy)
        }
        return try Self(host: host).changed(flow, call)
      },
      "add_parallel": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "add_parallel")
        if let problem = flow.problemOfParallel() {
          throw host.usage(call, "bad use of 'add_parallel' (\(problem))")
        }
        let count = max(arguments.count, 1)
        flow.addParallel(try (1...count).map { try Self(host: host).step($0, of: flow, arguments) })
        return try Self(host: host).changed(flow, call)
      },
      "add_finally": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "add_finally")
        let op = try Self(host: host).step(1, of: flow, arguments)
        let policy = try PolicyBindings(host: host).policy(arguments, 2, for: op, isFinal: true)
        flow.addFinally(policy.op, policy: policy.policy)
        return try Self(host: host).changed(flow, call)
      },
      "case": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "case")
        if let problem = flow.problemOfCase() {
          throw host.usage(call, "bad use of 'case' (\(problem))")
        }
        if call.kind(2) == .function {
          if !arguments.isNil(2) {
            throw arguments.wrong(2, "a predicate takes no value, got \(arguments.got(2))")
          }
          flow.case(where: ScriptPredicate(host, try arguments.function(1)))
          return try Self(host: host).changed(flow, call)
        }
        guard let key = call.bytes(2), call.kind(2) == .string else {
          throw arguments.wrong(1, expected: "string or function")
        }
        guard call.kind(3) == .string, let value = call.bytes(3) else {
          throw arguments.wrong(2, expected: "string")
        }
        flow.case(key, value)
        return try Self(host: host).changed(flow, call)
      },
      "otherwise": BoundMethod { host, call in
        let (flow, _) = try Self(host: host).builder(call, "otherwise")
        if let problem = flow.problemOfOtherwise() {
          throw host.usage(call, "bad use of 'otherwise' (\(problem))")
        }
        flow.otherwise()
        return try Self(host: host).changed(flow, call)
      },
      "combine": BoundMethod { host, call in
        let (flow, _) = try Self(host: host).builder(call, "combine")
        if let problem = flow.problemOfCombine() {
          throw host.usage(call, "bad use of 'combine' (\(problem))")
        }
        flow.combine()
        return try Self(host: host).changed(flow, call)
      },
      "add_grouped": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "add_grouped")
        let op = try Self(host: host).step(1, of: flow, arguments)
        let dispatcher = try DispatcherBindings(host: host).dispatcher(arguments, 2, for: op)
        if let graph = flow as? Graph {
          try GraphBindings(host).add(op, dispatcher, to: graph, arguments)
        } else {
          flow.addGrouped(op, dispatcher)
        }
        return try Self(host: host).changed(flow, call)
      },
      "will_start": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "will_start")
        flow.willStart(ScriptCallback(host, try arguments.function(1)))
        return try Self(host: host).changed(flow, call)
      },
      "did_finish": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).builder(call, "did_finish")
        flow.didFinish(ScriptCallback(host, try arguments.function(1)))
        return try Self(host: host).changed(flow, call)
      },
      "copy": BoundMethod { host, call in
        let (flow, _) = try Self(host: host).builder(call, "copy")
        return call.answer(flow.copy(), host.types.flow)
      },
      "check": BoundMethod { host, call in
        let (flow, arguments) = try Self(host: host).described(call, "check")
        let data = arguments.isNil(1) ? nil : try arguments.data(1)
        return call.answer(try host.vm.table(of: flow.check(data: data.map { InitialData($0) })))
      },
      "dot": BoundMethod { host, call in
        let (flow, _) = try Self(host: host).described(call, "dot")
        return try host.answer(call, .bytes(flow.dot()))
      },
      "mermaid": BoundMethod { host, call in
        let (flow, _) = try Self(host: host).described(call, "mermaid")
        return try host.answer(call, .bytes(flow.mermaid()))
      },
    ]
  }

  static var metamethods: LuaFields<BoundMethod> {
    ScriptHost.describingMetamethods + [
      "__call": BoundMethod { host, call in
        throw host.usage(call, "a flow takes no arguments: give it data")
      }
    ]
  }

  /// The flow that a builder call changes.
  private func builder(_ call: LuaCall, _ function: String) throws -> (Flow, Arguments) {
    let arguments = Arguments(host, call, method: function)
    guard let flow = call.object(1, host.types.flow) else { throw arguments.wrongSelf("flow") }
    return (flow, arguments)
  }

  /// The flow of a call that describes it: then the script may end without a run of it.
  private func described(_ call: LuaCall, _ function: String) throws -> (Flow, Arguments) {
    let found = try builder(call, function)
    host.ending.describesFlows = true
    return found
  }

  /// Returns a flow that a builder call has changed. Its steps are no memory of the state, so nothing else
  /// would refuse one too many.
  private func changed(_ flow: Flow, _ call: LuaCall) throws -> LuaAnswer {
    if let memory = host.loop.memory {
      flow.count(in: memory)
      try host.checkMemory()
    }
    if host.ending.builtFlow == nil, flow.count > 0 {
      host.ending.builtFlow = (flow.name, call.origin)
    }
    return call.answer(argument: 1)
  }

  /// The op in an argument that becomes a step of `flow`.
  private func step(_ index: Int, of flow: Flow, _ arguments: Arguments) throws -> Op {
    let op = try arguments.op(index)
    if let inner = op as? Flow, inner === flow || inner.contains(flow) {
      throw arguments.wrong(index, "flow '\(flow.name)' would contain itself")
    }
    host.noteAdded(op, arguments.call)
    return op
  }
}

extension [Declaration] {
  /// As with `data`, several calls add up, and the later value wins.
  fileprivate func adding(_ added: [Declaration]) -> [Declaration] {
    filter { old in !added.contains { $0.name == old.name } } + added
  }
}

extension LuaVM {
  /// The findings of a check, as a list of tables.
  func table(of findings: [FlowFinding]) throws -> LuaValue {
    let tables = try findings.map { finding in
      LuaValue.reference(
        try makeTable(fields: [
          ("severity", .string(finding.severity.name)),
          ("op", .string(finding.op)),
          ("message", .string(finding.message)),
        ]))
    }
    return .reference(try makeTable(values: tables))
  }
}
