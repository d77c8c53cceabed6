public import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// The methods and fields of a run.
struct RunBindings {
  let host: ScriptHost

  static var methods: LuaFields<BoundMethod> {
    TaskBindings.methods(of: "run") + [
      "summary": BoundMethod { host, call in
        let (run, arguments) = try Self(host: host).run(call, "summary")
        Self(host: host).noteRead(ofAllIn: run)
        var options = host.reporting.summaryOptions
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
        return try host.answer(call, .bytes(run.summary(options)))
      },
      "events": BoundMethod { host, call in
        let (run, _) = try Self(host: host).run(call, "events")
        Self(host: host).noteRead(ofAllIn: run)
        return call.answer(.reference(try Self(host: host).events(of: run)))
      },
      "dot": BoundMethod { host, call in
        let (run, _) = try Self(host: host).run(call, "dot")
        host.ending.describesFlows = true
        Self(host: host).noteRead(ofAllIn: run)
        return try host.answer(call, .bytes(run.dot()))
      },
    ] + fileMethods
  }

  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard let run = call.object(1, host.types.run) else {
      throw Arguments(host, call, method: "__index").wrongSelf("run")
    }
    let name = call.bytes(2)?.description
    if host.mayLackOutcomes, let name, outcomeFields.contains(name) {
      try host.needOutcome(of: run, call)
    }
    switch name {
    case "name": return try host.answer(call, .bytes(run.name))
    case "id": return call.answer(.integer(Int64(run.id)))
    case "data": return call.answer(.reference(try host.dataView(of: run)))
    case "ok":
      run.markObserved()
      return call.answer(.boolean(run.state == .succeeded))
    case "history": return call.answer(try host.vm.list(of: run.history))
    case "finished_early": return call.answer(.boolean(run.isFinishedEarly))
    case "dropped_events": return call.answer(.integer(Int64(run.droppedEvents)))
    case "duration": return call.answer(.number(run.duration.inSeconds))
    default:
      if let field = try TaskBindings(host: host).taskField(call, run) { return field }
      if let name,
        run.data.entries.contains(where: { host.loop.keys.name(of: $0.key) == ByteString(name) })
      {
        throw host.usage(call, "a run has no field '\(name)': its data has it (run.data.\(name))")
      }
      return try host.absentField(
        call, of: "a run", known: fields + outcomeFields.sorted() + methods.names)
    }
  }

  private static let fields: [String] = ["name", "id", "dropped_events"]

  /// The fields about the outcome of a run.
  private static let outcomeFields: Set<String> = [
    "data", "ok", "finished_early", "history", "duration", "completed", "cancelled", "state",
    "faulted",
    "error", "result",
  ]

  /// The run that a method is called on, and the arguments of the call.
  func run(_ call: LuaCall, _ function: String) throws -> (Run, Arguments) {
    let arguments = Arguments(host, call, method: function)
    guard let run = call.object(1, host.types.run) else { throw arguments.wrongSelf("run") }
    if host.mayLackOutcomes { try host.needOutcome(of: run, call) }
    return (run, arguments)
  }

  /// Called before something is made of all that a run has done: an op of a kept run then reads all its data.
  func noteRead(ofAllIn run: Run) {
    if !run.isConcluded { host.currentOp?.willReadAll(of: run) }
  }

  /// The events of a run for `run:events()`: a list of tables with the fields of `RunEvent.Field`. They are filled one
  /// after another, so that a list of a million needs no second copy of them.
  func events(of run: Run) throws -> LuaReference {
    let list = try host.vm.makeTable()
    var index = 0
    for event in run.events {
      index += 1
      try host.vm.set(.reference(try table(of: event)), at: index, in: list)
    }
    return list
  }

  /// An event as scripts have it.
  func table(of event: RunEvent) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = []
    event.forEachField { field, value in
      switch value {
      case .bytes(let text): fields.append((field.name, .string(text)))
      case .integer(let number): fields.append((field.name, .integer(number)))
      case .number(let number): fields.append((field.name, .number(number)))
      default: break
      }
    }
    return try host.vm.makeTable(fields: fields)
  }

  // MARK: Views of a run that are files

  private static var fileMethods: LuaFields<BoundMethod> {
    [
      "report": BoundMethod { host, call in
        try Self(host: host).give(call, "report") { $0.report() }
      },
      "timeline": BoundMethod { host, call in
        try Self(host: host).give(call, "timeline") { $0.timeline() }
      },
      "trace": BoundMethod { host, call in
        try Self(host: host).give(call, "trace") { $0.trace() }
      },
      "otlp": BoundMethod { host, call in
        try Self(host: host).give(call, "otlp", problem: SpanFile.problem) {
          host.otlp(of: $0)
        }
      },
    ]
  }

  /// Writes a view of a run to the file that the call names, without blocking other code; returns its text
  /// if it names none. `problem` says why an existing file isn't replaced.
  private func give(
    _ call: LuaCall, _ function: String,
    problem: @escaping @Sendable (ByteString) -> ByteString? = { _ in nil },
    _ text: (Run) -> ByteString
  ) throws -> LuaAnswer {
    let (run, arguments) = try run(call, function)
    noteRead(ofAllIn: run)
    if arguments.isNil(1) { return try host.answer(call, .bytes(text(run))) }
    try host.check(.files, call, "run:\(function)")
    let path = try arguments.path(1)
    let content = text(run)
    return try host.offload(call) { cancellation throws(SystemError) in
      if let problem = problem(path) {
        throw SystemError("run:\(function): \(problem)", code: EEXIST)
      }
      try Files.write(content, to: path, cancellation)
    } answer: { call, _ in
      call.answer()
    }
  }
}

extension Run {
  /// The run as a page for a browser (HTML), which needs nothing else: `--timeline` of flowlua. A run that
  /// hasn't ended is shown as far as it is. Called on the loop's thread.
  ///
  /// ```swift
  /// try String(run.timeline()).write(toFile: "run.html", atomically: true, encoding: .utf8)
  /// ```
  public func timeline() -> ByteString { TimelinePage.text(of: [TimelinePage.Entry(self)]) }

  /// The run as Chrome trace events in JSON, which Perfetto shows: `--trace` of flowlua. The waits
  /// of scripts are in it only with that option. Called on the loop's thread.
  public func trace() -> ByteString { RunTrace.text(of: [RunSpans(self)]) }
}

/// How summaries and traces of a host's runs begin.
package final class RunReporting: HostService {
  /// The form of summaries for which a script says nothing else.
  package var summaryOptions = SummaryOptions()
  fileprivate var serviceName: ByteString = "flowlua"
  /// The trace of spans while the loop has none.
  fileprivate private(set) lazy var ownTrace = TraceContext()
}

/// The spans of runs.
extension ScriptHost {
  package var reporting: RunReporting { service { RunReporting() } }

  /// The spans of a run in OTLP/JSON, for collectors of OpenTelemetry: `--otlp` of flowlua. A program sends them to a
  /// collector as the body of a POST request, of the type `application/json`.
  ///
  /// There is a span for each execution, each attempt if there are several, each undo, program and request. They belong
  /// to the run's trace (see `FlowEventLoop.trace` and `Op.start`); the runs without one share a trace of this host. An
  /// execution that hasn't ended is shown as far as it is. The service is named by `serviceName` or the
  /// environment. No secret is in the text.
  ///
  /// Called on the loop's thread.
  public func otlp(of run: Run) -> ByteString {
    RunOTLP.text(of: [RunSpans(run)], run.traceContext ?? trace, resource)
  }

  /// The name of the service in the spans of `otlp(of:)`: `flowlua`, unless the program sets another one.
  /// `OTEL_SERVICE_NAME` and a `service.name` in `OTEL_RESOURCE_ATTRIBUTES`, if they are set, take precedence.
  public var serviceName: ByteString {
    get { reporting.serviceName }
    set { reporting.serviceName = newValue }
  }

  /// The trace that spans belong to.
  package var trace: TraceContext { loop.trace ?? reporting.ownTrace }

  /// The facts that spans say about this process.
  package var resource: TraceResource {
    TraceResource(title: serviceName, hiding: loop.secrets)
  }
}
