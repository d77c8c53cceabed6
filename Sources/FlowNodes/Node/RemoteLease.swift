internal import FlowScripting
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
  private(set) var handout: RemoteHandout
  private(set) var order: WorkerJob
  /// The jobs that the same worker executes; nil if it has a worker for itself.
  var share: RemoteShare?
  let files: RemoteJobFiles
  /// That of its job.
  private let identity: ByteString
  /// How many reports the server has stored.
  private var reports: UInt64 = 0
  /// The files that its op sees.
  private var links = RemoteMachineFiles.Links()
  /// The temporary folders of its op.
  private var folders: [ByteString] = []
  /// Outputs with files, until the op has ended.
  private var held: [(time: Int64, key: ByteString, value: WireValue, batch: WireBatch)] = []
  /// Whether it waits for files that come or are sent: no worker has it then.
  private(set) var movesFiles = false
  private unowned let machine: RemoteMachine
  private var lane: ByteString
  private var news: [(time: Int64, news: RemoteReport.News)] = []
  /// Whether the news will be sent after a moment.
  private var isFlushing = false
  /// Whether a report is on its way.
  private var isSending = false
  /// How often the server had no room for a report.
  private var refusals = 0
  /// Why what it gives isn't sent.
  private var refusal: FlowError?
  private var began: Int64 = 0
  /// What it has taken, once it has ended.
  private var took: Int64 = 0
  private let arrived = LuaVM.monotonicTime
  /// Why it goes back to its script once it has been stopped; nil when it doesn't.
  private var returning: ByteString?
  private(set) var hasEnded = false

  init(
    _ machine: RemoteMachine, _ session: RemoteSession, _ number: UInt64, _ job: RemoteJob,
    _ delivery: UInt64, _ code: WorkerCode, _ handout: RemoteHandout
  ) {
    self.machine = machine
    self.session = session
    self.number = number
    self.job = job.number
    self.delivery = delivery
    self.handout = handout
    files = job.files
    identity = job.identity
    lane = machine.name
    order = WorkerJob(code: code, arguments: job.arguments, kind: job.kind)
  }

  /// Says that a worker of this machine executes it.
  func announce() {
    guard began > 0, !hasEnded else { return }
    machine.announce(
      [RemoteReport(number: job, delivery: delivery, lane: lane, news: [])], to: session.script)
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
    machine.noteBegin()
    self.lane = machine.name(ofLane: Int(lane))
    // Several short ones were announced together.
    if handout.count == 1 { announce() }
  }

  func handle(_ event: WorkerReport.JobEvent) {
    if hasEnded {
      if case .folder(let path) = event.what { machine.files.remove([path]) }
      return
    }
    if let returning, case .ended(.some, _, _) = event.what { return handBack(returning) }
    guard let what = reported(event.what) else { return }
    switch what {
    case .set(let key, let value, let batch) where files.type(ofGiven: key) != nil:
      held.removeAll { $0.key == key }
      held.append((event.time, key, value, batch))
      return
    case .folder(let path): return folders.append(path)
    case .ended(nil, _, _) where !held.isEmpty: return sendFiles(before: event)
    default: break
    }
    add(.event(what, age: 0), at: event.time)
    if case .ended(let error, _, _) = what {
      took = share?.time(until: event.time) ?? max(1, LuaVM.monotonicTime - began)
      if took > 0 { machine.note(took) }
      ended(error)
    }
  }

  /// What is reported of an event; nil for nothing. An op that gives a secret where others could read it is stopped, and
  /// ends with the reason.
  private func reported(_ event: WorkerReport.JobEvent.What) -> WorkerReport.JobEvent.What? {
    if refusal == nil {
      do throws(FlowError) { return try machine.secrets.reported(event) } catch {
        refusal = error
        machine.host.loop.enqueue { [weak self] in self?.stop(error) }
      }
    }
    switch event {
    case .folder: return event
    case .ended:
      return refusal.map {
        .ended(WireError($0, from: machine.host), result: .null, WireBatch())
      }
    default: return nil
    }
  }

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    if hasEnded { return }
    if let returning { return handBack(returning) }
    let error = machine.secrets.sent(WireError(error, from: machine.host))
    add(.event(.ended(error, result: .null, WireBatch()), age: 0))
    ended(error)
  }

  private func ended(_ error: WireError?) {
    hasEnded = true
    movesFiles = false
    share?.remove(self)
    releaseFiles()
  }

  /// Whether no worker has it, and it waits for one.
  var isWaiting: Bool { began == 0 && !hasEnded && !movesFiles }

  /// Whether a worker has it.
  private var isExecuting: Bool { began > 0 && !hasEnded && !movesFiles }

  /// The server has handed it out to this machine again, which still has it.
  func continues(by handout: RemoteHandout) {
    self.handout = handout
    guard isExecuting else { return }
    add(
      .event(
        .log("the queue handed it out to \(machine.name) again, which continues with it"), age: 0))
  }

  /// Takes it back if it has waited for a worker since a time, or for other jobs of its worker.
  func withdraw(waitingSince time: Int64) {
    guard arrived < time, !hasEnded else { return }
    if let share { share.withdraw(self) } else if isWaiting { returned() }
  }

  func returned() {
    // No worker has begun it.
    lane = machine.name
    handBack("the machine is busy")
  }

  /// Gives the job back to its script, which puts it into the queue again: one that executes after its stop, with its
  /// cleanups, unless this is the second call.
  func giveBack(_ reason: ByteString) {
    guard returning == nil, isExecuting else { return handBack(reason) }
    returning = reason
    stop(.cancelled(reason: reason))
  }

  private func handBack(_ reason: ByteString) {
    guard !hasEnded else { return }
    hasEnded = true
    if let share { share.remove(self) } else if began == 0 { session.pool.end(number) }
    releaseFiles()
    add(.returned(reason))
    flush()
  }

  /// Stops it, wherever it is.
  func stop(_ error: FlowError) {
    if hasEnded { return }
    if movesFiles {
      lost(error, worker: -1, isReplaced: false)
    } else if let share {
      share.stop(self, error)
    } else {
      session.pool.stop(number, error)
    }
  }

  // MARK: Files

  /// Gets the files that it needs, and calls `then` unless it has ended meanwhile.
  func prepareFiles(then: @escaping () -> Void) {
    movesFiles = true
    machine.files.prepare(files.needs) { [weak machine, self] result in
      guard let machine, !hasEnded, machine.holds(self) else {
        if case .success(let links) = result { machine?.files.release(links) }
        return
      }
      movesFiles = false
      switch result {
      case .failure(.failed(let error)): lost(error, worker: -1, isReplaced: false)
      case .failure(.missing(let hashes)):
        hasEnded = true
        add(.missing(hashes))
        flush()
      case .success(let links):
        self.links = links
        do {
          try setPaths()
          then()
        } catch {
          lost(.from(error), worker: -1, isReplaced: false)
        }
      }
    }
  }

  /// Gives the op the paths of this machine.
  private func setPaths() throws {
    guard case .op(var place) = order.kind else { return }
    for need in files.needs {
      guard let index = place.keys.firstIndex(of: need.key) else { continue }
      let value = try machine.host.value(place.data.values[index], in: place.data)
      let wired = try machine.host.wire(value.replacingPaths(links.paths), &place.data)
      place.data.values[index] = wired
    }
    order = WorkerJob(code: order.code, arguments: order.arguments, kind: .op(place))
  }

  private func releaseFiles() {
    machine.files.release(links)
    machine.files.remove(folders)
    links = RemoteMachineFiles.Links()
    folders = []
    held = []
  }

  /// Sends the outputs with files, and then reports the end of the op.
  private func sendFiles(before end: WorkerReport.JobEvent) {
    movesFiles = true
    sendFiles(held[...], [], before: end)
  }

  private func sendFiles(
    _ rest: ArraySlice<(time: Int64, key: ByteString, value: WireValue, batch: WireBatch)>,
    _ done: [RemoteReport.News], before end: WorkerReport.JobEvent
  ) {
    guard let next = rest.first else {
      for news in done { add(news) }
      add(.event(end.what, age: 0), at: end.time)
      return ended(nil)
    }
    let value = (try? machine.host.value(next.value, in: next.batch)) ?? .null
    machine.files.send(next.key, value, files, links, script: session.script) {
      [weak machine, self] result in
      guard let machine, !hasEnded, machine.holds(self) else {
        // Its script doesn't wait for it any more.
        if case .success(let (_, files)) = result { machine?.files.discard(files + done.files) }
        return
      }
      switch result {
      case .failure(let error):
        machine.files.discard(done.files)
        lost(error, worker: -1, isReplaced: false)
      case .success(let (value, sent)):
        var batch = WireBatch()
        let wired = (try? machine.host.wire(value, &batch)) ?? .null
        let news =
          sent.isEmpty
          ? RemoteReport.News.event(.set(next.key, wired, batch), age: 0)
          : .files(next.key, wired, batch, sent)
        sendFiles(rest.dropFirst(), done + [news], before: end)
      }
    }
  }

  /// Stops it without a report of its own: nobody waits for it. Its cleanups have its files until `drop`.
  func abandon() {
    if isExecuting {
      stop(.cancelled(reason: "its script is gone"))
    } else if let share {
      share.remove(self)
    } else if isWaiting {
      session.pool.end(number)
    }
    hasEnded = true
    news = []
  }

  /// Releases what an abandoned one had.
  func drop() {
    share = nil
    releaseFiles()
  }

  /// The report that it goes back to its script.
  func returnedReport(_ reason: ByteString) -> RemoteReport {
    RemoteReport(number: job, delivery: delivery, lane: lane, news: [.returned(reason)])
  }

  // MARK: Reports

  /// How long news wait for more of them: a short op is one report.
  private static let patience = Duration.milliseconds(1)
  /// How long it waits before it sends a report again that the server hasn't stored.
  private static let pause = Duration.seconds(1)
  /// After so many a result that the server has no room for is a failure.
  private static let mostRefusals = 5

  private func add(_ what: RemoteReport.News, at time: Int64? = nil) {
    news.append((time ?? machine.host.loop.now(), what))
    let isLast: Bool
    switch what {
    case .event(.ended, _), .returned, .missing: isLast = true
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
      number: job, delivery: delivery, lane: lane, took: took,
      news: news.map { time, news in
        guard case .event(let event, _) = news else { return news }
        return .event(event, age: max(0, now - time))
      }, identity: identity, place: reports)
    news = []
    send(report.bytes, isLast: report.isLast)
  }

  /// Reports a failure, which is small enough for a message, instead of what the server has no room for.
  private func fail(_ error: FlowError) {
    let failure = FlowError(.error, "its result can't be sent: \(error.message)")
    refusals = 0
    news = []
    if hasEnded { return send(lastReport(failure), isLast: true) }
    // Its end is the next report.
    isSending = false
    stop(failure)
  }

  private func lastReport(_ failure: FlowError) -> [UInt8] {
    let end = RemoteReport.News.event(
      .ended(WireError(failure, from: machine.host), result: .null, WireBatch()), age: 0)
    return RemoteReport(
      number: job, delivery: delivery, lane: lane, took: took, news: [end], place: reports
    ).bytes
  }

  private func send(_ bytes: [UInt8], isLast: Bool) {
    isSending = true
    session.report(bytes, isKept: !identity.isEmpty) { [weak machine, self] result in
      guard let machine else { return }
      switch result {
      case .success:
        (isSending, refusals) = (false, 0)
        reports += 1
        guard isLast else { return flush() }
        // Stored: the queue may forget the job.
        handout.ended()
        machine.ended(self)
      case .failure(let error):
        guard machine.holds(self) else { return }
        if error.jetStreamCode != nil { refusals += 1 }
        if refusals > Self.mostRefusals { return fail(error) }
        _ = machine.host.loop.scheduleOutside(after: Self.pause) { [weak machine, self] in
          if machine?.holds(self) == true { send(bytes, isLast: isLast) }
        }
      }
    }
  }
}
