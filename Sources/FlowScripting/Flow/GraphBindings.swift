internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Descriptions of a flow or run: `check`, `dot`, `mermaid`.
extension ScriptHost {
  static var graphMethods: LuaFields<BoundMethod> {
    [
      "check": BoundMethod { host, call in
        let (flow, arguments) = try host.graphed(call, "check", host.types.flow, "flow")
        let data = arguments.isNil(1) ? nil : try arguments.data(1)
        return call.answer(try host.table(of: flow.check(bytes: data)))
      },
      "dot": BoundMethod { host, call in
        let (flow, _) = try host.graphed(call, "dot", host.types.flow, "flow")
        return try host.answer(call, .bytes(flow.dotBytes()))
      },
      "mermaid": BoundMethod { host, call in
        let (flow, _) = try host.graphed(call, "mermaid", host.types.flow, "flow")
        return try host.answer(call, .bytes(flow.mermaidBytes()))
      },
    ]
  }

  static var runGraphMethods: LuaFields<BoundMethod> {
    [
      "dot": BoundMethod { host, call in
        let (run, _) = try host.graphed(call, "dot", host.types.run, "run")
        host.noteRead(ofAllIn: run)
        return try host.answer(call, .bytes(run.dotBytes()))
      }
    ]
  }

  /// The findings of a check, as a list of tables.
  func table(of findings: [FlowFinding]) throws -> LuaValue {
    let tables = try findings.map { finding in
      LuaValue.reference(
        try vm.makeTable(fields: [
          ("severity", .string(finding.severity.nameBytes)),
          ("op", .string(finding.opBytes)),
          ("message", .string(finding.messageBytes)),
        ]))
    }
    return .reference(try vm.makeTable(values: tables))
  }

  private func graphed<Object>(
    _ call: LuaCall, _ function: String, _ type: LuaObjectType<Object>, _ name: String
  ) throws -> (Object, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let object = call.object(1, type) else { throw arguments.wrongSelf(name) }
    describesFlows = true
    if mayLackOutcomes, let run = object as? Run { try needOutcome(of: run, call) }
    return (object, arguments)
  }
}
