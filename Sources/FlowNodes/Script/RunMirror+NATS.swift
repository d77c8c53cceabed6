package import FlowEngine
package import FlowJournal
internal import FlowRemote
internal import FlowSystem

extension RunMirror {
  /// Keeps runs on servers of NATS.
  ///
  /// - Parameters:
  ///   - script: The script's name on all nodes.
  ///   - settings: The servers, and how long a process waits for them while they are away.
  package init(script: ByteString, on settings: RemoteSettings) {
    self.init(script: script) { () throws(FlowError) in try NATSMirror(settings) }
  }
}

/// The kept runs of scripts in a stream of servers of NATS, each with messages of its own. It has a loop of its own, which
/// runs only within its calls.
///
/// Subjects, with `K` for the name of the key that seals the messages, or `plain`:
/// - `flowlua.keep.K.run.SCRIPT.RUN`: what a run has done
/// - `flowlua.keep.K.hash`: the key of the digests in the runs
/// - `flowlua.beat.K.SCRIPT.RUN`: that a process executes the run; in no stream
private final class NATSMirror: MirrorConnection {
  private let loop = FlowEventLoop()
  private let settings: RemoteSettings
  private let seal: RemoteSeal?
  private let stream: JetStream
  private let payloads: RemotePayloads
  private var isClosed = false
  private var connection: NATSConnection { stream.connection }
  private var key: ByteString { seal?.name ?? "plain" }

  private static let name: ByteString = "FLOWLUA_KEEP"
  /// The purpose that messages are sealed for: all of the stream's have keys of their own.
  private static let purpose: ByteString = "keep"
  /// How long nothing may come while messages are read, and how many may be on their way.
  private static let readPatience = Duration.seconds(30)
  private static let window = 1000
  /// How long a process that ends waits for a server that is away.
  private static let lastPatience: Int64 = 5_000_000_000
  /// The pause before another attempt.
  private static let pause = Duration.milliseconds(200)
  /// How long a process isn't heard that executes no run any more.
  private static let silence = Duration.seconds(10)

  /// Connects, and makes the stream and its bucket unless they are there.
  init(_ settings: RemoteSettings) throws(FlowError) {
    self.settings = settings
    seal = try settings.seal()
    let loop = loop
    (stream, payloads) = try Self.wait(on: loop) {
      try await NATSConnection.open(
        settings.servers, bucket: "flowlua-keep", on: loop
      ) { stream, objects in
        var runs = StreamSettings(Self.name, subjects: ["flowlua.keep.>"])
        runs.replicas = RemoteQueue.copies
        // A run whose oldest messages are gone can't be continued.
        runs.refusesExcess = true
        try await stream.ensureStream(runs)
        return (stream, RemotePayloads(objects))
      }
    }
  }

  deinit { close() }

  func close() {
    if isClosed { return }
    isClosed = true
    connection.close()
    loop.shutdown()
  }

  var place: ByteString { settings.place }

  private static func wait<Value>(
    on loop: FlowEventLoop, _ body: @escaping () async throws -> Value
  ) throws(FlowError) -> Value {
    guard let result = loop.turn(body) else {
      throw FlowError(.error, "the connection to the server of NATS has ended")
    }
    return try result.get()
  }

  private func wait<Value>(
    _ body: @escaping () async throws -> Value
  ) throws(FlowError) -> Value {
    try Self.wait(on: loop, body)
  }

  // MARK: Subjects

  /// A text as a part of a subject: bytes that may not be in one are `=` and two hexadecimal digits.
  private static func token(_ text: ByteString) -> ByteString {
    var bytes: [UInt8] = []
    for byte in text.bytes {
      if byte.isDigit || byte.isLetter || "-_".bytes.contains(byte) {
        bytes.append(byte)
      } else {
        bytes += "=\(byte < 16 ? "0" : "")\(String(byte, radix: 16, uppercase: true))".bytes
      }
    }
    return ByteString(bytes)
  }

  private func subject(_ run: MirroredRun) -> ByteString {
    "flowlua.keep.\(key).run.\(Self.token(run.script)).\(Self.token(run.id))"
  }

  private func beatSubject(_ run: MirroredRun) -> ByteString {
    "flowlua.beat.\(key).\(Self.token(run.script)).\(Self.token(run.id))"
  }

  // MARK: Messages

  /// The bytes of a message; nil if it isn't sealed with the key, or its object is gone.
  private func content(
    of payload: ByteString, _ subject: ByteString
  ) async throws(FlowError) -> [UInt8]? {
    let bytes: [UInt8]?
    do throws(FlowError) { bytes = try await payloads.content(of: payload) } catch {
      if connection.isClosed { throw error }
      bytes = nil
    }
    guard let bytes, let seal else { return bytes }
    return seal.open(bytes, for: subject, of: Self.purpose)
  }

  /// The last message of a subject and its id; nil if there is none.
  private func last(
    of subject: ByteString
  ) async throws(FlowError) -> (message: MirroredBytes, id: ByteString?)? {
    guard let stored = try await stream.getLastMessage(Self.name, subject) else { return nil }
    let bytes = try await content(of: stored.data, stored.subject)
    return (
      MirroredBytes(sequence: stored.sequence, bytes: bytes),
      stored.headers.first { $0.name == "Nats-Msg-Id" }?.value
    )
  }

  /// Publishes a message if the last one of its subject has a number, 0 for none. A second attempt has the id of the first.
  private func publish(
    _ bytes: [UInt8], to subject: ByteString, after sequence: UInt64, id: ByteString
  ) async throws(FlowError) -> MirrorReply {
    let sealed = try seal?.seal(bytes, for: subject, of: Self.purpose) ?? bytes
    let payload = try await payloads.make(of: sealed)
    let expected = NATSHeader("Nats-Expected-Last-Subject-Sequence", "\(sequence)")
    do throws(FlowError) {
      return .stored(try await stream.publish(subject, payload, id: id, headers: [expected]))
    } catch {
      guard error.jetStreamCode == JetStreamProblem.otherLastMessage else { throw error }
    }
    // It may be this very message, sent before a connection was lost.
    let last = try await last(of: subject)
    if let last, last.id == id { return .stored(last.message.sequence) }
    return .outdated(last?.message)
  }

  /// Whether a failure may pass: a connection that is lost, a cluster without a leader.
  private static func mayPass(_ error: FlowError) -> Bool {
    guard let code = error.jetStreamCode else { return error.kind != .usage }
    return code == JetStreamProblem.unavailable
  }

  func publish(
    _ bytes: [UInt8], of run: MirroredRun, after last: UInt64, isLast: () -> Bool
  ) throws(FlowError) -> MirrorReply {
    let id: ByteString = "\(run.id)-\(ByteString.unique)"
    let begun = SystemClock.read(CLOCK_MONOTONIC)
    // A large message takes a while; without signs of life others would replace this process.
    var timer: LoopTimer?
    func beatLater() {
      timer = loop.schedule(after: .seconds(1)) {
        self.beat(run)
        beatLater()
      }
    }
    beatLater()
    defer { timer?.cancel() }
    while true {
      do throws(FlowError) {
        return try wait { [self] in
          try await publish(bytes, to: subject(run), after: last, id: id)
        }
      } catch {
        let passed = SystemClock.read(CLOCK_MONOTONIC) - begun
        let usual = settings.timeout.clampedNanoseconds
        let patience = isLast() ? min(Self.lastPatience, usual) : usual
        guard Self.mayPass(error), passed < patience else { throw error }
        try wait { [loop] in try await loop.pause(Self.pause) }
      }
    }
  }

  func last(of run: MirroredRun) throws(FlowError) -> MirroredBytes? {
    try wait { [self] in try await last(of: subject(run)) }?.message
  }

  func read(
    _ run: MirroredRun, after first: UInt64, upTo last: UInt64,
    _ body: (MirroredBytes) throws(FlowError) -> Void
  ) throws(FlowError) {
    for message in try messages(of: subject(run), .sequence(first &+ 1), upTo: last) {
      try body(try bytes(of: message))
    }
  }

  func remove(_ run: MirroredRun) throws(FlowError) {
    guard let last = try last(of: run) else { return }
    let messages = try messages(of: subject(run), .sequence(1), upTo: last.sequence)
    try wait { [self] in
      try await stream.purge(Self.name, subject: subject(run))
      for message in messages { await payloads.release(message.data) }
    }
  }

  private func bytes(of message: JetStreamMessage) throws(FlowError) -> MirroredBytes {
    let bytes = try wait { [self] in try await content(of: message.data, message.subject) }
    return MirroredBytes(sequence: message.streamSequence, bytes: bytes)
  }

  /// Reads the messages of a subject, up to that with a number.
  private func messages(
    of subject: ByteString, _ start: ConsumerSettings.Start, upTo last: UInt64
  ) throws(FlowError) -> [JetStreamMessage] {
    try wait { [self] in
      let reading = StreamReading(stream, Self.name, subject, start, window: Self.window)
      defer { reading.end() }
      // The wait for messages doesn't keep the loop from being idle.
      let external = loop.mailbox.begin()
      defer { external.endOnLoop() }
      var all: [JetStreamMessage] = []
      var isAtEnd = try await reading.open() == 0
      while !isAtEnd {
        let messages = try await reading.next(within: Self.readPatience)
        if messages.isEmpty { throw connection.failure("no message of the kept run comes") }
        for message in messages {
          if isAtEnd { break }
          all.append(message)
          // Others may write more meanwhile.
          isAtEnd = message.streamSequence >= last || message.pending == 0
        }
      }
      return all
    }
  }

  // MARK: Runs

  func runs(
    of script: ByteString?
  ) throws(FlowError) -> [(run: MirroredRun, last: MirroredBytes)] {
    let subject: ByteString = "flowlua.keep.\(key).run.\(script.map { Self.token($0) } ?? "*").*"
    var runs: [(run: MirroredRun, last: MirroredBytes)] = []
    for message in try messages(of: subject, .lastOfEachSubject, upTo: .max) {
      let tokens = message.subject.bytes.split(separator: UInt8(ascii: "."))
      guard tokens.count == 6 else { continue }
      let names = tokens[4...].map { ByteString($0, decoding: "=") ?? ByteString($0) }
      let run = MirroredRun(script: names[0], id: names[1])
      runs.append((run, try bytes(of: message)))
    }
    return runs
  }

  func hasUnreadableRuns(of script: ByteString) throws(FlowError) -> Bool {
    let own = "flowlua.keep.\(key).".bytes
    let subjects = try wait { [stream] in
      try await stream.subjects(Self.name, "flowlua.keep.*.run.\(Self.token(script)).*")
    }
    return subjects.contains { !$0.bytes.starts(with: own) }
  }

  func hashKey(orElse own: [UInt8]) throws(FlowError) -> [UInt8] {
    let subject: ByteString = "flowlua.keep.\(key).hash"
    let id: ByteString = "hash-\(ByteString.unique)"
    let found = try wait { [self] in
      if let known = try await last(of: subject) { return MirrorReply.outdated(known.message) }
      return try await publish(own, to: subject, after: 0, id: id)
    }
    switch found {
    case .stored: return own
    case .outdated(let message?):
      if let bytes = message.bytes { return bytes }
      throw connection.failure(
        "the key of the kept runs can't be read: somebody else has written it")
    case .outdated(nil): throw connection.failure("the stream \(Self.name) is being emptied")
    }
  }

  // MARK: Signs of life

  func beat(_ run: MirroredRun) {
    // Without it another node may continue the run, as if this one were gone.
    try? connection.publish(beatSubject(run), "")
  }

  func living(_ runs: [MirroredRun]) throws(FlowError) -> Set<MirroredRun> {
    var heard: Set<MirroredRun> = []
    var subscriptions: [NATSSubscription] = []
    for run in runs {
      for subject in [beatSubject(run), subject(run)] {
        subscriptions.append(try connection.subscribe(subject) { _ in heard.insert(run) })
      }
    }
    defer { for subscription in subscriptions { subscription.unsubscribe() } }
    var isOver = false
    var isDeaf = !connection.isConnected
    connection.onDisconnect = { isDeaf = true }
    defer { connection.onDisconnect = nil }
    let timer = loop.schedule(after: Self.silence) { isOver = true }
    _ = loop.turn { isOver || heard.count == runs.count }
    timer.cancel()
    // Without a connection silence says nothing.
    guard !isDeaf || heard.count == runs.count else {
      throw FlowError(
        .error,
        "\(place): the connection was lost before it was known who executes the run: try again")
    }
    return heard
  }
}
