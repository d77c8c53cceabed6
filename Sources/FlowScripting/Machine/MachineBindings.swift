internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.machine` and the methods of machines.
struct MachineBindings {
  let host: ScriptHost

  func install() throws {
    try MachinePartBindings(host: host).install()
    host.define("machine") { host, call in
      let machine = try MachineReader(Arguments(host, call, "machine")).machine()
      host.loop.memory?.add(machine, bytes: MemoryAccount.opSize)
      host.noteDeclared(machine, call)
      return call.answer(machine, host.types.machine)
    }
  }

  static var methods: LuaFields<BoundMethod> {
    [
      "with": BoundMethod(PolicyBindings.with),
      "start": BoundMethod { host, call in
        return call.answer(try Self(host: host).start(call, "start"), host.types.run)
      },
      "run": BoundMethod { host, call in
        return try host.waitAndAnswer(call, try Self(host: host).start(call, "run"))
      },
      "continue": BoundMethod { host, call in
        let (machine, arguments) = try Self(host: host).machine(call, "continue")
        let step = try arguments.step(1, of: machine)
        let (result, state) = try arguments.resultAndState()
        var history: [Int] = []
        if !arguments.isNil(4) {
          let options = try arguments.options(4, known: ["history"])
          history = try options.history(of: machine)
        }
        let run = machine.continue(
          on: host.loop, after: step, result: result, state: state, history: history,
          owner: host.currentOp, adopt: host.adopt)
        return call.answer(run, host.types.run)
      },
      "transition": BoundMethod { host, call in
        let (machine, arguments) = try Self(host: host).machine(call, "transition")
        let step = try arguments.step(1, of: machine)
        let (result, state) = try arguments.resultAndState()
        let answer = MachineAnswerBox()
        let run = machine.decide(
          on: host.loop, after: step, result: result, state: state, adopt: host.adopt
        ) { answer.decision = $0 }
        let finish = { [unowned host] (call: LuaCall) throws -> LuaAnswer in
          if let error = host.outcomeError(of: run) { throw host.raise(error) }
          return call.answer(try Self(host: host).values(of: answer.decision, state, machine))
        }
        if run.isConcluded { return try finish(call) }
        try host.checkWait(for: run)
        return try call.wait(
          TaskWait(run, for: host.waitingTask, deadline: nil, answer: finish))
      },
      "check": BoundMethod { host, call in
        let (machine, _) = try Self(host: host).machine(call, "check")
        return call.answer(try host.vm.table(of: machine.check()))
      },
      "dot": BoundMethod { host, call in
        let (machine, arguments) = try Self(host: host).machine(call, "dot")
        return try host.answer(call, .bytes(machine.dot(try arguments.dotOptions(1))))
      },
      "mermaid": BoundMethod { host, call in
        let (machine, _) = try Self(host: host).machine(call, "mermaid")
        return try host.answer(call, .bytes(machine.mermaid()))
      },
    ]
  }

  static var metamethods: LuaFields<BoundMethod> {
    ScriptHost.describingMetamethods + [
      "__call": BoundMethod { host, call in
        throw host.usage(call, "a machine takes no arguments: start it with a state")
      }
    ]
  }

  private func machine(
    _ call: LuaCall, _ function: String
  ) throws -> (MachineOp, Arguments) {
    let arguments = Arguments(host, call, method: function)
    guard let machine = call.object(1, host.types.machine) else {
      throw arguments.wrongSelf("machine")
    }
    return (machine, arguments)
  }

  /// Starts a machine with a state, at its start or at the place in the options.
  private func start(_ call: LuaCall, _ function: String) throws -> Run {
    let (machine, arguments) = try machine(call, function)
    var step: Int?
    var history: [Int] = []
    var runOptions: RunOptions?
    if !arguments.isNil(2) {
      let options = try arguments.options(2, known: ["at", "history"] + RunOptions.fields)
      runOptions = try RunOptions(options)
      step = try options.string("at").map { try options.step($0, of: machine, "at") }
      history = try options.history(of: machine)
    }
    return machine.start(
      on: host.loop, from: FlowValue(try host.changeable(try call.value(2))), at: step,
      history: history,
      owner: host.currentOp, adopt: try host.adopter(runOptions))
  }

  /// The results of `transition`: the transition, nil at the end, and the state.
  private func values(
    of decision: MachineDecision<Int, FlowValue, FlowValue>?, _ given: FlowValue,
    _ machine: MachineOp
  ) throws -> [LuaValue] {
    switch decision {
    case .go(let transition, let state):
      let step = transition.step.map { machine.logic.name(ofStep: $0) }
      return [
        .reference(try host.vm.transitionTable(transition.kindName, step)),
        try host.luaValue(state),
      ]
    case .finish(let value): return [.nil, try host.luaValue(value)]
    case .retry:
      return [.reference(try host.vm.transitionTable("retry", nil)), try host.luaValue(given)]
    case nil: return [.nil, .nil]
    }
  }
}

/// The decision of a machine, for a call that waits for it.
private final class MachineAnswerBox {
  var decision: MachineDecision<Int, FlowValue, FlowValue>?
}

extension Arguments {
  /// The step of a machine that an argument names.
  fileprivate func step(_ index: Int, of machine: MachineOp) throws -> Int {
    try machine.step(named: try name(index)) { wrong(index, $0) }
  }

  /// A result and a state, which the machine may change.
  fileprivate func resultAndState() throws -> (result: FlowValue, state: FlowValue) {
    (
      FlowValue(try host.changeable(try call.value(3))),
      FlowValue(try host.changeable(try call.value(4)))
    )
  }
}

extension Options {
  fileprivate func step(
    _ name: ByteString, of machine: MachineOp, _ field: ByteString
  ) throws -> Int {
    try machine.step(named: name) { arguments.wrong(index, "field '\(field)': \($0)") }
  }

  /// The steps in the field `history`.
  fileprivate func history(of machine: MachineOp) throws -> [Int] {
    guard let table = try table("history") else { return [] }
    guard let names = try arguments.host.strings(in: .reference(table)) else {
      throw arguments.wrong(index, "field 'history': a list of names of steps expected")
    }
    return try names.map { try step($0, of: machine, "history") }
  }
}

extension MachineOp {
  /// The number of a step; `wrong` makes an error from a message about its name.
  fileprivate func step(
    named name: ByteString, _ wrong: (ByteString) -> any Error
  ) throws -> Int {
    guard let logic = logic as? ScriptMachineLogic else {
      throw wrong("a machine written in Swift continues only there")
    }
    let known = logic.steps.number(of: name)
    if let step = known ?? (isOpen ? logic.number(ofStep: name) : nil), accepts(step: step) {
      return step
    }
    let names = logic.steps.names
    let hint =
      NearestName.of(name, in: names).map { " (did you mean '\($0)'?)" } ?? ""
    throw wrong("machine '\(self.name)' has no step '\(name)'\(hint)")
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
      options.shape = shape.description
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

/// Reads the parameter of `flow.machine`.
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
      ] + PolicyOptions.fields.filter { !["effect", "cache", "memory", "tags"].contains($0) })
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
      try options.count("max_transitions") ?? MachineOp.defaultMaxTransitions
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
    // It replaces the functions of steps, and gets the same ctx.
    logic.navigate = try options.function("navigate").map { LuaCallback($0, handle: .last) }
    logic.reduce = try options.function("reduce").map { LuaCallback($0) }
    logic.emit = try options.function("emit").map { LuaCallback($0) }
    logic.transition = try options.function("transition").map { LuaCallback($0) }
    definition.hasNavigator = logic.navigate != nil
    definition.hasReducer = logic.reduce != nil
    definition.hasEmitter = logic.emit != nil
    definition.namesEvents = true
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
    return MachineStep(
      number, action, handlers: handlers, isFinal: part.isFinal, place: logic.place(part.position))
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
      let made = try MachineOp(
        definition, logic: logic, steps: logic.steps.names, events: logic.events.names, doc: doc,
        needs: needs, gives: gives, primaryInput: input, primaryOutput: output,
        policy: policy.over(nil, undo: policy.undo))
      return policy.limiting(made) as? MachineOp ?? made
    } catch let problem {
      let position =
        problem.place < 0
        ? arguments.call.position : logic.position(of: problem.place)
      throw host.usage(
        at: position,
        "bad argument #1 to 'machine' (machine '\(definition.name)': \(problem.message))")
    }
  }
}
