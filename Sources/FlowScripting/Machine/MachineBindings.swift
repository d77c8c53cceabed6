internal import FlowEngine
internal import LuaVM

/// `flow.machine` and what machines do.
extension ScriptHost {
  func installMachines() throws {
    try installMachineParts()
    define("machine") { host, call in
      let machine = try MachineReader(Arguments(host, call, "machine")).machine()
      return call.answer(machine, host.types.machine)
    }
  }

  static var machineMethods: LuaFields<BoundMethod> {
    [
      "with": BoundMethod(opWith),
      "start": BoundMethod { host, call in
        let (machine, _) = try host.machine(call, "start")
        return call.answer(try host.start(machine, try call.value(2)), host.types.run)
      },
      "run": BoundMethod { host, call in
        let (machine, _) = try host.machine(call, "run")
        return try host.waitAndAnswer(call, try host.start(machine, try call.value(2)))
      },
      "continue": BoundMethod { host, call in
        let (machine, arguments) = try host.machine(call, "continue")
        let name = try arguments.name(1)
        guard let logic = machine.logic as? ScriptMachineLogic else {
          throw arguments.wrong(1, "a machine written in Swift goes on only there")
        }
        let known = logic.steps.number(of: name)
        guard let step = known ?? (machine.isOpen ? logic.number(ofStep: name) : nil),
          machine.accepts(step: step)
        else {
          let names = logic.steps.names.map(\.description)
          let hint =
            NearestName.of(name.description, in: names).map { " (did you mean '\($0)'?)" } ?? ""
          throw arguments.wrong(1, "machine '\(machine.name)' has no step '\(name)'\(hint)")
        }
        let run = machine.continue(
          on: host.loop, after: step, result: try call.engineValue(3),
          state: try call.engineValue(4), owner: host.currentOp, adopt: host.adopt)
        return call.answer(run, host.types.run)
      },
      "dot": BoundMethod { host, call in
        let (machine, arguments) = try host.machine(call, "dot")
        return try host.answer(call, .bytes(machine.dot(try arguments.dotOptions(1))))
      },
      "mermaid": BoundMethod { host, call in
        let (machine, _) = try host.machine(call, "mermaid")
        return try host.answer(call, .bytes(machine.mermaid()))
      },
    ]
  }

  static var machineMetamethods: LuaFields<BoundMethod> {
    describingMetamethods + [
      "__call": BoundMethod { host, call in
        throw host.usage(call, "a machine takes no arguments: start it with a state")
      }
    ]
  }

  private func machine(
    _ call: LuaCall, _ function: String
  ) throws -> (MachineOp, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let machine = call.object(1, types.machine) else {
      throw arguments.wrongSelf("machine")
    }
    return (machine, arguments)
  }

  /// Starts a machine with a state.
  private func start(_ machine: MachineOp, _ state: LuaValue) throws -> Run {
    machine.start(
      on: loop, from: Value(try changeable(state)), owner: currentOp, adopt: adopt)
  }
}

extension Arguments {
  /// The options of `dot`.
  fileprivate func dotOptions(_ index: Int) throws -> MachineDOTOptions {
    var options = MachineDOTOptions()
    if isNil(index) { return options }
    let given = try self.options(index, known: ["rankdir", "shape", "strict"])
    if let isStrict = try given.boolean("strict") { options.isStrict = isStrict }
    if let shape = try given.string("shape") {
      if shape.isEmpty { throw wrong(index, "field 'shape': a shape is a non-empty string") }
      options.shape = shape
    }
    if let direction = try given.string("rankdir") {
      guard let known = MachineDOTOptions.Direction(rawValue: direction.description) else {
        throw wrong(
          index, "field 'rankdir': \"LR\", \"RL\", \"TB\" or \"BT\" expected, got \"\(direction)\"")
      }
      options.direction = known
    }
    return options
  }
}

/// Reads the table that `flow.machine` is called with.
private struct MachineReader {
  private let arguments: Arguments
  private let options: Options
  private let parts: [LuaValue]
  private var host: ScriptHost { arguments.host }

  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    let (fields, parts) = try arguments.parts(1)
    self.parts = parts
    options = try Options(
      arguments, 1, fields,
      [
        "name", "start", "emit", "reduce", "navigate", "transition", "any", "max_transitions",
        "doc", "needs", "gives", "primary_input", "primary_output",
      ] + PolicyOptions.fields)
  }

  func machine() throws -> MachineOp {
    let name = try name("name")
    let logic = ScriptMachineLogic(host, machine: name, position: arguments.call.position)
    var definition = MachineDefinition(
      name: name, start: logic.number(ofStep: try self.name("start")), steps: [])
    if let any = try options.string("any") {
      guard any == "first" || any == "last" else {
        throw arguments.wrong(1, "field 'any': \"first\" or \"last\" expected, got \"\(any)\"")
      }
      definition.triesAnyStepFirst = any == "first"
    }
    definition.maxTransitions =
      try options.count("max_transitions") ?? MachineDefinition.defaultMaxTransitions
    try readFunctions(logic, &definition)
    for (index, part) in parts.enumerated() {
      guard let step = host.vm.object(in: part, host.types.step) else {
        throw arguments.wrong(
          1,
          "entry \(index + 1): flow.step or flow.any_step expected, got \(host.kindName(of: part))")
      }
      definition.steps.append(read(step, logic))
    }
    return try make(definition, logic)
  }

  private func name(_ field: ByteString) throws -> ByteString {
    guard let name = try options.string(field) else {
      throw options.wrong(field, expected: "string")
    }
    if name.isEmpty {
      throw arguments.wrong(1, "field '\(field)': a name is a non-empty string")
    }
    return name
  }

  private func readFunctions(
    _ logic: ScriptMachineLogic, _ definition: inout MachineDefinition
  ) throws {
    // It does what functions of steps do, and sees the machine's ctx as they do.
    logic.navigate = try options.function("navigate").map { LuaCallback($0, getsHandle: true) }
    logic.reduce = try options.function("reduce").map { LuaCallback($0) }
    logic.emit = try options.function("emit").map { LuaCallback($0) }
    logic.transition = try options.function("transition").map { LuaCallback($0) }
    definition.hasNavigator = logic.navigate != nil
    definition.hasReducer = logic.reduce != nil
    definition.hasEmitter = logic.emit != nil
    definition.hasProvider = logic.transition != nil
    guard let transition = logic.transition else { return }
    definition.providerPlace = logic.place(transition.position)
    if definition.hasEmitter {
      throw arguments.wrong(
        1, "field 'emit': nothing asks for events where there is a 'transition'")
    }
  }

  private func read(_ part: StepPart, _ logic: ScriptMachineLogic) -> MachineStep {
    let number = part.name.map { logic.number(ofStep: $0) }
    let action: MachineStep.Action
    switch part.run {
    case nil: action = .none
    case .op(let op): action = .op(op)
    case .function(let function):
      action = .logic
      if let number { logic.setFunction(function, of: number) }
    }
    let handlers = part.handlers.map { handler in
      let event = handler.event.map { logic.number(ofEvent: $0) }
      return MachineHandler(
        on: event, handler.transition.map { logic.number(ofStep: $0) },
        place: logic.place(handler.position))
    }
    return MachineStep(number, action, handlers: handlers, place: logic.place(part.position))
  }

  private func make(
    _ definition: MachineDefinition, _ logic: ScriptMachineLogic
  ) throws -> MachineOp {
    let policy = try PolicyOptions(options)
    func declared(_ field: ByteString) throws -> [Declaration] {
      guard let table = try options.table(field) else { return [] }
      return try host.declaration(table) { arguments.wrong(1, "field '\(field)': \($0)") }
    }
    let (needs, gives) = (try declared("needs"), try declared("gives"))
    let doc = try options.string("doc")
    let input = try options.string("primary_input")
    let output = try options.string("primary_output")
    do {
      return try MachineOp(
        definition, logic: logic, steps: logic.steps.names, events: logic.events.names, doc: doc,
        needs: needs, gives: gives, primaryInput: input, primaryOutput: output,
        retry: policy.retry, timeout: policy.timeout, grace: policy.grace)
    } catch let problem {
      let position =
        problem.place < 0
        ? arguments.call.position : LuaString(logic.position(of: problem.place))
      throw host.usage(
        at: position, "bad argument #1 to 'machine' (machine '\(definition.name)': \(problem))")
    }
  }
}
