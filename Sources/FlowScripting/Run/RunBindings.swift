internal import FlowEngine
internal import LuaVM

/// What scripts do with a run.
extension ScriptHost {
  static var runMethods: [String: BoundMethod] {
    [
      "wait": BoundMethod { host, call in
        let (run, arguments) = try host.run(call, "wait")
        let deadline =
          arguments.isNil(1) ? nil : host.loop.deadline(after: try arguments.seconds(1))
        if run.isConcluded { return call.answer(.boolean(true)) }
        return try call.wait(RunWait(run, deadline: deadline) { .boolean(run.isConcluded) })
      },
      "summary": BoundMethod { host, call in
        let (run, arguments) = try host.run(call, "summary")
        var options = SummaryOptions()
        if !arguments.isNil(1) {
          let given = try arguments.options(1, known: ["time", "durations"])
          if let time = try given.string("time") {
            guard time == "iso" else {
              throw arguments.wrong(1, "field 'time': \"iso\" expected, got \"\(time)\"")
            }
            options.time = .iso
          }
          options.durations = try given.boolean("durations") ?? false
        }
        return try host.answer(call, .bytes(run.summary(options)))
      },
      "events": BoundMethod { host, call in
        let (run, _) = try host.run(call, "events")
        return call.answer(.reference(try host.events(of: run)))
      },
    ]
  }

  static func runProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let run = call.object(1, host.types.run) else {
      throw Arguments(host, call, method: "__index").wrongSelf("run")
    }
    switch call.string(2)?.description {
    case "name": return try host.answer(call, .bytes(run.name))
    case "id": return call.answer(.integer(Int64(run.id)))
    case "data": return call.answer(.reference(try host.table(of: run.data)))
    case "ok":
      run.markObserved()
      return call.answer(.boolean(run.state == .succeeded))
    case "error":
      run.markObserved()
      guard let error = run.error else { return call.answer(.nil) }
      return call.answer(try host.luaError(host.owned(error, of: run)))
    case "state":
      run.markObserved()
      return try host.answer(call, .bytes(run.state.name))
    case "duration": return call.answer(.number(run.duration))
    default: return try host.missingField(call, later: LaterNames.run)
    }
  }

  private func run(_ call: LuaCall, _ function: String) throws -> (Run, Arguments) {
    let arguments = Arguments(self, call, method: function)
    guard let run = call.object(1, types.run) else { throw arguments.wrongSelf("run") }
    return (run, arguments)
  }

  /// Answers a run once it has settled.
  func waitAndAnswer(_ call: LuaCall, _ run: Run) throws -> LuaAnswer {
    if run.isConcluded { return call.answer(run, types.run) }
    let value = try vm.value(of: run, types.run)
    return try call.wait(RunWait(run, deadline: nil) { value })
  }

  /// The error with its one table.
  private func owned(_ error: FlowError, of run: Run) throws -> FlowError {
    if error.payload != nil { return error }
    if let kept = run.attachment as? FlowError { return kept }
    let table = try makeError(
      error.kind, error.message, op: error.op, traceback: error.traceback)
    let owned = FlowError(
      error.kind, error.message, op: error.op, traceback: error.traceback,
      payload: ConfinedValue(.opaque(ScriptValue(table)), on: loop), seconds: error.seconds)
    run.attachment = owned
    return owned
  }
}

/// Waits for a run, at most until a deadline.
final class RunWait: LuaWait, LoopJob {
  private let target: Run
  private let result: () -> LuaValue
  private var timer: Timer?

  init(_ run: Run, deadline: Int64?, result: @escaping () -> LuaValue) {
    target = run
    self.result = result
    super.init()
    run.observe(self)
    if let deadline { timer = run.loop.schedule(at: deadline, self) }
  }

  func run() {
    abandon()
    ready()
  }

  /// Lets go of both, the run and the timer: the one that didn't come would keep the wait.
  override func abandon() {
    target.unobserve(self)
    timer?.cancel()
    timer = nil
  }

  override func finish(_ call: LuaCall) throws -> LuaAnswer { call.answer(result()) }
}
