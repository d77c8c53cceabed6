package import FlowEngine

/// How a stream keeps messages.
package struct StreamSettings: Sendable {
  /// When a message is removed.
  package enum Retention: ByteString, Sendable {
    /// Only when a limit is exceeded.
    case limits
    /// When its one consumer has acknowledged it.
    case workQueue = "workqueue"
    /// When all consumers have acknowledged it.
    case interest
  }

  package enum Storage: ByteString, Sendable {
    case file
    case memory
  }

  /// The effect of a limit that would be exceeded.
  package enum Discard: ByteString, Sendable {
    /// The oldest messages are removed.
    case old
    /// The new message is refused.
    case new
  }

  package var name: ByteString
  package var subjects: [ByteString]
  package var retention = Retention.limits
  package var storage = Storage.file
  package var discard = Discard.old
  package var description: ByteString?
  /// How long a message is kept; nil for as long as the other limits allow.
  package var maxAge: Duration?
  /// The most bytes of all messages; nil for no limit.
  package var maxBytes: Int64?
  /// The most messages; nil for no limit.
  package var maxMessages: Int64?
  /// The most messages of one subject; nil for no limit.
  package var maxMessagesPerSubject: Int64?
  /// The most bytes of one message; nil for the limit of the server.
  package var maxMessageSize: Int?
  /// How many servers of a cluster keep the messages; without a cluster of so many servers, one does.
  package var replicas = 1
  /// For how long a message with the same id is recognized; nil for the server's 2 minutes.
  package var duplicateWindow: Duration?
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
      NATSJSON.Member("retention", .string(retention.rawValue)),
      NATSJSON.Member("allow_rollup_hdrs", .bool(allowsRollup)),
      NATSJSON.Member("allow_direct", .bool(allowsDirect)),
    ]
  }

  /// The form of the API.
  var json: NATSJSON {
    NATSJSON.members([
      ("name", .string(name)), ("subjects", .list(subjects.map { .string($0) })),
      ("description", description.map { .string($0) }), ("retention", .string(retention.rawValue)),
      ("storage", .string(storage.rawValue)), ("discard", .string(discard.rawValue)),
      ("max_consumers", .integer(-1)), ("max_msgs", .integer(maxMessages ?? -1)),
      ("max_bytes", .integer(maxBytes ?? -1)),
      ("max_age", maxAge.map { .nanoseconds($0) } ?? .integer(0)),
      ("max_msgs_per_subject", .integer(maxMessagesPerSubject ?? -1)),
      ("max_msg_size", .integer(maxMessageSize ?? -1)), ("num_replicas", .integer(replicas)),
      ("duplicate_window", duplicateWindow.map { .nanoseconds($0) }),
      ("allow_rollup_hdrs", .bool(allowsRollup)), ("allow_direct", .bool(allowsDirect)),
    ])
  }
}

/// How a consumer delivers the messages of a stream to those who pull.
package struct ConsumerSettings: Sendable {
  /// The first message that is delivered.
  package enum Start: Sendable, Equatable {
    case all
    case last
    /// The last message of each subject.
    case lastOfEachSubject
    case new
    /// The message with this sequence number in the stream, or the first after it.
    case sequence(UInt64)
  }

  /// The name; nil for an ephemeral consumer whose name the server chooses.
  package var name: ByteString?
  /// Whether the consumer stays although nobody pulls.
  package var isDurable: Bool
  /// The subjects of its messages; nil for all.
  package var filter: ByteString?
  package var start = Start.all
  /// Whether each message has to be acknowledged.
  package var isAcknowledged = true
  /// When a message that isn't acknowledged is delivered again.
  package var ackWait: Duration = .seconds(30)
  /// How often a message is delivered; nil for no limit.
  package var maxDeliveries: Int?
  /// The most delivered messages that aren't acknowledged; nil for the server's limit.
  package var maxAckPending: Int?
  /// After how long without a pull the consumer is removed; nil for never, or 5 s for an ephemeral one.
  package var inactiveThreshold: Duration?
  /// Whether its state is kept in memory only.
  package var isInMemory = false

  /// Makes a durable consumer.
  package init(durable name: ByteString) {
    self.name = name
    isDurable = true
  }

  /// Makes an ephemeral consumer.
  package init() { isDurable = false }

  /// The form of the API.
  var json: NATSJSON {
    let (policy, sequence): (ByteString, UInt64?) =
      switch start {
      case .all: ("all", nil)
      case .last: ("last", nil)
      case .lastOfEachSubject: ("last_per_subject", nil)
      case .new: ("new", nil)
      case .sequence(let number): ("by_start_sequence", number)
      }
    return NATSJSON.members([
      ("durable_name", isDurable ? name.map { .string($0) } : nil),
      ("name", isDurable ? nil : name.map { .string($0) }),
      ("deliver_policy", .string(policy)),
      ("opt_start_seq", sequence.map { .integer(Int64(clamping: $0)) }),
      ("ack_policy", .string(isAcknowledged ? "explicit" : "none")),
      ("ack_wait", isAcknowledged ? .nanoseconds(ackWait) : nil),
      ("max_deliver", maxDeliveries.map { .integer($0) } ?? .integer(-1)),
      ("max_ack_pending", isAcknowledged ? maxAckPending.map { .integer($0) } : nil),
      ("filter_subject", filter.map { .string($0) }), ("replay_policy", .string("instant")),
      ("inactive_threshold", inactiveThreshold.map { .nanoseconds($0) }),
      ("mem_storage", isInMemory ? .bool(true) : nil),
    ])
  }
}

/// The state of a stream.
package struct StreamInfo: Sendable, Equatable {
  package let name: ByteString
  package let messages: UInt64
  package let bytes: UInt64
  package let firstSequence: UInt64
  package let lastSequence: UInt64
  package let consumers: Int

  /// Reads a reply of the API; nil if it has another form.
  init?(_ json: NATSJSON) {
    guard let name = json["config"]?["name"]?.asBytes, let state = json["state"],
      let messages = state["messages"]?.asUnsigned, let bytes = state["bytes"]?.asUnsigned
    else { return nil }
    self.name = name
    self.messages = messages
    self.bytes = bytes
    firstSequence = state["first_seq"]?.asUnsigned ?? 0
    lastSequence = state["last_seq"]?.asUnsigned ?? 0
    consumers = Int(clamping: state["consumer_count"]?.asInteger ?? 0)
  }
}

/// The state of a consumer.
package struct ConsumerInfo: Sendable, Equatable {
  package let stream: ByteString
  package let name: ByteString
  /// Messages that haven't been delivered yet.
  package let pending: UInt64
  /// The number in the stream of the last message that was delivered.
  package let delivered: UInt64
  /// Delivered messages that aren't acknowledged.
  package let ackPending: Int
  /// Messages among those that were delivered more than once.
  package let redelivered: Int
  /// Pull requests that wait.
  package let waiting: Int

  /// Reads a reply of the API; nil if it has another form.
  init?(_ json: NATSJSON) {
    guard let stream = json["stream_name"]?.asBytes, let name = json["name"]?.asBytes else {
      return nil
    }
    self.stream = stream
    self.name = name
    pending = json["num_pending"]?.asUnsigned ?? 0
    delivered = json["delivered"]?["stream_seq"]?.asUnsigned ?? 0
    ackPending = Int(clamping: json["num_ack_pending"]?.asInteger ?? 0)
    redelivered = Int(clamping: json["num_redelivered"]?.asInteger ?? 0)
    waiting = Int(clamping: json["num_waiting"]?.asInteger ?? 0)
  }
}

/// The state of JetStream for the user's account.
package struct JetStreamInfo: Sendable, Equatable {
  package let streams: Int
  package let consumers: Int
  package let memory: UInt64
  package let storage: UInt64

  init(_ json: NATSJSON) {
    streams = Int(clamping: json["streams"]?.asInteger ?? 0)
    consumers = Int(clamping: json["consumers"]?.asInteger ?? 0)
    memory = json["memory"]?.asUnsigned ?? 0
    storage = json["storage"]?.asUnsigned ?? 0
  }
}

/// A message that a stream keeps.
package struct StoredMessage: Sendable {
  package let subject: ByteString
  package let data: ByteString
  package let headers: [NATSHeader]
  package let sequence: UInt64
  /// When it was stored, in the form of RFC 3339.
  package let time: ByteString

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
    time = message["time"]?.asBytes ?? ""
  }
}
