internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// The jobs of a script that other nodes execute: it puts them into the queue of a server, and passes the reports
/// about them on.
///
/// The server hands a job out again when its node doesn't extend the lease. Only reports about the latest hand-out
/// of a job count, and only until its end: earlier hand-outs receive a stop request. Confined to the thread of the host's loop.
final class RemoteDispatcher {
  typealias Job = RemoteQueuedJob

  // Unowned: the host owns its dispatcher.
  private unowned let host: ScriptHost
  private unowned let loop: FlowEventLoop
  private let settings: RemoteSettings
  /// The id of the script for nodes.
  private let id: ByteString
  private let keptResults: RemoteKeptResults
  /// The open queue, or whether it is being opened.
  private var queue: RemoteQueue?
  private var isOpening = false
  /// The connection that `close` has closed.
  private var ending: NATSConnection?
  private var jobs: [UInt64: Job] = [:]
  private var jobsInOrder: [Job] { jobs.values.sorted { $0.number < $1.number } }
  /// The objects that have to be on the server before jobs that need them.
  private var codes: OncePerKey<ByteString, ObjectInfo>
  private var consumers: OncePerKey<RemoteTags, ByteString>
  private var uploads: RemoteUploads?
  /// The job whose next loss would be the last one, and those that wait for its end: each of them may be what has ended the
  /// nodes of all.
  private var suspect: Job?
  private var suspects: [Job] = []
  private var outbox: RemoteOutbox?
  private var reports: JetStreamPuller?
  private let nodes: RemoteNodes
  private let seal: RemoteSeal?
  private let secrets: RemoteSecrets
  private var watch: LoopTimer?
  /// When the connection was lost; nil while there is one.
  private var lostAt: Int64?
  /// Since when there is one.
  private var connectedAt: Int64 = 0
  /// Until when nodes ask which jobs are left, after a new connection: see `RemoteQueue.doubt`.
  private var doubtUntil: Int64 = 0

  /// How many reports may be on their way.
  private static let reportWindow = 512
  /// How often it looks at jobs that wait or don't stop.
  private static let watchInterval = Duration.milliseconds(500)

  init(_ host: ScriptHost, _ settings: RemoteSettings) throws(FlowError) {
    self.host = host
    loop = host.loop
    (codes, consumers) = (OncePerKey(host.loop), OncePerKey(host.loop))
    self.settings = settings
    keptResults = RemoteKeptResults(host.keeping?.lineage)
    id = keptResults.script
    seal = try settings.seal()
    secrets = RemoteSecrets(settings, host.loop)
    nodes = RemoteNodes(seal)
    nodes.onMismatch = { [weak host] in host?.events.onWarning?($0) }
  }

  deinit {
    watch?.cancel()
    reports?.stop()
  }

  // MARK: Tasks

  /// Puts a task into the queue; it ends with the error if that isn't possible.
  func submit(
    _ task: any WorkerTask, _ number: UInt64, _ job: WorkerJob, _ function: WorkerFunction,
    _ tags: RemoteTags, of context: OpContext? = nil
  ) throws(FlowError) {
    let made = Job(
      task, number, try secrets.sent(job), try function.remoteCode(seal), tags, context,
      settings.shared, loop.mailbox.begin())
    jobs[number] = made
    if !made.identity.isEmpty {
      context?.keeping?.afterEnd { [weak self] in self?.keptResults.acknowledge(number) }
    }
    look()
    if let queue { proceed(made, queue) } else if !isOpening { open() }
  }

  /// Makes a task stop; false if it isn't one of the queue.
  func stop(_ number: UInt64, _ error: FlowError) -> Bool {
    guard let job = jobs[number] else { return false }
    if job.stop == nil { job.stop = WireError(error, from: host) }
    perform(job.state.stop(at: LuaVM.monotonicTime), job)
    return true
  }

  /// Does what the state of a job says. A line that it logs may stop the job, by a sink of events: what follows looks again.
  private func perform(_ actions: [RemoteJobState.Action], _ job: Job) {
    for action in actions {
      switch action {
      case .prepare: if let queue { proceed(job, queue) }
      case .putAgain:
        guard job.state.mayBePut else {
          if job.state.isStopped { perform(job.state.end(.stopped), job) }
          continue
        }
        outbox?.withdraw(job)
        outbox?.put(job)
      case .withdraw: outbox?.withdraw(job)
      case .requestStop(let delivery, let reason):
        requestStop(job.number, delivery, self.reason(reason, of: job))
      case .noteHandout: outbox?.handedOut(job)
      case .begin(let lane): job.task.begun(in: loop.keys.lanes.lane(named: lane))
      case .loseNode(let name): job.task.lostNode(name)
      case .noteTime(let time): outbox?.note(time, of: job)
      case .fetch(let news):
        if job.state.hasEnded { removeFiles(news) } else { fetch(news, of: job) }
      case .removeFiles(let news): removeFiles(news)
      case .pass(let event, let age): job.task.handle(self.event(event, age, of: job))
      case .look(let hashes):
        perform(job.state.missed(isNew: hashes.map { uploads?.require($0) ?? true }), job)
      case .end(.reported(let event, let age)):
        guard remove(job) else { continue }
        job.task.handle(self.event(event, age, of: job))
        job.external.endOnLoop()
      case .end(let end): finish(job, error(of: end, job))
      }
    }
  }

  private func event(
    _ what: WorkerReport.JobEvent.What, _ age: Int64, of job: Job
  ) -> WorkerReport.JobEvent {
    WorkerReport.JobEvent(id: job.number, time: loop.now().later(by: -max(0, age)), what: what)
  }

  private func reason(_ reason: RemoteJobState.Reason, of job: Job) -> FlowError {
    switch reason {
    case .stopped: job.stop?.error(on: host) ?? .cancelled()
    case .executesElsewhere: .cancelled(reason: "it executes elsewhere")
    }
  }

  private func error(of end: RemoteJobState.End, _ job: Job) -> FlowError {
    switch end {
    case .reported, .stopped: return job.stop?.error(on: host) ?? .cancelled()
    case .unreachable:
      return nodes.failure(of: job.tags, settings, after: job.state.lanes)
    case .filesDeleted:
      return FlowError(
        .error, "the files that it needs are deleted from the server again and again")
    case .lost:
      let places = job.state.lanes.map { "'\($0)'" as ByteString }.joined(separator: ", ")
      return FlowError(
        .crashed,
        places.isEmpty
          ? "its nodes were lost before they began, \(RemoteQueue.mostDeliveries) times"
          : "its node was lost \(job.state.lanes.count) times: \(places)")
    }
  }

  private func requestStop(_ number: UInt64, _ delivery: UInt64, _ error: FlowError) {
    let request = RemoteStop(
      number: number, delivery: delivery, error: secrets.sent(WireError(error, from: host)))
    // Without a connection the node stops it by itself, or its lease ends.
    try? queue?.requestStop(request.bytes, script: id)
  }

  /// Ends a job that no report ends.
  func end(_ job: Job, _ error: FlowError) {
    if !job.state.end(.stopped).isEmpty { finish(job, error) }
  }

  private func finish(_ job: Job, _ error: FlowError) {
    guard remove(job) else { return }
    job.task.lost(error, worker: -1, isReplaced: false)
    job.external.endOnLoop()
  }

  /// Forgets a job that has ended; false if it had ended before.
  private func remove(_ job: Job) -> Bool {
    guard jobs.removeValue(forKey: job.number) != nil else { return false }
    outbox?.remove(job)
    if suspect === job { beginNextSuspect() }
    return true
  }

  private func endAll(_ error: FlowError) {
    for job in jobsInOrder { end(job, error) }
  }

  // MARK: The server

  private func open() {
    isOpening = true
    loop.perform { [weak self, settings, seal, loop] in
      let queue = try await RemoteQueue.open(
        settings.servers, compatibility: RemoteProtocol.compatibility, seal: seal, on: loop)
      do {
        guard let self else { throw FlowError.cancelled() }
        try await use(queue)
      } catch {
        queue.close()
        throw error
      }
    } then: { [weak self] in
      if let error = $0.failure { self?.failed(error) }
    }
  }

  private func failed(_ error: FlowError) {
    (queue, isOpening, uploads, outbox) = (nil, false, nil, nil)
    (codes, consumers) = (OncePerKey(loop), OncePerKey(loop))
    reports?.stop()
    endAll(error)
  }

  private func use(_ queue: RemoteQueue) async throws(FlowError) {
    let connection = queue.connection
    queue.onForgery = { [weak self] in self?.host.events.onWarning?($0) }
    try connection.subscribe("flowlua.here") { [weak self] in
      if self?.nodes.note($0.data.bytes) == false { queue.reportForgery($0.subject) }
      self?.outbox?.look()
    }
    try queue.replyToQuestions(of: id) { [weak self] in self?.reply(to: $0) ?? ([], false) }
    try connection.subscribe("flowlua.begun.\(id)") { [weak self] in
      if let bytes = queue.bytes(of: $0) { _ = self?.take(RemoteReport.readAll(bytes), nil) }
    }
    try queue.lostJobs { [weak self] in self?.lost($0) }
    try connection.publish("flowlua.who", "")
    connection.onDisconnect = { [weak self] in self?.lostAt = LuaVM.monotonicTime }
    connection.onReconnect = { [weak self] in self?.reconnected(queue) }
    try await receiveReports(from: queue)
    await keptResults.read(from: queue)
    // The host may have been closed meanwhile.
    guard isOpening else { throw .cancelled() }
    uploads = RemoteUploads(queue.objects, loop, settings.shared)
    outbox = RemoteOutbox(queue, id, nodes, loop, of: self)
    (self.queue, isOpening) = (queue, false)
    connectedAt = LuaVM.monotonicTime
    for job in jobsInOrder { proceed(job, queue) }
  }

  /// Receives the reports. A server that was killed may have forgotten who receives them, but has those that weren't
  /// acknowledged.
  private func receiveReports(from queue: RemoteQueue) async throws(FlowError) {
    let puller = try await queue.reports(of: id) { [weak self] in
      self?.take($0, queue)
    } failed: { [weak self] error in
      queue.connection.perform {
        guard error.jetStreamCode == JetStreamProblem.missingConsumer else { throw error }
        try await self?.receiveReports(from: queue)
      } then: {
        guard let error = $0.failure else { return }
        queue.close()
        self?.failed(error)
      }
    }
    puller.demand = Self.reportWindow
    reports = puller
  }

  private func reconnected(_ queue: RemoteQueue) {
    guard let lostAt else { return }
    self.lostAt = nil
    connectedAt = LuaVM.monotonicTime
    doubtUntil = connectedAt.later(by: RemoteQueue.doubt)
    try? queue.connection.publish("flowlua.who", "")
    let now = LuaVM.monotonicTime
    for job in jobsInOrder {
      perform(job.state.reconnected(at: now, absence: now - lostAt), job)
    }
    for tags in consumers.keys {
      queue.connection.perform { try await queue.ensureConsumer(tags: tags.token) }
    }
    queue.connection.perform { [id] in
      try await queue.alignReports(of: id)
    } then: { [weak self] wereLost in
      guard case .success(true) = wereLost, let self else { return }
      for job in jobsInOrder { putAgain(job) }
    }
  }

  /// Puts a job into the queue, once the server has what it needs.
  private func proceed(_ job: Job, _ queue: RemoteQueue) {
    guard isWanted(job) else { return }
    if job.wasInterrupted, let report = keptResults.take(job.identity, as: job.number) {
      // Not while the op begins.
      return loop.enqueue { [weak self] in
        guard let self, isWanted(job) else { return }
        let text: ByteString = "\(report.lane) has finished it for an earlier process of the script"
        job.task.handle(WorkerReport.JobEvent(id: job.number, time: loop.now(), what: .log(text)))
        handle(report)
      }
    }
    if job.state.hasFiles, codes[job.code.name] != nil, consumers[job.tags] != nil {
      outbox?.put(job)
      return
    }
    queue.connection.perform { [self] in
      try await prepare(job, queue)
    } then: { [weak self] result in
      guard let self else { return }
      if let error = result.failure { return end(job, error) }
      if isWanted(job) { outbox?.put(job) }
    }
  }

  /// Whether a job is to be executed.
  private func isWanted(_ job: Job) -> Bool { jobs[job.number] === job && job.stop == nil }

  /// Brings to the server what a job needs.
  private func prepare(_ job: Job, _ queue: RemoteQueue) async throws(FlowError) {
    try await codes.value(job.code.name) {
      try await queue.objects.put(job.code.name, ByteString(job.code.bytes))
    }
    try await consumers.value(job.tags) { try await queue.ensureConsumer(tags: job.tags.token) }
    guard isWanted(job), !job.state.hasFiles, let uploads else { return }
    let needs = try await uploads.prepare(job.paths)
    guard jobs[job.number] === job else { return }
    job.files.needs = needs
    _ = job.state.filesAreSent(at: LuaVM.monotonicTime)
  }

  /// The message of a job; nil if it isn't to be executed, or not yet.
  func message(_ job: Job) -> [UInt8]? {
    guard isWanted(job), job.state.hasFiles else { return nil }
    if let message = job.message, message.round == job.state.round { return message.bytes }
    let bytes = RemoteJob(
      number: job.number, round: job.state.round, code: job.code.name,
      settings: WorkerConditions(of: host), arguments: job.job.arguments, kind: job.job.kind,
      files: job.files, identity: job.identity
    ).bytes
    job.message = (job.state.round, bytes)
    return bytes
  }

  /// Puts a job into the queue once more; alone, if it may be what has ended the node of others.
  private func putAgain(_ job: Job, isAlone: Bool = false) {
    perform(job.state.putAgain(isAlone: isAlone), job)
  }

  /// The jobs that a node is to execute, among those that another node had before. Those of a message that was lost
  /// are sent again, each by itself: one of them may be what has ended that node.
  private func reply(to question: [UInt8]) -> RemoteQueue.Reply {
    let asked: [RemoteQuestion.Asked]
    let wereLost: Bool
    switch RemoteQuestion.read(question) {
    case .jobs(let jobs, wereLost: let lost)?: (asked, wereLost) = (jobs, lost)
    case .reports(let bundle)?:
      guard queue != nil else { return ([], false) }
      let reports = RemoteReport.readAll(bundle)
      _ = take(reports, nil)
      // After the last report about a job its node only tells the server so.
      return (RemoteQuestion.reply([]), mayWait: reports.count == 1 && reports[0].isLast)
    case nil: return (question.isEmpty && LuaVM.monotonicTime < doubtUntil ? [1] : [], false)
    }
    let wanted = asked.compactMap { asked in
      jobs[asked.number].flatMap { $0.state.isWanted(round: asked.round) ? $0 : nil }
    }
    var left = wereLost ? wanted.filter { mayExecuteAgain($0) } : wanted
    if wereLost, asked.count > 1 {
      for job in left { putAgain(job, isAlone: true) }
      left = []
    }
    return (RemoteQuestion.reply(left.map(\.number)), false)
  }

  /// Whether a job that was lost with its node is executed again now. Before the last time it waits until no other such
  /// job executes: beside the one that ends its nodes, others would be lost as often.
  private func mayExecuteAgain(_ job: Job) -> Bool {
    switch job.state.loseNode() {
    case .isTooOften:
      perform(job.state.giveUp(), job)
      return false
    case .executesAgain: return true
    case .executesAgainAlone: break
    }
    if suspect == nil { suspect = job }
    if suspect === job { return true }
    suspects.append(job)
    return false
  }

  private func beginNextSuspect() {
    suspects.removeAll { jobs[$0.number] !== $0 }
    suspect = suspects.isEmpty ? nil : suspects.removeFirst()
    if let suspect { putAgain(suspect) }
  }

  /// Sends the replies that wait for others, because the loop may not turn soon.
  func sendWaitingReplies() {
    queue?.sendWaitingReplies()
  }

  // MARK: Reports

  /// Takes a message of the stream. A large one comes from the store of objects, which takes longer: reports count in the
  /// order of their places.
  private func take(_ message: JetStreamMessage, _ queue: RemoteQueue) {
    reports?.demand += 1
    queue.connection.perform {
      try await queue.bytes(of: message)
    } then: { [weak self] result in
      // After the end another process of the script may take it.
      guard let self, self.queue != nil else { return }
      if case .success(let bytes?) = result {
        if take(RemoteReport.readAll(bytes), message) { return }
        queue.release(message)
      }
      message.tell(.done)
    }
  }

  /// Takes the reports of a message; whether it is acknowledged only once their ops are kept.
  private func take(_ reports: [RemoteReport], _ message: JetStreamMessage?) -> Bool {
    let held = reports.map(\.number).filter {
      jobs[$0]?.identity.isEmpty == false || keptResults.isHolding($0)
    }
    if let message, !held.isEmpty { keptResults.hold(message, of: Set(held)) }
    for report in reports { handle(report) }
    return !held.isEmpty
  }

  private func handle(_ report: RemoteReport) {
    if let job = jobs[report.number] {
      return perform(job.state.take(report, at: LuaVM.monotonicTime), job)
    }
    removeFiles(report.news)
    if report.isLast { return }
    requestStop(report.number, report.delivery, .cancelled(reason: "it executes elsewhere"))
  }

  private func removeFiles(_ news: [RemoteReport.News]) {
    for file in news.files { queue?.objects.remove(file.object) }
  }

  /// Gets the files of the last report about a job before the report counts.
  private func fetch(_ news: [RemoteReport.News], of job: Job) {
    guard let queue else { return }
    queue.connection.perform { [host] in
      var delivery = RemoteDelivery(objects: queue.objects, host: host, node: job.state.node)
      return try await delivery.fetch(news)
    } then: { [weak self] result in
      guard let self, jobs[job.number] === job else { return }
      switch result {
      case .success(let news):
        perform(job.state.delivered(news, at: LuaVM.monotonicTime), job)
      case .failure(let error): end(job, error)
      }
    }
  }

  /// Jobs were handed out too often: the server says so when a node asks for jobs.
  private func lost(_ sequence: UInt64) {
    guard let parcel = jobs.values.first(where: { $0.parcel?.sequence == sequence })?.parcel
    else { return }
    let isOne = parcel.jobs.count == 1
    for job in parcel.jobs where !job.state.isDelivering {
      if isOne { perform(job.state.giveUp(), job) } else { putAgain(job, isAlone: true) }
    }
  }

  // MARK: Jobs that take too long

  /// Looks at jobs from time to time, as long as there are some.
  private func look() {
    guard watch == nil else { return }
    watch = loop.scheduleAside(after: Self.watchInterval) { [weak self] in
      guard let self else { return }
      watch = nil
      lookAtJobs()
      keptResults.extend()
      if !jobs.isEmpty || keptResults.isHolding { look() }
    }
  }

  private func lookAtJobs() {
    let now = LuaVM.monotonicTime
    let limit = settings.timeout.clampedNanoseconds
    if let lostAt {
      // Nothing is known about nodes meanwhile.
      if now - lostAt > limit {
        endAll(
          FlowError(
            .error,
            "the connection to \(settings.place) was lost for \(FlowValue.text(of: settings.timeout))"
          ))
      }
    } else {
      nodes.forget(before: now)
    }
    let isHopeless = settings.loss.withLock { $0 != nil }
    for job in jobsInOrder {
      let cleanup = max(loop.cleanupGrace, job.task.grace ?? .zero).clampedNanoseconds
      let world = RemoteJobState.World(
        now: now, isConnected: lostAt == nil,
        knowsNodes: now - connectedAt > RemoteNodes.silence,
        hasItsNode: nodes.isThere(job.state.node),
        hasNode: nodes.all.contains { $0.tags.covers(job.tags) },
        endsEverything: host.endsEverything,
        patience: isHopeless ? 0 : limit,
        stopPatience: cleanup.later(by: cleanup)
          .later(by: loop.gracePeriod.clampedNanoseconds).later(by: 2_000_000_000))
      perform(job.state.look(world), job)
    }
  }

  // MARK: The end

  /// Removes everything of the script from the server, and closes the connection. `isTerminated`: a signal ends the process;
  /// all ops were cancelled, and reports stay for a process that continues a kept run.
  func close(isTerminated: Bool = false) {
    watch?.cancel()
    reports?.stop()
    reports = nil
    let sequences = Set(jobs.values.compactMap { $0.parcel?.sequence })
    jobs = [:]
    isOpening = false
    guard let queue else { return }
    queue.sendWaitingReplies()
    if !isTerminated {
      requestStop(RemoteStop.all, .max, .cancelled(reason: ScriptHost.termination))
      queue.removeScript(id, jobs: sequences)
      for earlier in keptResults.earlier { queue.removeScript(earlier, jobs: []) }
    }
    uploads?.removeStored()
    (self.queue, uploads, outbox) = (nil, nil, nil)
    queue.close()
    ending = queue.connection
  }

  /// Whether nothing is sent to the server any more, after `close`.
  var hasEnded: Bool { ending?.hasEnded != false }
}
