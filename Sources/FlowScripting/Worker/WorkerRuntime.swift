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
  private var loop: FlowEventLoop { host.loop }
  private let channel: WorkerChannel
  private let outbox: WorkerOutbox

  /// The received functions, by the numbers of their code.
  private var functions: [UInt64: LuaReference] = [:]
  /// The modules that are shared libraries where the functions come from.
  private var native: Set<ByteString> = []
  private var jobs: [UInt64: WorkerJobRunner] = [:]
  /// Short jobs that haven't begun.
  private var queued: [(id: UInt64, job: WorkerJob)] = []
  private var groups: [UInt64: WorkerGroupRunner] = [:]
  /// The limits of this worker alone, and of all together, as they were applied last.
  private let ownMemoryLimit: Int?
  private let budget: LuaMemoryBudget?
  private var sharedMemoryLimit: Int?
  /// The limit of the state while a job with a limit of its own executes, which has the worker for itself.
  private var jobLimit: JobLimit?
  /// The memory of the state after the last collection for such a job.
  private var collectedUse = 0
  /// Whether such a job has left much garbage.
  private var isCollectionDue = false
  private struct JobLimit {
    let id: UInt64
    /// The memory that the state may hold, with what is outside of it.
    let limit: Int
    /// From here on the job has used most of its room.
    let most: Int
  }
  /// Stops that arrived before their targets.
  private var early: [UInt64: FlowError] = [:]

  /// Must be called on the worker's thread; throws a `LuaError` if no state can be made.
  init(_ setting: WorkerSetting) throws {
    channel = setting.channel
    outbox = WorkerOutbox(setting.deliver)
    var configuration = setting.configuration
    configuration.isWorker = true
    budget = configuration.memoryBudget
    ownMemoryLimit = configuration.memoryLimit
    sharedMemoryLimit = budget?.limit
    configuration.memoryLimit = Self.least(ownMemoryLimit, sharedMemoryLimit)
    let clock = setting.isVirtual ? WorkerClock(channel) : nil
    let vm = try LuaVM(configuration: configuration)
    do {
      let loop = FlowEventLoop(clock: clock ?? SystemClock(), secrets: setting.secrets)
      loop.gracePeriod = setting.conditions.gracePeriod
      loop.cleanupGrace = setting.conditions.cleanupGrace
      loop.trace = setting.trace
      if setting.refusesPrograms { loop.processReplacement = RefusedPrograms(isWorker: true) }
      if setting.refusesRequests { loop.httpReplacement = RefusedRequests(isWorker: true) }
      host = try ScriptHost(
        vm: vm, loop: loop, isWorker: true)
      try vm.setPackagePaths(setting.paths)
      if let node = setting.lane.node {
        try vm.addToMissingModules { [unowned self] name in
          native.contains(name)
            ? "a module in C isn't sent with the op: install it on the node '\(node)'"
            : "not sent with the op, and not on the node '\(node)'"
        }
      }
      host.logsWaits = setting.conditions.logsWaits
      host.lane = setting.lane.value
      switch setting.deprecations {
      case .ignored: break
      case .reported(let report): host.deprecations = .reported(report)
      case .refused: host.deprecations = .refused
      }
      if setting.isChecking {
        host.checking = ScriptHost.Checking()
        try host.installCheckedLibrary()
      }
      if setting.conditions.hasGlobalModule { try vm.setGlobal("flow", .reference(host.module)) }
      try vm.guardGlobals()
    } catch {
      vm.close()
      throw error
    }
    host.service { WorkerLimits() }.onRequest = { [unowned self] request in
      outbox.add(request)
      if outbox.isDue(at: loop.now()) { outbox.flush(groups.values) }
    }
    host.service { WorkerLimits() }.owner = { [unowned self] run in
      jobs.first { $0.value.execution === run }?.key ?? groups.first { $0.value.run === run }?.key
        ?? 0
    }
    let streams = host.service { [unowned self] in
      WorkerStreams(
        { [unowned self] run in jobs.first { $0.value.execution === run }?.key },
        send: { [unowned self] request in
          outbox.add(request)
          if outbox.isDue(at: loop.now()) { outbox.flush(groups.values) }
        })
    }
    do { try StreamBindings.of(host).distant = streams } catch {
      vm.close()
      throw error
    }
    clock?.wait = { [unowned self] in sleep(until: $0) }
    vm.onAttention = { [unowned self] in takeStops() }
    host.service { TemporaryFolders() }.onFolder = { [unowned self] path, run, item in
      if let group = groups.values.first(where: { $0.run === run }) {
        group.note(folder: path, ofItem: item)
        return true
      }
      guard let job = jobs.first(where: { $0.value.execution === run }), job.value.isOp else {
        return false
      }
      report(job.key, at: loop.now(), .folder(path))
      return true
    }
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
      if isCollectionDue {
        collect()
        continue
      }
      // Before others learn that the worker sleeps, so that they find its room.
      if vm.settleBudget(isBusy: hasWork) { continue }
      if turn == .waiting {
        outbox.flush(groups.values, sleep: .busyElsewhere)
        _ = loop.turn(mayBlock: true)
      } else if !hasWork || waitsForMainThread
        || !stalls.failNext(on: loop)
      {
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
      outbox.add(failure.name, WireError(failure.error, from: host))
    }
  }

  /// Whether code waits for a reply.
  private var waitsForMainThread: Bool {
    host.existing(WorkerLimits.self)?.isWaiting == true
      || host.existing(WorkerStreams.self)?.isWaiting == true
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
    (jobs, queued) = ([:], [])
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
    case .start(let id, let job): start(id, job)
    case .startEach(let list):
      outbox.isShared = true
      defer { outbox.isShared = false }
      queued = list.reversed()
      while let next = queued.popLast(), !channel.shallEnd {
        start(next.id, next.job)
        if outbox.isDue(at: loop.now()) { outbox.flush(groups.values) }
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
    case .limit(let request, let problem):
      host.existing(WorkerLimits.self)?.answer(request, problem)
    case .stream(let request, let reply):
      host.existing(WorkerStreams.self)?.answer(request, reply)
    }
  }

  private func start(_ id: UInt64, _ job: WorkerJob) {
    if let error = early.removeValue(forKey: id) { return ended(job: id, error, result: .null) }
    do {
      let runner = WorkerJobRunner(id, self)
      jobs[id] = runner
      let function = try self.function(job.code)
      if case .op(let place) = job.kind, let memory = place.memory {
        limitMemory(of: id, to: memory)
      }
      try runner.start(job, function)
    } catch {
      ended(job: id, host.flowError(unpacking: error), result: .null)
    }
  }

  /// Removes a job that hasn't begun.
  private func dequeue(_ id: UInt64, _ error: FlowError?) -> Bool {
    guard let place = queued.firstIndex(where: { $0.id == id }) else { return false }
    queued.remove(at: place)
    if let error { ended(job: id, error, result: .null) } else { outbox.add(returned: id) }
    outbox.flush(groups.values)
    return true
  }

  private func function(_ code: WorkerCode) throws -> LuaReference {
    if let known = functions[code.id] { return known }
    try host.vm.preload(code.modules)
    native.formUnion(code.native)
    let made = try vm.unpack(code.package)
    functions[code.id] = made
    return made
  }

  /// The lower one of two limits.
  private static func least(_ one: Int?, _ other: Int?) -> Int? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
  }

  /// Applies the limit of the host's memory, if it has changed.
  private func lookAtMemoryLimit() {
    let limit = budget?.limit
    guard limit != sharedMemoryLimit else { return }
    sharedMemoryLimit = limit
    applyMemoryLimits()
  }

  private func applyMemoryLimits() {
    vm.memoryLimit = Self.least(
      Self.least(ownMemoryLimit, sharedMemoryLimit), jobLimit.map { $0.limit })
  }

  /// The memory that the state holds, with what is held outside of it.
  private var memoryUse: Int { vm.memoryUsed + (loop.memory?.held ?? 0) }

  /// Lets a job allocate so many bytes, beyond what the state holds.
  private func limitMemory(of id: UInt64, to bytes: Int) {
    // Otherwise garbage of earlier jobs would be room for this one.
    if isCollectionDue || memoryUse - collectedUse > bytes / 16 { collect() }
    let used = memoryUse
    let (limit, isTooLarge) = used.addingReportingOverflow(bytes)
    jobLimit = JobLimit(id: id, limit: isTooLarge ? .max : limit, most: used + bytes / 4 * 3)
    applyMemoryLimits()
  }

  private func collect() {
    isCollectionDue = false
    try? vm.collectGarbage()
    collectedUse = memoryUse
  }

  /// Restores the limit for other jobs.
  private func endMemoryLimit(of id: UInt64) {
    guard let ended = jobLimit, ended.id == id else { return }
    // Garbage is collected between jobs: finalizers may run any code.
    isCollectionDue = memoryUse > ended.most
    jobLimit = nil
    applyMemoryLimits()
  }

  /// Takes the received stops, perhaps while a script is busy below on the stack.
  private func takeStops() {
    _ = vm.takeAttention()
    lookAtMemoryLimit()
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
      let error = sent?.error(on: host)
      if dequeue(id, error) { continue }
      guard let error else {
        // It has ended: its node learns that, though another job is busy.
        outbox.flush(groups.values)
        continue
      }
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

  /// Stops the busy code below on the stack: a task's, for example, which the stopped op has
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
    endMemoryLimit(of: id)
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
