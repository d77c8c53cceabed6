internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// A message with jobs that the server has handed out to this node: it is acknowledged once all of them have ended.
/// Confined to the thread of the host's loop.
final class RemoteHandout {
  private let message: JetStreamMessage
  private let queue: RemoteQueue
  /// The number of the connection by which the message is known to be in the queue.
  private var connection: Int
  /// Sends to the queue, once the message is known to be there by another connection.
  private var waiting: JetStreamMessage.Outcome?
  /// How many jobs it has.
  let count: Int
  /// How many of them haven't ended.
  private var left: Int
  private var isOver = false

  init(_ message: JetStreamMessage, _ count: Int, of queue: RemoteQueue) {
    self.message = message
    self.queue = queue
    connection = queue.connection.number
    self.count = count
    left = count
  }

  /// Extends the lease.
  func extend() {
    if !isOver { send(.inProgress) }
  }

  /// A job has ended, and the script has its last report: the queue may forget the message after the last one.
  func ended() {
    left -= 1
    if left <= 0 { end(.done) }
  }

  /// Removes it from the queue: nobody needs it.
  func drop() { end(.dropped) }

  /// Lets the server hand it out again.
  func giveBack() { end(.refused) }

  private func end(_ outcome: JetStreamMessage.Outcome) {
    if isOver { return }
    isOver = true
    send(outcome)
  }

  /// Sends something about the message; if it doesn't arrive, the message comes again. After a new connection the message
  /// has to be there still.
  private func send(_ outcome: JetStreamMessage.Outcome) {
    if queue.connection.isConnected, queue.connection.number == connection {
      return message.tell(outcome)
    }
    let isAsked = waiting != nil
    waiting = outcome
    if isAsked { return }
    queue.connection.perform { [self] in
      var (number, isThere) = (0, false)
      repeat {
        try await queue.connection.connected()
        number = queue.connection.number
        isThere = await queue.has(message)
      } while !queue.connection.isConnected || queue.connection.number != number
      connection = number
      let outcome = waiting.take()
      if !isThere { isOver = true } else if let outcome { message.tell(outcome) }
    }
  }
}

/// Short jobs of one message, which one worker of a node executes one after another: the way to a worker and back
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

  /// The time that a job has taken which ended at a time; 0 for the first one, whose beginning isn't known.
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
    // The first one, as a rule: they end in their order.
    if let place = leases.firstIndex(where: { $0 === lease }) { leases.remove(at: place) }
    pool.removeMember(lease.number)
    if leases.isEmpty { pool.concluded(number) }
  }

  // MARK: For the pool

  func order(for worker: Int) -> WorkerOrder? {
    if leases.isEmpty { return nil }
    self.worker = worker
    return .startEach(leases.compactMap { lease in lease.order.map { (lease.number, $0) } })
  }

  func begun(in lane: UInt8) {
    for lease in leases { lease.begun(in: lane) }
  }

  func handle(_ event: WorkerReport.JobEvent) {}

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    for lease in leases { lease.lost(error, worker: worker, isReplaced: isReplaced) }
  }
}
