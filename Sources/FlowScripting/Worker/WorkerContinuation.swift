@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A continuation whose function is called in a worker, of this or of another node: it gets a copy of the previous task's
/// outcome, and its result is copied back.
final class WorkerContinuation: ContinuationTask<FlowValue>, WorkerTask {
  private let host: ScriptHost
  private let kind: ContinuationKind
  private var function: WorkerFunction?
  private var number: UInt64 = 0
  private var job: WorkerJob?
  private var place: WorkPlace?
  private let isRemote: Bool

  init(
    _ host: ScriptHost, _ kind: ContinuationKind, _ function: WorkerFunction, isRemote: Bool
  ) {
    self.isRemote = isRemote
    self.host = host
    self.kind = kind
    self.function = function
    super.init(on: host.loop, kind, .automatic)
  }

  override func runCode(after source: AnyFlowTask?) {
    guard let source, let function else { return returned() }
    if let problem = function.problem(of: title) { return failed(problem) }
    var batch = WireBatch()
    let input: WorkerJob.CallInput
    do {
      let error = try host.error(of: source)
      switch (kind, error) {
      case (.nextOnError, let error?): input = .error(WireError(error, from: host))
      case (.next, let error), (.finally, let error):
        input = .task(error.map { WireError($0, from: host) })
      default: input = .values
      }
      if error == nil {
        let value = try host.wire(try host.luaResult(of: source), &batch)
        batch.values.append(value)
      }
    } catch let problem as WireProblem {
      return failed(problem.failure("the result"))
    } catch {
      return failed(host.flowError(thrown: error, op: nil))
    }
    place = owner?.workPlace
    number = host.workers.makeNumber()
    let job = WorkerJob(
      code: function.code, arguments: batch, kind: .call(input, span: place?.spanOrigin))
    self.job = job
    hold()
    // While checking it is executed here, where nothing has effects.
    guard isRemote, host.usesRemote, !host.isChecking else {
      return host.workers.submit(self, number)
    }
    do throws(FlowError) {
      try host.neededRemote().submit(self, number, job, function, RemoteTags(), of: nil)
    } catch {
      failed(error)
    }
  }

  // MARK: For the pool

  func order(for worker: Int) -> WorkerOrder? {
    job.take().map { .start(id: number, $0) }
  }

  func handle(_ event: WorkerReport.JobEvent) {
    if case .work(let work) = event.what { place?.append(work, endedAt: event.time) }
    guard case .ended(let error, let value, let batch) = event.what else { return }
    if let error { return failed(error.error(on: host)) }
    do {
      let result = try host.value(value, in: batch)
      if case .bytes(let text) = result { host.loop.memory?.add(text) }
      keep(value: result)
      returned()
    } catch {
      failed(host.flowError(thrown: error, op: nil))
    }
  }

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) { failed(error) }

  // MARK: Its course

  override func stopCode(_ error: FlowError) { host.stopWork(number, error) }

  override func dropCode() {
    function = nil
    job = nil
  }

  override func keepResult(of task: AnyFlowTask) throws { keep(value: try host.result(of: task)) }

  override func error(of task: AnyFlowTask) -> FlowError? { host.outcomeError(of: task) }

  override func succeed() { endWithKeptResult() }
}
