package import FlowEngine
internal import FlowHTTP
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// A task of a worker, on the main loop: notified on the loop's thread.
package protocol WorkerTask: AnyObject {
  /// A worker can begin it: returns the order.
  func order(for worker: Int) -> WorkerOrder?
  /// A worker has been sent the order; `lane` is its number in the log.
  func begun(in lane: UInt8)
  /// An event of the task; `.ended` is the last one.
  func handle(_ event: WorkerReport.JobEvent)
  /// Its worker is gone, or couldn't be started; no more events come from it. Another one replaces
  /// it unless `isReplaced` is false.
  func lost(_ error: FlowError, worker: Int, isReplaced: Bool)
  /// Its node is gone; it executes again on another one.
  func lostNode(_ name: ByteString)
  /// It was withdrawn before it had begun.
  func returned()
  /// The seconds that its cleanups have after a stop; nil for the default.
  var grace: Duration? { get }
  /// Whether it has its worker for itself.
  var isExclusive: Bool { get }
  /// Whether its time is limited.
  var hasTimeout: Bool { get }
  /// Whether it holds a limit, or something around it does.
  func isHeld(_ limit: Limit) -> Bool
}

extension WorkerTask {
  package func begun(in lane: UInt8) {}
  package func lostNode(_ name: ByteString) {}
  package func returned() {}
  /// The default.
  package var grace: Duration? { nil }
  /// It shares its worker.
  package var isExclusive: Bool { false }
  package var hasTimeout: Bool { false }
  package func isHeld(_ limit: Limit) -> Bool { false }
}

/// A group whose shares workers execute, on the main loop.
protocol WorkerGroupTask: AnyObject {
  /// Handles the events of items in a worker.
  func handle(_ events: WorkerReport.GroupEvents, worker: Int)
  /// Whether the enclosing execution holds a limit.
  func isHeld(_ limit: Limit) -> Bool
}

/// The workers of a host: Lua states on threads of their own, which execute ops and functions.
///
/// Workers are started when there is a task and none is free, up to `size`; an idle one sleeps.
/// `PoolState` makes the decisions, and this class carries them out. Confined to the thread of the
/// host's loop; only `WorkerChannel`s and mailboxes are shared with workers.
///
/// A worker that doesn't react to a stop within the loop's grace period is in a C function that
/// can't be stopped. It is abandoned: its thread ends by itself when that function returns, its
/// messages are dropped, and another worker replaces it.
package final class WorkerPool {
  // Unowned: the host owns its pool.
  private unowned let host: ScriptHost
  // Unowned: the host keeps it as long as the pool.
  private unowned let loop: FlowEventLoop
  private var state: PoolState
  private var workers: [Worker] = []
  private var tasks: [UInt64: any WorkerTask] = [:]
  private var groups: [UInt64: Connection] = [:]
  /// The limits that code in workers holds or waits for, by the numbers of their requests.
  private var holds: [Int: [UInt64: LimitHold]] = [:]
  private let link: Link
  private let configuration: LuaConfiguration
  /// The conditions of its workers instead of the host's; nil for those of the host. Set before the first task.
  package var conditions: WorkerConditions?
  /// The node by which lanes are named; nil: they aren't.
  package var node: ByteString?
  /// Called after a report, when tasks may have ended and workers may have fallen asleep.
  package var onReport: (() -> Void)?

  /// A worker, on the main loop.
  private struct Worker {
    let channel: WorkerChannel
    var isAlive = true
    /// Whether its state has been made.
    var hasReported = false
    /// The number of orders sent to it.
    var sent: UInt64 = 0
    /// Kept while it has something to do, unless it waits for a time of a virtual clock.
    var external: ExternalWork?
    /// Tasks that are over once it has taken this many orders.
    var closing: [(task: UInt64, order: UInt64)] = []
    /// The virtual time at which it has to be notified.
    var alarm: LoopTimer?
  }

  private struct Connection {
    // Safe: a group disconnects before it is released. (A weak reference would make every retain
    // slow.)
    unowned(unsafe) let group: any WorkerGroupTask
  }

  /// Passes reports to the pool, on the loop's thread.
  // Unchecked: the pool is set and read on that thread alone; it removes itself before it is
  // released.
  private final class Link: @unchecked Sendable {
    unowned(unsafe) var pool: WorkerPool?
  }

  deinit { link.pool = nil }

  init(_ host: ScriptHost, size: Int, configuration: LuaConfiguration) {
    self.host = host
    loop = host.loop
    self.configuration = configuration
    state = PoolState(size: size)
    link = Link()
    link.pool = self
  }

  /// The maximum number of workers.
  package var size: Int { state.size }

  /// A number for a task, a group or a function, unique among all pools of the host.
  package func makeNumber() -> UInt64 {
    host.workerPools.makeNumber()
  }

  // MARK: Tasks

  /// Passes a task to the first free worker.
  package func submit(_ task: any WorkerTask, _ number: UInt64, group: UInt64? = nil) {
    tasks[number] = task
    // Workers may need what the garbage of the host takes.
    host.vm.settleBudget()
    perform(state.submit(number, group: group, isExclusive: task.isExclusive))
  }

  /// Passes a task to the first free worker whose order begins other ones: these are its members, whose events they
  /// get. `concluded` says that all have ended.
  package func submit(
    _ task: any WorkerTask, _ number: UInt64, members: [(task: any WorkerTask, number: UInt64)]
  ) {
    for member in members { tasks[member.number] = member.task }
    submit(task, number)
  }

  /// Forgets a member that has ended.
  package func removeMember(_ number: UInt64) { tasks[number] = nil }

  /// A task with members has ended, as they have.
  package func concluded(_ number: UInt64) {
    guard tasks.removeValue(forKey: number) != nil else { return }
    perform(state.withdraw(number) ?? state.ended(number))
  }

  /// Takes a member back that a worker hasn't begun.
  package func withdraw(_ number: UInt64, of worker: Int) {
    if workers[worker].isAlive { workers[worker].channel.withdraw(number) }
  }

  /// Connects a group to the events of its items.
  func connect(_ group: any WorkerGroupTask, _ number: UInt64) {
    groups[number] = Connection(group: group)
  }

  /// Makes a task stop, whether it waits or is executed by a worker: it ends sooner or later.
  package func stop(_ number: UInt64, _ error: FlowError) {
    if let actions = state.withdraw(number) {
      let task = tasks.removeValue(forKey: number)
      task?.lost(error, worker: -1, isReplaced: false)
      perform(actions)
    } else if let worker = state.worker(of: number) {
      stop(number, error, of: worker, order: number)
    }
  }

  /// Makes a worker's share of a group stop, which `order` numbers there.
  package func stop(
    _ number: UInt64, _ error: FlowError, of worker: Int, order: UInt64, member: UInt64? = nil
  ) {
    guard workers[worker].isAlive else { return }
    let stop = workers[worker].channel.stop(order, WireError(error, from: host))
    wokeUp(worker)
    watch(number, stop, of: worker, member, since: LuaVM.monotonicTime, interval: 1_000_000)
  }

  /// Sends something to a worker.
  func send(_ order: WorkerOrder, to worker: Int) {
    guard workers[worker].isAlive else { return }
    workers[worker].sent += 1
    workers[worker].channel.send(order, now: loop.now())
    wokeUp(worker)
  }

  /// Marks a task as done for which workers report no end: for its worker, once it has taken all
  /// orders. Afterwards the worker sends nothing about it any more, not even an unobserved failure.
  package func end(_ number: UInt64) {
    guard tasks.removeValue(forKey: number) != nil else { return }
    if let actions = state.withdraw(number) { return perform(actions) }
    guard let worker = state.worker(of: number) else { return }
    workers[worker].closing.append((number, workers[worker].sent))
  }

  /// Notifies workers that no group with this number exists any more.
  func disconnect(_ number: UInt64) { groups[number] = nil }

  /// Notifies workers that the limit of the host's memory, which is theirs too, has changed.
  func memoryLimitChanged() {
    for worker in workers where worker.isAlive { worker.channel.callAttention() }
  }

  /// Notifies workers that a function isn't used any more.
  func forget(_ code: WorkerCode) {
    for worker in workers where worker.isAlive {
      worker.channel.send(.forget(code: code.id), now: loop.now())
    }
    for index in workers.indices where workers[index].isAlive { workers[index].sent += 1 }
  }

  private func perform(_ actions: [PoolState.Action]) {
    for action in actions {
      switch action {
      case .start: start()
      case .assign(let number, let worker):
        if let task = tasks[number], let order = task.order(for: worker) {
          send(order, to: worker)
          task.begun(in: lane(of: worker))
        } else {
          // It needs none any more.
          tasks[number] = nil
          perform(state.ended(number))
        }
      }
    }
  }

  // MARK: Workers

  /// The number of a worker in logs.
  package func lane(of worker: Int) -> UInt8 { UInt8(truncatingIfNeeded: worker + 1) }

  /// Whether a task, or a member of one, waits or is being executed, its cleanups included.
  package func has(_ number: UInt64) -> Bool { tasks[number] != nil }

  /// How many workers execute something.
  package var busyWorkers: Int { state.busyWorkers }

  private func start() {
    let index = workers.count
    let channel = WorkerChannel()
    workers.append(Worker(channel: channel))
    let setting = WorkerSetting(
      configuration: configuration,
      paths: host.packagePaths,
      conditions: conditions ?? WorkerConditions(of: host),
      isChecking: host.isChecking,
      isVirtual: loop.timeSource.isVirtual, refusesPrograms: loop.processReplacement != nil,
      refusesRequests: loop.httpReplacement != nil,
      deprecations: workerDeprecations, trace: loop.trace,
      lane: WorkerLane(number: index + 1, name: node.map { "\($0)/\(index + 1)" }),
      secrets: loop.secrets,
      channel: channel,
      deliver: { [mailbox = loop.mailbox, link] report in
        mailbox.post { _ in link.pool?.handle(report, from: index) }
      },
      refuse: { [mailbox = loop.mailbox, link] problem in
        mailbox.post { _ in
          link.pool?.giveUp(
            index,
            FlowError(
              FlowError.from(problem).kind,
              "no worker could be made: \(ByteString(describing: problem))"))
        }
      })
    if !WorkerThread.start(setting) {
      loop.enqueue { [weak self] in
        self?.giveUp(
          index, FlowError(.error, "no worker could be made: the system gives no thread"))
      }
    }
  }

  /// The settings of a new worker for something deprecated.
  private var workerDeprecations: WorkerDeprecations {
    switch host.deprecations {
    case .ignored: .ignored
    case .refused: .refused
    case .reported:
      .reported { [mailbox = loop.mailbox, link] text in
        mailbox.post { _ in link.pool?.host.reportDeprecation(text) }
      }
    }
  }

  private func wokeUp(_ worker: Int) {
    state.wokeUp(worker)
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
    if workers[worker].external == nil { workers[worker].external = loop.mailbox.begin() }
  }

  /// Lets the loop end, as far as it depends on an idle worker.
  private func release(_ worker: Int) {
    guard state.tasks(of: worker).isEmpty else { return }
    workers[worker].external?.endOnLoop()
    workers[worker].external = nil
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
  }

  private func handle(_ report: WorkerReport, from worker: Int) {
    guard workers[worker].isAlive else { return }
    defer { onReport?() }
    workers[worker].hasReported = true
    host.vm.settleBudget()
    for event in report.jobs {
      guard let task = tasks[event.id] else { continue }
      if case .ended = event.what {
        tasks[event.id] = nil
        perform(state.ended(event.id))
      }
      task.handle(event)
    }
    for id in report.returned { tasks.removeValue(forKey: id)?.returned() }
    for failure in report.failures {
      loop.reportFailure(failure.error.error(on: host), name: failure.name)
    }
    for request in report.limits { handle(request, from: worker) }
    for request in report.streams {
      (tasks[request.job] as? any StreamingTask)?.handle(request, worker: worker)
    }
    for events in report.groups { groups[events.id]?.group.handle(events, worker: worker) }
    guard workers[worker].isAlive else { return }
    while let first = workers[worker].closing.first, first.order <= report.taken {
      workers[worker].closing.removeFirst()
      perform(state.ended(first.task))
    }
    if !report.groups.isEmpty { perform(state.passedBoundary(worker)) }
    if let sleep = report.sleep, report.taken == workers[worker].sent {
      perform(state.fellAsleep(worker))
      if state.isAsleep(worker) { fellAsleep(worker, sleep) }
    }
    release(worker)
  }

  /// A worker is idle now. If it waits for a time of the virtual clock, so does this loop, which
  /// provides that clock.
  private func fellAsleep(_ worker: Int, _ sleep: WorkerReport.Sleep) {
    if sleep == .idle {
      workers[worker].external?.endOnLoop()
      workers[worker].external = nil
    }
    guard case .until(let time) = sleep else { return }
    guard time > loop.now() else {
      workers[worker].channel.sendTime(now: loop.now())
      return
    }
    workers[worker].alarm?.cancel()
    workers[worker].alarm = loop.schedule(at: time) { [weak self] in
      guard let self else { return }
      wokeUp(worker)
      workers[worker].channel.sendTime(now: loop.now())
    }
    workers[worker].external?.endOnLoop()
    workers[worker].external = nil
  }

  // MARK: Stops

  /// Makes sure that a worker takes a stop: interrupts it again, at growing intervals, and finally
  /// abandons it.
  private func watch(
    _ number: UInt64, _ stop: Int, of worker: Int, _ member: UInt64?, since began: Int64,
    interval: Int64
  ) {
    _ = loop.scheduleOutside(after: .nanoseconds(interval)) { [weak self] in
      self?.look(number, stop, of: worker, member, since: began, interval: interval)
    }
  }

  private func look(
    _ number: UInt64, _ stop: Int, of worker: Int, _ member: UInt64?, since began: Int64,
    interval: Int64
  ) {
    let task = tasks[member ?? number]
    // First, because a pool that was closed has no workers, and may outlive that: a node ends those of one script.
    guard task != nil, workers[worker].isAlive, state.worker(of: number) == worker else {
      return
    }
    let channel = workers[worker].channel
    let hasTaken = channel.hasTaken(stop: stop)
    // A worker that has taken it has its grace for cleanups, as have its tasks, and then some time
    // for unwinding.
    let unwinding = loop.gracePeriod.clampedNanoseconds
    let cleanup = max(loop.cleanupGrace, task?.grace ?? .zero).clampedNanoseconds
    let grace = hasTaken ? cleanup.later(by: cleanup).later(by: unwinding) : 0
    let limit = grace.later(by: unwinding)
    if LuaVM.monotonicTime - began >= limit, !state.isAsleep(worker) {
      giveUp(
        worker,
        FlowError(
          .error, "the worker was busy in a C function that can't be stopped, and was given up"))
      return
    }
    if !hasTaken { channel.nudge() }
    watch(
      number, stop, of: worker, member, since: began, interval: min(interval * 2, 100_000_000))
  }

  /// Continues without a worker.
  private func giveUp(_ worker: Int, _ error: FlowError) {
    // A pool that was closed has no workers.
    guard workers.indices.contains(worker), workers[worker].isAlive else { return }
    workers[worker].isAlive = false
    workers[worker].channel.close()
    workers[worker].external?.endOnLoop()
    workers[worker].external = nil
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
    for hold in (holds.removeValue(forKey: worker) ?? [:]).values { hold.drop() }
    let (lost, actions) = state.lost(worker)
    let told = lost.compactMap { tasks.removeValue(forKey: $0) }
    for task in told {
      task.lost(error, worker: worker, isReplaced: workers[worker].hasReported)
    }
    perform(actions)
    onReport?()
  }

  /// Ends all workers: their states are closed, with all finalizers. Doesn't wait longer than the
  /// grace period for one that can't be stopped.
  package func close() {
    link.pool = nil
    for index in workers.indices {
      workers[index].alarm?.cancel()
      workers[index].external?.end()
      workers[index].channel.close()
    }
    let end = LuaVM.monotonicTime.later(by: loop.gracePeriod.clampedNanoseconds)
    for worker in workers where worker.isAlive {
      var interval: Int64 = 1_000_000
      while true {
        let now = LuaVM.monotonicTime
        if worker.channel.waitForEnd(until: min(now.later(by: interval), end)) || now >= end {
          break
        }
        // It may have missed the call.
        worker.channel.nudge()
        interval = min(interval * 2, 100_000_000)
      }
    }
    workers = []
    tasks = [:]
    groups = [:]
    for hold in holds.values.joined() { hold.value.drop() }
    holds = [:]
  }

  // MARK: Limits

  private func handle(_ request: LimitRequest, from worker: Int) {
    switch request {
    case .release(let number): holds[worker]?.removeValue(forKey: number)?.drop()
    case .take(let number, let name, let size, let owner):
      do throws(FlowError) {
        let limit = try limit(name, size)
        let isHeld = tasks[owner]?.isHeld(limit) ?? groups[owner]?.group.isHeld(limit) ?? false
        let hold = LimitHold(isHeld ? [] : [limit], on: loop) { "worker \(worker + 1)" }
        holds[worker, default: [:]][number] = hold
        let isTaken = hold.take { [weak self] in
          self?.send(.limit(request: number, problem: nil), to: worker)
        }
        if isTaken { send(.limit(request: number, problem: nil), to: worker) }
      } catch {
        send(.limit(request: number, problem: error.message), to: worker)
      }
    }
  }

  private func limit(_ name: ByteString, _ size: LimitSize?) throws(FlowError) -> Limit {
    if conditions != nil {
      throw .usage(
        "limits of scripts aren't there on other nodes: give the op the policy 'limit'")
    }
    do {
      return try Limits.of(host).define(name, size).get()
    } catch {
      throw .from(error)
    }
  }
}
