package import FlowEngine
internal import FlowRemote
package import FlowScripting
@_spi(Scripting) internal import LuaVM

/// A node that executes jobs of scripts elsewhere, in workers: `flowlua --join`.
///
/// It takes as many jobs from the queue as workers are free, and a few more while they are short. It extends the leases
/// of those that it has. Without a connection it stops them after a while: the server has given them to others by then.
/// Confined to the thread of its host's loop.
package final class RemoteNode {
  /// The offer of a node.
  package struct Offer: Sendable {
    package var name: ByteString
    package var workers: Int
    /// Words with which ops choose nodes, separated by spaces or commas.
    package var tags: ByteString
    /// The folder for files, by the environment as it was when the offer was made: a sandbox removes its variables.
    let cache = FileCache.usualFolder

    package init(name: ByteString, workers: Int, tags: ByteString) {
      self.name = name
      self.workers = workers
      self.tags = tags
    }
  }

  let host: ScriptHost
  private var loop: FlowEventLoop { host.loop }
  let queue: RemoteQueue
  let files: RemoteNodeFiles
  private var info: RemoteNodeInfo
  private let tags: RemoteTags
  private var pullers: [RemoteTags: JetStreamPuller] = [:]
  private var sessions: [ByteString: RemoteSession] = [:]
  private var leases: [UInt64: RemoteLease] = [:]
  /// How many pools wait for the cleanups of their scripts' ops.
  private var closingPools = 0
  /// Messages that wait for their bytes, and jobs that wait for their code or for the answer of their script.
  private var arriving = 0
  /// Whether it asks for jobs at the end of the turn.
  private var willDemand = false
  private var timer: LoopTimer?
  private var waitingTimer: LoopTimer?
  private var lastLook = LuaVM.monotonicTime
  /// Until when scripts are asked which jobs are left, after a new connection: see `RemoteQueue.doubt`.
  private var doubtUntil: Int64 = 0
  /// When this process last continued after it had stood still; 0 for never.
  private var lastStart: Int64 = 0
  /// The subject of its messages to itself.
  private let echo = NATSConnection.newInbox()
  var isLeaving: Bool { info.isLeaving }
  private var hasLeft = false
  var hasEnded = false
  /// Whether it ends by itself when its server is gone, because it was started for one script.
  package var isTemporary = false
  /// The rules for secrets in its messages.
  let secrets: RemoteSecrets
  /// Called with a sentence about messages that it ignores.
  package var onWarning: ((ByteString) -> Void)?
  /// The time that jobs take lately, in nanoseconds; 0 while it isn't known.
  private var jobTime: Int64 = 0
  /// When one last began or ended, on the system's clock.
  private var lastChange: Int64 = 0
  /// How many jobs a message has lately, in eighths.
  private var messageSize = 8
  private let external: ExternalWork

  /// Jobs wait here that keep the workers busy for so many nanoseconds, a few times the way to the server: those of one
  /// message.
  private static let lookahead = RemotePacking.work
  /// When no job has begun or ended for so many nanoseconds, those that the workers have are long: none waits for them
  /// here.
  private static let standstill: Int64 = 50_000_000
  private static let mostWaiting = 256
  /// A job that has waited for so many nanoseconds at a standstill goes back to the queue.
  private static let longestWait: Int64 = 100_000_000
  /// How many jobs it has at most, with those that wait for something, such as a time.
  private static let mostLeases = 1024
  /// Without a sign of the server for so many nanoseconds, nothing of scripts executes here any more.
  private static let longestAbsence: Int64 = 10_000_000_000
  /// Without a sign of the server for so many nanoseconds, a node that was started for one script ends.
  private static let longestPatience: Int64 = 60_000_000_000
  /// A script that nobody has heard of for so many nanoseconds is gone.
  private static let longestSilence: Int64 = 30_000_000_000
  /// Workers of a script that has had no job for so many nanoseconds end.
  private static let longestRest: Int64 = 60_000_000_000

  private init(
    _ host: ScriptHost, _ queue: RemoteQueue, _ offer: Offer, _ tags: RemoteTags,
    _ secrets: RemoteSecrets
  ) {
    self.host = host
    self.secrets = secrets
    self.queue = queue
    files = RemoteNodeFiles(
      queue.objects, host.loop, offer.name, cache: offer.cache)
    self.tags = tags
    external = host.loop.mailbox.begin()
    info = RemoteNodeInfo(
      id: ByteString.unique, name: offer.name,
      compatibility: RemoteProtocol.compatibility, version: FlowLuaVersion.number,
      lua: ByteString(LuaVM.release), workers: offer.workers, tags: tags.words,
      cores: ScriptHost.coreCount, isLeaving: false, key: queue.seal?.name ?? "")
    host.workerLimit = offer.workers
  }

  /// Connects, and begins to take jobs.
  package static func join(
    _ settings: RemoteSettings, _ offer: Offer, host: ScriptHost
  ) async throws(FlowError) -> RemoteNode {
    let tags = try RemoteTags(offer.tags)
    let queue = try await RemoteQueue.open(
      settings.servers, compatibility: RemoteProtocol.compatibility, seal: try settings.seal(),
      on: host.loop)
    let node = RemoteNode(host, queue, offer, tags, RemoteSecrets(settings, host.loop))
    do throws(FlowError) { try await node.begin() } catch {
      queue.close()
      throw error
    }
    return node
  }

  /// The name of the node.
  var name: ByteString { info.name }
  /// The URL of the server.
  package var server: String { queue.connection.serverURL ?? "the server" }
  /// How many jobs it has.
  var jobCount: Int { leases.count }
  /// How many workers it has.
  package var workers: Int { info.workers }

  /// The name of a worker.
  func name(ofLane lane: Int) -> ByteString { "\(info.name)/\(lane)" }

  private func begin() async throws(FlowError) {
    try queue.connection.subscribe("flowlua.who") { [weak self] message in
      guard let self, !isLeaving else { return }
      sayHere(to: message.reply ?? Self.presence)
    }
    try queue.connection.subscribe(echo) { _ in }
    queue.onForgery = { [weak self] in self?.onWarning?($0) }
    try queue.receiveStops { [weak self] in self?.stop($0) }
    queue.connection.onReconnect = { [weak self] in
      self?.doubtUntil = LuaVM.monotonicTime.later(by: RemoteQueue.doubt)
      self?.sayHere()
    }
    for tags in tags.subsets { try await pull(tags) }
    sayHere()
    look()
    demand()
  }

  /// Takes jobs with these tags.
  private func pull(_ tags: RemoteTags) async throws(FlowError) {
    pullers[tags] = try await queue.jobs(tags: tags.token) { [weak self] in
      self?.receive($0)
    } failed: { [weak self] _ in
      self?.pullAgain(tags)
    }
  }

  /// Takes jobs again after a moment, because somebody has removed what the server had for that.
  private func pullAgain(_ tags: RemoteTags) {
    pullers[tags] = nil
    queue.connection.perform { [self] in
      while !isLeaving {
        try await loop.pause(.seconds(1))
        if (try? await pull(tags)) != nil { return demand() }
      }
    }
  }

  /// The subject on which nodes say that they are there.
  private static let presence: ByteString = "flowlua.here"

  private func sayHere(to subject: ByteString = RemoteNode.presence) {
    // It is said again soon.
    guard let bytes = try? queue.seal?.proven(info.bytes) ?? info.bytes else { return }
    try? queue.connection.publish(subject, ByteString(bytes))
  }

  // MARK: Taking jobs

  /// Asks for as many jobs as can begin, and for those that may wait: at the end of the turn, as those of a message end
  /// together.
  private func demand() {
    if willDemand { return }
    willDemand = true
    loop.enqueue { [weak self] in
      guard let self else { return }
      willDemand = false
      if isLeaving { return }
      let count = max(0, freePlaces)
      let messages = min(count, (count * 8 + messageSize - 1) / messageSize)
      for puller in pullers.values { puller.demand = messages }
    }
  }

  /// How many more jobs it can take; negative for more than that.
  private var freePlaces: Int {
    let moving = leases.values.count { $0.state.movesFiles }
    let waiting = leases.values.count { $0.state.isWaiting }
    let coming = moving + waiting + arriving
    return min(
      info.workers + mostWaiting - busyWorkers - coming, Self.mostLeases - leases.count - arriving)
  }

  private var busyWorkers: Int { sessions.values.reduce(0) { $0 + $1.pool.busyWorkers } }

  /// Whether the workers have long jobs.
  private var standsStill: Bool {
    busyWorkers > 0 && LuaVM.monotonicTime - lastChange > Self.standstill
  }

  /// How many jobs may wait for workers.
  private var mostWaiting: Int {
    if jobTime == 0 || standsStill { return 0 }
    let waiting = min(Self.lookahead / max(1, jobTime), Int64(Self.mostWaiting))
    return min(Int(waiting) * info.workers, Self.mostWaiting)
  }

  /// Notes that a job begins.
  func noteBegin() { lastChange = LuaVM.monotonicTime }

  /// Notes how long a job took.
  func note(_ time: Int64) {
    lastChange = LuaVM.monotonicTime
    jobTime = jobTime == 0 ? max(1, time) : max(1, (jobTime * 7 + time) / 8)
  }

  private func receive(_ message: JetStreamMessage) {
    arriving += 1
    queue.connection.perform { [weak self] in
      guard let self else { return }
      let count = try await begin(message)
      arriving -= count
      demand()
    }
  }

  /// Begins the jobs of a message; returns how many of those that arrive it was.
  private func begin(_ message: JetStreamMessage) async throws(FlowError) -> Int {
    let bytes: [UInt8]?
    do throws(FlowError) { bytes = try await queue.bytes(of: message) } catch {
      if queue.connection.isClosed { throw error }
      // The server hands it out again.
      RemoteHandout(message, 1, of: queue).giveBack()
      return 1
    }
    let parts = bytes.flatMap { RemoteProtocol.parts(of: $0) } ?? []
    let jobs = parts.compactMap { RemoteJob.read($0) }
    let handout = RemoteHandout(message, jobs.count, of: queue)
    guard !jobs.isEmpty, jobs.count == parts.count else {
      // Garbage, or a value that is gone: nobody can execute it.
      handout.drop()
      return 1
    }
    messageSize = max(8, (messageSize * 7 + min(jobs.count, 1024) * 8) / 8)
    arriving += jobs.count - 1
    try await accept(jobs, handout, message)
    return jobs.count
  }

  private func accept(
    _ jobs: [RemoteJob], _ handout: RemoteHandout, _ message: JetStreamMessage
  ) async throws(FlowError) {
    let script = RemoteQueue.script(ofSubject: message.subject)
    guard !isLeaving else { return handout.giveBack() }
    let session = try await session(of: script, jobs[0].settings)
    guard let session, !session.isOver else {
      // The script ends, or it is gone, or too busy to reply: then it puts the jobs into the queue again.
      let deliveries = UInt64(min(message.deliveries, 255))
      let reports = jobs.map { report($0, deliveries, [.returned("the script didn't reply")]) }
      return session == nil ? refuse(reports, handout, script) : handout.drop()
    }
    let isInDoubt = LuaVM.monotonicTime < max(doubtUntil, session.doubtUntil)
    // The server may have forgotten that a node had them, which counts as a hand-out.
    let deliveries = min(message.deliveries, 254) + (isInDoubt ? 1 : 0)
    if deliveries == 1 { return execute(jobs, handout, deliveries, session) }
    // A node that stood still gets jobs again that it still has: it continues with them.
    let jobs = jobs.filter { job in
      let known = leases.values.first {
        $0.session === session && $0.job.number == job.number && $0.delivery >> 8 == job.round
      }
      known?.continues(by: handout)
      return known == nil
    }
    if jobs.isEmpty { return }
    // Some may have ended on the node that had them, and the script wants to know who has them.
    let question = RemoteQuestion.jobs(
      jobs.map { RemoteQuestion.Asked(number: $0.number, round: $0.round) },
      wereLost: message.deliveries > 1)
    // It may have no connection yet. The time is well within the lease.
    let reply = try await ask(
      script, question.bytes, for: RemoteQueue.lease.clampedNanoseconds / 2)
    // Without a reply all are executed: the script drops reports about those that have ended.
    let wanted = reply.flatMap { RemoteQuestion.readReply($0) } ?? jobs.map(\.number)
    let left = jobs.filter { wanted.contains($0.number) }
    for _ in left.count..<jobs.count { handout.ended() }
    if !left.isEmpty { execute(left, handout, deliveries, session) }
  }

  /// Removes a message with jobs from the queue once their script can read that they weren't executed, or not to their
  /// end.
  private func refuse(
    _ reports: [RemoteReport], _ handout: RemoteHandout, _ script: ByteString
  ) {
    queue.connection.perform { [queue] in
      try await queue.report(RemoteProtocol.bundle(reports.map(\.bytes)), script: script)
    } then: { result in
      if case .success = result { handout.drop() } else { handout.giveBack() }
    }
  }

  private func execute(
    _ jobs: [RemoteJob], _ handout: RemoteHandout, _ deliveries: UInt64, _ session: RemoteSession
  ) {
    guard sessions[session.script] === session, !isLeaving else { return handout.giveBack() }
    if session.isOver { return handout.drop() }
    // The server has an earlier request for it.
    if standsStill, freePlaces <= -jobs.count {
      let reports = jobs.map { report($0, deliveries, [.returned("the node is busy")]) }
      return refuse(reports, handout, session.script)
    }
    if handout.count > 1 {
      announce(jobs.map { report($0, deliveries, []) }, to: session.script)
    }
    let made = jobs.map { RemoteLease(self, session, $0, $0.round << 8 | deliveries, handout) }
    for lease in made { leases[lease.number] = lease }
    queue.connection.perform { [self] in
      // Each comes once, or fails once: it takes seconds to learn that one isn't on the server.
      var codes: [ByteString: Result<WorkerCode, FlowError>] = [:]
      for lease in made where !lease.state.hasEnded {
        let name = lease.job.code
        if codes[name] == nil {
          do throws(FlowError) { codes[name] = .success(try await session.code(name)) } catch {
            codes[name] = .failure(error)
          }
        }
        if let code = codes[name] { await lease.prepare(code) }
      }
      let ready = made.filter { $0.prepared() }
      if ready.count > 1 {
        RemoteShare(ready, session.pool).submit()
      } else if let one = ready.first {
        session.pool.submit(one, one.number)
      }
      if handout.count > 1 || session.pool.busyWorkers >= info.workers { lookAtWaiting() }
      demand()
    }
  }

  /// A report about a job that no worker has begun.
  private func report(
    _ job: RemoteJob, _ deliveries: UInt64, _ news: [RemoteReport.News]
  ) -> RemoteReport {
    RemoteReport(
      number: job.number, delivery: job.round << 8 | deliveries, lane: info.name, news: news)
  }

  /// Says that this node has jobs, or begins them: at once, because they may end this process.
  func announce(_ reports: [RemoteReport], to script: ByteString) {
    queue.announce(RemoteProtocol.bundle(reports.map(\.bytes)), script: script)
  }

  /// The session of this node for a script; nil for a script that isn't there any more.
  private func session(
    of script: ByteString, _ settings: RemoteJob.Settings
  ) async throws(FlowError) -> RemoteSession? {
    if let known = sessions[script], known.settings == settings {
      known.lastUsed = LuaVM.monotonicTime
      return known
    }
    guard let reply = try await ask(script, [], for: Self.longestSilence / 10) else { return nil }
    if let known = sessions[script] { return known }
    let pool = host.makePool()
    (pool.conditions, pool.node) = (settings, info.name)
    pool.onReport = { [weak self] in self?.demand() }
    let made = RemoteSession(script, pool, settings, queue)
    if !reply.isEmpty { made.doubtUntil = LuaVM.monotonicTime.later(by: RemoteQueue.doubt) }
    sessions[script] = made
    host.workerPools.ofSessions.append(pool)
    return made
  }

  // MARK: Leases

  /// A job's last report has been stored.
  func ended(_ lease: RemoteLease) {
    leases[lease.number] = nil
    lease.session.lastUsed = LuaVM.monotonicTime
    demand()
    leaveIfDone()
  }

  private func leaveIfDone() {
    if isLeaving, leases.isEmpty, closingPools == 0 { left() }
  }

  /// Whether a job still has to be reported.
  func holds(_ lease: RemoteLease) -> Bool { leases[lease.number] === lease }

  private func stop(_ message: NATSMessage) {
    guard let bytes = queue.bytes(of: message), let stop = RemoteStop.read(bytes) else { return }
    let script = RemoteQueue.script(ofSubject: message.subject)
    let isForAll = stop.number == RemoteStop.all
    // Results that are still on their way are dropped then.
    if isForAll { sessions[script]?.isOver = true }
    for lease in leases.values
    where lease.session.script == script && (isForAll || lease.job.number == stop.number) {
      if lease.delivery <= stop.delivery { lease.stop(stop.error.error(on: host)) }
    }
  }

  // MARK: From time to time

  private func look() {
    timer = loop.scheduleOutside(after: RemoteNodes.interval) { [weak self] in
      guard let self else { return }
      lookAround()
      look()
    }
  }

  private func lookAround() {
    let now = LuaVM.monotonicTime
    let isLate = now - lastLook > RemoteQueue.lease.clampedNanoseconds
    lastLook = now
    if isLate { lastStart = now }
    let silence = now - max(queue.connection.lastReceived, lastStart)
    if silence > Self.longestAbsence {
      for session in sessions.values { end(session, isOver: false) }
    }
    if isTemporary, silence > Self.longestPatience {
      onWarning?("leaves, because the server has been gone for a minute")
      hasEnded = true
    }
    guard queue.connection.isConnected else { return }
    // A cable that was pulled shows only by silence: this message comes back from the server.
    try? queue.connection.publish(echo, "")
    if !isLeaving { sayHere() }
    let handouts = Dictionary(
      leases.values.map { (ObjectIdentifier($0.handout), $0.handout) }, uniquingKeysWith: { $1 })
    for handout in handouts.values { handout.extend() }
    // This process stood still, so that other nodes may have its jobs: their scripts stop those then.
    if isLate { for lease in leases.values { lease.announce() } }
    for session in sessions.values { look(at: session, now) }
  }

  /// Gives jobs back from time to time that wait because others take longer than was expected.
  private func lookAtWaiting() {
    guard waitingTimer == nil else { return }
    waitingTimer = loop.scheduleOutside(after: .nanoseconds(Self.longestWait)) { [weak self] in
      guard let self else { return }
      waitingTimer = nil
      let waiting = leases.values.filter { $0.state.isWaiting || $0.share != nil }
      if standsStill {
        let time = LuaVM.monotonicTime - Self.longestWait
        for lease in waiting { lease.withdraw(waitingSince: time) }
      }
      if !waiting.isEmpty { lookAtWaiting() }
    }
  }

  private func look(at session: RemoteSession, _ now: Int64) {
    let isUsed = leases.values.contains { $0.session === session }
    if !isUsed {
      if now - session.lastUsed > Self.longestRest { end(session, isOver: false) }
      return
    }
    if now - session.lastHeard > Self.longestSilence { return end(session, isOver: true) }
    guard !session.isAsking else { return }
    session.isAsking = true
    queue.connection.perform { [queue] in
      try await queue.ask(session.script)
    } then: { reply in
      session.isAsking = false
      if case .success(_?) = reply { session.lastHeard = LuaVM.monotonicTime }
    }
  }

  /// Stops all that the workers of a script execute, and ends them.
  private func end(_ session: RemoteSession, isOver: Bool) {
    sessions[session.script] = nil
    let lost = leases.values.filter { $0.session === session }
    // Otherwise the server hands them out again.
    if isOver {
      for leases in Dictionary(grouping: lost, by: { ObjectIdentifier($0.handout) }).values {
        let reports = leases.map { $0.report([.returned("the script didn't reply")]) }
        refuse(reports, leases[0].handout, session.script)
      }
    }
    for lease in lost {
      leases[lease.number] = nil
      lease.abandon()
    }
    close(session, lost)
    demand()
  }

  /// Ends the workers of a session once the cleanups of what they executed have ended, or their grace is over.
  private func close(_ session: RemoteSession, _ abandoned: [RemoteLease]) {
    let pool = session.pool
    pool.onReport = nil
    closingPools += 1
    loop.perform { [loop] in
      // Not whether workers are busy: those are asleep whose ops, or cleanups, only wait.
      _ = try await loop.retrying(for: session.settings.cleanupGrace) {
        abandoned.contains { pool.has($0.number) } ? nil : ()
      }
    } then: { [self] _ in
      closingPools -= 1
      for lease in abandoned { lease.drop() }
      host.workerPools.ofSessions.removeAll { $0 === pool }
      pool.close()
      leaveIfDone()
    }
  }

  // MARK: The end

  /// Takes no more jobs, and ends once those that execute have ended.
  func leave() {
    guard !isLeaving else { return }
    for puller in pullers.values { puller.stop() }
    info.isLeaving = true
    sayHere()
    leaveIfDone()
  }

  /// Gives all jobs back to their scripts and ends, within a second: the script that it was started for has ended.
  package func leaveAtOnce() {
    leave()
    giveBack()
    _ = loop.scheduleOutside(after: .seconds(1)) { [weak self] in self?.hasEnded = true }
  }

  /// Gives all jobs back to their scripts.
  func giveBack() {
    // First those that would begin.
    for lease in leases.values where lease.state.isWaiting { lease.giveBack(Self.leaving) }
    for lease in leases.values { lease.giveBack(Self.leaving) }
  }

  private static let leaving: ByteString = "the node leaves"

  private func left() {
    guard !hasLeft else { return }
    hasLeft = true
    timer?.cancel()
    waitingTimer?.cancel()
    queue.connection.perform { [queue] in
      try await queue.connection.flush()
    } then: { [weak self] _ in
      guard let self else { return }
      files.close()
      queue.close()
      external.end()
      hasEnded = true
    }
  }
}
