@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// One execution of an op, or one call of a function, as the worker has it.
final class WorkerJobSite: TaskObserver, EventSink {
  private let id: UInt64
  // Unowned: the site holds its jobs.
  private unowned let site: WorkerSite
  private var host: ScriptHost { site.host }
  private var task: AnyFlowTask?
  private var hasEnded = false

  init(_ id: UInt64, _ site: WorkerSite) {
    self.id = id
    self.site = site
  }

  var waitingTask: AnyFlowTask? { nil }

  /// Begins, and goes on to the first wait.
  func start(_ job: WorkerJob, _ function: LuaReference) throws {
    let arguments = try job.arguments.values.map { try host.luaValue($0, in: job.arguments) }
    let made: AnyFlowTask
    switch job.kind {
    case .op(let place): made = try start(place, function, arguments)
    case .call(let input): made = try start(input, function, arguments)
    }
    if hasEnded { return }
    task = made
    made.markObserved()
    if made.isConcluded { run() } else { made.observe(self) }
  }

  private func start(
    _ place: WorkerJob.OpPlace, _ function: LuaReference, _ arguments: [LuaValue]
  ) throws -> Run {
    let table = arguments.isEmpty ? nil : try host.vm.makeTable(values: arguments)
    let body = ScriptOpBody(
      host, function, arguments: table, argumentCount: arguments.count)
    // Types were checked where the op was started: here its needs only say what it may ask for.
    let op = Op(
      name: place.name, needs: place.visible.map { Declaration($0, .anything) },
      body: StandInBody(body, index: place.index, attempt: place.attempt))
    var data: [(ByteString, Value)] = []
    for (name, value) in zip(place.keys, place.data.values) {
      data.append((name, try host.value(value, in: place.data)))
    }
    return op.start(on: host.loop, data: data, sinks: [self])
  }

  private func start(
    _ input: WorkerJob.CallInput, _ function: LuaReference, _ arguments: [LuaValue]
  ) throws -> AnyFlowTask {
    var given = arguments
    switch input {
    case .values: break
    case .error(let error): given = [try host.luaError(error.error(on: host))]
    case .task(let error):
      let copy =
        error.map { FlowTask<Value>.failed($0.error(on: host), on: host.loop) }
        ?? .resolved(Value(arguments.first ?? .nil), on: host.loop)
      copy.markObserved()
      given = [try host.value(of: copy)]
    }
    return host.spawn(try host.vm.uniqueReference(to: function), given)
  }

  /// Asks it to stop.
  func cancel(_ error: FlowError) { task?.stop(error) }

  /// Lets go of it, for a worker that ends.
  func drop() {
    hasEnded = true
    task?.unobserve(self)
    task = nil
  }

  // MARK: What happens

  func run() {
    guard !hasEnded, let task else { return }
    hasEnded = true
    self.task = nil
    let error = host.outcomeError(of: task)
    var result = Value.null
    if error == nil, !(task is Run) { result = (try? host.result(of: task)) ?? .null }
    site.ended(job: id, error, result: result)
  }

  func append(_ event: Event, value: Value?, in log: EventLog) {
    guard !hasEnded else { return }
    let time = host.loop.now()
    switch event.kind {
    case .log:
      if let text = event.message { site.tell(id, at: time, .log(text)) }
    case .progress:
      if let done = event.done {
        site.tell(id, at: time, .progress(done: done, total: event.total))
      }
    case .set, .replace:
      guard let key = event.key, let value else { return }
      var batch = WireBatch()
      // `ctx:set` has refused what can't travel.
      guard let wired = try? host.wire(value, &batch) else { return }
      site.tell(id, at: time, .set(key, wired, batch))
    case .remove:
      if let key = event.key { site.tell(id, at: time, .set(key, .null, WireBatch())) }
    default: break
    }
  }
}

/// Has a body see the index and the attempt of the op that it executes for.
private final class StandInBody: OpBody {
  private let body: ScriptOpBody
  private let index: Int
  private let attempt: Int

  init(_ body: ScriptOpBody, index: Int, attempt: Int) {
    self.body = body
    self.index = index
    self.attempt = attempt
  }

  func start(_ context: OpContext) -> OpProgress {
    context.standIn(index: index, attempt: attempt)
    return body.start(context)
  }

  func cancel(_ context: OpContext, _ error: FlowError) { body.cancel(context, error) }

  func interrupt(_ context: OpContext, _ error: FlowError) { body.interrupt(context, error) }
}
