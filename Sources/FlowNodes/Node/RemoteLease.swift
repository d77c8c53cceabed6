internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// A job of a script elsewhere that a worker of this node executes, and the reports about it.
///
/// It collects events for a moment, so that a short op is one report.
final class RemoteLease: WorkerTask {
  let session: RemoteSession
  /// Its number among the tasks of this process.
  let number: UInt64
  let job: RemoteJob
  /// See `RemoteReport.delivery`.
  let delivery: UInt64
  private(set) var handout: RemoteHandout
  /// The order for a worker, once what it needs is here.
  private(set) var order: WorkerJob?
  /// The jobs that the same worker executes; nil if it has a worker for itself.
  var share: RemoteShare?
  /// Where it is.
  private(set) var state = RemoteLeaseState(at: LuaVM.monotonicTime)
  /// The files that its op sees.
  private var links = RemoteNodeFiles.Links()
  /// The temporary folders of its op.
  private var folders: [ByteString] = []
  /// Outputs with files, until the op has ended.
  private var held: [(time: Int64, key: ByteString, value: WireValue, batch: WireBatch)] = []
  private unowned let node: RemoteNode
  private var lane: ByteString
  private var news: [(time: Int64, news: RemoteReport.News)] = []
  /// Whether the news will be sent after a moment.
  private var isFlushing = false
  /// Why what it gives isn't sent.
  private var refusal: FlowError?
  /// The time that it has taken, once it has ended.
  private var took: Int64 = 0

  init(
    _ node: RemoteNode, _ session: RemoteSession, _ job: RemoteJob, _ delivery: UInt64,
    _ handout: RemoteHandout
  ) {
    self.node = node
    self.session = session
    self.job = job
    self.delivery = delivery
    self.handout = handout
    number = session.pool.makeNumber()
    lane = node.name
    state.prepare()
  }

  /// Says that a worker of this node executes it.
  func announce() {
    guard state.began > 0, !state.hasEnded else { return }
    node.announce([report([])], to: session.script)
  }

  // MARK: For the pool

  func order(for worker: Int) -> WorkerOrder? { order.map { .start(id: number, $0) } }

  private var place: WorkerJob.OpPlace? {
    if case .op(let place) = job.kind { place } else { nil }
  }

  var isExclusive: Bool { place?.memory != nil }
  var grace: Duration? { place?.grace }

  func begun(in lane: UInt8) {
    state.begin(at: LuaVM.monotonicTime)
    node.noteBegin()
    self.lane = node.name(ofLane: Int(lane))
    // Several short ones were announced together.
    if handout.count == 1 { announce() }
  }

  func handle(_ event: WorkerReport.JobEvent) {
    guard let what = state.hasEnded ? event.what : reported(event.what) else { return }
    var kind = kind(of: what)
    if kind == .failed, case .ended(nil, _, _) = event.what { kind = .refused }
    perform(state.take(kind), .init(id: event.id, time: event.time, what: what))
  }

  private func kind(of event: WorkerReport.JobEvent.What) -> RemoteLeaseState.Event {
    switch event {
    case .set(let key, _, _) where job.files.type(ofGiven: key) != nil: .files
    case .folder: .folder
    case .ended(nil, _, _): .succeeded
    case .ended: .failed
    default: .other
    }
  }

  /// Does what its state says about an event.
  private func perform(_ action: RemoteLeaseState.Action, _ event: WorkerReport.JobEvent) {
    switch (action, event.what) {
    case (.removeFolder, .folder(let path)): node.files.release(RemoteNodeFiles.Links(), [path])
    case (.keepFolder, .folder(let path)): folders.append(path)
    case (.hold, .set(let key, let value, let batch)):
      held.removeAll { $0.key == key }
      held.append((event.time, key, value, batch))
    case (.sendFiles, _): sendFiles(before: event)
    case (.handBack(let reason, let forgets), _): handBack(reason, forgets: forgets)
    case (.report, _): add(.event(event.what, age: 0), at: event.time)
    case (.reportEnd, _):
      add(.event(event.what, age: 0), at: event.time)
      took = share?.time(until: event.time) ?? max(1, LuaVM.monotonicTime - state.began)
      if took > 0 { node.note(took) }
      leaveWorkers()
    default: break
    }
  }

  /// The report of an event; nil for none. An op that gives a secret where others could read it is stopped, and
  /// ends with the reason.
  private func reported(_ event: WorkerReport.JobEvent.What) -> WorkerReport.JobEvent.What? {
    if refusal == nil {
      do throws(FlowError) { return try node.secrets.reported(event) } catch {
        refusal = error
        node.host.loop.enqueue { [weak self] in self?.stop(error) }
      }
    }
    switch event {
    case .folder: return event
    case .ended:
      return refusal.map {
        .ended(WireError($0, from: node.host), result: .null, WireBatch())
      }
    default: return nil
    }
  }

  func lost(_ error: FlowError, worker: Int, isReplaced: Bool) {
    switch state.lose() {
    case .handBack(let reason, let forgets): handBack(reason, forgets: forgets)
    case .reportEnd:
      let error = node.secrets.sent(WireError(error, from: node.host))
      add(.event(.ended(error, result: .null, WireBatch()), age: 0))
      leaveWorkers()
    default: break
    }
  }

  /// No worker has it any more.
  private func leaveWorkers() {
    share?.remove(self)
    releaseFiles()
  }

  /// The server has handed it out to this node again, which still has it.
  func continues(by handout: RemoteHandout) {
    self.handout = handout
    guard state.isExecuting else { return }
    add(
      .event(
        .log("the queue handed it out to \(node.name) again, which continues with it"), age: 0))
  }

  /// Takes it back if it has waited for a worker since a time, or for other jobs of its worker.
  func withdraw(waitingSince time: Int64) {
    guard state.mayBeWithdrawn(waitingSince: time) else { return }
    if let share { share.withdraw(self) } else if state.isWaiting { returned() }
  }

  func returned() {
    // No worker has begun it.
    lane = node.name
    if case .handBack(let reason, let forgets) = state.handBack("the node is busy") {
      handBack(reason, forgets: forgets)
    }
  }

  /// Gives the job back to its script, which puts it into the queue again: one that executes after its stop, with its
  /// cleanups, unless this is the second call.
  func giveBack(_ reason: ByteString) {
    switch state.giveBack(reason) {
    case .stop: stopWorker(.cancelled(reason: reason))
    case .handBack(let reason, let forgets): handBack(reason, forgets: forgets)
    default: break
    }
  }

  private func handBack(_ reason: ByteString, forgets: Bool) {
    if share == nil, forgets { session.pool.end(number) }
    leaveWorkers()
    add(.returned(reason))
    flush()
  }

  /// Stops it, wherever it is.
  func stop(_ error: FlowError) {
    switch state.stop() {
    case .fail: lost(error, worker: -1, isReplaced: false)
    case .stop: stopWorker(error)
    default: break
    }
  }

  private func stopWorker(_ error: FlowError) {
    if let share { share.stop(self, error) } else { session.pool.stop(number, error) }
  }

  // MARK: Files

  /// Gets the files that it needs, once its code has come; it ends if something is missing.
  func prepare(_ code: Result<WorkerCode, FlowError>) async {
    // It was stopped meanwhile.
    if state.hasEnded { return }
    do {
      let code = try code.get()
      let links = try await node.files.prepare(job.files.needs)
      if state.hasEnded { return node.files.release(links) }
      guard links.missing.isEmpty else {
        state.miss()
        add(.missing(links.missing))
        return flush()
      }
      self.links = links
      order = WorkerJob(code: code, arguments: job.arguments, kind: try placedKind())
    } catch {
      lost(.from(error), worker: -1, isReplaced: false)
    }
  }

  /// Whether it goes to the pool of its session, which has to get it in the same turn: from now on a stop is the pool's.
  func prepared() -> Bool { state.prepared() }

  /// The kind of the job, with the paths of this node.
  private func placedKind() throws -> WorkerJob.Kind {
    guard var place else { return job.kind }
    for need in job.files.needs {
      guard let index = place.keys.firstIndex(of: need.key) else { continue }
      let value = try node.host.value(place.data.values[index], in: place.data)
      let wired = try node.host.wire(value.replacingPaths(links.paths), &place.data)
      place.data.values[index] = wired
    }
    return .op(place)
  }

  private func releaseFiles() {
    node.files.release(links, folders)
    links = RemoteNodeFiles.Links()
    folders = []
    held = []
  }

  /// Sends the outputs with files, and then reports the end of the op.
  private func sendFiles(before end: WorkerReport.JobEvent) {
    let node = node
    var news: [RemoteReport.News] = []
    node.queue.connection.perform { [self, held] in
      for next in held {
        let value = (try? node.host.value(next.value, in: next.batch)) ?? .null
        let (changed, sent) = try await node.files.send(
          next.key, value, job.files, links, script: session.script)
        var batch = WireBatch()
        let wired = (try? node.host.wire(changed, &batch)) ?? .null
        news.append(
          sent.isEmpty
            ? .event(.set(next.key, wired, batch), age: 0) : .files(next.key, wired, batch, sent))
        // Its script may not wait for it any more.
        if state.hasEnded { throw FlowError.cancelled() }
      }
    } then: { [self] result in
      if let error = result.failure {
        node.files.discard(news.files)
        return lost(error, worker: -1, isReplaced: false)
      }
      for each in news { add(each) }
      add(.event(end.what, age: 0), at: end.time)
      state.sentFiles()
      leaveWorkers()
    }
  }

  /// Stops it without a report of its own: nobody waits for it. Its cleanups have its files until `drop`.
  func abandon() {
    let wasWaiting = state.isWaiting
    if state.abandon() == .stop {
      stopWorker(.cancelled(reason: "its script is gone"))
    } else if let share {
      share.remove(self)
    } else if wasWaiting {
      session.pool.end(number)
    }
    news = []
  }

  /// Releases what an abandoned one had.
  func drop() {
    share = nil
    releaseFiles()
  }

  /// A report with news.
  func report(_ news: [RemoteReport.News]) -> RemoteReport {
    RemoteReport(number: job.number, delivery: delivery, lane: lane, took: took, news: news)
  }

  // MARK: Reports

  /// How long news wait for more of them: a short op is one report.
  private static let patience = Duration.milliseconds(1)
  /// How long it waits before it sends a report again that the server hasn't stored.
  private static let pause = Duration.seconds(1)

  private func add(_ what: RemoteReport.News, at time: Int64? = nil) {
    news.append((time ?? node.host.loop.now(), what))
    if what.isLast {
      node.host.loop.enqueue { [self] in flush() }
    } else if !isFlushing {
      isFlushing = true
      _ = node.host.loop.scheduleOutside(after: Self.patience) { [weak self] in
        self?.isFlushing = false
        self?.flush()
      }
    }
  }

  /// Sends what has happened since the last report, which has to be stored before: reports arrive in their order.
  private func flush() {
    guard !news.isEmpty, !state.isSending else { return }
    let now = node.host.loop.now()
    var report = report(
      news.map { time, news in
        guard case .event(let event, _) = news else { return news }
        return .event(event, age: max(0, now - time))
      })
    (report.identity, report.place) = (job.identity, state.reports)
    news = []
    send(report.bytes, isLast: report.isLast)
  }

  /// Reports a failure, which is small enough for a message, instead of what the server has no room for.
  private func fail(_ error: FlowError) {
    let failure = FlowError(.error, "its result can't be sent: \(error.message)")
    news = []
    // The end of one that executes is the next report.
    guard state.hasEnded else { return stop(failure) }
    let error = WireError(failure, from: node.host)
    var last = report([.event(.ended(error, result: .null, WireBatch()), age: 0)])
    last.place = state.reports
    send(last.bytes, isLast: true)
  }

  private func send(_ bytes: [UInt8], isLast: Bool) {
    state.send()
    session.report(bytes, isKept: !job.identity.isEmpty) { [weak node, self] result in
      guard let node else { return }
      switch result {
      case .success:
        guard state.stored(isLast: isLast) == .conclude else { return flush() }
        // Stored: the queue may forget the job.
        handout.ended()
        node.ended(self)
      case .failure(let error):
        guard node.holds(self) else { return }
        guard state.notStored(isRefused: error.jetStreamCode != nil) == .sendAgain else {
          return fail(error)
        }
        _ = node.host.loop.scheduleOutside(after: Self.pause) { [weak node, self] in
          if node?.holds(self) == true { send(bytes, isLast: isLast) }
        }
      }
    }
  }
}
