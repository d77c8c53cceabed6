package import FlowEngine

/// The error of JetStream that a reply has: the `underlying` error of a `FlowError`.
package struct JetStreamProblem: Error, Sendable, Equatable {
  /// The number of the error, such as 10059 for a missing stream. The message has it as `nats_10059`.
  package let code: Int64
  /// The class of the error, as in HTTP.
  package let status: Int64

  /// There is no such stream.
  package static let missingStream: Int64 = 10059
  /// There is no such consumer.
  package static let missingConsumer: Int64 = 10014
  static let missingMessage: Int64 = 10037
  /// The last message of the stream, or of the subject, isn't the expected one.
  static let otherLastMessage: Int64 = 10071
  /// A cluster has no leader for the stream just now.
  static let unavailable: Int64 = 10008
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

/// The streams of a connection's servers, by requests that don't block the loop.
package final class JetStream {
  package let connection: NATSConnection
  /// The limit for each reply.
  package var timeout: Duration = .seconds(5)
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
  func call(
    _ operation: ByteString, _ body: NATSJSON?, timeout: Duration? = nil,
    then: @escaping (Result<NATSJSON, FlowError>) -> Void
  ) {
    let data = body?.text ?? ""
    connection.request("$JS.API.\(operation)", data, timeout: timeout ?? self.timeout) {
      [connection] result in
      then(
        result.mapError { error in
          guard error.underlying is NATSNoResponders else { return error }
          return connection.failure(Self.startHint)
        }.flatMap { message in Self.read(message.data, connection) })
    }
  }

  /// Reads a reply, which may have an error.
  static func read(
    _ data: ByteString, _ connection: NATSConnection
  ) -> Result<NATSJSON, FlowError> {
    do throws(FlowError) {
      let json = try NATSJSON(reading: data)
      guard let problem = json["error"] else { return .success(json) }
      let code = problem["err_code"]?.asInteger ?? 0
      let status = problem["code"]?.asInteger ?? 0
      if JetStreamProblem.disabled.contains(code) { return .failure(connection.failure(startHint)) }
      let text = problem["description"]?.asBytes ?? "an unknown error"
      return .failure(
        FlowError(
          .error, "\(connection.place): \(text) (nats_\(code))", code: code,
          underlying: JetStreamProblem(code: code, status: status)))
    } catch {
      return .failure(connection.failure("JetStream's reply can't be read: \(error.message)"))
    }
  }

  /// Sends a request and makes a value of its reply.
  private func call<Value>(
    _ operation: ByteString, _ body: NATSJSON?, _ make: @escaping (NATSJSON) -> Value?,
    then: @escaping (Result<Value, FlowError>) -> Void
  ) {
    call(operation, body) { [connection] result in
      then(
        result.flatMap { json in
          make(json).map { .success($0) }
            ?? .failure(connection.failure("JetStream's reply to '\(operation)' has another form"))
        })
    }
  }

  /// Checks names, which become parts of subjects; reports the first wrong one in a turn of its own.
  private func areNames<Value>(
    _ names: ByteString..., then: @escaping (Result<Value, FlowError>) -> Void
  ) -> Bool {
    guard let wrong = names.first(where: { !$0.isNATSName }) else { return true }
    connection.loop.enqueue {
      then(.failure(.usage("'\(wrong)' can't be the name of a stream or consumer")))
    }
    return false
  }

  // MARK: Streams

  /// Tells whether there is JetStream, by an error if there is none.
  package func info(then: @escaping (Result<JetStreamInfo, FlowError>) -> Void) {
    call("INFO", nil, { JetStreamInfo($0) }, then: then)
  }

  /// Removes a message from a stream.
  package func deleteMessage(
    _ stream: ByteString, _ sequence: UInt64, then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let body = NATSJSON.members([("seq", .integer(Int64(clamping: sequence)))])
    call("STREAM.MSG.DELETE.\(stream)", body, { _ in () }, then: then)
  }

  /// Creates a stream. If there is one of the name already, it gets the settings that its use depends on, see
  /// `StreamSettings.needs`; what its administrator may have chosen, such as limits and copies, stays.
  package func ensureStream(
    _ settings: StreamSettings, then: @escaping (Result<StreamInfo, FlowError>) -> Void
  ) {
    guard areNames(settings.name, then: then) else { return }
    adaptStream(settings) { [self] result in
      switch result {
      case .success(let info?): then(.success(info))
      case .success(nil): createStream(settings, then: then)
      case .failure(let error): then(.failure(error))
      }
    }
  }

  /// Creates a stream, with one copy if the server has no others for more of them. A stream keeps the number of copies
  /// it began with: in a cluster others are waited for, once for all streams of this connection.
  private func createStream(
    _ settings: StreamSettings, then: @escaping (Result<StreamInfo, FlowError>) -> Void
  ) {
    call("STREAM.CREATE.\(settings.name)", settings.json, { StreamInfo($0) }) { [self] result in
      guard case .failure(let error) = result, let code = error.jetStreamCode else {
        return then(result)
      }
      if settings.replicas > 1, JetStreamProblem.tooFewServers.contains(code), patience > .zero {
        patience -= Self.pause
        _ = connection.loop.scheduleOutside(after: Self.pause) { [self] in
          createStream(settings, then: then)
        }
        return
      }
      if settings.replicas > 1,
        code == JetStreamProblem.noCluster || JetStreamProblem.tooFewServers.contains(code)
      {
        var single = settings
        single.replicas = 1
        return createStream(single, then: then)
      }
      guard JetStreamProblem.existingStream.contains(code) else { return then(result) }
      // Somebody else creates it at the same time.
      adaptStream(settings, looks: Self.looks) { adapted in
        then(adapted.flatMap { $0.map { .success($0) } ?? result })
      }
    }
  }

  /// How often it is looked for a stream that somebody else creates, and the time between two looks.
  private static let looks = 6
  private static let pause = Duration.milliseconds(100)

  private func adaptStream(
    _ settings: StreamSettings, looks: Int,
    then: @escaping (Result<StreamInfo?, FlowError>) -> Void
  ) {
    adaptStream(settings) { [self] result in
      guard case .success(nil) = result, looks > 1 else { return then(result) }
      _ = connection.loop.scheduleOutside(after: Self.pause) { [self] in
        adaptStream(settings, looks: looks - 1, then: then)
      }
    }
  }

  /// Gives a stream the settings that its use depends on; nil if there is no stream.
  private func adaptStream(
    _ settings: StreamSettings, then: @escaping (Result<StreamInfo?, FlowError>) -> Void
  ) {
    call("STREAM.INFO.\(settings.name)", nil) { [self] result in
      switch result {
      case .failure(let error) where error.jetStreamCode == JetStreamProblem.missingStream:
        then(.success(nil))
      case .failure(let error): then(.failure(error))
      case .success(let json):
        guard let config = json["config"], let info = StreamInfo(json) else {
          return then(.failure(connection.failure("JetStream's reply has no settings of a stream")))
        }
        let wanted = config.replacing(settings.needs)
        if wanted == config { return then(.success(info)) }
        call("STREAM.UPDATE.\(settings.name)", wanted, { StreamInfo($0) }) { then($0.map { $0 }) }
      }
    }
  }

  /// Deletes a stream with its messages and consumers; a missing one is an error.
  package func deleteStream(
    _ name: ByteString, then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    guard areNames(name, then: then) else { return }
    call("STREAM.DELETE.\(name)", nil, { _ in () }, then: then)
  }

  /// Removes the messages of a stream, or those of a subject; the result is their number.
  package func purge(
    _ stream: ByteString, subject: ByteString? = nil,
    then: @escaping (Result<UInt64, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let body = subject.map { NATSJSON.members([("filter", .string($0))]) }
    call("STREAM.PURGE.\(stream)", body, { $0["purged"]?.asUnsigned ?? 0 }, then: then)
  }

  /// Removes the messages before a number; the next one has this number at least.
  package func purge(
    _ stream: ByteString, before number: UInt64,
    then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let body = NATSJSON.members([("seq", .integer(Int64(clamping: number)))])
    call("STREAM.PURGE.\(stream)", body, { _ in () }, then: then)
  }

  /// The state of a stream; a missing one is an error.
  package func streamInfo(
    _ name: ByteString, then: @escaping (Result<StreamInfo, FlowError>) -> Void
  ) {
    guard areNames(name, then: then) else { return }
    call("STREAM.INFO.\(name)", nil, { StreamInfo($0) }, then: then)
  }

  /// The last message of a subject; nil if there is none.
  package func getLastMessage(
    _ stream: ByteString, _ subject: ByteString,
    then: @escaping (Result<StoredMessage?, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let body = NATSJSON.members([("last_by_subj", .string(subject))])
    getMessage(stream, body, then: then)
  }

  /// The first message of a subject after a number; nil if there is none.
  package func getNextMessage(
    _ stream: ByteString, _ subject: ByteString, after sequence: UInt64,
    then: @escaping (Result<StoredMessage?, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let next = NATSJSON.integer(Int64(clamping: sequence &+ 1))
    let body = NATSJSON.members([("seq", next), ("next_by_subj", .string(subject))])
    getMessage(stream, body, then: then)
  }

  /// The message with a number; nil if there is none.
  package func getMessage(
    _ stream: ByteString, _ sequence: UInt64,
    then: @escaping (Result<StoredMessage?, FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    getMessage(stream, NATSJSON.members([("seq", .integer(Int64(clamping: sequence)))]), then: then)
  }

  private func getMessage(
    _ stream: ByteString, _ body: NATSJSON,
    then: @escaping (Result<StoredMessage?, FlowError>) -> Void
  ) {
    call("STREAM.MSG.GET.\(stream)", body, { StoredMessage($0) }) { result in
      switch result {
      case .success(let message): then(.success(message))
      case .failure(let error) where error.jetStreamCode == JetStreamProblem.missingMessage:
        then(.success(nil))
      case .failure(let error): then(.failure(error))
      }
    }
  }

  /// The subjects of a stream's messages that a filter with wildcards has.
  package func subjects(
    _ stream: ByteString, _ filter: ByteString,
    then: @escaping (Result<[ByteString], FlowError>) -> Void
  ) {
    guard areNames(stream, then: then) else { return }
    let body = NATSJSON.members([("subjects_filter", .string(filter))])
    call("STREAM.INFO.\(stream)", body, { $0["state"]?["subjects"]?.names ?? [] }, then: then)
  }

  // MARK: Consumers

  /// Creates a consumer that is pulled from, or changes its settings.
  package func ensureConsumer(
    _ stream: ByteString, _ settings: ConsumerSettings,
    then: @escaping (Result<ConsumerInfo, FlowError>) -> Void
  ) {
    guard areNames(stream, settings.name ?? "-", then: then) else { return }
    let operation: ByteString =
      switch (settings.isDurable, settings.name) {
      case (true, let name?): "CONSUMER.DURABLE.CREATE.\(stream).\(name)"
      case (_, let name?): "CONSUMER.CREATE.\(stream).\(name)"
      case (_, nil): "CONSUMER.CREATE.\(stream)"
      }
    let body = NATSJSON.members([("stream_name", .string(stream)), ("config", settings.json)])
    call(operation, body, { ConsumerInfo($0) }, then: then)
  }

  /// Deletes a consumer; a missing one is an error.
  package func deleteConsumer(
    _ stream: ByteString, _ name: ByteString,
    then: @escaping (Result<Void, FlowError>) -> Void
  ) {
    guard areNames(stream, name, then: then) else { return }
    call("CONSUMER.DELETE.\(stream).\(name)", nil, { _ in () }, then: then)
  }

  /// The state of a consumer; a missing one is an error.
  package func consumerInfo(
    _ stream: ByteString, _ name: ByteString,
    then: @escaping (Result<ConsumerInfo, FlowError>) -> Void
  ) {
    guard areNames(stream, name, then: then) else { return }
    call("CONSUMER.INFO.\(stream).\(name)", nil, { ConsumerInfo($0) }, then: then)
  }

  // MARK: Messages

  /// Publishes a message to the stream of its subject; the result is its sequence number there.
  ///
  /// - Parameters:
  ///   - subject: The subject, which a stream must have.
  ///   - data: The content.
  ///   - id: A message with an id that the stream has recently got isn't stored again; the result is the number
  ///     of the first one.
  ///   - headers: Further headers.
  ///   - then: Called once the stream has stored the message.
  package func publish(
    _ subject: ByteString, _ data: ByteString, id: ByteString? = nil, headers: [NATSHeader] = [],
    then: @escaping (Result<UInt64, FlowError>) -> Void
  ) {
    let headers = id.map { headers + [NATSHeader("Nats-Msg-Id", $0)] } ?? headers
    connection.request(subject, data, headers: headers, timeout: timeout) { [self] result in
      then(sequence(of: result, subject))
    }
  }

  /// Reads the reply to a published message.
  func sequence(
    of result: Result<NATSMessage, FlowError>, _ subject: ByteString
  ) -> Result<UInt64, FlowError> {
    result.mapError { [connection] error in
      guard error.underlying is NATSNoResponders else { return error }
      return connection.failure("no stream takes messages of '\(subject)'")
    }.flatMap { [connection] message in
      Self.read(message.data, connection)
    }.flatMap { [connection] json in
      json["seq"]?.asUnsigned.map { .success($0) }
        ?? .failure(connection.failure("'\(subject)' is handled by a program instead of a stream"))
    }
  }
}
