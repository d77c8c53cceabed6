package import FlowEngine

/// The error of JetStream that a reply has: the `underlying` error of a `FlowError`.
package struct JetStreamProblem: Error, Sendable {
  /// The number of the error, such as 10059 for a missing stream. The message has it as `nats_10059`.
  package let code: Int64

  /// There is no such stream.
  package static let missingStream: Int64 = 10059
  /// There is no such consumer.
  package static let missingConsumer: Int64 = 10014
  static let missingMessage: Int64 = 10037
  /// The last message of the stream, or of the subject, isn't the expected one.
  package static let otherLastMessage: Int64 = 10071
  /// A cluster has no leader for the stream just now.
  package static let unavailable: Int64 = 10008
  /// There is a stream of the name, with other settings or with the same subjects: nats-server says the latter when two
  /// programs create one at the same time, and of other streams as well.
  static let existingStream: Set<Int64> = [10058, 10065]
  /// A stream would have more copies than there are servers with room for them. The servers of a cluster may know each
  /// other later.
  static let tooFewServers: Set<Int64> = [10005, 10023]
  /// The server belongs to no cluster, and keeps one copy.
  static let noCluster: Int64 = 10074
  /// JetStream isn't enabled, for the account or at all.
  static let disabled: Set<Int64> = [10039, 10076]
}

extension FlowError {
  /// The number of JetStream's error; nil for any other error.
  package var jetStreamCode: Int64? { (underlying as? JetStreamProblem)?.code }
}

/// The streams of a connection's servers, by requests that don't block the loop. libnats has functions for them, too: they
/// block, and their structures have other fields in Debian 13 than in Debian 12.
package final class JetStream {
  package let connection: NATSConnection
  /// The limit for each reply.
  private static let timeout = Duration.seconds(5)
  /// How long a stream's creation waits for further servers of a cluster that has just begun: those that know each other
  /// tell what room they have when they begin, and then every 10 s.
  private var patience: Duration = .seconds(12)

  package init(_ connection: NATSConnection) {
    self.connection = connection
  }

  private static let startHint: ByteString =
    "the server has no JetStream: start it with `nats-server -js`"

  // MARK: Requests

  /// Sends a request of the API, and reads the reply.
  @discardableResult
  func call(
    _ operation: ByteString, _ body: NATSJSON? = nil
  ) async throws(FlowError) -> NATSJSON {
    let reply: NATSMessage
    do throws(FlowError) {
      reply = try await connection.request(
        "$JS.API.\(operation)", body?.text ?? "", timeout: Self.timeout)
    } catch {
      throw error.underlying is NATSNoResponders ? connection.failure(Self.startHint) : error
    }
    return try read(reply.data)
  }

  /// Reads a reply, which may have an error.
  private func read(_ data: ByteString) throws(FlowError) -> NATSJSON {
    let json: NATSJSON
    do throws(FlowError) { json = try NATSJSON(reading: data) } catch {
      throw connection.failure("JetStream's reply can't be read: \(error.message)")
    }
    guard let problem = json["error"] else { return json }
    let code = problem["err_code"]?.asInteger ?? 0
    if JetStreamProblem.disabled.contains(code) { throw connection.failure(Self.startHint) }
    let text = problem["description"]?.asBytes ?? "an unknown error"
    throw FlowError(
      .error, "\(connection.place): \(text) (nats_\(code))", code: code,
      underlying: JetStreamProblem(code: code))
  }

  /// Sends a request and makes a value of its reply.
  private func call<Value>(
    _ operation: ByteString, _ body: NATSJSON? = nil, _ make: (NATSJSON) -> Value?
  ) async throws(FlowError) -> Value {
    guard let value = make(try await call(operation, body)) else {
      throw connection.failure("JetStream's reply to '\(operation)' has another form")
    }
    return value
  }

  // MARK: Streams

  /// Tells whether there is JetStream, by an error if there is none.
  package func checkPresence() async throws(FlowError) { try await call("INFO") }

  /// Removes a message from a stream.
  package func deleteMessage(
    _ stream: ByteString, _ sequence: UInt64
  ) async throws(FlowError) {
    try await call("STREAM.MSG.DELETE.\(stream)", .sequence(sequence))
  }

  /// Creates a stream. If there is one of the name already, it gets the settings that its use depends on, see
  /// `StreamSettings.needs`; what its administrator may have chosen, such as limits and copies, stays.
  ///
  /// A new one has one copy if the server has no others for more of them. A stream keeps the number of copies it began
  /// with: in a cluster others are waited for, once for all streams of this connection.
  @discardableResult
  package func ensureStream(_ settings: StreamSettings) async throws(FlowError) -> StreamInfo {
    if let adapted = try await adaptStream(settings) { return adapted }
    var settings = settings
    while true {
      do throws(FlowError) {
        return try await call("STREAM.CREATE.\(settings.name)", settings.json) { StreamInfo($0) }
      } catch {
        guard let code = error.jetStreamCode else { throw error }
        let lacksServers = JetStreamProblem.tooFewServers.contains(code)
        if settings.replicas > 1, lacksServers, patience > .zero {
          patience -= Self.pause
          try await connection.loop.pause(Self.pause)
        } else if settings.replicas > 1, lacksServers || code == JetStreamProblem.noCluster {
          settings.replicas = 1
        } else {
          guard JetStreamProblem.existingStream.contains(code) else { throw error }
          // Somebody else creates it at the same time.
          let adapted = try await connection.loop.retrying(for: Self.creation, every: Self.pause) {
            () throws(FlowError) in try await adaptStream(settings)
          }
          if let adapted { return adapted }
          throw error
        }
      }
    }
  }

  /// How long it is looked for a stream that somebody else creates, and the time between two looks.
  private static let creation = Duration.milliseconds(500)
  private static let pause = Duration.milliseconds(100)

  /// Gives a stream the settings that its use depends on; nil if there is no stream.
  private func adaptStream(_ settings: StreamSettings) async throws(FlowError) -> StreamInfo? {
    let json: NATSJSON
    do throws(FlowError) { json = try await call("STREAM.INFO.\(settings.name)") } catch {
      if error.jetStreamCode == JetStreamProblem.missingStream { return nil }
      throw error
    }
    guard let config = json["config"], let info = StreamInfo(json) else {
      throw connection.failure("JetStream's reply has no settings of a stream")
    }
    let wanted = config.replacing(settings.needs)
    if wanted == config { return info }
    return try await call("STREAM.UPDATE.\(settings.name)", wanted) { StreamInfo($0) }
  }

  /// Removes the messages of a stream, those of a subject, or those before a number, which the next one has then at least;
  /// the result is their count.
  @discardableResult
  package func purge(
    _ stream: ByteString, subject: ByteString? = nil, before number: UInt64? = nil
  ) async throws(FlowError) -> UInt64 {
    let body = NATSJSON.members([
      ("filter", subject.map { .string($0) }),
      ("seq", number.map { .integer(Int64(clamping: $0)) }),
    ])
    return try await call("STREAM.PURGE.\(stream)", body) { $0["purged"]?.asUnsigned ?? 0 }
  }

  /// The state of a stream; a missing one is an error.
  package func streamInfo(_ name: ByteString) async throws(FlowError) -> StreamInfo {
    try await call("STREAM.INFO.\(name)") { StreamInfo($0) }
  }

  /// The last message of a subject; nil if there is none.
  package func getLastMessage(
    _ stream: ByteString, _ subject: ByteString
  ) async throws(FlowError) -> StoredMessage? {
    try await getMessage(stream, .members([("last_by_subj", .string(subject))]))
  }

  /// The first message of a subject after a number; nil if there is none.
  package func getNextMessage(
    _ stream: ByteString, _ subject: ByteString, after sequence: UInt64
  ) async throws(FlowError) -> StoredMessage? {
    let next = NATSJSON.integer(Int64(clamping: sequence &+ 1))
    return try await getMessage(
      stream, .members([("seq", next), ("next_by_subj", .string(subject))]))
  }

  /// The message with a number; nil if there is none.
  package func getMessage(
    _ stream: ByteString, _ sequence: UInt64
  ) async throws(FlowError) -> StoredMessage? {
    try await getMessage(stream, .sequence(sequence))
  }

  private func getMessage(
    _ stream: ByteString, _ body: NATSJSON
  ) async throws(FlowError) -> StoredMessage? {
    do throws(FlowError) {
      return try await call("STREAM.MSG.GET.\(stream)", body) { StoredMessage($0) }
    } catch {
      if error.jetStreamCode == JetStreamProblem.missingMessage { return nil }
      throw error
    }
  }

  /// The subjects of a stream's messages that a filter with wildcards has.
  package func subjects(
    _ stream: ByteString, _ filter: ByteString
  ) async throws(FlowError) -> [ByteString] {
    let body = NATSJSON.members([("subjects_filter", .string(filter))])
    return try await call("STREAM.INFO.\(stream)", body) { $0["state"]?["subjects"]?.names ?? [] }
  }

  // MARK: Consumers

  /// Creates a consumer that is pulled from, or changes its settings.
  @discardableResult
  package func ensureConsumer(
    _ stream: ByteString, _ settings: ConsumerSettings
  ) async throws(FlowError) -> ConsumerInfo {
    let operation: ByteString =
      settings.name.map { "CONSUMER.DURABLE.CREATE.\(stream).\($0)" } ?? "CONSUMER.CREATE.\(stream)"
    let body = NATSJSON.members([("stream_name", .string(stream)), ("config", settings.json)])
    return try await call(operation, body) { ConsumerInfo($0) }
  }

  /// Deletes a consumer; a missing one is an error.
  package func deleteConsumer(
    _ stream: ByteString, _ name: ByteString
  ) async throws(FlowError) {
    try await call("CONSUMER.DELETE.\(stream).\(name)")
  }

  /// The state of a consumer; a missing one is an error.
  package func consumerInfo(
    _ stream: ByteString, _ name: ByteString
  ) async throws(FlowError) -> ConsumerInfo {
    try await call("CONSUMER.INFO.\(stream).\(name)") { ConsumerInfo($0) }
  }

  // MARK: Messages

  /// Publishes a message to the stream of its subject, and waits until the stream has stored it.
  ///
  /// - Parameters:
  ///   - subject: The subject, which a stream must have.
  ///   - data: The content.
  ///   - id: A message with an id that the stream has recently got isn't stored again; the result is the number
  ///     of the first one.
  ///   - headers: Further headers.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: Its sequence number in the stream.
  @discardableResult
  package func publish(
    _ subject: ByteString, _ data: ByteString, id: ByteString? = nil, headers: [NATSHeader] = []
  ) async throws(FlowError) -> UInt64 {
    let headers = id.map { headers + [NATSHeader("Nats-Msg-Id", $0)] } ?? headers
    do throws(FlowError) {
      return try sequence(
        of: await connection.request(subject, data, headers: headers, timeout: Self.timeout))
    } catch {
      guard error.underlying is NATSNoResponders else { throw error }
      throw connection.failure("no stream takes messages of '\(subject)'")
    }
  }

  /// Reads the reply to a published message.
  @discardableResult
  func sequence(of reply: NATSMessage) throws(FlowError) -> UInt64 {
    if let number = try read(reply.data)["seq"]?.asUnsigned { return number }
    throw connection.failure("a program handles the subject of a stream")
  }
}

extension NATSJSON {
  /// The body of a request about the message with a number.
  fileprivate static func sequence(_ number: UInt64) -> NATSJSON {
    .members([("seq", .integer(Int64(clamping: number)))])
  }
}

/// A message that a consumer has delivered, until it is acknowledged.
package struct JetStreamMessage {
  package let subject: ByteString
  package let data: ByteString
  package let stream: ByteString
  /// How often it has been delivered, this time included.
  package let deliveries: UInt64
  /// Its number in the stream.
  package let streamSequence: UInt64
  /// The number of this delivery of the consumer.
  package let consumerSequence: UInt64
  /// How many messages follow that haven't been delivered yet.
  package let pending: UInt64
  /// Where it is acknowledged.
  package let reply: ByteString
  private let connection: NATSConnection

  /// Makes one of a message; nil if its reply subject doesn't have the form of a consumer.
  init?(_ message: NATSMessage, _ connection: NATSConnection) {
    guard let reply = message.reply, let place = Self.place(of: reply) else { return nil }
    self.connection = connection
    self.reply = reply
    subject = message.subject
    data = message.data
    stream = place.stream
    let numbers = place.numbers
    deliveries = numbers[0]
    streamSequence = numbers[1]
    consumerSequence = numbers[2]
    pending = numbers[4]
  }

  /// Reads `$JS.ACK.stream.consumer.deliveries.sequence.sequence.time.pending`, or the form of later servers,
  /// which has a domain and an account before the stream, and may have more at the end.
  private static func place(
    of reply: ByteString
  ) -> (stream: ByteString, numbers: [UInt64])? {
    let tokens = reply.bytes.split(at: ".")
    guard tokens.count == 9 || tokens.count >= 11, tokens[0].equals("$JS"), tokens[1].equals("ACK")
    else { return nil }
    let first = tokens.count == 9 ? 2 : 4
    let numbers = tokens[(first + 2)...].prefix(5).compactMap { token in
      token.decimal.flatMap { UInt64(exactly: $0) }
    }
    guard numbers.count == 5 else { return nil }
    return (ByteString(tokens[first]), numbers)
  }

  // MARK: Acknowledgement

  /// The outcome of a delivery.
  package enum Outcome: ByteString {
    case done = "+ACK"
    /// It is to be delivered again, at once.
    case refused = "-NAK"
    /// The time begins again after which it would be delivered again.
    case inProgress = "+WPI"
    /// It isn't delivered again, although it wasn't handled.
    case dropped = "+TERM"
  }

  /// Tells the server, which doesn't confirm that: without it the message is delivered again.
  package func tell(_ outcome: Outcome) { try? connection.publish(reply, outcome.rawValue) }
}
