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
  /// How long nothing may come while messages are read.
  private static let patience = Duration.seconds(30)

  /// A message of the stream.
  package struct Message: Sendable {
    package let sequence: UInt64
    /// nil if it isn't sealed with the key, or its object is gone.
    package let bytes: [UInt8]?
    fileprivate let id: ByteString?
  }

  /// What has become of a message that was published.
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
    _ settings: NATSSettings, seal: RemoteSeal?, on loop: EventLoop,
    then: @escaping (Result<KeepStream, FlowError>) -> Void
  ) {
    NATSConnection.connect(settings, bucket: bucket, on: loop) { result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let (stream, objects)):
        let made = KeepStream(stream, objects, seal)
        made.prepare(objects) { error in
          guard let error else { return then(.success(made)) }
          stream.connection.close()
          then(.failure(error))
        }
      }
    }
  }

  private func prepare(_ objects: ObjectStore, _ then: @escaping (FlowError?) -> Void) {
    var settings = StreamSettings(Self.name, subjects: ["flowlua.keep.>"])
    settings.replicas = RemoteQueue.copies
    // A run whose oldest messages are gone can't be continued.
    settings.discard = .new
    stream.ensureStream(settings) { result in
      if case .failure(let error) = result { return then(error) }
      objects.ensureBucket(replicas: RemoteQueue.copies, then: then)
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

  /// What messages are sealed for: all of the stream's have keys of their own.
  private static let purpose: ByteString = "keep"

  private func message(_ stored: StoredMessage, _ then: @escaping (Message) -> Void) {
    let id = stored.headers.first { $0.name == "Nats-Msg-Id" }?.value
    content(of: stored.data, stored.subject) { bytes in
      then(Message(sequence: stored.sequence, bytes: bytes, id: id))
    }
  }

  private func content(
    of payload: ByteString, _ subject: ByteString, _ then: @escaping ([UInt8]?) -> Void
  ) {
    payloads.content(of: payload) { [seal] result in
      guard let bytes = (try? result.get()) ?? nil else { return then(nil) }
      then(seal.map { $0.open(bytes, for: subject, of: Self.purpose) } ?? bytes)
    }
  }

  private func last(
    of subject: ByteString, _ then: @escaping (Result<Message?, FlowError>) -> Void
  ) {
    stream.getLastMessage(Self.name, subject) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(nil): then(.success(nil))
      case .success(let stored?): message(stored) { then(.success($0)) }
      }
    }
  }

  private func publish(
    _ bytes: [UInt8], to subject: ByteString, after sequence: UInt64, id: ByteString,
    _ then: @escaping (Result<Published, FlowError>) -> Void
  ) {
    let sealed: [UInt8]
    do throws(FlowError) {
      sealed = try seal?.seal(bytes, for: subject, of: Self.purpose) ?? bytes
    } catch {
      return then(.failure(error))
    }
    payloads.make(of: sealed) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let payload):
        let expected = NATSHeader("Nats-Expected-Last-Subject-Sequence", "\(sequence)")
        stream.publish(subject, payload, id: id, headers: [expected]) { [self] result in
          switch result {
          case .success(let sequence): then(.success(.stored(sequence)))
          case .failure(let error) where error.jetStreamCode == JetStreamProblem.otherLastMessage:
            // It may be this very message, sent before a connection was lost.
            last(of: subject) { result in
              then(
                result.map { last in
                  last?.id == id ? .stored(last?.sequence ?? 0) : .outdated(last)
                })
            }
          case .failure(let error): then(.failure(error))
          }
        }
      }
    }
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
  ///   - script: What the script is called.
  ///   - run: The id of the run.
  ///   - sequence: The number of the run's last message; 0 for none.
  ///   - id: The message's id, unique; for a second attempt the same one.
  ///   - then: Gets what has become of it.
  package func publish(
    _ bytes: [UInt8], script: ByteString, run: ByteString, after sequence: UInt64, id: ByteString,
    then: @escaping (Result<Published, FlowError>) -> Void
  ) {
    publish(bytes, to: subject(script, run), after: sequence, id: id, then)
  }

  /// The last message of a run; nil if there is none.
  package func last(
    script: ByteString, run: ByteString, then: @escaping (Result<Message?, FlowError>) -> Void
  ) {
    last(of: subject(script, run), then)
  }

  /// The last messages of the runs of a script, or of all scripts for nil.
  package func lastMessages(
    of script: ByteString?, then: @escaping (Result<[Payload], FlowError>) -> Void
  ) {
    let filter: ByteString = "flowlua.keep.\(key).run.\(script.map { Self.token($0) } ?? "*").*"
    read(filter, .lastOfEachSubject, upTo: .max, then)
  }

  /// Whether there are runs of a script that another key seals, or none.
  package func hasRunsOfOtherKey(
    script: ByteString, then: @escaping (Result<Bool, FlowError>) -> Void
  ) {
    let own = "flowlua.keep.\(key).".bytes
    stream.subjects(Self.name, "flowlua.keep.*.run.\(Self.token(script)).*") { result in
      then(result.map { $0.contains { !$0.bytes.starts(with: own) } })
    }
  }

  /// Reads the messages of a run, from the one after a number up to that with another number.
  package func read(
    script: ByteString, run: ByteString, after first: UInt64, upTo last: UInt64,
    then: @escaping (Result<[Payload], FlowError>) -> Void
  ) {
    read(subject(script, run), .sequence(first &+ 1), upTo: last, then)
  }

  private func read(
    _ filter: ByteString, _ start: ConsumerSettings.Start, upTo last: UInt64,
    _ then: @escaping (Result<[Payload], FlowError>) -> Void
  ) {
    var settings = ConsumerSettings()
    settings.filter = filter
    settings.isAcknowledged = false
    settings.isInMemory = true
    settings.inactiveThreshold = Self.patience
    settings.start = start
    let reading = Reading(last, then)
    stream.ensureConsumer(Self.name, settings) { [self] result in
      switch result {
      case .failure(let error): reading.end(.failure(error))
      case .success(let consumer):
        reading.onEnd = { [stream] in stream.deleteConsumer(Self.name, consumer.name) { _ in } }
        if consumer.pending == 0 { return reading.end(.success([])) }
        do throws(FlowError) {
          reading.puller = try JetStreamPuller(
            stream, stream: Self.name, consumer: consumer.name
          ) {
            reading.take($0)
          } fail: {
            reading.end(.failure($0))
          }
        } catch {
          return reading.end(.failure(error))
        }
        reading.puller?.demand = Reading.window
        reading.wait(Self.patience, on: connection)
      }
    }
  }

  /// A message of a run that was read, with its payload.
  package struct Payload: Sendable {
    package let sequence: UInt64
    fileprivate let subject: ByteString
    fileprivate let data: ByteString

    /// What the script is called, and the id of the run.
    package var name: (script: ByteString, run: ByteString)? {
      let tokens = subject.bytes.split(separator: UInt8(ascii: "."))
      guard tokens.count == 6 else { return nil }
      return (KeepStream.text(ofToken: tokens[4]), KeepStream.text(ofToken: tokens[5]))
    }
  }

  /// The bytes of a message; nil if it isn't sealed with the key, or its object is gone.
  package func bytes(of payload: Payload, then: @escaping ([UInt8]?) -> Void) {
    content(of: payload.data, payload.subject, then)
  }

  /// Removes a run, whose messages were read, with the objects of its messages.
  package func remove(
    script: ByteString, run: ByteString, _ payloads: [Payload],
    then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    stream.purge(Self.name, subject: subject(script, run)) { [self] result in
      if case .failure(let error) = result { return then(.failure(error)) }
      release(payloads.filter { RemotePayloads.object(of: $0.data) != nil }[...], then)
    }
  }

  private func release(
    _ rest: ArraySlice<Payload>, _ then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    guard let next = rest.first else { return then(.success(())) }
    payloads.release(next.data) { [self] in release(rest.dropFirst(), then) }
  }

  // MARK: The key of the digests

  /// The key of the digests in the runs: that of the first who has asked for it.
  package func hashKey(
    orElse own: [UInt8], then: @escaping (Result<[UInt8], FlowError>) -> Void
  ) {
    last(of: hashSubject) { [self] result in
      switch result {
      case .failure(let error): then(.failure(error))
      case .success(let message?): then(hashKey(message))
      case .success(nil):
        publish(own, to: hashSubject, after: 0, id: "hash-\(NATSUniqueName.make())") { [self] in
          switch $0 {
          case .failure(let error): then(.failure(error))
          case .success(.stored): then(.success(own))
          case .success(.outdated(let message?)): then(hashKey(message))
          case .success(.outdated(nil)):
            then(.failure(connection.failure("the stream \(Self.name) is being emptied")))
          }
        }
      }
    }
  }

  private func hashKey(_ message: Message) -> Result<[UInt8], FlowError> {
    message.bytes.map { .success($0) }
      ?? .failure(
        connection.failure("the key of the kept runs can't be read: somebody else has written it"))
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

/// The messages of a run while they come.
private final class Reading {
  static let window = 1000
  private let last: UInt64
  private var then: ((Result<[KeepStream.Payload], FlowError>) -> Void)?
  private var payloads: [KeepStream.Payload] = []
  private var silence: LoopTimer?
  private var hasCome = false
  private var count: UInt64 = 0
  var puller: JetStreamPuller?
  var onEnd: (() -> Void)?

  init(
    _ last: UInt64, _ then: @escaping (Result<[KeepStream.Payload], FlowError>) -> Void
  ) {
    self.last = last
    self.then = then
  }

  func take(_ message: JetStreamMessage) {
    hasCome = true
    count += 1
    // Those on their way are lost with a connection, as they aren't acknowledged.
    guard message.consumerSequence == count else {
      return end(
        .failure(FlowError(.error, "a message of the kept run was lost on its way: try again")))
    }
    payloads.append(
      KeepStream.Payload(
        sequence: message.streamSequence, subject: message.subject, data: message.data))
    puller?.demand += 1
    // Others may write more meanwhile.
    if message.streamSequence >= last || message.pending == 0 { end(.success(payloads)) }
  }

  func wait(_ patience: Duration, on connection: NATSConnection) {
    hasCome = false
    silence = connection.loop.scheduleOutside(after: patience) { [weak self] in
      guard let self, then != nil else { return }
      if hasCome { return wait(patience, on: connection) }
      end(.failure(connection.failure("no message of the kept run comes")))
    }
  }

  func end(_ result: Result<[KeepStream.Payload], FlowError>) {
    guard let then else { return }
    self.then = nil
    silence?.cancel()
    puller?.stop()
    puller = nil
    onEnd?()
    onEnd = nil
    then(result)
  }
}
