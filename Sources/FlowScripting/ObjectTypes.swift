internal import FlowEngine
internal import LuaVM

/// The kinds of objects that scripts hold.
struct ObjectTypes {
  let op: LuaObjectType<Op>
  let flow: LuaObjectType<Flow>
  let dispatcher: LuaObjectType<DispatcherBox>
  let run: LuaObjectType<Run>
  let context: LuaHandleType

  init(vm: LuaVM, binder: Binder) throws {
    op = try vm.defineObjectType(
      "op", of: Op.self, methods: binder.bind(ScriptHost.opMethods),
      getter: binder.bind(ScriptHost.opProperty),
      metamethods: { _ in binder.bind(ScriptHost.opMetamethods) })
    flow = try vm.defineObjectType(
      "flow", of: Flow.self, methods: binder.bind(ScriptHost.flowMethods),
      getter: binder.bind(ScriptHost.opProperty),
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    dispatcher = try vm.defineObjectType(
      "dispatcher", of: DispatcherBox.self, methods: [:],
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    run = try vm.defineObjectType(
      "run", of: Run.self, methods: binder.bind(ScriptHost.runMethods),
      getter: binder.bind(ScriptHost.runProperty),
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    context = try vm.defineHandleType(
      "ctx", methods: binder.bind(ScriptHost.contextMethods),
      getter: binder.bind(ScriptHost.contextProperty),
      metamethods: binder.bind(ScriptHost.describingMetamethods))
  }
}

extension ScriptHost {
  /// The op or flow in an argument.
  func op(_ call: LuaCall, _ index: Int) -> Op? {
    call.object(index, types.op) ?? call.object(index, types.flow)
  }

  /// `tostring` of objects: kind and name.
  static var describingMetamethods: [String: BoundMethod] {
    [
      "__tostring": BoundMethod { host, call in
        if let op = host.op(call, 1) {
          return try host.answer(call, .bytes("\(op is Flow ? "flow" : "op"): \(op.name)"))
        }
        if let run = call.object(1, host.types.run) {
          return try host.answer(call, .bytes("run: \(run.name) (\(run.state.name))"))
        }
        if let handle = call.handle(1, host.types.context) {
          let context = host.loop.context(slot: handle.slot, generation: handle.generation)
          return try host.answer(
            call, .bytes(context.map { "ctx: \($0.displayName)" } ?? "ctx (finished)"))
        }
        if call.object(1, host.types.dispatcher) != nil {
          return call.answer(.string("dispatcher"))
        }
        throw host.usage(
          call, "bad argument #1 to '__tostring' (object of flow expected, got \(call.typeName(1)))"
        )
      }
    ]
  }
}
