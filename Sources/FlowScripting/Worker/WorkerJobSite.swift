@_spi(Scripting) internal import FlowEngine
internal import LuaVM

/// One execution of an op, or one call of a function, as the worker has it.
final class WorkerJobSite: TaskObserver, EventSink {
  private let id: UInt64
  // Safe: the site holds its jobs, and drops them before it goes.
  private unowned(unsafe) let site: WorkerSite
  private var host: ScriptHost { site.host }
  /// What it is executed as, from its first stretch on, in which it may be asked to stop.
  fileprivate(set) var execution: Run?
  /// What a function has returned.
  fileprivate var result: Value = .null
  private var hasEnded = false

  init(_ id: UInt64, _ site: WorkerSite) {
    self.id = id
    self.site = site
  }

  var waitingTask: AnyFlowTask? { nil }

  /// Begins, and goes on to the first wait.
  func start(_ job: WorkerJob, _ function: LuaReference) throws {
    let arguments = try job.arguments.values.map { try host.luaValue($0, in: job.arguments) }
    let made: Run
    switch job.kind {
    case .op(let place): made = try start(place, function, arguments)
    case .call(let input):
      let body = CallBody(host, function, try self.arguments(input, arguments), of: self)
      made = Op(name: "continuation", body: body).start(on: host.loop)
    }
    made.markObserved()
    if made.isConcluded { ended(made) } else { made.observe(self) }
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
      grace: place.grace,
      body: StandInBody(
        body, index: place.index, attempt: place.attempt,
        endingError: place.endingError.map { $0.error(on: host) }, of: self))
    var data: [(ByteString, Value)] = []
    for (name, value) in zip(place.keys, place.data.values) {
      data.append((name, try host.value(value, in: place.data)))
    }
    return op.start(on: host.loop, data: data, sinks: [self])
  }

  /// What a continuation gets.
  private func arguments(
    _ input: WorkerJob.CallInput, _ values: [LuaValue]
  ) throws -> [LuaValue] {
    switch input {
    case .values: return values
    case .error(let error): return [try host.luaError(error.error(on: host))]
    case .task(let error):
      let copy =
        error.map { FlowTask<Value>.failed($0.error(on: host), on: host.loop) }
        ?? .resolved(Value(values.first ?? .nil), on: host.loop)
      copy.markObserved()
      return [try host.value(of: copy)]
    }
  }

  /// Asks it to stop.
  func cancel(_ error: FlowError) { execution?.stop(error) }

  /// Lets go of it, for a worker that ends.
  func drop() {
    hasEnded = true
    execution?.unobserve(self)
    execution = nil
  }

  // MARK: What happens

  func taskEnded(_ task: AnyFlowTask) { ended(task) }

  func run() {}

  private func ended(_ task: AnyFlowTask) {
    guard !hasEnded else { return }
    hasEnded = true
    execution = nil
    let error = host.outcomeError(of: task)
    site.ended(job: id, error, result: error == nil ? result : .null)
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
  private let endingError: FlowError?
  private weak var job: WorkerJobSite?

  init(
    _ body: ScriptOpBody, index: Int, attempt: Int, endingError: FlowError?, of job: WorkerJobSite
  ) {
    self.body = body
    self.index = index
    self.attempt = attempt
    self.endingError = endingError
    self.job = job
  }

  func start(_ context: OpContext) -> OpProgress {
    context.standIn(index: index, attempt: attempt)
    context.run.endingErrorAround = endingError
    job?.execution = context.run
    return body.start(context)
  }

  func cancel(_ context: OpContext, _ error: FlowError) { body.cancel(context, error) }

  func interrupt(_ context: OpContext, _ error: FlowError) { body.interrupt(context, error) }
}

/// Calls a function as the body of an op, so that all it starts is stopped with it.
private final class CallBody: OpBody {
  private let host: ScriptHost
  private let function: LuaReference
  private let arguments: [LuaValue]
  private weak var job: WorkerJobSite?
  private var task: AnyFlowTask?

  init(
    _ host: ScriptHost, _ function: LuaReference, _ arguments: [LuaValue],
    of job: WorkerJobSite
  ) {
    self.host = host
    self.function = function
    self.arguments = arguments
    self.job = job
  }

  func start(_ context: OpContext) -> OpProgress {
    job?.execution = context.run
    do {
      let task = try host.run(.op(context)) {
        Result { host.spawn(try host.vm.uniqueReference(to: function), arguments) }
      }.get()
      task.markObserved()
      self.task = task
      if task.isConcluded {
        if let error = end(task) { context.fail(error) }
        return .finished
      }
      task.observe(CallEnd(self, context))
      return .suspended
    } catch {
      context.fail(host.flowError(unpacking: error))
      return .finished
    }
  }

  /// Keeps the result; answers the error of a task that has none.
  fileprivate func end(_ task: AnyFlowTask) -> FlowError? {
    if let error = host.outcomeError(of: task) { return error }
    job?.result = (try? host.result(of: task)) ?? .null
    return nil
  }

  func cancel(_ context: OpContext, _ error: FlowError) { task?.stop(error) }
}

/// Ends the op of a call when the call has ended.
private final class CallEnd: TaskObserver {
  private let body: CallBody
  private let context: OpContext

  init(_ body: CallBody, _ context: OpContext) {
    self.body = body
    self.context = context
  }

  var waitingTask: AnyFlowTask? { context.run }

  func taskEnded(_ task: AnyFlowTask) { context.end(body.end(task)) }

  func run() {}
}
