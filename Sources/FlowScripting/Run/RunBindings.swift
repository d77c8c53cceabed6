internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The methods and fields of a run.
extension ScriptHost {
  static var runMethods: LuaFields<BoundMethod> {
    taskMethods(of: "run") + [
      "summary": BoundMethod { host, call in
        let (run, arguments) = try host.run(call, "summary")
        host.noteRead(ofAllIn: run)
        var options = host.summaryOptions
        if !arguments.isNil(1) {
          let given = try arguments.options(1, known: ["time", "durations", "full"])
          if let time = try given.string("time") {
            guard time == "iso" else {
              throw arguments.wrong(1, "field 'time': \"iso\" expected, got \"\(time)\"")
            }
            options.time = .iso
          }
          options.durations = try given.boolean("durations") ?? false
          options.full = try given.boolean("full") ?? false
        }
        return try host.answer(call, .bytes(run.summaryBytes(options)))
      },
      "events": BoundMethod { host, call in
        let (run, _) = try host.run(call, "events")
        host.noteRead(ofAllIn: run)
        return call.answer(.reference(try host.events(of: run)))
      },
    ] + runGraphMethods + runFileMethods
  }

  static func runProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let run = call.object(1, host.types.run) else {
      throw Arguments(host, call, method: "__index").wrongSelf("run")
    }
    let name = call.bytes(2)?.description
    if host.mayLackOutcomes, let name, outcomeFields.contains(name) {
      try host.needOutcome(of: run, call)
    }
    switch name {
    case "name": return try host.answer(call, .bytes(run.nameBytes))
    case "id": return call.answer(.integer(Int64(run.id)))
    case "data": return call.answer(.reference(try host.dataView(of: run)))
    case "ok":
      run.markObserved()
      return call.answer(.boolean(run.state == .succeeded))
    case "history": return call.answer(try host.list(of: run.history))
    case "finished_early": return call.answer(.boolean(run.isFinishedEarly))
    case "dropped_events": return call.answer(.integer(Int64(run.droppedEvents)))
    case "duration": return call.answer(.number(run.duration.inSeconds))
    default:
      if let field = try host.taskField(call, run) { return field }
      if let name,
        run.data.entries.contains(where: { host.loop.keys.name(of: $0.key) == ByteString(name) })
      {
        throw host.usage(call, "a run has no field '\(name)': its data has it (run.data.\(name))")
      }
      return try host.absentField(
        call, of: "a run", known: runFields + outcomeFields.sorted() + runMethods.names)
    }
  }

  private static let runFields = ["name", "id", "dropped_events"]

  /// The fields about the outcome of a run.
  private static let outcomeFields: Set<String> = [
    "data", "ok", "finished_early", "history", "duration", "completed", "cancelled", "state",
    "faulted",
    "error", "result",
  ]

  /// The run that a method is called on, and the arguments of the call.
  func run(_ call: LuaCall, _ function: String) throws -> (Run, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let run = call.object(1, types.run) else { throw arguments.wrongSelf("run") }
    if mayLackOutcomes { try needOutcome(of: run, call) }
    return (run, arguments)
  }

  /// Called before something is made of all that a run has done: an op of a kept run then reads all its data.
  func noteRead(ofAllIn run: Run) {
    if !run.isConcluded { currentOp?.willReadAll(of: run) }
  }

  /// A list of names; nil for none.
  func list(of names: [ByteString]?) throws -> LuaValue {
    guard let names else { return .nil }
    return .reference(try vm.makeList(count: names.count) { .string(names[$0]) })
  }

  /// Returns a run once it has settled.
  func waitAndAnswer(_ call: LuaCall, _ run: Run) throws -> LuaAnswer {
    if run.isConcluded { return call.answer(run, types.run) }
    try checkWait(for: run)
    let value = try vm.value(of: run, types.run)
    return try call.wait(TaskWait(run, for: waitingTask, deadline: nil) { $0.answer(value) })
  }
}
