internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The pending messages of a worker to the main loop. They are collected, because a report costs
/// more than most of its contents.
final class WorkerOutbox {
  /// The maximum time that a report may wait while the worker is busy, in nanoseconds.
  private static let interval: Int64 = 1_000_000
  /// The maximum for fewer than `manyEnds` jobs of those that came together: each report is a message to another
  /// node.
  private static let intervalOfFew: Int64 = 5_000_000
  private static let manyEnds = 4

  /// Whether it executes jobs that came together.
  var isShared = false
  /// How many jobs have ended since the last report.
  private var ends = 0
  private let deliver: @Sendable (WorkerReport) -> Void
  private var report = WorkerReport()
  /// The time of the last report, on the loop's clock.
  private var lastTime: Int64 = 0
  /// The number of orders taken.
  var taken: UInt64 = 0
  /// The last reported values, so that each is reported once.
  private var told: (taken: UInt64, sleep: WorkerReport.Sleep)?

  init(_ deliver: @escaping @Sendable (WorkerReport) -> Void) {
    self.deliver = deliver
  }

  /// Adds the events of a job.
  func add(_ id: UInt64, at time: Int64, _ what: WorkerReport.JobEvent.What) {
    report.jobs.append(WorkerReport.JobEvent(id: id, time: time, what: what))
    if case .ended = what { ends += 1 }
  }

  /// Adds a job that was withdrawn before it had begun.
  func add(returned id: UInt64) { report.returned.append(id) }

  /// Adds an unobserved failure.
  func add(_ name: ByteString, _ error: WireError) { report.failures.append((name, error)) }

  /// Adds a limit that is wanted, or given back.
  func add(_ request: LimitRequest) { report.limits.append(request) }

  /// Adds what an op wants of a stream.
  func add(_ request: StreamRequest) { report.streams.append(request) }

  /// Whether it is time for a report; `time` is on the loop's clock. (While a virtual clock stands
  /// still, it is time when the worker has nothing more to do.)
  func isDue(at time: Int64) -> Bool {
    let isPatient = isShared && ends < Self.manyEnds
    guard time - lastTime >= (isPatient ? Self.intervalOfFew : Self.interval) else { return false }
    lastTime = time
    return true
  }

  /// The time of the next report.
  var nextTime: Int64 { lastTime.later(by: Self.interval) }

  /// Marks that something has happened, so that it has to be reported again when the worker sleeps.
  func noteWork() { told = nil }

  /// Sends the collected messages, with those of the groups.
  func flush(_ groups: some Sequence<WorkerGroupRunner>) {
    told = nil
    send(groups, nil)
  }

  /// Sends the collected messages before the worker sleeps.
  func flush(_ groups: some Sequence<WorkerGroupRunner>, sleep: WorkerReport.Sleep) {
    if report.isEmpty, let told, told.taken == taken, told.sleep == sleep,
      groups.allSatisfy({ !$0.hasNews })
    {
      return
    }
    send(groups, sleep)
    told = (taken, sleep)
  }

  private func send(_ groups: some Sequence<WorkerGroupRunner>, _ sleep: WorkerReport.Sleep?) {
    for group in groups where group.hasNews { report.groups.append(group.takeEvents()) }
    guard sleep != nil || !report.isEmpty else { return }
    report.taken = taken
    report.sleep = sleep
    let sent = report
    report = WorkerReport()
    ends = 0
    deliver(sent)
  }
}
