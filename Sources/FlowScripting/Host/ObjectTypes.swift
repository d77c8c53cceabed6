internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The kinds of objects that scripts hold.
final class ObjectTypes {
  let op: LuaObjectType<Op>
  let flow: LuaObjectType<Flow>
  let machine: LuaObjectType<MachineOp>
  /// Results of `flow.step` and `flow.any_step`.
  let step: LuaObjectType<StepPart>
  /// Results of `flow.on` and `flow.next`.
  let handler: LuaObjectType<HandlerPart>
  let dispatcher: LuaObjectType<DispatcherBox>
  let run: LuaObjectType<Run>
  /// Tasks that aren't runs.
  let task: LuaObjectType<AnyFlowTask>
  /// Results of `flow.context()`.
  let taskContext: LuaObjectType<FlowPromise<FlowValue>>
  let registry: LuaObjectType<OpRegistry>
  let secret: LuaObjectType<SecretValue>
  /// Contents of `KeptErrors`; no script sees one.
  let failure: LuaObjectType<FlowError>
  let context: LuaHandleType
  /// Whether there have been views of runs' data: values may be such views from then on.
  @exclusivity(unchecked) var viewsData = false
  /// The metatable of error tables.
  let errorMetatable: LuaReference
  /// The metatable of what `flow.setting` returns.
  let settingMetatable: LuaReference
  /// The metatable of the results of `flow.continue`, `flow.finish` and `flow.retry`.
  let reductionMetatable: LuaReference

  init(vm: LuaVM, binder: Binder) throws {
    errorMetatable = try vm.makeErrorMetatable()
    settingMetatable = try vm.makeTable(fields: [("__name", "flow.setting")])
    reductionMetatable = try vm.makeTable(fields: [("__name", "flow.reduction")])
    vm.setErrorMetatable(errorMetatable)
    vm.setSettingMetatable(settingMetatable)
    op = try vm.defineObjectType(
      "op", of: Op.self, methods: binder.bind(OpBindings.methods),
      getter: binder.bind(OpBindings.property(of: "an op", OpBindings.methods)),
      metamethods: { _ in binder.bind(OpBindings.metamethods) })
    flow = try vm.defineObjectType(
      "flow", of: Flow.self, methods: binder.bind(FlowBindings.methods),
      getter: binder.bind(OpBindings.property(of: "a flow", FlowBindings.methods)),
      metamethods: { _ in binder.bind(FlowBindings.metamethods) })
    machine = try vm.defineObjectType(
      "machine", of: MachineOp.self, methods: binder.bind(MachineBindings.methods),
      getter: binder.bind(OpBindings.property(of: "a machine", MachineBindings.methods)),
      metamethods: { _ in binder.bind(MachineBindings.metamethods) })
    step = try vm.defineObjectType(
      "step", of: StepPart.self, methods: [:],
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    handler = try vm.defineObjectType(
      "handler", of: HandlerPart.self, methods: [:],
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    dispatcher = try vm.defineObjectType(
      "dispatcher", of: DispatcherBox.self, methods: [:],
      getter: binder.bind(DispatcherBindings.property),
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    run = try vm.defineObjectType(
      "run", of: Run.self, methods: binder.bind(RunBindings.methods),
      getter: binder.bind(RunBindings.property),
      metamethods: { _ in binder.bind(TaskBindings.metamethods(of: "run")) })
    task = try vm.defineObjectType(
      "task", of: AnyFlowTask.self, methods: binder.bind(TaskBindings.methods(of: "task")),
      getter: binder.bind(TaskBindings.property),
      metamethods: { _ in binder.bind(TaskBindings.metamethods(of: "task")) })
    taskContext = try vm.defineObjectType(
      "context", of: FlowPromise<FlowValue>.self,
      methods: binder.bind(TaskContextBindings.methods),
      getter: binder.bind(TaskContextBindings.property),
      metamethods: { _ in binder.bind(ScriptHost.describingMetamethods) })
    registry = try vm.defineObjectType(
      "ops", of: OpRegistry.self, methods: [:],
      getter: binder.bind(RegistryBindings.property),
      metamethods: { _ in binder.bind(RegistryBindings.metamethods) })
    secret = try vm.defineObjectType(
      "secret", of: SecretValue.self, methods: [:],
      getter: binder.bind(SecretBindings.property),
      metamethods: { _ in binder.bind(SecretBindings.metamethods) })
    failure = try vm.defineObjectType("failure", of: FlowError.self, methods: [:])
    context = try vm.defineHandleType(
      "ctx", methods: binder.bind(ContextBindings.methods),
      getter: binder.bind(ContextBindings.property),
      metamethods: binder.bind(ScriptHost.describingMetamethods))
  }
}

extension ScriptHost {
  /// The kinds of objects that scripts hold.
  // Unchecked: `makeObjectTypes` made it.
  var types: ObjectTypes { unsafeDowncast(objectTypes, to: ObjectTypes.self) }

  static func makeObjectTypes(_ vm: LuaVM, _ binder: Binder) throws -> AnyObject {
    try ObjectTypes(vm: vm, binder: binder)
  }

  /// The op, flow or machine in an argument.
  func op(_ call: LuaCall, _ index: Int) -> Op? {
    call.object(index, types.op) ?? call.object(index, types.flow)
      ?? call.object(index, types.machine)
  }

  /// The type of an argument for messages. Through the debug library a script can give an object's
  /// metatable to another userdata.
  func shownType(_ call: LuaCall, _ index: Int) -> String {
    let name = call.typeName(index)
    return isForged(call, index, name) ? "forged \(name)" : name
  }

  private func isForged(_ call: LuaCall, _ index: Int, _ name: String) -> Bool {
    guard call.kind(index) == .userdata else { return false }
    switch name {
    case types.op.name: return call.object(index, types.op) == nil
    case types.flow.name: return call.object(index, types.flow) == nil
    case types.machine.name: return call.object(index, types.machine) == nil
    case types.step.name: return call.object(index, types.step) == nil
    case types.handler.name: return call.object(index, types.handler) == nil
    case types.dispatcher.name: return call.object(index, types.dispatcher) == nil
    case types.run.name: return call.object(index, types.run) == nil
    case types.task.name: return call.object(index, types.task) == nil
    case types.taskContext.name: return call.object(index, types.taskContext) == nil
    case types.secret.name: return call.object(index, types.secret) == nil
    default:
      guard let lines = existing(ProgramMethods.self)?.lines, name == lines.name else {
        return false
      }
      return call.object(index, lines) == nil
    }
  }

  /// `tostring` of objects, with kind and name; and the error for setting a field.
  static var describingMetamethods: LuaFields<BoundMethod> {
    [
      "__tostring": BoundMethod { host, call in
        if let op = host.op(call, 1) {
          let kind = op is Flow ? "flow" : op is MachineOp ? "machine" : "op"
          return try host.answer(call, .bytes("\(kind): \(op.name)"))
        }
        if let run = call.object(1, host.types.run) {
          let state = run.isSkipped ? "checked" : run.state.name
          return try host.answer(call, .bytes("run: \(run.name) (\(state))"))
        }
        if let task = call.object(1, host.types.task) {
          let name = task is ProcessTask ? "task: exec" : task.title
          return try host.answer(call, .bytes("\(name) (\(task.state.name))"))
        }
        if let context = call.object(1, host.types.taskContext) {
          return try host.answer(call, .bytes("context (\(context.task.state.name))"))
        }
        if let handle = call.handle(1, host.types.context) {
          let context = host.context(slot: handle.slot, generation: handle.generation)
          return try host.answer(
            call, .bytes(context.map { "ctx: \($0.displayName)" } ?? "ctx (finished)"))
        }
        if let step = call.object(1, host.types.step) {
          return try host.answer(call, .bytes(step.name.map { "step: \($0)" } ?? "any_step"))
        }
        if let handler = call.object(1, host.types.handler) {
          return try host.answer(call, .bytes(handler.event.map { "on: \($0)" } ?? "next"))
        }
        if call.object(1, host.types.dispatcher) != nil {
          return call.answer(.string("dispatcher"))
        }
        let name = call.typeName(1)
        if host.isForged(call, 1, name) {
          return call.answer(.string(ByteString("forged \(name)")))
        }
        throw host.usage(
          call, "bad argument #1 to '__tostring' (object of flow expected, got \(name))")
      },
      "__newindex": BoundMethod { host, call in
        let field = call.bytes(2).map { "field '\($0)'" } ?? "a field"
        let hint = call.handle(1, host.types.context) == nil ? "" : "; use ctx:set(key, value)"
        throw host.usage(call, "can't set \(field) of \(host.shownType(call, 1))\(hint)")
      },
    ]
  }
}
