internal import FlowEngine
internal import LuaVM

/// What a worker has to tell the main loop, collected: a report costs more than most of what it
/// tells.
final class WorkerOutbox {
  /// How long a report may wait while the worker is busy, in nanoseconds.
  static let interval: Int64 = 1_000_000

  private let deliver: @Sendable (WorkerReport) -> Void
  private var report = WorkerReport()
  /// When it was time for the last one, of the loop's clock.
  private var lastTime: Int64 = 0
  /// How many orders were taken.
  var taken: UInt64 = 0
  /// What was told last, to tell it once.
  private var told: (taken: UInt64, sleep: WorkerReport.Sleep)?

  init(_ deliver: @escaping @Sendable (WorkerReport) -> Void) {
    self.deliver = deliver
  }

  /// Adds what has happened in a job.
  func add(_ id: UInt64, at time: Int64, _ what: WorkerReport.JobEvent.What) {
    report.jobs.append(WorkerReport.JobEvent(id: id, time: time, what: what))
  }

  /// Adds a failure that nobody observed.
  func add(_ name: ByteString, _ error: WireError) { report.failures.append((name, error)) }

  /// Whether it is time for a report; `time` is that of the loop's clock. (While a virtual one
  /// stands still, it is when the worker has nothing more to do.)
  func isDue(at time: Int64) -> Bool {
    guard time - lastTime >= Self.interval else { return false }
    lastTime = time
    return true
  }

  /// When it is time for the next report.
  var nextTime: Int64 { lastTime.later(by: Self.interval) }

  /// Says that something has happened, so that it has to be told anew when the worker sleeps.
  func noteWork() { told = nil }

  /// Sends what there is, with what the groups have.
  func flush(_ groups: some Sequence<WorkerGroupSite>) {
    told = nil
    send(groups, nil)
  }

  /// The same before the worker sleeps.
  func flush(_ groups: some Sequence<WorkerGroupSite>, sleep: WorkerReport.Sleep) {
    if report.isEmpty, let told, told.taken == taken, told.sleep == sleep,
      groups.allSatisfy({ !$0.hasNews })
    {
      return
    }
    send(groups, sleep)
    told = (taken, sleep)
  }

  private func send(_ groups: some Sequence<WorkerGroupSite>, _ sleep: WorkerReport.Sleep?) {
    for group in groups where group.hasNews { report.groups.append(group.takeEvents()) }
    guard sleep != nil || !report.isEmpty else { return }
    report.taken = taken
    report.sleep = sleep
    let sent = report
    report = WorkerReport()
    deliver(sent)
  }
}
