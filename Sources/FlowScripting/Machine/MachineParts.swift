internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A step, made by `flow.step` or `flow.any_step`.
final class StepPart {
  /// nil for any step.
  let name: ByteString?
  /// An op, flow, machine or function; nil when the machine's `navigate` performs it.
  let run: Action?
  let handlers: [HandlerPart]
  /// Whether the machine ends after it.
  let isFinal: Bool
  /// The place where it was written.
  let position: ByteString

  enum Action {
    case op(Op)
    case function(LuaReference)
  }

  init(
    _ name: ByteString?, _ run: Action?, _ handlers: [HandlerPart], isFinal: Bool,
    _ position: ByteString
  ) {
    self.name = name
    self.run = run
    self.handlers = handlers
    self.isFinal = isFinal
    self.position = position
  }
}

/// A handler, made by `flow.on` or `flow.next`.
final class HandlerPart {
  /// nil for `next`.
  let event: ByteString?
  let transition: MachineTransition<ByteString>
  /// The place where it was written.
  let position: ByteString

  init(_ event: ByteString?, _ transition: MachineTransition<ByteString>, _ position: ByteString) {
    self.event = event
    self.transition = transition
    self.position = position
  }
}

/// The functions of the module for writing machines.
struct MachinePartBindings {
  let host: ScriptHost

  func install() throws {
    host.define("forward") { host, call in
      let step = try Arguments(host, call, "forward").name(1)
      return try Self(host: host).answer(call, .forward(to: step))
    }
    host.define("back") { host, call in
      let arguments = Arguments(host, call, "back")
      return try Self(host: host).answer(
        call, .back(to: arguments.isNil(1) ? nil : try arguments.name(1)))
    }
    host.define("stay") { host, call in try Self(host: host).answer(call, .stay) }
    host.define("on") { host, call in
      let arguments = Arguments(host, call, "on")
      let event = try arguments.name(1)
      let part = HandlerPart(event, try arguments.transition(2), call.position)
      return call.answer(part, host.types.handler)
    }
    host.define("next") { host, call in
      let part = HandlerPart(
        nil, try Arguments(host, call, "next").transition(1), call.position)
      return call.answer(part, host.types.handler)
    }
    host.define("step") { host, call in
      let arguments = Arguments(host, call, "step")
      let name = try arguments.name(1)
      let part = try arguments.step(name, 2)
      return call.answer(part, host.types.step)
    }
    host.define("any_step") { host, call in
      let part = try Arguments(host, call, "any_step").step(nil, 1)
      return call.answer(part, host.types.step)
    }
    for mark in ReductionMark.allCases {
      let marker = try host.vm.makeMarker(mark.rawValue, metatable: host.types.reductionMetatable)
      try host.vm.set(.reference(marker), mark.name, in: host.module)
    }
  }

  private func answer(_ call: LuaCall, _ transition: MachineTransition<ByteString>) throws
    -> LuaAnswer
  {
    call.answer(.reference(try host.vm.transitionTable(transition.kindName, transition.step)))
  }
}

extension LuaVM {
  /// `{ kind = "forward", step = name }`.
  func transitionTable(_ kind: ByteString, _ step: ByteString?) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = [("kind", .string(kind))]
    if let step { fields.append(("step", .string(step))) }
    return try makeTable(fields: fields)
  }

  /// The transition in a value of a script; nil if there is none.
  func transition(in value: LuaValue) throws -> MachineTransition<ByteString>? {
    guard case .reference(let table) = value, table.kind == .table,
      case .string(let kind) = try field("kind", of: table)
    else { return nil }
    let step = try field("step", of: table)
    switch (kind, step) {
    case ("forward", .string(let name)): return .forward(to: name)
    case ("back", .string(let name)): return .back(to: name)
    case ("back", .nil): return .back(to: nil)
    case ("stay", .nil): return .stay
    default: return nil
    }
  }
}

extension Arguments {
  /// A transition.
  fileprivate func transition(_ index: Int) throws -> MachineTransition<ByteString> {
    guard let transition = try host.vm.transition(in: try call.value(place(index))) else {
      throw wrong(
        index, expected: "transition (flow.forward, flow.back or flow.stay)")
    }
    return transition
  }

  /// The table of a step.
  fileprivate func step(_ name: ByteString?, _ index: Int) throws -> StepPart {
    let (fields, list) = try parts(index)
    if name == nil, !fields.isEmpty {
      throw wrong(index, "any_step has no fields: it lists flow.on and flow.next only")
    }
    let options = try Options(self, index, fields, ["run", "final"])
    let handlers = try list.enumerated().map { place, value in
      guard let handler = host.vm.object(in: value, host.types.handler) else {
        throw wrong(
          index,
          "entry \(place + 1): flow.on or flow.next expected, got \(host.kindName(of: value))")
      }
      return handler
    }
    return StepPart(
      name, try options.action("run"), handlers,
      isFinal: try options.boolean("final") ?? false, call.position)
  }

  /// A table with named fields and a list, separated.
  func parts(
    _ index: Int
  ) throws -> (fields: [(key: LuaValue, value: LuaValue)], list: [LuaValue]) {
    var fields: [(key: LuaValue, value: LuaValue)] = []
    var list: [Int64: LuaValue] = [:]
    for (key, value) in try host.vm.pairs(of: try table(index)) {
      if case .integer(let place) = key { list[place] = value } else { fields.append((key, value)) }
    }
    var ordered: [LuaValue] = []
    while let value = list.removeValue(forKey: Int64(ordered.count + 1)) { ordered.append(value) }
    if let stray = list.keys.min() {
      throw wrong(index, "the list has a hole before entry \(stray)")
    }
    return (fields, ordered)
  }
}

extension Options {
  /// The op or function that performs a step.
  fileprivate func action(_ name: ByteString) throws -> StepPart.Action? {
    guard let value = value(name) else { return nil }
    if let op = arguments.host.op(in: value) {
      if let complaint = op.complaintOfClass {
        throw arguments.wrong(index, "field '\(name)': \(complaint)")
      }
      return .op(op)
    }
    guard case .reference(let function) = value, function.kind == .function else {
      throw wrong(name, expected: "op, flow, machine or function")
    }
    return .function(function)
  }
}
