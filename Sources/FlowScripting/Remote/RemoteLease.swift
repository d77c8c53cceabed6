internal import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

/// A job of a script elsewhere that a worker of this machine executes, and the reports about it.
///
/// What happens is collected for a moment, so that a short op is one report.
final class RemoteLease: WorkerTask {
  let session: RemoteSession
  /// Its number among the tasks of this process.
  let number: UInt64
  /// Its number among those of its script.
  let job: UInt64
  /// See `RemoteReport.delivery`.
  let delivery: UInt64
  private let message: JetStreamMessage
  private let order: WorkerJob
  private unowned let machine: RemoteMachine
  private var lane: ByteString
  private var news: [(time: Int64, news: RemoteReport.News)] = []
  /// Whether the news will be sent after a moment.
  private var isFlushing = false
  /// Whether a report is on its way.
  private var isSending = false
  private var began: Int64 = 0
  private(set) var hasEnded = false

  init(
    _ machine: RemoteMachine, _ session: RemoteSession, _ number: UInt64, _ job: RemoteJob,
    _ delivery: UInt64, _ code: WorkerCode, _ message: JetStreamMessage
  ) {
    self.machine = machine
    self.session = session
    self.number = number
    self.job = job.number
    self.delivery = delivery
    self.message = message
    lane = machine.name
    order = WorkerJob(code: code, arguments: job.arguments, kind: job.kind)
  }

  /// Extends the lease.
  func extend() { try? message.inProgress() }

  /// Says that a worker of this machine executes it.
  func announce() {
    guard began > 0, !hasEnded else { return }
    let report = RemoteReport(number: job, delivery: delivery, lane: lane, news: [])
    machine.queue.announce(report.bytes, script: session.script)
  }

  // MARK: For the pool

  func order(for worker: Int) -> WorkerOrder? { .start(id: number, order) }

  var isExclusive: Bool {
    if case .op(let place) = order.kind { return place.memory != nil }
    return false
  }

  var grace: Duration? {
    if case .op(let place) = order.kind { return place.grace }
    return nil
  }

  func begun(in lane: UInt8) {
    began = LuaVM.monotonicTime
    self.lane = machine.name(ofLane: Int(lane))
    announce()
  }

  func handle(_ event: WorkerReport.JobEvent) {
    add(.event(event.what, age: 0), at: event.time)
    if case .ended(let error, _, _) = event.what { ended(error) }
  }

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    let error = WireError(error, from: machine.host)
    add(.event(.ended(error, result: .null, WireBatch()), age: 0))
    ended(error)
  }

  private func ended(_ error: WireError?) {
    hasEnded = true
    if began > 0 { machine.note(LuaVM.monotonicTime - began) }
  }

  /// Gives the job back to its script, which puts it into the queue again.
  func giveBack(_ reason: ByteString) {
    guard !hasEnded else { return }
    hasEnded = true
    add(.returned(reason))
    flush()
  }

  /// Ends it without a report: its script is gone, or another machine has the job.
  func drop(isOver: Bool) {
    hasEnded = true
    news = []
    if isOver { try? message.term() }
  }

  // MARK: Reports

  /// How long news wait for more of them: a short op is one report.
  private static let patience = Duration.milliseconds(1)
  /// How long it waits before it sends a report again that the server hasn't stored.
  private static let pause = Duration.seconds(1)

  private func add(_ what: RemoteReport.News, at time: Int64? = nil) {
    news.append((time ?? machine.host.loop.now(), what))
    let isLast: Bool
    switch what {
    case .event(.ended, _), .returned: isLast = true
    default: isLast = false
    }
    if isLast {
      machine.host.loop.enqueue { [self] in flush() }
    } else if !isFlushing {
      isFlushing = true
      _ = machine.host.loop.scheduleOutside(after: Self.patience) { [weak self] in
        self?.isFlushing = false
        self?.flush()
      }
    }
  }

  /// Sends what has happened since the last report, which has to be stored before: reports arrive in their order.
  private func flush() {
    guard !news.isEmpty, !isSending else { return }
    let now = machine.host.loop.now()
    let report = RemoteReport(
      number: job, delivery: delivery, lane: lane,
      news: news.map { time, news in
        guard case .event(let event, _) = news else { return news }
        return .event(event, age: max(0, now - time))
      })
    news = []
    send(report.bytes, isLast: report.isLast)
  }

  private func send(_ bytes: [UInt8], isLast: Bool) {
    isSending = true
    machine.queue.report(bytes, script: session.script) { [weak machine, self] result in
      guard let machine else { return }
      switch result {
      case .success:
        isSending = false
        guard isLast else { return flush() }
        // Stored: the queue may forget the job.
        try? message.ack()
        machine.ended(self)
      case .failure:
        guard machine.holds(self) else { return }
        _ = machine.host.loop.scheduleOutside(after: Self.pause) { [weak machine, self] in
          if machine?.holds(self) == true { send(bytes, isLast: isLast) }
        }
      }
    }
  }
}
