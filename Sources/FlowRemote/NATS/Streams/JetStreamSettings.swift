package import FlowEngine

/// How a stream keeps messages: in files.
package struct StreamSettings: Sendable {
  package var name: ByteString
  package var subjects: [ByteString]
  /// Whether a message is removed when its one consumer has acknowledged it; else only when a limit is exceeded.
  package var isWorkQueue = false
  /// Whether a message is refused when a limit would be exceeded; else the oldest ones are removed.
  package var refusesExcess = false
  /// How long a message is kept; nil for as long as the other limits allow.
  package var maxAge: Duration?
  /// How many servers of a cluster keep the messages; without a cluster of so many servers, one does.
  package var replicas = 1
  /// Whether a message may replace all earlier ones of its subject.
  package var allowsRollup = false
  /// Whether each server that has the messages may return one.
  package var allowsDirect = false

  package init(_ name: ByteString, subjects: [ByteString]) {
    self.name = name
    self.subjects = subjects
  }

  /// The settings without which those who use the stream can't: an existing stream gets them.
  var needs: [NATSJSON.Member] {
    [
      NATSJSON.Member("subjects", .list(subjects.map { .string($0) })),
      NATSJSON.Member("retention", .string(isWorkQueue ? "workqueue" : "limits")),
      NATSJSON.Member("allow_rollup_hdrs", .bool(allowsRollup)),
      NATSJSON.Member("allow_direct", .bool(allowsDirect)),
    ]
  }

  /// The form of the API.
  var json: NATSJSON {
    NATSJSON.members([
      ("name", .string(name)), ("storage", .string("file")),
      ("discard", .string(refusesExcess ? "new" : "old")),
      ("max_age", maxAge.map { .nanoseconds($0) }), ("num_replicas", .integer(replicas)),
    ]).replacing(needs)
  }
}

/// How a consumer delivers the messages of a stream to those who pull.
package struct ConsumerSettings: Sendable {
  /// The first message that is delivered.
  package enum Start: Sendable, Equatable {
    case all
    /// The last message of each subject.
    case lastOfEachSubject
    /// The message with this sequence number in the stream, or the first after it.
    case sequence(UInt64)
  }

  /// The name. Such a consumer stays although nobody pulls, and each of its messages has to be acknowledged. Without one the
  /// server chooses a name, and has the consumer in memory; messages aren't acknowledged.
  package var name: ByteString?
  /// The subjects of its messages.
  package var filter: ByteString?
  package var start = Start.all
  /// When a message that isn't acknowledged is delivered again.
  package var ackWait: Duration = .seconds(30)
  /// How often a message is delivered; nil for no limit.
  package var maxDeliveries: Int?
  /// The most delivered messages that aren't acknowledged; nil for the server's limit.
  package var maxAckPending: Int?
  /// After how long without a pull the consumer is removed; nil for never, or 5 s for one without a name.
  package var inactiveThreshold: Duration?

  package init(_ name: ByteString?) { self.name = name }

  /// The form of the API.
  var json: NATSJSON {
    let (policy, sequence): (ByteString, UInt64?) =
      switch start {
      case .all: ("all", nil)
      case .lastOfEachSubject: ("last_per_subject", nil)
      case .sequence(let number): ("by_start_sequence", number)
      }
    return NATSJSON.members([
      ("durable_name", name.map { .string($0) }), ("deliver_policy", .string(policy)),
      ("opt_start_seq", sequence.map { .integer(Int64(clamping: $0)) }),
      ("ack_policy", .string(name == nil ? "none" : "explicit")),
      ("ack_wait", name.map { _ in .nanoseconds(ackWait) }),
      ("max_deliver", maxDeliveries.map { .integer($0) } ?? .integer(-1)),
      ("max_ack_pending", maxAckPending.map { .integer($0) }),
      ("filter_subject", filter.map { .string($0) }), ("replay_policy", .string("instant")),
      ("inactive_threshold", inactiveThreshold.map { .nanoseconds($0) }),
      ("mem_storage", name == nil ? .bool(true) : nil),
    ])
  }
}

/// The state of a stream.
package struct StreamInfo: Sendable, Equatable {
  package let messages: UInt64
  package let lastSequence: UInt64

  /// Reads a reply of the API; nil if it has another form.
  init?(_ json: NATSJSON) {
    guard let state = json["state"], let messages = state["messages"]?.asUnsigned else {
      return nil
    }
    self.messages = messages
    lastSequence = state["last_seq"]?.asUnsigned ?? 0
  }
}

/// The state of a consumer.
package struct ConsumerInfo: Sendable, Equatable {
  package let name: ByteString
  /// Messages that haven't been delivered yet.
  package let pending: UInt64
  /// The number in the stream of the last message that was delivered.
  package let delivered: UInt64

  /// Reads a reply of the API; nil if it has another form.
  init?(_ json: NATSJSON) {
    guard let name = json["name"]?.asBytes else { return nil }
    self.name = name
    pending = json["num_pending"]?.asUnsigned ?? 0
    delivered = json["delivered"]?["stream_seq"]?.asUnsigned ?? 0
  }
}

/// A message that a stream keeps.
package struct StoredMessage: Sendable {
  package let subject: ByteString
  package let data: ByteString
  package let headers: [NATSHeader]
  package let sequence: UInt64

  /// Reads a reply of the API; nil if it has another form.
  init?(_ json: NATSJSON) {
    guard let message = json["message"], let subject = message["subject"]?.asBytes,
      let sequence = message["seq"]?.asUnsigned,
      let data = NATSBase64.decode(message["data"]?.asBytes ?? ""),
      let block = NATSBase64.decode(message["hdrs"]?.asBytes ?? "")
    else { return nil }
    self.subject = subject
    self.data = ByteString(data)
    self.sequence = sequence
    headers = NATSHeader.list(ofBlock: block)
  }
}
