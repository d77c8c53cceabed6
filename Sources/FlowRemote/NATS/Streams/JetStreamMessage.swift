package import FlowEngine

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
