package import FlowEngine

/// The kept runs of scripts in a stream of a server of NATS, each with messages of its own. Confined to the thread of
/// its loop.
///
/// Subjects, with `K` for the name of the key that seals the messages, or `plain`:
/// - `flowlua.keep.K.run.SCRIPT.RUN`: what a run has done
/// - `flowlua.keep.K.hash`: the key of the digests in the runs
/// - `flowlua.beat.K.SCRIPT.RUN`: that a process executes the run; in no stream
package final class KeepStream {
  package let connection: NATSConnection
  private let stream: JetStream
  private let payloads: RemotePayloads
  private let seal: RemoteSeal?
  private var key: ByteString { seal?.name ?? "plain" }

  static let name: ByteString = "FLOWLUA_KEEP"
  private static let bucket: ByteString = "flowlua-keep"
  /// How long nothing may come while messages are read, and how many may be on their way.
  private static let patience = Duration.seconds(30)
  private static let window = 1000

  /// A message of the stream.
  package struct Message: Sendable {
    package let sequence: UInt64
    /// nil if it isn't sealed with the key, or its object is gone.
    package let bytes: [UInt8]?
    fileprivate let id: ByteString?
  }

  /// The outcome of a message that was published.
  package enum Published: Sendable {
    /// The stream has it, with this number.
    case stored(UInt64)
    /// The subject's last message isn't the expected one, but this; nil: there is none.
    case outdated(Message?)
  }

  private init(_ stream: JetStream, _ objects: ObjectStore, _ seal: RemoteSeal?) {
    connection = stream.connection
    self.stream = stream
    self.seal = seal
    payloads = RemotePayloads(objects)
  }

  /// Connects, and makes the stream and its bucket unless they are there.
  package static func open(
    _ settings: NATSSettings, seal: RemoteSeal?, on loop: FlowEventLoop
  ) async throws(FlowError) -> KeepStream {
    try await NATSConnection.open(settings, bucket: bucket, on: loop) { stream, objects in
      var settings = StreamSettings(name, subjects: ["flowlua.keep.>"])
      settings.replicas = RemoteQueue.copies
      // A run whose oldest messages are gone can't be continued.
      settings.discard = .new
      try await stream.ensureStream(settings)
      return KeepStream(stream, objects, seal)
    }
  }

  /// Closes the connection.
  package func close() { connection.close() }

  // MARK: Subjects

  /// A text as a part of a subject: bytes that may not be in one are `=` and two hexadecimal digits.
  private static func token(_ text: ByteString) -> ByteString {
    var bytes: [UInt8] = []
    for byte in text.bytes {
      let isPlain =
        byte.isDigit || (0x41...0x5A).contains(byte)
        || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      if isPlain {
        bytes.append(byte)
      } else {
        bytes +=
          [UInt8(ascii: "=")] + ByteString(String(byte >> 4, radix: 16, uppercase: true)).bytes
        bytes += ByteString(String(byte & 15, radix: 16, uppercase: true)).bytes
      }
    }
    return ByteString(bytes)
  }

  /// The text of a `token`.
  private static func text(ofToken token: ArraySlice<UInt8>) -> ByteString {
    var bytes: [UInt8] = []
    var rest = token
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "="), rest.count > 1,
        let code = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(code)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return ByteString(bytes)
  }

  private func subject(_ script: ByteString, _ run: ByteString) -> ByteString {
    "flowlua.keep.\(key).run.\(Self.token(script)).\(Self.token(run))"
  }

  private func beatSubject(_ script: ByteString, _ run: ByteString) -> ByteString {
    "flowlua.beat.\(key).\(Self.token(script)).\(Self.token(run))"
  }

  private var hashSubject: ByteString { "flowlua.keep.\(key).hash" }

  // MARK: Messages

  /// The purpose that messages are sealed for: all of the stream's have keys of their own.
  private static let purpose: ByteString = "keep"

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

  private func last(of subject: ByteString) async throws(FlowError) -> Message? {
    guard let stored = try await stream.getLastMessage(Self.name, subject) else { return nil }
    return Message(
      sequence: stored.sequence, bytes: try await content(of: stored.data, stored.subject),
      id: stored.headers.first { $0.name == "Nats-Msg-Id" }?.value)
  }

  private func publish(
    _ bytes: [UInt8], to subject: ByteString, after sequence: UInt64, id: ByteString
  ) async throws(FlowError) -> Published {
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
    if let last, last.id == id { return .stored(last.sequence) }
    return .outdated(last)
  }

  /// Whether a failure may pass: a connection that is lost, a cluster without a leader.
  package static func mayPass(_ error: FlowError) -> Bool {
    guard let code = error.jetStreamCode else { return error.kind != .usage }
    return code == JetStreamProblem.unavailable
  }

  // MARK: Runs

  /// Publishes a message of a run, if the last one before has this number.
  ///
  /// - Parameters:
  ///   - bytes: The message.
  ///   - script: The script's name.
  ///   - run: The id of the run.
  ///   - sequence: The number of the run's last message; 0 for none.
  ///   - id: The message's id, unique; for a second attempt the same one.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: The outcome.
  package func publish(
    _ bytes: [UInt8], script: ByteString, run: ByteString, after sequence: UInt64, id: ByteString
  ) async throws(FlowError) -> Published {
    try await publish(bytes, to: subject(script, run), after: sequence, id: id)
  }

  /// The last message of a run; nil if there is none.
  package func last(
    script: ByteString, run: ByteString
  ) async throws(FlowError) -> Message? {
    try await last(of: subject(script, run))
  }

  /// The last messages of the runs of a script, or of all scripts for nil.
  package func lastMessages(of script: ByteString?) async throws(FlowError) -> [Payload] {
    let filter: ByteString = "flowlua.keep.\(key).run.\(script.map { Self.token($0) } ?? "*").*"
    return try await read(filter, .lastOfEachSubject, upTo: .max)
  }

  /// Whether there are runs of a script that another key seals, or none.
  package func hasRunsOfOtherKey(script: ByteString) async throws(FlowError) -> Bool {
    let own = "flowlua.keep.\(key).".bytes
    let subjects = try await stream.subjects(
      Self.name, "flowlua.keep.*.run.\(Self.token(script)).*")
    return subjects.contains { !$0.bytes.starts(with: own) }
  }

  /// Reads the messages of a run, from the one after a number up to that with another number.
  package func read(
    script: ByteString, run: ByteString, after first: UInt64, upTo last: UInt64
  ) async throws(FlowError) -> [Payload] {
    try await read(subject(script, run), .sequence(first &+ 1), upTo: last)
  }

  private func read(
    _ filter: ByteString, _ start: ConsumerSettings.Start, upTo last: UInt64
  ) async throws(FlowError) -> [Payload] {
    let reading = try await StreamReading.begin(
      stream, Self.name, filter, start,
      loss: FlowError(.error, "a message of the kept run was lost on its way: try again"))
    defer { reading.end() }
    // The wait for messages doesn't keep the loop from being idle.
    let external = connection.loop.mailbox.begin()
    defer { external.endOnLoop() }
    var payloads: [Payload] = []
    reading.demand = Self.window
    while reading.pending > 0 {
      let messages = try await reading.next(within: Self.patience)
      if messages.isEmpty { throw connection.failure("no message of the kept run comes") }
      for message in messages {
        payloads.append(
          Payload(
            sequence: message.streamSequence, subject: message.subject, data: message.data))
        // Others may write more meanwhile.
        if message.streamSequence >= last || message.pending == 0 { return payloads }
      }
      reading.demand += messages.count
    }
    return payloads
  }

  /// A message of a run that was read, with its payload.
  package struct Payload: Sendable {
    package let sequence: UInt64
    fileprivate let subject: ByteString
    fileprivate let data: ByteString

    /// The script's name, and the id of the run.
    package var name: (script: ByteString, run: ByteString)? {
      let tokens = subject.bytes.split(separator: UInt8(ascii: "."))
      guard tokens.count == 6 else { return nil }
      return (KeepStream.text(ofToken: tokens[4]), KeepStream.text(ofToken: tokens[5]))
    }
  }

  /// The bytes of a message; nil if it isn't sealed with the key, or its object is gone.
  package func bytes(of payload: Payload) async throws(FlowError) -> [UInt8]? {
    try await content(of: payload.data, payload.subject)
  }

  /// Removes a run, whose messages were read, with the objects of its messages.
  package func remove(
    script: ByteString, run: ByteString, _ payloads: [Payload]
  ) async throws(FlowError) {
    try await stream.purge(Self.name, subject: subject(script, run))
    for payload in payloads { await self.payloads.release(payload.data) }
  }

  // MARK: The key of the digests

  /// The key of the digests in the runs: the one of the first who has asked for it.
  package func hashKey(orElse own: [UInt8]) async throws(FlowError) -> [UInt8] {
    if let message = try await last(of: hashSubject) { return try hashKey(message) }
    let id: ByteString = "hash-\(NATSUniqueName.make())"
    switch try await publish(own, to: hashSubject, after: 0, id: id) {
    case .stored: return own
    case .outdated(let message?): return try hashKey(message)
    case .outdated(nil): throw connection.failure("the stream \(Self.name) is being emptied")
    }
  }

  private func hashKey(_ message: Message) throws(FlowError) -> [UInt8] {
    if let bytes = message.bytes { return bytes }
    throw connection.failure(
      "the key of the kept runs can't be read: somebody else has written it")
  }

  // MARK: Signs of life

  /// Says that this process executes a run.
  package func beat(script: ByteString, run: ByteString) throws(FlowError) {
    try connection.publish(beatSubject(script, run), "")
  }

  /// Calls `heard` with every sign that another process executes a run, of any script and with any id for nil.
  @discardableResult
  package func listen(
    script: ByteString?, run: ByteString?, _ heard: @escaping (ByteString) -> Void
  ) throws(FlowError) -> [NATSSubscription] {
    let (script, run) = (script.map { Self.token($0) } ?? "*", run.map { Self.token($0) } ?? "*")
    return try ["flowlua.beat.\(key).\(script).\(run)", "flowlua.keep.\(key).run.\(script).\(run)"]
      .map { (subject: ByteString) throws(FlowError) in
        try connection.subscribe(subject) { message in
          let last = message.subject.bytes.split(separator: UInt8(ascii: ".")).last ?? []
          heard(Self.text(ofToken: last))
        }
      }
  }
}
