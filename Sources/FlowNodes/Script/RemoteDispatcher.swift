internal import FlowScripting
internal import FlowEngine
internal import FlowRemote
@_spi(Scripting) internal import LuaVM

/// The jobs of a script that other machines execute: it puts them into the queue of a server, and passes the reports
/// about them on.
///
/// The server hands a job out again when its machine doesn't extend the lease. Only reports about the latest hand-out
/// of a job count, and only until its end: earlier hand-outs receive a stop request. Confined to the thread of the host's loop.
final class RemoteDispatcher {
  private typealias Job = RemoteQueuedJob

  private enum Link {
    case closed, opening
    case open(RemoteQueue)
  }

  // Unowned: the host owns its dispatcher.
  private unowned let host: ScriptHost
  private unowned let loop: EventLoop
  private let settings: RemoteSettings
  /// The id of the script for machines.
  private let id: ByteString
  private let keptResults: RemoteKeptResults
  private var link = Link.closed
  /// The connection that `close` has closed.
  private var ending: NATSConnection?
  private var jobs: [UInt64: Job] = [:]
  /// What has to be on the server before jobs that need it.
  private var codes = OncePerKey<ByteString>()
  private var consumers = OncePerKey<RemoteTags>()
  private var uploads: RemoteUploads?
  /// The job whose next loss would be the last one, and those that wait for its end: each of them may be what has ended the
  /// machines of all.
  private var suspect: Job?
  private var suspects: [Job] = []
  private var outbox: RemoteOutbox?
  private var reports: JetStreamPuller?
  private var order: RemoteReportOrder?
  private let machines: RemoteMachines
  private let seal: RemoteSeal?
  private let secrets: RemoteSecrets
  private var watch: LoopTimer?
  /// When the connection was lost; nil while there is one.
  private var lostAt: Int64?
  /// Since when there is one.
  private var connectedAt: Int64 = 0
  /// Until when machines ask which jobs are left, after a new connection: see `RemoteQueue.doubt`.
  private var doubtUntil: Int64 = 0

  /// How many reports may be on their way.
  private static let reportWindow = 512
  /// How often it looks at jobs that wait or don't stop.
  private static let watchInterval = Duration.milliseconds(500)
  /// How often files that a job needs are sent again because somebody has deleted them.
  private static let mostTimesMissing = 3
  /// After longer absences machines may have dropped jobs, because nobody has replied for their script: those that
  /// they were about to begin, and those that they executed. They are put into the queue again.
  private static let shortAbsence: Int64 = 2_000_000_000
  private static let longAbsence: Int64 = 20_000_000_000

  init(_ host: ScriptHost, _ settings: RemoteSettings) throws(FlowError) {
    self.host = host
    loop = host.loop
    self.settings = settings
    keptResults = RemoteKeptResults(host.keeping?.lineage)
    id = keptResults.script
    seal = try settings.seal()
    secrets = RemoteSecrets(settings, host.loop)
    machines = RemoteMachines(seal)
    machines.onMismatch = { [weak host] in host?.events.onWarning?($0) }
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
    try settings.check()
    let files = context.map { RemoteOpFiles($0) } ?? RemoteOpFiles()
    let keeping = context?.keeping
    let made = Job(
      task, number, try secrets.sent(job), try function.remoteCode(seal), tags, files,
      settings.shared,
      keeping: keeping, loop.mailbox.begin())
    jobs[number] = made
    if !made.identity.isEmpty {
      keeping?.afterEnd { [weak self] in self?.keptResults.acknowledge(number) }
    }
    look()
    switch link {
    case .closed: open()
    case .opening: break
    case .open(let queue): proceed(made, queue)
    }
  }

  /// Makes a task stop; false if it isn't one of the queue.
  func stop(_ number: UInt64, _ error: FlowError) -> Bool {
    guard let job = jobs[number] else { return false }
    guard job.stop == nil else { return true }
    job.stop = WireError(error, from: host)
    job.since = LuaVM.monotonicTime
    if case .open(let queue) = link {
      outbox?.withdraw(job)
      if job.round > 0 { requestStop(job.number, .max, error, queue) }
    }
    // A machine that has taken it without having said so receives a stop request once it does.
    if job.lanes.isEmpty || job.delivered != nil { end(job, error) }
    return true
  }

  private func requestStop(
    _ number: UInt64, _ delivery: UInt64, _ error: FlowError, _ queue: RemoteQueue
  ) {
    let request = RemoteStop(
      number: number, delivery: delivery, error: secrets.sent(WireError(error, from: host)))
    // Without a connection the machine stops it by itself, or its lease ends.
    try? queue.requestStop(request.bytes, script: id)
  }

  /// Ends a job that no report ends.
  private func end(_ job: Job, _ error: FlowError) {
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
    for job in jobs.values.sorted(by: { $0.number < $1.number }) { end(job, error) }
  }

  // MARK: The server

  private func open() {
    link = .opening
    RemoteQueue.open(
      settings.servers, compatibility: RemoteProtocol.compatibility, seal: seal, on: loop
    ) { [weak self] result in
      guard let self else {
        if case .success(let queue) = result { queue.close() }
        return
      }
      switch result {
      case .failure(let error): failed(error)
      case .success(let queue): opened(queue)
      }
    }
  }

  private func failed(_ error: FlowError) {
    link = .closed
    (codes, consumers, uploads) = (OncePerKey(), OncePerKey(), nil)
    outbox = nil
    reports?.stop()
    order = nil
    endAll(error)
  }

  private func opened(_ queue: RemoteQueue) {
    do throws(FlowError) {
      queue.onForgery = { [weak self] in self?.host.events.onWarning?($0) }
      try queue.connection.subscribe("flowlua.here") { [weak self] in
        if self?.machines.note($0.data.bytes) == false { queue.reportForgery($0.subject) }
        self?.outbox?.look()
      }
      try queue.replyToQuestions(of: id) { [weak self] in self?.reply(to: $0) ?? .init([]) }
      try queue.connection.subscribe("flowlua.begun.\(id)") { [weak self] in
        if let bytes = queue.bytes(of: $0) { self?.order?.passOn(bytes) }
      }
      try queue.lostJobs { [weak self] in self?.lost($0) }
      try queue.connection.publish("flowlua.who", "")
    } catch {
      queue.close()
      return failed(error)
    }
    queue.connection.onDisconnect = { [weak self] in self?.lostAt = LuaVM.monotonicTime }
    queue.connection.onReconnect = { [weak self] in self?.reconnected(queue) }
    order = RemoteReportOrder(queue) { [weak self] in self?.take($0, $1, queue) ?? false }
    receiveReports(from: queue) { [weak self] in
      guard let self else { return queue.close() }
      uploads = RemoteUploads(queue.objects, loop, settings.shared)
      outbox = RemoteOutbox(
        queue, id, machines, loop, message: { [weak self] in self?.message($0) },
        failed: { [weak self] in self?.end($0, $1) })
      keptResults.read(from: queue) { [weak self] in
        guard let self, !queue.connection.isClosed else { return }
        link = .open(queue)
        connectedAt = LuaVM.monotonicTime
        for job in jobs.values.sorted(by: { $0.number < $1.number }) { proceed(job, queue) }
      }
    }
  }

  /// Receives the reports. A server that was killed may have forgotten who receives them, but has those that weren't
  /// acknowledged.
  private func receiveReports(from queue: RemoteQueue, then: @escaping () -> Void) {
    let fail: (FlowError) -> Void = { [weak self] error in
      queue.close()
      self?.failed(error)
    }
    queue.reports(of: id) { [weak self] in
      self?.reports?.demand += 1
      self?.order?.take($0)
    } failed: { [weak self] error in
      guard error.jetStreamCode == JetStreamProblem.missingConsumer else { return fail(error) }
      self?.receiveReports(from: queue) {}
    } then: { [weak self] result in
      switch result {
      case .failure(let error): fail(error)
      case .success(let puller):
        self?.reports = puller
        puller.demand = Self.reportWindow
        then()
      }
    }
  }

  private func reconnected(_ queue: RemoteQueue) {
    guard let lostAt else { return }
    self.lostAt = nil
    connectedAt = LuaVM.monotonicTime
    doubtUntil = connectedAt.later(by: RemoteQueue.doubt)
    try? queue.connection.publish("flowlua.who", "")
    let now = LuaVM.monotonicTime
    for job in jobs.values.sorted(by: { $0.number < $1.number }) {
      job.since = now
      let isDropped = job.lanes.isEmpty ? Self.shortAbsence : Self.longAbsence
      if job.stop == nil, now - lostAt > isDropped { putAgain(job) }
    }
    for tags in consumers.keys { queue.ensureConsumer(tags: tags.token) { _ in } }
    queue.alignReports(of: id) { [weak self] wereLost in
      guard wereLost, let self else { return }
      for job in jobs.values.sorted(by: { $0.number < $1.number }) where job.stop == nil {
        putAgain(job)
      }
    }
  }

  /// Puts a job into the queue, once the server has what it needs.
  private func proceed(_ job: Job, _ queue: RemoteQueue) {
    guard jobs[job.number] === job, job.stop == nil else { return }
    if job.wasInterrupted, let report = keptResults.take(job.identity, as: job.number) {
      // Not while the op begins.
      return loop.enqueue { [weak self] in
        guard let self, jobs[job.number] === job, job.stop == nil else { return }
        let text: ByteString = "\(report.lane) has finished it for an earlier process of the script"
        job.task.handle(WorkerReport.JobEvent(id: job.number, time: loop.now(), what: .log(text)))
        handle(report, queue)
      }
    }
    guard codes.isDone(job.code.name) else {
      return codes.need(job.code.name, then: prepared(job, queue)) { end in
        queue.objects.put(job.code.name, ByteString(job.code.bytes)) { end($0.failure) }
      }
    }
    guard consumers.isDone(job.tags) else {
      return consumers.need(job.tags, then: prepared(job, queue)) { end in
        queue.ensureConsumer(tags: job.tags.token) { end($0.failure) }
      }
    }
    if job.files == nil { return sendFiles(of: job, queue) }
    outbox?.put(job)
  }

  private func sendFiles(of job: Job, _ queue: RemoteQueue) {
    uploads?.prepare(job.opFiles.needs) { [weak self] result in
      guard let self, jobs[job.number] === job else { return }
      switch result {
      case .success(let needs):
        job.files = RemoteJobFiles(
          needs: needs, gives: job.opFiles.gives, shared: settings.shared)
        job.since = LuaVM.monotonicTime
        proceed(job, queue)
      case .failure(let error): end(job, error)
      }
    }
  }

  /// What follows for a job when the server has something that it needs, or doesn't take it.
  private func prepared(_ job: Job, _ queue: RemoteQueue) -> (FlowError?) -> Void {
    { [weak self] error in
      if let error { self?.end(job, error) } else { self?.proceed(job, queue) }
    }
  }

  /// The message of a job; nil if it isn't to be executed, or not yet.
  private func message(_ job: Job) -> [UInt8]? {
    guard jobs[job.number] === job, job.stop == nil, let files = job.files else { return nil }
    if let message = job.message, message.round == job.round { return message.bytes }
    let bytes = RemoteJob(
      number: job.number, round: job.round, code: job.code.name,
      settings: RemoteJob.Settings(
        gracePeriod: loop.gracePeriod, cleanupGrace: loop.cleanupGrace, logsWaits: host.logsWaits,
        hasGlobalModule: host.hasGlobalModule),
      arguments: job.arguments, kind: job.kind, files: files, identity: job.identity
    ).bytes
    job.message = (job.round, bytes)
    return bytes
  }

  /// Puts a job into the queue once more.
  private func putAgain(_ job: Job) {
    guard job.round > 0, job.files != nil, job.delivered == nil else { return }
    outbox?.withdraw(job)
    outbox?.put(job)
  }

  /// The jobs that a machine is to execute, among those that another machine had before. Those of a message that was lost
  /// are sent again, each by itself: one of them may be what has ended that machine.
  private func reply(to question: [UInt8]) -> RemoteQueue.Reply {
    let asked: [RemoteQuestion.Asked]
    let wereLost: Bool
    switch RemoteQuestion.read(question) {
    case .jobs(let jobs, wereLost: let lost)?: (asked, wereLost) = (jobs, lost)
    case .reports(let bundle, let number)?:
      guard let order, order.passed >= number else { return .init([]) }
      let reports = order.passOn(bundle)
      // After the last report about a job its machine only tells the server so.
      let isEnd = reports.count == 1 && reports[0].isLast
      return .init(RemoteQuestion.reply([]), mayWait: isEnd)
    case nil: return .init(question.isEmpty && LuaVM.monotonicTime < doubtUntil ? [1] : [])
    }
    let wanted = asked.compactMap { asked in
      jobs[asked.number].flatMap { job in
        job.round == asked.round && job.stop == nil && job.delivered == nil ? job : nil
      }
    }
    guard wereLost else { return .init(RemoteQuestion.reply(wanted.map(\.number))) }
    let left = wanted.filter { mayExecuteAgain($0) }
    if asked.count == 1 { return .init(RemoteQuestion.reply(left.map(\.number))) }
    for job in left {
      job.isAlone = true
      putAgain(job)
    }
    return .init(RemoteQuestion.reply([]))
  }

  /// Whether a job that was lost with its machine is executed again now. Before the last time it waits until no other such
  /// job executes: beside the one that ends its machines, others would be lost as often.
  private func mayExecuteAgain(_ job: Job) -> Bool {
    job.noteLoss()
    if job.losses >= RemoteQueue.mostDeliveries {
      lost(job)
      return false
    }
    if job.losses < RemoteQueue.mostDeliveries - 1 { return true }
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
    if case .open(let queue) = link { queue.sendWaitingReplies() }
  }

  // MARK: Reports

  /// Takes the reports of a message; whether it is acknowledged only once their ops are kept.
  private func take(
    _ reports: [RemoteReport], _ message: JetStreamMessage?, _ queue: RemoteQueue
  ) -> Bool {
    let held = reports.map(\.number).filter {
      jobs[$0]?.identity.isEmpty == false || keptResults.isHolding($0)
    }
    if let message, !held.isEmpty { keptResults.hold(message, of: Set(held)) }
    for report in reports { handle(report, queue) }
    return !held.isEmpty
  }

  private func handle(_ report: RemoteReport, _ queue: RemoteQueue) {
    guard let job = jobs[report.number], report.delivery >= job.delivery, job.delivered == nil,
      // It was put into the queue again meanwhile; that it has succeeded before counts nevertheless.
      report.delivery >> 8 == job.round || (report.place == 0 && report.hasSucceeded)
    else {
      removeFiles(of: report, queue)
      if !report.isLast {
        requestStop(
          report.number, report.delivery, .cancelled(reason: "it executes elsewhere"), queue)
      }
      return
    }
    if report.delivery > job.delivery {
      if job.delivery > 0, job.hasBegun, job.stop == nil { job.task.lostMachine(job.machine) }
      job.delivery = report.delivery
      job.reports = RemoteReportSequence()
      job.hasBegun = false
      if case .missing? = report.news.first {} else { handedOut(job, report, queue) }
    }
    if !job.hasBegun, report.isOfWorker { began(job, report) }
    for report in job.reports.take(report) {
      if report.took > 0 { outbox?.note(report.took, of: job) }
      if !report.news.files.isEmpty { return fetch(report, of: job, queue) }
      apply(report.news, to: job, queue)
    }
  }

  private func apply(_ news: [RemoteReport.News], to job: Job, _ queue: RemoteQueue) {
    let now = loop.now()
    for news in news {
      switch news {
      case .returned:
        guard jobs[job.number] === job else { return }
        if job.stop != nil {
          end(job, job.stop?.error(on: host) ?? .cancelled())
        } else {
          if job.hasBegun {
            job.task.lostMachine(job.machine)
            job.hasBegun = false
          } else {
            // It was in a machine, which isn't lost.
            job.lanes = job.lanes.dropLast()
          }
          job.since = LuaVM.monotonicTime
          putAgain(job)
        }
      case .missing(let hashes):
        guard jobs[job.number] === job else { return }
        sendMissing(hashes, for: job, queue)
      case .files: break
      case .event(let event, let age):
        let event = WorkerReport.JobEvent(
          id: job.number, time: now.later(by: -max(0, age)), what: event)
        if case .ended = event.what {
          guard remove(job) else { return }
          job.task.handle(event)
          job.external.endOnLoop()
        } else {
          job.task.handle(event)
        }
      }
    }
  }

  /// A machine was to execute a job, but doesn't have these files: they weren't sent, or somebody has deleted them.
  private func sendMissing(_ hashes: [ByteString], for job: Job, _ queue: RemoteQueue) {
    if let stop = job.stop { return end(job, stop.error(on: host)) }
    let isNew = hashes.map { uploads?.require($0) ?? true }
    if isNew.contains(false) { job.timesMissing += 1 }
    if job.timesMissing > Self.mostTimesMissing {
      return end(
        job,
        FlowError(.error, "the files that it needs are deleted from the server again and again"))
    }
    outbox?.withdraw(job)
    job.files = nil
    proceed(job, queue)
  }

  private func removeFiles(of report: RemoteReport, _ queue: RemoteQueue) {
    // A report that comes twice has the same files.
    if let job = jobs[report.number], job.delivery == report.delivery { return }
    for file in report.news.files { queue.objects.delete(file.object) { _ in } }
  }

  /// Gets the files of the last report about a job before the report counts.
  private func fetch(_ report: RemoteReport, of job: Job, _ queue: RemoteQueue) {
    let delivery = RemoteDelivery(queue.objects, loop, from: job.machine)
    job.delivered = delivery
    delivery.fetch(report.news, host) { [weak self] result in
      guard let self, jobs[job.number] === job, job.delivered === delivery else { return }
      switch result {
      case .success(let news):
        job.delivered = nil
        apply(news, to: job, queue)
      case .failure(let error): end(job, error)
      }
    }
  }

  private func handedOut(_ job: Job, _ report: RemoteReport, _ queue: RemoteQueue) {
    job.lanes.append(report.lane)
    if report.delivery >> 8 == job.round { outbox?.handedOut(job) }
    if let stop = job.stop { requestStop(job.number, .max, stop.error(on: host), queue) }
  }

  private func began(_ job: Job, _ report: RemoteReport) {
    job.hasBegun = true
    if !job.lanes.isEmpty { job.lanes[job.lanes.count - 1] = report.lane }
    job.task.begun(in: loop.keys.lanes.lane(named: report.lane))
  }

  /// Jobs were handed out too often: the server says so when a machine asks for jobs.
  private func lost(_ sequence: UInt64) {
    guard let parcel = jobs.values.first(where: { $0.parcel?.sequence == sequence })?.parcel
    else { return }
    let isOne = parcel.jobs.count == 1
    for job in parcel.jobs where job.delivered == nil {
      if isOne {
        lost(job)
      } else {
        job.isAlone = true
        putAgain(job)
      }
    }
  }

  private func lost(_ job: Job) {
    outbox?.withdraw(job)
    let places = job.lanes.map { "'\($0)'" as ByteString }
      .reduce("") { $0.isEmpty ? $1 : $0 + ", " + $1 }
    end(
      job,
      FlowError(
        .crashed,
        places.isEmpty
          ? "its machines were lost before they began, \(RemoteQueue.mostDeliveries) times"
          : "its machine was lost \(job.lanes.count) times: \(places)"))
  }

  // MARK: What takes too long

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
      // Nothing is known about machines meanwhile.
      if now - lostAt > limit {
        endAll(
          FlowError(
            .error,
            "the connection to \(settings.place) was lost for \(FlowValue.text(of: settings.timeout))"
          ))
      }
    } else {
      machines.forget(before: now)
    }
    let knowsMachines = now - connectedAt > RemoteMachines.silence
    for job in jobs.values.sorted(by: { $0.number < $1.number }) {
      if let stop = job.stop {
        giveUp(job, stop, now)
      } else if lostAt != nil {
        continue
      } else if job.delivered != nil || job.files == nil {
        job.since = now
      } else if knowsMachines, job.isHandedOutLast, !machines.isThere(job.machine) {
        lost(job)
      } else if machines.all.contains(where: { $0.tags.covers(job.tags) }) {
        job.since = now
      } else if now - job.since > limit {
        end(job, machines.failure(of: job.tags, settings, after: job.lanes))
      }
    }
  }

  /// Ends a job that was to stop, if its machine is gone or takes too long. Without a connection the machine stops it by
  /// itself; a script that ends doesn't wait for its report.
  private func giveUp(_ job: Job, _ stop: WireError, _ now: Int64) {
    let cleanup = max(loop.cleanupGrace, job.task.grace ?? .zero).clampedNanoseconds
    let unwinding = loop.gracePeriod.clampedNanoseconds
    let limit = cleanup.later(by: cleanup).later(by: unwinding).later(by: 2_000_000_000)
    let isEnd = host.endsEverything
    let isUnheard = !machines.isThere(job.machine) || lostAt != nil && isEnd
    if now - job.since > limit || isUnheard, now - job.since > 1_000_000_000 {
      end(job, stop.error(on: host))
    }
  }

  // MARK: The end

  /// Removes everything of the script from the server, and closes the connection. `isTerminated`: a signal ends the process;
  /// all ops were cancelled, and reports stay for a process that continues a kept run.
  func close(isTerminated: Bool = false) {
    watch?.cancel()
    reports?.stop()
    (reports, order) = (nil, nil)
    guard case .open(let queue) = link else { return }
    link = .closed
    let sequences = Set(jobs.values.compactMap { $0.parcel?.sequence })
    jobs = [:]
    queue.sendWaitingReplies()
    if !isTerminated {
      requestStop(RemoteStop.all, .max, .cancelled(reason: ScriptHost.termination), queue)
      queue.removeScript(id, jobs: sequences)
      for earlier in keptResults.earlier { queue.removeScript(earlier, jobs: []) }
    }
    uploads?.removeStored()
    (uploads, outbox) = (nil, nil)
    queue.close()
    ending = queue.connection
  }

  /// Whether nothing is sent to the server any more, after `close`.
  var hasEnded: Bool { ending?.hasEnded != false }
}
