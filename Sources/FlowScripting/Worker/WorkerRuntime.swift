@_spi(Scripting) internal import FlowEngine
internal import FlowHTTP
@_spi(Scripting) internal import LuaVM

/// A worker, on its own thread: a Lua state, a loop, and its tasks.
///
/// The engine that executes ops here is the same as on the main thread. Policies are handled there:
/// a job is one attempt.
final class WorkerRuntime {
  let host: ScriptHost
  private var vm: LuaVM { host.vm }
  private var loop: EventLoop { host.loop }
  private let channel: WorkerChannel
  private let outbox: WorkerOutbox

  /// The received functions, by the numbers of their code.
  private var functions: [UInt64: LuaReference] = [:]
  private var jobs: [UInt64: WorkerJobRunner] = [:]
  private var groups: [UInt64: WorkerGroupRunner] = [:]
  /// Stops that arrived before their targets.
  private var early: [UInt64: FlowError] = [:]

  /// Must be called on the worker's thread; throws a `LuaError` if no state can be made.
  init(_ setting: WorkerSetting) throws {
    channel = setting.channel
    outbox = WorkerOutbox(setting.deliver)
    var configuration = setting.configuration
    configuration.isWorker = true
    let clock = setting.isVirtual ? WorkerClock(channel) : nil
    let vm = try LuaVM(configuration: configuration)
    do {
      let loop = EventLoop(clock: clock ?? SystemClock(), secrets: setting.secrets)
      loop.gracePeriod = setting.gracePeriod
      loop.cleanupGrace = setting.cleanupGrace
      loop.trace = setting.trace
      if setting.refusesPrograms { loop.processReplacement = RefusedPrograms(isWorker: true) }
      if setting.refusesRequests { loop.httpReplacement = RefusedRequests(isWorker: true) }
      host = try ScriptHost(
        vm: vm, loop: loop, configuration: setting.hostConfiguration, isWorker: true)
      try vm.setPackagePaths(setting.paths)
      host.logsWaits = setting.logsWaits
      if setting.isChecking { host.onNeedOfOutcome = { _, _ in } }
      if setting.hasGlobalModule { try vm.setGlobal("flow", .reference(host.module)) }
      try vm.guardGlobals()
    } catch {
      vm.close()
      throw error
    }
    clock?.wait = { [unowned self] in sleep(until: $0) }
    vm.onAttention = { [unowned self] in takeStops() }
    vm.acceptAttention()
    channel.begin(loop.mailbox, vm.attention)
  }

  // MARK: Its course

  /// Executes orders until it has to end.
  func run() {
    var stalls = StallPass(times: 2)
    while true {
      // First, so that a request to end that comes later wakes it.
      channel.acknowledge()
      if channel.shallEnd { break }
      takeStops()
      takeOrders()
      let turn = loop.turn(mayBlock: false)
      if turn == .worked {
        outbox.noteWork()
        continue
      }
      reportFailures()
      if turn == .waiting {
        outbox.flush(groups.values, sleep: .busyElsewhere)
        _ = loop.turn(mayBlock: true)
      } else if !hasWork || !stalls.failNext(on: loop) {
        // Nothing here can continue. (Tasks that wait for nothing else have failed by now.)
        stalls = StallPass(times: 2)
        outbox.flush(groups.values, sleep: .idle)
        loop.mailbox.waitForMail()
      }
    }
    finish()
  }

  /// Reports unobserved failures, once nothing is left that could observe them.
  private func reportFailures() {
    guard jobs.isEmpty, groups.isEmpty else { return }
    for failure in loop.takeUnobservedFailures() {
      outbox.add(failure.nameBytes, WireError(failure.error, from: host))
    }
  }

  private var hasWork: Bool {
    !jobs.isEmpty || groups.values.contains { $0.isExecuting }
  }

  /// Waits for an event, because there is nothing to do before `time` of the virtual clock.
  private func sleep(until time: Int64) {
    outbox.flush(groups.values, sleep: .until(time))
    loop.mailbox.waitForMail()
  }

  /// Ends all tasks, and closes the state.
  private func finish() {
    for job in jobs.values { job.drop() }
    jobs = [:]
    for group in groups.values { group.drop() }
    groups = [:]
    functions = [:]
    vm.onAttention = nil
    channel.finish()
    loop.shutdown()
    host.close()
  }

  // MARK: Orders

  private func takeOrders() {
    for order in channel.takeOrders() {
      outbox.taken += 1
      perform(order)
    }
  }

  private func perform(_ order: WorkerOrder) {
    switch order {
    case .start(let id, let job):
      if let error = early.removeValue(forKey: id) {
        ended(job: id, error, result: .null)
        return
      }
      do {
        let runner = WorkerJobRunner(id, self)
        jobs[id] = runner
        try runner.start(job, try function(job.code))
      } catch {
        ended(job: id, host.flowError(unpacking: error), result: .null)
      }
    case .open(let id, let group):
      let runner = WorkerGroupRunner(id, self, group)
      groups[id] = runner
      do {
        try runner.open(try function(group.code))
      } catch {
        runner.refuse(host.flowError(unpacking: error))
      }
      if let error = early.removeValue(forKey: id) { runner.cancel(error) }
    case .items(let id, let first, let batch, let labels):
      groups[id]?.add(first: first, batch, labels: labels)
    case .close(let id):
      groups.removeValue(forKey: id)?.drop()
      early[id] = nil
    case .forget(let code): functions[code] = nil
    }
  }

  private func function(_ code: WorkerCode) throws -> LuaReference {
    if let known = functions[code.id] { return known }
    let made = try vm.unpack(code.package)
    functions[code.id] = made
    return made
  }

  /// Takes the received stops, perhaps while a script is busy below on the stack.
  private func takeStops() {
    _ = vm.takeAttention()
    if channel.shallEnd {
      for job in jobs.values { job.cancel(.cancelled(reason: ScriptHost.termination)) }
      for group in groups.values { group.cancel(.cancelled(reason: ScriptHost.termination)) }
      stopActivity()
      return
    }
    var stopsActivity = false
    let running = host.currentOp.flatMap { $0.isCleaningUp ? nil : $0.run }
    let stops = channel.takeStops()
    if !stops.isEmpty { outbox.noteWork() }
    for (id, sent) in stops {
      let error = sent.error(on: host)
      if let job = jobs[id] {
        if let running, job.execution === running { stopsActivity = true }
        job.cancel(error)
      } else if let group = groups[id] {
        if let running, group.run === running { stopsActivity = true }
        group.cancel(error)
      } else {
        early[id] = error
      }
    }
    if stopsActivity { stopActivity() }
  }

  /// Stops the busy code below on the stack: that of a task, for example, which the stopped op has
  /// just started.
  private func stopActivity() {
    vm.watchActivity(
      deadline: LuaVM.monotonicTime.later(by: host.busyGrace),
      grace: host.closeGrace(host.currentOp?.grace))
  }

  // MARK: For jobs and groups

  /// A job has ended.
  func ended(job id: UInt64, _ error: FlowError?, result: FlowValue) {
    jobs[id] = nil
    var batch = WireBatch()
    var wired = WireValue.null
    var error = error
    if error == nil {
      do throws(WireProblem) {
        wired = try host.wire(result, &batch)
      } catch {
        // Without `try?`: the error below is the one of this scope.
        outbox.add(
          id, at: loop.now(),
          .ended(
            WireError(error.failure("the result"), from: host),
            result: .null, WireBatch()))
        return
      }
    }
    outbox.add(
      id, at: loop.now(),
      .ended(error.take().map { WireError($0, from: host) }, result: wired, batch))
  }

  /// Something has happened in a job; it is reported soon even if the job is busy.
  func report(_ id: UInt64, at time: Int64, _ what: WorkerReport.JobEvent.What) {
    outbox.add(id, at: time, what)
    if outbox.isDue(at: loop.now()) { outbox.flush(groups.values) }
  }

  /// The time at which `itemEnded` needs to be called again.
  var nextReport: Int64 { outbox.nextTime }

  /// An item has ended.
  func itemEnded(at time: Int64) {
    if outbox.isDue(at: time) { outbox.flush(groups.values) }
  }
}
