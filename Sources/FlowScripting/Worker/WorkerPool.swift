internal import FlowEngine
internal import Glibc
internal import LuaVM

/// What is done in a worker, as the main loop has it: told on the loop's thread.
protocol WorkerTask: AnyObject {
  /// A worker can begin with it: answers with what it is asked to do.
  func order(for worker: Int) -> WorkerOrder?
  /// Something has happened; `.ended` is the last that comes.
  func take(_ event: WorkerReport.JobEvent)
  /// The worker that had it is gone, or couldn't be started; nothing more comes from it. Another takes
  /// its place unless `isReplaced` is false.
  func lost(_ error: FlowError, worker: Int, isReplaced: Bool)
  /// Seconds that its cleanups have once it was stopped; nil for the default.
  var grace: Double? { get }
}

extension WorkerTask {
  /// The default.
  var grace: Double? { nil }
}

/// A group of which workers execute shares, as the main loop has it.
protocol WorkerGroupTask: AnyObject {
  /// Takes what has happened to items in a worker.
  func take(_ events: WorkerReport.GroupEvents, worker: Int)
}

/// The workers of a host: Lua states on threads of their own, which execute ops and functions.
///
/// Workers are started when there is something to do for them and none is free, up to `size`; one
/// that has nothing to do sleeps. `PoolState` decides who does what, this carries it out. Confined
/// to the thread of the host's loop; only `WorkerChannel`s and mailboxes are shared with workers.
///
/// A worker that doesn't answer a stop within the loop's grace period is in a C function that can't
/// be stopped. It is given up: its thread ends by itself when that function returns, what comes
/// from it is dropped, and another worker takes its place.
final class WorkerPool {
  // Unowned: the host holds its pool.
  private unowned let host: ScriptHost
  // Unowned: the host holds it as long as the pool.
  private unowned let loop: EventLoop
  private var state: PoolState
  private var workers: [Worker] = []
  private var tasks: [UInt64: any WorkerTask] = [:]
  private var groups: [UInt64: Connection] = [:]
  private let link: Link
  private let configuration: LuaConfiguration

  /// A worker, as the main loop has it.
  private struct Worker {
    let channel: WorkerChannel
    var isAlive = true
    /// Whether it has come to be.
    var hasReported = false
    /// How many orders it was sent.
    var sent: UInt64 = 0
    /// Held while it has something to do, unless it waits for a time of a virtual clock.
    var external: ExternalWork?
    /// Tasks that are over once it has taken so many orders.
    var closing: [(task: UInt64, order: UInt64)] = []
    /// When it is to be told the virtual time.
    var alarm: Timer?
  }

  private struct Connection {
    // Safe: a group disconnects before it goes. (A weak reference would make every retain slow.)
    unowned(unsafe) let group: any WorkerGroupTask
  }

  /// Leads reports to the pool, on the loop's thread.
  // Unchecked: the pool is set and read on that thread alone; it takes itself out before it goes.
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

  /// The most workers that there are.
  var size: Int { state.size }

  /// A number for a task, a group or a function, unique among all pools of the host.
  func makeNumber() -> UInt64 {
    host.lastWorkNumber += 1
    return host.lastWorkNumber
  }

  // MARK: Tasks

  /// Has a task be done, by the first worker that is free.
  func submit(_ task: any WorkerTask, _ number: UInt64, group: UInt64? = nil) {
    tasks[number] = task
    perform(state.submit(number, group: group))
  }

  /// Leads what happens to the items of a group to it.
  func connect(_ group: any WorkerGroupTask, _ number: UInt64) {
    groups[number] = Connection(group: group)
  }

  /// Has a task stop that waits, or that a worker does: it ends sooner or later.
  func stop(_ number: UInt64, _ error: FlowError) {
    if state.withdraw(number) {
      let task = tasks.removeValue(forKey: number)
      task?.lost(error, worker: -1, isReplaced: false)
    } else if let worker = state.worker(of: number) {
      stop(number, error, of: worker, order: number)
    }
  }

  /// The same for a worker's share of a group, which `order` numbers there.
  func stop(_ number: UInt64, _ error: FlowError, of worker: Int, order: UInt64) {
    guard workers[worker].isAlive else { return }
    let stop = workers[worker].channel.stop(order, WireError(error, from: host))
    wokeUp(worker)
    watch(number, stop, of: worker, since: LuaVM.monotonicTime, interval: 1_000_000)
  }

  /// Sends something to a worker.
  func send(_ order: WorkerOrder, to worker: Int) {
    guard workers[worker].isAlive else { return }
    workers[worker].sent += 1
    workers[worker].channel.send(order, now: loop.now())
    wokeUp(worker)
  }

  /// Says that a task of which workers tell no end is done: for its worker, once that has taken all
  /// it was sent. Then nothing comes of it any more, not even a failure that nobody has observed.
  func end(_ number: UInt64) {
    guard tasks.removeValue(forKey: number) != nil else { return }
    if state.withdraw(number) { return }
    guard let worker = state.worker(of: number) else { return }
    workers[worker].closing.append((number, workers[worker].sent))
  }

  /// Says that no group with this number is there any more.
  func disconnect(_ number: UInt64) { groups[number] = nil }

  /// Says that a function isn't used any more.
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
        if let order = tasks[number]?.order(for: worker) {
          send(order, to: worker)
        } else {
          // It needs none any more.
          tasks[number] = nil
          perform(state.ended(number))
        }
      }
    }
  }

  // MARK: Workers

  private func start() {
    let index = workers.count
    let channel = WorkerChannel()
    workers.append(Worker(channel: channel))
    let setting = WorkerSetting(
      configuration: configuration, paths: host.packagePaths,
      hasGlobalModule: host.hasGlobalModule, isChecking: host.isChecking,
      isVirtual: loop.clock.isVirtual,
      gracePeriod: loop.gracePeriod, cleanupGrace: loop.cleanupGrace, secrets: loop.secrets,
      channel: channel,
      deliver: { [mailbox = loop.mailbox, link] report in
        mailbox.post { _ in link.pool?.take(report, from: index) }
      },
      refuse: { [mailbox = loop.mailbox, link] problem in
        mailbox.post { _ in
          link.pool?.giveUp(
            index, FlowError(.error, "no worker could be made: \(ByteString(describing: problem))"))
        }
      })
    if !WorkerThread.start(setting) {
      loop.enqueue { [weak self] in
        self?.giveUp(
          index, FlowError(.error, "no worker could be made: the system gives no thread"))
      }
    }
  }

  private func wokeUp(_ worker: Int) {
    state.wokeUp(worker)
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
    if workers[worker].external == nil { workers[worker].external = loop.mailbox.begin() }
  }

  /// Lets the loop end, as far as it depends on a worker that has nothing to do.
  private func release(_ worker: Int) {
    guard state.tasks(of: worker).isEmpty else { return }
    workers[worker].external?.end()
    workers[worker].external = nil
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
  }

  private func take(_ report: WorkerReport, from worker: Int) {
    guard workers[worker].isAlive else { return }
    workers[worker].hasReported = true
    for event in report.jobs {
      guard let task = tasks[event.id] else { continue }
      if case .ended = event.what {
        tasks[event.id] = nil
        perform(state.ended(event.id))
      }
      task.take(event)
    }
    for failure in report.failures {
      loop.reportFailure(failure.error.error(on: host), name: failure.name)
    }
    for events in report.groups { groups[events.id]?.group.take(events, worker: worker) }
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

  /// A worker has nothing to do now. If it waits for a time of the virtual clock, so does this
  /// loop, from which it has the clock.
  private func fellAsleep(_ worker: Int, _ sleep: WorkerReport.Sleep) {
    if sleep == .idle {
      workers[worker].external?.end()
      workers[worker].external = nil
    }
    guard case .until(let time) = sleep else { return }
    guard time > loop.now() else {
      workers[worker].channel.tell(now: loop.now())
      return
    }
    workers[worker].alarm?.cancel()
    workers[worker].alarm = loop.schedule(at: time) { [weak self] in
      guard let self else { return }
      wokeUp(worker)
      workers[worker].channel.tell(now: loop.now())
    }
    workers[worker].external?.end()
    workers[worker].external = nil
  }

  // MARK: Stops

  /// Sees to it that a worker takes a stop: interrupts it again, at growing intervals, and gives it
  /// up in the end.
  private func watch(
    _ number: UInt64, _ stop: Int, of worker: Int, since began: Int64, interval: Int64
  ) {
    _ = loop.scheduleOutside(after: Double(interval) / 1e9) { [weak self] in
      self?.look(number, stop, of: worker, since: began, interval: interval)
    }
  }

  private func look(
    _ number: UInt64, _ stop: Int, of worker: Int, since began: Int64, interval: Int64
  ) {
    guard workers[worker].isAlive, tasks[number] != nil, state.worker(of: number) == worker else {
      return
    }
    let channel = workers[worker].channel
    let hasTaken = channel.hasTaken(stop: stop)
    // What has heard of it has its grace for cleanups, as have its tasks, and then a bit for unwinding.
    let seconds = max(loop.cleanupGrace, tasks[number]?.grace ?? 0) * 2
    let grace = hasTaken ? EventLoop.nanoseconds(seconds).later(by: loop.gracePeriod) : 0
    let limit = grace.later(by: loop.gracePeriod)
    if LuaVM.monotonicTime - began >= limit, !state.isAsleep(worker) {
      giveUp(
        worker,
        FlowError(
          .error, "the worker was busy in a C function that can't be stopped, and was given up"))
      return
    }
    if !hasTaken { channel.nudge() }
    watch(
      number, stop, of: worker, since: began, interval: min(interval * 2, 100_000_000))
  }

  /// Goes on without a worker.
  private func giveUp(_ worker: Int, _ error: FlowError) {
    guard workers[worker].isAlive else { return }
    workers[worker].isAlive = false
    workers[worker].channel.close()
    workers[worker].external?.end()
    workers[worker].external = nil
    workers[worker].alarm?.cancel()
    workers[worker].alarm = nil
    let (lost, actions) = state.lost(worker)
    let told = lost.compactMap { tasks.removeValue(forKey: $0) }
    for task in told {
      task.lost(error, worker: worker, isReplaced: workers[worker].hasReported)
    }
    perform(actions)
  }

  /// Ends all workers: their states are closed, with all finalizers. Doesn't wait beyond the grace
  /// period for one that can't be stopped.
  func close() {
    link.pool = nil
    for index in workers.indices {
      workers[index].alarm?.cancel()
      workers[index].external?.end()
      workers[index].channel.close()
    }
    let end = LuaVM.monotonicTime.later(by: loop.gracePeriod)
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
  }
}
