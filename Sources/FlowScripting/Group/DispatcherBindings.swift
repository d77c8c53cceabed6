@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A group's dispatcher as an object for scripts.
final class DispatcherBox {
  let dispatcher: GroupDispatcher
  /// The options `label` and `stop_when`, as the script gave them.
  let label, stopWhen: LuaValue

  init(_ dispatcher: GroupDispatcher, label: LuaValue, stopWhen: LuaValue) {
    self.dispatcher = dispatcher
    self.label = label
    self.stopWhen = stopWhen
  }
}

/// `flow.dispatcher`.
struct DispatcherBindings {
  let host: ScriptHost

  func install() {
    host.define("dispatcher") { host, call in
      let box = try Self(host: host).makeDispatcher(Arguments(host, call, "dispatcher"), 1)
      return call.answer(box, host.types.dispatcher)
    }
  }

  /// `dispatcher.input`, …: its settings, defaults included.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let box = call.object(1, host.types.dispatcher) else {
      throw Arguments(host, call, method: "__index").wrongSelf("dispatcher")
    }
    let dispatcher = box.dispatcher
    switch call.bytes(2).cases {
    case "input": return try host.answer(call, dispatcher.input)
    case "output": return try host.answer(call, dispatcher.output)
    case "max_concurrent": return call.answer(.integer(Int64(dispatcher.maxConcurrent)))
    case "allow_failure": return call.answer(.boolean(dispatcher.allowFailure))
    case "allow_empty": return call.answer(.boolean(dispatcher.allowEmpty))
    case "failures": return try host.answer(call, dispatcher.failures)
    case "as": return try host.answer(call, dispatcher.itemKey)
    case "collect": return try host.answer(call, dispatcher.collect)
    case "absent": return try host.answer(call, dispatcher.absent ?? .null)
    case "rate":
      guard let rate = dispatcher.rate else { return call.answer(.nil) }
      let table = try host.vm.makeTable(
        values: [.integer(Int64(rate.count))], fields: [("per", .number(rate.period.inSeconds))])
      return call.answer(.reference(table))
    case "hold_slot": return call.answer(.boolean(dispatcher.holdsSlots))
    case "limit": return call.answer(try Limits.value(of: dispatcher.limits, host))
    case "label": return call.answer(box.label)
    case "ordered": return call.answer(.boolean(dispatcher.isOrdered))
    case "stop_when": return call.answer(box.stopWhen)
    default: return try host.absentField(call, of: "a dispatcher", known: fields)
    }
  }

  private static let fields: [String] = [
    "input", "output", "max_concurrent", "allow_failure", "allow_empty", "failures", "as",
    "collect", "absent", "rate", "hold_slot", "limit", "label", "stop_when", "ordered",
  ]

  private func makeDispatcher(_ arguments: Arguments, _ index: Int) throws -> DispatcherBox {
    let options = try arguments.options(index, known: Self.fields)
    guard let input = try options.string("input") else {
      throw arguments.wrong(index, "field 'input': string expected, got nil")
    }
    let output = try options.string("output")
    if let output, try options.string("failures") == output {
      throw arguments.wrong(index, "fields 'output' and 'failures': both are '\(output)'")
    }
    let absent = options.value("absent").map { FlowValue($0) }
    if absent != nil, output == nil {
      throw arguments.wrong(index, "field 'absent': without 'output' nothing is collected")
    }
    var dispatcher = GroupDispatcher(
      input: input, output: output,
      maxConcurrent: try options.count("max_concurrent") ?? 3,
      allowFailure: try options.boolean("allow_failure") ?? false,
      allowEmpty: try options.boolean("allow_empty") ?? false,
      failures: try options.string("failures"), as: try options.string("as"),
      collect: try options.string("collect"), absent: absent, rate: try options.rate("rate"),
      holdsSlots: try options.boolean("hold_slot") ?? false,
      limits: try options.limits("limit") ?? [],
      isOrdered: try options.boolean("ordered") ?? true, label: try options.label("label"))
    let label = options.value("label") ?? .nil
    dispatcher.labelSource = FlowValue(label)
    let stopWhen = options.value("stop_when") ?? .nil
    if let function = try options.function("stop_when") {
      dispatcher.stopRule = StopFunction(host: host, function: function).rule
      dispatcher.stopSource = FlowValue(stopWhen)
    }
    return DispatcherBox(dispatcher, label: label, stopWhen: stopWhen)
  }

  /// The dispatcher in an argument (a plain table works too), completed for an op.
  func dispatcher(_ arguments: Arguments, _ index: Int, for op: Op) throws -> GroupDispatcher {
    let place = arguments.place(index)
    let dispatcher: GroupDispatcher
    if let box = arguments.call.object(place, host.types.dispatcher) {
      dispatcher = box.dispatcher
    } else if arguments.call.kind(place) == .table {
      dispatcher = try makeDispatcher(arguments, index).dispatcher
    } else {
      throw arguments.wrong(index, expected: "dispatcher or table")
    }
    if dispatcher.itemKey == nil, op.primaryInput == nil {
      throw arguments.wrong(
        index,
        "op '\(op.name)' has no primary input: give 'as' here, or 'primary_input' or one "
          + "key of 'needs' in the op")
    }
    if dispatcher.output != nil, dispatcher.collect == nil, op.primaryOutput == nil {
      throw arguments.wrong(
        index,
        "op '\(op.name)' has no primary output: give 'collect' here, or 'primary_output' or "
          + "one key of 'gives' in the op")
    }
    return dispatcher
  }
}

/// The function `stop_when` of a dispatcher.
private struct StopFunction {
  let host: ScriptHost
  let function: LuaReference

  /// Makes what one execution of a group calls: the function gets one table, to which each result is added. A wait in it
  /// keeps the thread from other code.
  func rule() -> GroupStopRule {
    var results: LuaReference?
    var count = 0
    return { output, ended in
      let table = try results ?? host.vm.makeTable(values: [])
      results = table
      if let output {
        count += 1
        try host.vm.set(try host.luaValue(output), at: count, in: table)
      }
      let answers: [LuaValue]
      do {
        answers = try host.callInPlace(function, [.reference(table), .integer(Int64(ended))])
      } catch {
        throw host.flowError(of: (error, "", ""), op: nil)
      }
      switch answers.first ?? .nil {
      case .nil, .boolean(false): return false
      default: return true
      }
    }
  }
}

extension Options {
  /// The maker of the labels of a group's items: the key of a field of each, or a function.
  func label(_ name: ByteString) throws -> ((FlowValue) throws -> ByteString?)? {
    let labels = ItemLabels(host: arguments.host)
    switch value(name) {
    case nil: return nil
    case .string(let key): return { try labels.label(of: $0, key: key) }
    case .reference(let function) where function.kind == .function:
      return { try labels.label(of: $0, by: function) }
    default: throw wrong(name, expected: "string or function")
    }
  }
}

/// Makes the labels of items.
private struct ItemLabels {
  let host: ScriptHost

  /// The field of a table, or the item itself when it is a text, number or boolean; nil when there is
  /// no such field, or when it is of another type.
  func label(of item: FlowValue, key: ByteString) throws -> ByteString? {
    guard case .opaque = item else { return Self.label(item) }
    guard case .reference(let table) = try host.luaValue(item), table.kind == .table else {
      return nil
    }
    return Self.label(FlowValue(try host.vm.rawGet(.string(key), in: table)))
  }

  private static func label(_ value: FlowValue) -> ByteString? {
    switch value {
    case .null: nil
    case .opaque: value.isSecret ? value.logText : nil
    default: value.logText
    }
  }

  /// The result of a function that gets the item. A wait in it keeps the thread from other code.
  func label(of item: FlowValue, by function: LuaReference) throws -> ByteString? {
    let results: [LuaValue]
    do {
      results = try host.callInPlace(function, [try host.luaValue(item)])
    } catch {
      throw host.flowError(of: (error, "", ""), op: nil)
    }
    switch FlowValue(results.first ?? .nil) {
    case .null: return nil
    case .opaque(let value) where !FlowValue.opaque(value).isSecret:
      throw wrongLabel(results, function)
    case .boolean: throw wrongLabel(results, function)
    case let value: return value.logText
    }
  }

  private func wrongLabel(_ results: [LuaValue], _ function: LuaReference) -> FlowError {
    let place = host.vm.place(of: function).map { "\($0): " } ?? ""
    let got = host.kindName(of: results.first ?? .nil)
    return .usage(
      "\(place)bad result of the function 'label' of a dispatcher (string or nil expected, got \(got))"
    )
  }
}
