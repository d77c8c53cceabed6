@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// One execution of an op, or one call of a function, in a worker.
final class WorkerJobRunner: TaskObserver, EventSink {
  private let id: UInt64
  // Safe: the worker owns its jobs, and drops them before it is released.
  private unowned(unsafe) let worker: WorkerRuntime
  private var host: ScriptHost { worker.host }
  /// Its execution, from the start of the body on, because it may be stopped before its first wait.
  private(set) var execution: Run?
  /// The stop that came before that.
  private var earlyStop: FlowError?
  /// The result of a function.
  fileprivate var result: FlowValue = .null
  private var hasEnded = false
  /// Whether it is one of an op.
  private(set) var isOp = false

  init(_ id: UInt64, _ worker: WorkerRuntime) {
    self.id = id
    self.worker = worker
  }

  var waitingTask: AnyFlowTask? { nil }

  /// Begins, and runs up to the first wait.
  func start(_ job: WorkerJob, _ function: LuaReference) throws {
    let arguments = try job.arguments.values.map { try host.luaValue($0, in: job.arguments) }
    let made: Run
    switch job.kind {
    case .op(let place):
      isOp = true
      made = try start(place, function, arguments)
    case .call(let input, let span):
      let body = CallBody(
        host, function, try self.arguments(input, arguments), span: span, of: self)
      made = Op(name: "continuation", body: body).start(on: host.loop, sinks: [self])
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
    // Types were checked where the op was started: here its needs only list the keys it may read.
    let op = Op(
      name: place.name, needs: place.visible.map { Declaration($0, .anything) },
      policy: .make(nil, grace: place.grace),
      body: StandInBody(
        body, index: place.index, label: place.label, attempt: place.attempt,
        lineage: place.lineage, span: place.span,
        endingError: place.endingError.map { $0.error(on: host) }, streams: place.streams, of: self)
    )
    var data: [(ByteString, FlowValue)] = []
    for (name, value) in zip(place.keys, place.data.values) {
      data.append((name, try host.value(value, in: place.data)))
    }
    return op.start(on: host.loop, data: data, sinks: [self], owner: nil)
  }

  /// The argument of a continuation.
  private func arguments(
    _ input: WorkerJob.CallInput, _ values: [LuaValue]
  ) throws -> [LuaValue] {
    switch input {
    case .values: return values
    case .error(let error): return [try host.luaError(error.error(on: host))]
    case .task(let error):
      let copy =
        error.map { FlowTask<FlowValue>.failed($0.error(on: host), on: host.loop) }
        ?? .resolved(FlowValue(values.first ?? .nil), on: host.loop)
      copy.markObserved()
      return [try host.value(of: copy)]
    }
  }

  /// Asks it to stop.
  func cancel(_ error: FlowError) {
    if let execution {
      execution.stop(error)
    } else if earlyStop == nil {
      earlyStop = error
    }
  }

  /// Its body is about to start; false if it has been stopped.
  fileprivate func begin(_ run: Run) -> Bool {
    execution = run
    guard let earlyStop else { return true }
    run.stop(earlyStop)
    return false
  }

  /// Releases it, for a worker that ends.
  func drop() {
    hasEnded = true
    execution?.unobserve(self)
    execution = nil
  }

  // MARK: Events

  func taskEnded(_ task: AnyFlowTask) { ended(task) }

  func run() {}

  private func ended(_ task: AnyFlowTask) {
    guard !hasEnded else { return }
    hasEnded = true
    execution = nil
    let error = host.outcomeError(of: task)
    worker.ended(job: id, error, result: error == nil ? result : .null)
  }

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    guard !hasEnded else { return }
    let time = host.loop.now()
    switch event.kind {
    case .log:
      if let text = event.message { worker.report(id, at: time, .log(text)) }
    case .progress:
      if let done = event.done {
        worker.report(id, at: time, .progress(done: done, total: event.total))
      }
    case .set, .replace:
      guard let key = event.key, let value else { return }
      var batch = WireBatch()
      // `ctx:set` has refused values that can't travel.
      guard let wired = try? host.wire(value, &batch) else { return }
      worker.report(id, at: time, .set(key, wired, batch))
    case .program, .request, .wait, .programStart, .requestStart:
      if let work = event.work { worker.report(id, at: time, .work(work)) }
    case .remove:
      if let key = event.key { worker.report(id, at: time, .set(key, .null, WireBatch())) }
    default: break
    }
  }
}

/// Passes the place of its op to a body.
final class StandInBody: OpBody {
  private let body: ScriptOpBody
  private let index: Int
  private let label: ByteString?
  private let attempt: Int
  private let lineage: UInt64
  private let span: SpanOrigin?
  private let endingError: FlowError?
  /// The keys of the streams that it reads.
  let streams: [ByteString]
  private weak var job: WorkerJobRunner?

  init(
    _ body: ScriptOpBody, index: Int, label: ByteString?, attempt: Int, lineage: UInt64,
    span: SpanOrigin?, endingError: FlowError?, streams: [ByteString] = [], of job: WorkerJobRunner
  ) {
    self.streams = streams
    self.body = body
    self.index = index
    self.label = label
    self.attempt = attempt
    self.lineage = lineage
    self.span = span
    self.endingError = endingError
    self.job = job
  }

  func start(_ context: OpContext) -> CallState {
    context.standIn(index: index, label: label, attempt: attempt)
    context.run.endingErrorAround = endingError
    context.run.lineage = lineage
    context.run.spanOrigin = span
    return job?.begin(context.run) == true ? body.start(context) : .finished
  }

  func cancel(_ context: OpContext, _ error: FlowError) { body.cancel(context, error) }

  func interrupt(_ context: OpContext, _ error: FlowError) { body.interrupt(context, error) }
}

/// Calls a function as the body of an op, so that everything it starts is stopped with it.
private final class CallBody: OpBody {
  private let host: ScriptHost
  private let function: LuaReference
  private let arguments: [LuaValue]
  private let span: SpanOrigin?
  private weak var job: WorkerJobRunner?
  private var task: AnyFlowTask?

  init(
    _ host: ScriptHost, _ function: LuaReference, _ arguments: [LuaValue], span: SpanOrigin?,
    of job: WorkerJobRunner
  ) {
    self.host = host
    self.function = function
    self.arguments = arguments
    self.span = span
    self.job = job
  }

  func start(_ context: OpContext) -> CallState {
    context.run.spanOrigin = span
    guard job?.begin(context.run) == true else { return .finished }
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
      task.observe(waiting: CallEnd(self, context))
      return .suspended
    } catch {
      context.fail(host.flowError(unpacking: error))
      return .finished
    }
  }

  /// Stores the result; returns the error of a task without one.
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
