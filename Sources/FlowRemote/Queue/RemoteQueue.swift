package import FlowEngine

/// The queue of jobs on a server of NATS, with the reports about them and the objects that are too large for
/// messages: what scripts and nodes share. Confined to the thread of its loop.
///
/// Jobs are in a stream from which the server hands each one to one node; it hands a job out again when the node
/// doesn't extend its lease. Reports about kept ops, and those for which a script has no time, are in a stream from which
/// each script takes its own. Messages that have no use later are no part of a stream: presence, stops, other
/// reports.
///
/// Subjects, with `C` for the compatibility of both sides, and `S` for the id of a script:
/// - `flowlua.work.C.TAGS.S`: jobs
/// - `flowlua.news.S`: reports
/// - `flowlua.begun.S`: what a node has, or has begun
/// - `flowlua.stop.C.S`: requests to stop jobs
/// - `flowlua.ask.S`: a question whether the script is still there, which jobs are still to be executed, or whether the
///   script takes reports
/// - `flowlua.who`, `flowlua.here`: the question which nodes are there, and their answers
///
/// With a key, everything but the last line is sealed, and `C` has the key's name: who has another one gets no jobs.
package final class RemoteQueue {
  package let connection: NATSConnection
  package let stream: JetStream
  package let objects: ObjectStore
  private let payloads: RemotePayloads
  private let compatibility: ByteString
  /// The seal of messages of both sides; nil without a key.
  package let seal: RemoteSeal?
  /// Called with a sentence about a message that isn't sealed with the key: once for each kind of subject.
  package var onForgery: ((ByteString) -> Void)?
  private var forged: Set<ByteString> = []
  /// The objects of jobs that are too large for a message, by their numbers in the stream.
  private var objectsOfJobs: [UInt64: ByteString] = [:]
  /// Replies to nodes that are sent in a moment, together.
  private var waitingReplies: [(bytes: [UInt8], subject: ByteString, script: ByteString)] = []

  /// How long a node has a job without extending its lease.
  package static let lease = Duration.seconds(5)
  /// For so many nanoseconds after a new connection the server may hand out jobs that have ended: one that was killed has
  /// forgotten what was last acknowledged, and that somebody had them.
  package static let doubt: Int64 = 30_000_000_000
  /// How long a node that stands still is given jobs, which others get when the lease has ended.
  private static let demandAge = Duration.seconds(2)
  /// How often a job is handed out: more often its nodes are lost.
  package static let mostDeliveries = 3
  /// How many jobs of a set of tags all nodes may have at a time.
  private static let mostHandedOut = 100_000
  /// How many servers of a cluster have what is stored: so that one may be lost.
  package static let copies = 3
  /// How long a cluster takes at most to choose another leader of a stream.
  private static let election = Duration.seconds(20)
  /// How long a reply waits that may. An op on another node, there and back, takes 6 % less time when the reply about
  /// the end of the op before doesn't travel with it.
  private static let replyPause = Duration.milliseconds(2)
  /// How long reports wait for a script that is away.
  private static let longestAbsence = Duration.seconds(24 * 3600)

  static let work: ByteString = "FLOWLUA_WORK"
  static let news: ByteString = "FLOWLUA_NEWS"
  static let bucket: ByteString = "flowlua"

  private init(
    _ stream: JetStream, _ objects: ObjectStore, compatibility: ByteString, seal: RemoteSeal?
  ) {
    connection = stream.connection
    self.stream = stream
    self.objects = objects
    payloads = RemotePayloads(objects)
    self.seal = seal
    self.compatibility = seal.map { "\(compatibility)-\($0.name)" } ?? compatibility
  }

  /// Connects, and makes the streams unless they are there.
  ///
  /// - Parameters:
  ///   - settings: The servers.
  ///   - compatibility: The text on which both sides have to agree, a part of subjects.
  ///   - seal: The seal of messages; nil without a key.
  ///   - loop: The loop on which it is used.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: The queue.
  package static func open(
    _ settings: NATSSettings, compatibility: ByteString, seal: RemoteSeal?, on loop: FlowEventLoop
  ) async throws(FlowError) -> RemoteQueue {
    var work = StreamSettings(Self.work, subjects: ["flowlua.work.>"])
    work.isWorkQueue = true
    work.replicas = copies
    var news = StreamSettings(Self.news, subjects: ["flowlua.news.*"])
    news.isWorkQueue = true
    news.maxAge = longestAbsence
    news.replicas = copies
    return try await NATSConnection.open(settings, bucket: bucket, on: loop) { stream, objects in
      try await stream.checkPresence()
      try await stream.ensureStream(work)
      try await stream.ensureStream(news)
      return RemoteQueue(stream, objects, compatibility: compatibility, seal: seal)
    }
  }

  /// Closes the connection, once the parts of objects that were being sent are removed, or a second later.
  package func close() {
    guard objects.isSending else { return connection.close() }
    let external = connection.loop.mailbox.begin()
    let end = { [connection] in
      connection.close()
      external.end()
    }
    connection.loop.scheduleAside(after: .seconds(1), end)
    objects.stopUploads(then: end)
  }

  // MARK: Seals

  /// The id of the script that a subject belongs to: the jobs' own, or the receiver of other messages.
  package static func script(ofSubject subject: ByteString) -> ByteString {
    let dot = subject.bytes.lastIndex(of: UInt8(ascii: "."))
    return ByteString(subject.bytes[(dot.map { $0 + 1 } ?? 0)...])
  }

  private func sealed(
    _ bytes: [UInt8], for subject: ByteString, of script: ByteString
  ) throws(FlowError) -> [UInt8] {
    guard let seal else { return bytes }
    return try seal.seal(bytes, for: subject, of: script)
  }

  private func opened(
    _ bytes: [UInt8], for subject: ByteString, of script: ByteString
  ) -> [UInt8]? {
    guard let seal else { return bytes }
    if let opened = seal.open(bytes, for: subject, of: script) { return opened }
    reportForgery(subject)
    return nil
  }

  /// Reports that a message isn't sealed with the key, or has no proof of it.
  package func reportForgery(_ subject: ByteString) {
    let kind = subject.bytes.split(separator: UInt8(ascii: "."), maxSplits: 2).prefix(2)
      .map { ByteString($0) }.reduce("") { $0 + "." + $1 }
    if forged.insert(kind).inserted {
      onForgery?(
        """
        a message with the subject '\(subject)' isn't sealed with this FLOWLUA_REMOTE_KEY: it is ignored, as all \
        others of this kind
        """)
    }
  }

  /// The bytes of a message that is part of no stream; nil if they aren't sealed with the key.
  package func bytes(of message: NATSMessage) -> [UInt8]? {
    opened(
      message.data.bytes, for: message.subject, of: Self.script(ofSubject: message.subject))
  }

  private func publish(
    _ bytes: [UInt8], to subject: ByteString, of script: ByteString
  ) throws(FlowError) {
    try connection.publish(subject, ByteString(sealed(bytes, for: subject, of: script)))
  }

  // MARK: Payloads

  private func payload(
    of content: [UInt8], for subject: ByteString, of script: ByteString
  ) async throws(FlowError) -> ByteString {
    try await payloads.make(of: try sealed(content, for: subject, of: script))
  }

  /// Removes the object of a message that was read, and is read by nobody else.
  package func release(_ message: JetStreamMessage) {
    if let name = RemotePayloads.object(of: message.data) { objects.remove(name) }
  }

  /// The bytes of a message; nil for one that isn't of this class, or isn't sealed with the key, or whose object is gone.
  package func bytes(of message: JetStreamMessage) async throws(FlowError) -> [UInt8]? {
    let subject = message.subject
    let bytes = try await patiently { try await payloads.content(of: message.data) }
    return bytes.flatMap { opened($0, for: subject, of: Self.script(ofSubject: subject)) }
  }

  /// Asks whether a message that was delivered is in its stream. A server that has lost its store gives its number to
  /// another one, which an acknowledgement would remove. Without a reply in the time of an election it counts as not there.
  package func has(_ message: JetStreamMessage) async -> Bool {
    let stored = try? await patiently {
      try await stream.getMessage(message.stream, message.streamSequence)
    }
    return stored?.subject == message.subject && stored?.data == message.data
  }

  // MARK: For scripts

  /// Puts a message with jobs into the queue.
  ///
  /// - Parameters:
  ///   - job: Its bytes.
  ///   - tags: The tags that its node needs, as a part of subjects.
  ///   - script: The id of the script.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: The message's number in the stream.
  package func submit(
    _ job: [UInt8], tags: ByteString, script: ByteString
  ) async throws(FlowError) -> UInt64 {
    let subject: ByteString = "flowlua.work.\(compatibility).\(tags).\(script)"
    let payload = try await payload(of: job, for: subject, of: script)
    // The server drops a second one with the same id.
    let id: ByteString = "\(script)-\(ByteString.unique)"
    let sequence = try await patiently { try await stream.publish(subject, payload, id: id) }
    if let name = RemotePayloads.object(of: payload) { objectsOfJobs[sequence] = name }
    return sequence
  }

  /// Makes a request, and again after a moment while the server isn't ready: it has just started, or the stream has no
  /// leader.
  private func patiently<Value>(
    _ request: () async throws -> Value
  ) async throws(FlowError) -> Value {
    var failure = FlowError.cancelled()
    let value = try await connection.loop.retrying(
      for: Self.election, every: .milliseconds(250)
    ) { () throws(FlowError) -> Value? in
      do { return try await request() } catch { failure = .from(error) }
      let mayPass = [nil, JetStreamProblem.unavailable].contains(failure.jetStreamCode)
      guard mayPass, !connection.isClosed else { throw failure }
      return nil
    }
    guard let value else { throw failure }
    return value
  }

  /// Takes a job out of the queue, whether or not a node has it.
  package func withdraw(_ sequence: UInt64) {
    connection.perform { [stream] in try await stream.deleteMessage(Self.work, sequence) }
    forget(sequence)
  }

  /// Removes what only a job needed that has ended.
  package func forget(_ sequence: UInt64) {
    if let name = objectsOfJobs.removeValue(forKey: sequence) { objects.remove(name) }
  }

  /// Makes the consumer from which nodes take jobs with these tags, unless it is there; returns its name.
  @discardableResult
  package func ensureConsumer(tags: ByteString) async throws(FlowError) -> ByteString {
    let name: ByteString = "\(compatibility)-\(tags)"
    var settings = ConsumerSettings(name)
    settings.filter = "flowlua.work.\(compatibility).\(tags).*"
    settings.ackWait = Self.lease
    settings.maxDeliveries = Self.mostDeliveries
    settings.maxAckPending = Self.mostHandedOut
    let made = settings
    let info = try await patiently { try await stream.ensureConsumer(Self.work, made) }
    _ = try? await align(Self.work, with: info)
    return name
  }

  /// Continues the numbers of an empty stream after the last one that a consumer of it had, and returns whether they were
  /// lower. A server that was killed may have forgotten them, and then takes messages with lower numbers for ones that the
  /// consumer has acknowledged.
  private func align(
    _ name: ByteString, with consumer: ConsumerInfo
  ) async throws(FlowError) -> Bool {
    let info = try await patiently { try await stream.streamInfo(name) }
    guard info.messages == 0, info.lastSequence < consumer.delivered, consumer.delivered < .max
    else { return false }
    _ = try? await stream.purge(name, before: consumer.delivered + 1)
    return true
  }

  /// Makes sure that reports for a script arrive after its server was started again; tells whether earlier ones may be
  /// lost.
  package func alignReports(of script: ByteString) async throws(FlowError) -> Bool {
    let info = try await patiently {
      try await stream.consumerInfo(Self.news, "script-\(script)")
    }
    return try await align(Self.news, with: info)
  }

  /// Receives the reports for a script. `failed` is called if that ends; `handler` acknowledges each one when it has no further use.
  package func reports(
    of script: ByteString, _ handler: @escaping (JetStreamMessage) -> Void,
    failed: @escaping (FlowError) -> Void
  ) async throws(FlowError) -> JetStreamPuller {
    let name: ByteString = "script-\(script)"
    var settings = ConsumerSettings(name)
    settings.filter = "flowlua.news.\(script)"
    // A report that was sent into a connection that breaks comes again after that.
    settings.ackWait = Self.lease * 2
    settings.inactiveThreshold = Self.longestAbsence
    // Those of kept ops are acknowledged only when the script has kept the op.
    settings.maxAckPending = Self.mostHandedOut
    try await stream.ensureConsumer(Self.news, settings)
    return try JetStreamPuller(
      stream, stream: Self.news, consumer: name, deliver: handler, fail: failed)
  }

  /// The reports for another process of the script, which has ended before it acknowledged them. Those that can't be read
  /// are left out.
  package func storedReports(of script: ByteString) async throws(FlowError) -> [[UInt8]] {
    let subject: ByteString = "flowlua.news.\(script)"
    var reports: [[UInt8]] = []
    var sequence: UInt64 = 0
    while let message = try await stream.getNextMessage(Self.news, subject, after: sequence) {
      sequence = message.sequence
      if let content = try? await payloads.content(of: message.data),
        let bytes = opened(content, for: subject, of: script)
      {
        reports.append(bytes)
      }
    }
    return reports
  }

  /// Removes what belongs to a script that ends: its jobs with these numbers, the reports for it, and its consumer. A
  /// node drops a job whose number isn't known yet.
  package func removeScript(_ script: ByteString, jobs: Set<UInt64>) {
    // Not by their subject: nats-server 2.9.10 then hands out none of the jobs of other scripts that wait.
    for sequence in jobs { withdraw(sequence) }
    connection.perform { [stream] in
      try await stream.deleteConsumer(Self.news, "script-\(script)")
    }
    connection.perform { [stream] in
      try await stream.purge(Self.news, subject: "flowlua.news.\(script)")
    }
  }

  /// Calls `lost` with the number in the stream of each job that was handed out too often.
  package func lostJobs(_ lost: @escaping (UInt64) -> Void) throws(FlowError) {
    _ = try connection.subscribe(
      "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.\(Self.work).*"
    ) { message in
      if let json = try? NATSJSON(reading: message.data),
        let sequence = json["stream_seq"]?.asUnsigned
      {
        lost(sequence)
      }
    }
  }

  /// Asks nodes to stop a job.
  package func requestStop(_ request: [UInt8], script: ByteString) throws(FlowError) {
    try publish(request, to: "flowlua.stop.\(compatibility).\(script)", of: script)
  }

  /// Receives the requests of scripts to stop jobs.
  package func receiveStops(_ handler: @escaping (NATSMessage) -> Void) throws(FlowError) {
    _ = try connection.subscribe("flowlua.stop.\(compatibility).*", handler: handler)
  }

  /// Replies to nodes that ask whether the script is there, which of its jobs they are to execute, or whether it takes
  /// reports.
  ///
  /// - Parameters:
  ///   - script: The id of the script.
  ///   - answer: Makes the reply to a question.
  /// - Throws: A `FlowError` when the connection is closed.
  package func replyToQuestions(
    of script: ByteString, _ answer: @escaping ([UInt8]) -> Reply
  ) throws(FlowError) {
    try connection.subscribe("flowlua.ask.\(script)") { [weak self] message in
      guard let self, let subject = message.reply, let question = bytes(of: message) else { return }
      let reply = answer(question)
      if reply.mayWait { return replyLater(reply.bytes, subject, script) }
      // Without a reply the node asks again.
      try? publish(reply.bytes, to: subject, of: script)
    }
  }

  /// A script's reply to a question, and whether nothing that the node does next depends on it.
  package typealias Reply = (bytes: [UInt8], mayWait: Bool)

  private func replyLater(_ bytes: [UInt8], _ subject: ByteString, _ script: ByteString) {
    waitingReplies.append((bytes, subject, script))
    guard waitingReplies.count == 1 else { return }
    connection.loop.scheduleAside(after: Self.replyPause) { [weak self] in
      self?.sendWaitingReplies()
    }
  }

  /// Sends the replies that wait.
  package func sendWaitingReplies() {
    let replies = waitingReplies
    waitingReplies = []
    for reply in replies { try? publish(reply.bytes, to: reply.subject, of: reply.script) }
  }

  // MARK: For nodes

  /// Asks a script something, or with an empty question only whether it is there: that has a reply of one byte if the
  /// script has a new connection, and else an empty one.
  ///
  /// - Parameters:
  ///   - script: The id of the script.
  ///   - question: The question.
  /// - Returns: The reply; nil if none comes within a second.
  /// - Throws: An error when the connection is closed.
  package func ask(
    _ script: ByteString, _ question: [UInt8] = []
  ) async throws(FlowError) -> [UInt8]? {
    let subject: ByteString = "flowlua.ask.\(script)"
    do throws(FlowError) {
      let bytes = ByteString(try sealed(question, for: subject, of: script))
      let reply = try await connection.request(subject, bytes, timeout: .seconds(1))
      return opened(reply.data.bytes, for: reply.subject, of: script)
    } catch {
      if connection.isClosed { throw error }
      return nil
    }
  }

  /// Takes jobs. `failed` is called if that ends; the puller's `demand` says how many.
  package func jobs(
    tags: ByteString, _ handler: @escaping (JetStreamMessage) -> Void,
    failed: @escaping (FlowError) -> Void
  ) async throws(FlowError) -> JetStreamPuller {
    let name = try await ensureConsumer(tags: tags)
    return try JetStreamPuller(
      stream, stream: Self.work, consumer: name, expiry: Self.demandAge, deliver: handler,
      fail: failed)
  }

  /// Says that a node has jobs, or begins them.
  package func announce(_ report: [UInt8], script: ByteString) {
    // Without it the script learns of it from the next report.
    try? publish(report, to: "flowlua.begun.\(script)", of: script)
  }

  /// Sends a report to a script, until the server has stored it.
  package func report(_ report: [UInt8], script: ByteString) async throws(FlowError) {
    let subject: ByteString = "flowlua.news.\(script)"
    try await stream.publish(subject, try await payload(of: report, for: subject, of: script))
  }
}
