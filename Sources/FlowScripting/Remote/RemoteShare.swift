internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Short jobs of one message, which one worker of a machine executes one after another: the way to a worker and back
/// costs more than what they do. Confined to the thread of the host's loop.
final class RemoteShare: WorkerTask {
  private let number: UInt64
  // Unowned: the session of the leases keeps it.
  private unowned let pool: WorkerPool
  private var leases: [RemoteLease]
  /// The worker that has them; nil before.
  private var worker: Int?
  private var lastEnd: Int64 = 0

  init(_ leases: [RemoteLease], _ pool: WorkerPool) {
    self.leases = leases
    self.pool = pool
    number = pool.makeNumber()
  }

  /// Passes them to the first free worker.
  func submit() {
    for lease in leases { lease.share = self }
    pool.submit(self, number, members: leases.map { ($0, $0.number) })
  }

  /// What a job has taken that ended at a time; 0 for the first one, whose beginning isn't known.
  func time(until end: Int64) -> Int64 {
    defer { lastEnd = end }
    return lastEnd == 0 ? 0 : max(1, end - lastEnd)
  }

  /// Stops one of them.
  func stop(_ lease: RemoteLease, _ error: FlowError) {
    if let worker {
      pool.stop(number, error, of: worker, order: lease.number, member: lease.number)
    } else {
      lease.lost(error, worker: -1, isReplaced: false)
    }
  }

  /// Takes one back, unless it has begun: its `returned` is called then.
  func withdraw(_ lease: RemoteLease) {
    if let worker { pool.withdraw(lease.number, of: worker) } else { lease.returned() }
  }

  /// One of them has ended, or isn't executed here.
  func remove(_ lease: RemoteLease) {
    leases.removeAll { $0 === lease }
    pool.removeMember(lease.number)
    if leases.isEmpty { pool.concluded(number) }
  }

  // MARK: For the pool

  func order(for worker: Int) -> WorkerOrder? {
    if leases.isEmpty { return nil }
    self.worker = worker
    return .startEach(leases.map { ($0.number, $0.order) })
  }

  func begun(in lane: UInt8) {
    for lease in leases { lease.begun(in: lane) }
  }

  func handle(_ event: WorkerReport.JobEvent) {}

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    for lease in leases { lease.lost(error, worker: worker, isReplaced: isReplaced) }
  }
}
