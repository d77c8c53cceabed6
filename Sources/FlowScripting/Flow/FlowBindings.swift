internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.new` and the methods of the builder.
extension ScriptHost {
  func installFlows() throws {
    GraphBindings.install(in: self)
    MainBindings.install(in: self)
    define("new") { host, call in
      let name = try Arguments(host, call, "new").name(1)
      return call.answer(Flow(name), host.types.flow)
    }
  }

  static var flowMethods: LuaFields<BoundMethod> {
    opMethods + [
      "needs": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "needs")
        if call.count == 1 { return call.answer(.reference(try host.table(of: flow.needs))) }
        let table = try arguments.table(1)
        let added = try host.declaration(table) { arguments.wrong(1, $0) }
        flow.needs(flow.ownNeeds.adding(added))
        return try host.changed(flow, call)
      },
      "gives": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "gives")
        if call.count == 1 { return call.answer(.reference(try host.table(of: flow.gives))) }
        let table = try arguments.table(1)
        flow.gives(
          flow.ownGives.adding(try host.declaration(table) { arguments.wrong(1, $0) }))
        return try host.changed(flow, call)
      },
      "primary": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "primary")
        // One of them may be nil.
        let input = arguments.isNil(1) && !arguments.isNil(2) ? nil : try arguments.string(1)
        flow.primary(
          input: input, output: arguments.isNil(2) ? nil : try arguments.string(2))
        return try host.changed(flow, call)
      },
      "data": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "data")
        _ = try arguments.table(1)
        let data = try arguments.data(1)
        if let graph = flow as? Graph {
          for (key, _) in data {
            if let problem = graph.problem(ofData: key) { throw arguments.wrong(1, problem) }
          }
        }
        flow.data(InitialData(data))
        return try host.changed(flow, call)
      },
      "add": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "add")
        let op = try host.step(1, of: flow, arguments)
        if let graph = flow as? Graph {
          try GraphBindings(host).add(op, to: graph, arguments)
        } else if arguments.isNil(2) {
          flow.add(op)
        } else {
          let policy = try host.policy(arguments, 2, for: op)
          flow.add(
            policy.op, retry: policy.retry, timeout: policy.timeout, grace: policy.grace,
            undo: policy.undo)
        }
        return try host.changed(flow, call)
      },
      "add_parallel": BoundMethod { host, call in
        let (flow, arguments) = try host.flowBuilder(call, "add_parallel")
        let count = max(arguments.count, 1)
        flow.addParallel(try (1...count).map { try host.step($0, of: flow, arguments) })
        return try host.changed(flow, call)
      },
      "add_finally": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "add_finally")
        let op = try host.step(1, of: flow, arguments)
        let policy = try host.policy(arguments, 2, for: op)
        if policy.undo != nil {
          throw arguments.wrong(2, "field 'undo': a final step is never undone")
        }
        flow.addFinally(
          policy.op, retry: policy.retry, timeout: policy.timeout, grace: policy.grace)
        return try host.changed(flow, call)
      },
      "case": BoundMethod { host, call in
        let (flow, arguments) = try host.flowBuilder(call, "case")
        if let problem = flow.problemOfCase() {
          throw host.usage(call, "bad use of 'case' (\(problem))")
        }
        if call.kind(2) == .function {
          if !arguments.isNil(2) {
            throw arguments.wrong(2, "a predicate takes no value, got \(arguments.got(2))")
          }
          flow.case(where: ScriptPredicate(host, try arguments.function(1)))
          return try host.changed(flow, call)
        }
        guard let key = call.bytes(2), call.kind(2) == .string else {
          throw arguments.wrong(1, expected: "string or function")
        }
        guard call.kind(3) == .string, let value = call.bytes(3) else {
          throw arguments.wrong(2, expected: "string")
        }
        flow.case(key, value)
        return try host.changed(flow, call)
      },
      "otherwise": BoundMethod { host, call in
        let (flow, _) = try host.flowBuilder(call, "otherwise")
        if let problem = flow.problemOfOtherwise() {
          throw host.usage(call, "bad use of 'otherwise' (\(problem))")
        }
        flow.otherwise()
        return try host.changed(flow, call)
      },
      "combine": BoundMethod { host, call in
        let (flow, _) = try host.flowBuilder(call, "combine")
        if let problem = flow.problemOfCombine() {
          throw host.usage(call, "bad use of 'combine' (\(problem))")
        }
        flow.combine()
        return try host.changed(flow, call)
      },
      "add_grouped": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "add_grouped")
        let op = try host.step(1, of: flow, arguments)
        let dispatcher = try host.dispatcher(arguments, 2, for: op)
        if let graph = flow as? Graph {
          try GraphBindings(host).add(op, dispatcher, to: graph, arguments)
        } else {
          flow.addGrouped(op, dispatcher)
        }
        return try host.changed(flow, call)
      },
      "will_start": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "will_start")
        flow.willStart(ScriptCallback(host, try arguments.function(1)))
        return try host.changed(flow, call)
      },
      "did_finish": BoundMethod { host, call in
        let (flow, arguments) = try host.builder(call, "did_finish")
        flow.didFinish(ScriptCallback(host, try arguments.function(1)))
        return try host.changed(flow, call)
      },
      "copy": BoundMethod { host, call in
        let (flow, _) = try host.builder(call, "copy")
        return call.answer(flow.copy(), host.types.flow)
      },
    ] + graphMethods
  }

  static var flowMetamethods: LuaFields<BoundMethod> {
    describingMetamethods + [
      "__call": BoundMethod { host, call in
        throw host.usage(call, "a flow takes no arguments: give it data")
      }
    ]
  }

  /// The flow that a builder call changes.
  private func builder(_ call: LuaCall, _ function: String) throws -> (Flow, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let flow = call.object(1, types.flow) else { throw arguments.wrongSelf("flow") }
    return (flow, arguments)
  }

  /// The flow, which is no graph, that such a call changes.
  private func flowBuilder(_ call: LuaCall, _ function: String) throws -> (Flow, Arguments) {
    let (flow, arguments) = try builder(call, function)
    guard flow is Graph else { return (flow, arguments) }
    throw usage(call, "bad use of '\(function)' (\(GraphBindings.remedy(for: function)))")
  }

  /// Returns a flow that a builder call has changed. Its steps are no memory of the state, so nothing else
  /// would refuse one too many.
  private func changed(_ flow: Flow, _ call: LuaCall) throws -> LuaAnswer {
    if let memory = loop.memory {
      flow.count(in: memory)
      try checkMemory()
    }
    if ending.builtFlow == nil, flow.count > 0 { ending.builtFlow = (flow.name, call.origin) }
    return call.answer(argument: 1)
  }

  /// The op in an argument that becomes a step of `flow`.
  private func step(_ index: Int, of flow: Flow, _ arguments: Arguments) throws -> Op {
    let op = try arguments.op(index)
    if let inner = op as? Flow, inner === flow || inner.contains(flow) {
      throw arguments.wrong(index, "flow '\(flow.name)' would contain itself")
    }
    return op
  }
}

extension [Declaration] {
  /// As with `data`, several calls add up, and the later value wins.
  fileprivate func adding(_ added: [Declaration]) -> [Declaration] {
    filter { old in !added.contains { $0.name == old.name } } + added
  }
}

/// Descriptions of a flow or run: `check`, `dot`, `mermaid`.
extension ScriptHost {
  static var graphMethods: LuaFields<BoundMethod> {
    [
      "check": BoundMethod { host, call in
        let (flow, arguments) = try host.graphed(call, "check", host.types.flow, "flow")
        let data = arguments.isNil(1) ? nil : try arguments.data(1)
        return call.answer(try host.table(of: flow.check(data: data.map { InitialData($0) })))
      },
      "dot": BoundMethod { host, call in
        let (flow, _) = try host.graphed(call, "dot", host.types.flow, "flow")
        return try host.answer(call, .bytes(flow.dot()))
      },
      "mermaid": BoundMethod { host, call in
        let (flow, _) = try host.graphed(call, "mermaid", host.types.flow, "flow")
        return try host.answer(call, .bytes(flow.mermaid()))
      },
    ]
  }

  static var runGraphMethods: LuaFields<BoundMethod> {
    [
      "dot": BoundMethod { host, call in
        let (run, _) = try host.graphed(call, "dot", host.types.run, "run")
        host.noteRead(ofAllIn: run)
        return try host.answer(call, .bytes(run.dot()))
      }
    ]
  }

  /// The findings of a check, as a list of tables.
  func table(of findings: [FlowFinding]) throws -> LuaValue {
    let tables = try findings.map { finding in
      LuaValue.reference(
        try vm.makeTable(fields: [
          ("severity", .string(finding.severity.name)),
          ("op", .string(finding.op)),
          ("message", .string(finding.message)),
        ]))
    }
    return .reference(try vm.makeTable(values: tables))
  }

  private func graphed<Object>(
    _ call: LuaCall, _ function: String, _ type: LuaObjectType<Object>, _ name: String
  ) throws -> (Object, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let object = call.object(1, type) else { throw arguments.wrongSelf(name) }
    ending.describesFlows = true
    if mayLackOutcomes, let run = object as? Run { try needOutcome(of: run, call) }
    return (object, arguments)
  }
}
