package import FlowEngine

/// Reads messages of a stream in their order, by a consumer of its own that the server has in memory. Messages on their
/// way are lost with a connection, as they aren't acknowledged: that is an error.
package final class StreamReading {
  private let jetStream: JetStream
  private let stream: ByteString
  private let consumer: ConsumerInfo
  private let loss: FlowError
  private var puller: JetStreamPuller?
  /// Messages that have come and weren't returned.
  private var messages: [JetStreamMessage] = []
  private var count: UInt64 = 0
  private var failure: FlowError?
  /// Ends the wait of `next`.
  private var wake: (() -> Void)?

  /// How long the server keeps a consumer from which nobody reads.
  private static let patience = Duration.seconds(60)

  /// How many messages there were at the start.
  package var pending: UInt64 { consumer.pending }

  private init(
    _ jetStream: JetStream, _ stream: ByteString, _ consumer: ConsumerInfo, _ loss: FlowError
  ) {
    self.jetStream = jetStream
    self.stream = stream
    self.consumer = consumer
    self.loss = loss
  }

  /// Makes the consumer, without demand.
  ///
  /// - Parameters:
  ///   - jetStream: The streams of a connection.
  ///   - stream: The name of the stream.
  ///   - filter: The subjects of the messages.
  ///   - start: The first one.
  ///   - loss: The error when a message was lost.
  /// - Throws: The error of the server, or the connection's.
  /// - Returns: The reading, which has to be ended.
  package static func begin(
    _ jetStream: JetStream, _ stream: ByteString, _ filter: ByteString,
    _ start: ConsumerSettings.Start, loss: FlowError
  ) async throws(FlowError) -> StreamReading {
    var settings = ConsumerSettings(nil)
    settings.filter = filter
    settings.inactiveThreshold = patience
    settings.start = start
    let consumer = try await jetStream.ensureConsumer(stream, settings)
    let made = StreamReading(jetStream, stream, consumer, loss)
    made.puller = try JetStreamPuller(jetStream, stream: stream, consumer: consumer.name) {
      [weak made] in
      made?.receive($0)
    } fail: { [weak made] in
      made?.fail($0)
    }
    return made
  }

  /// How many more messages may come.
  package var demand: Int {
    get { puller?.demand ?? 0 }
    set { puller?.demand = newValue }
  }

  private func receive(_ message: JetStreamMessage) {
    count += 1
    guard message.consumerSequence == count else { return fail(loss) }
    messages.append(message)
    wake.take()?()
  }

  private func fail(_ error: FlowError) {
    failure = failure ?? error
    wake.take()?()
  }

  /// The messages that have come; it waits for some. The result is empty if none came in that time.
  package func next(within limit: Duration) async throws(FlowError) -> [JetStreamMessage] {
    if messages.isEmpty, failure == nil {
      let loop = jetStream.connection.loop
      var timer: LoopTimer?
      let end: Void? = await loop.value { then in
        wake = { then(()) }
        timer = loop.scheduleAside(after: limit) { then(()) }
      }
      timer?.cancel()
      wake = nil
      if end == nil || jetStream.connection.isClosed { throw .cancelled() }
    }
    if let failure { throw failure }
    defer { messages = [] }
    return messages
  }

  /// Removes the consumer.
  package func end() {
    puller?.stop()
    puller = nil
    jetStream.connection.perform { [jetStream, stream, consumer] in
      try await jetStream.deleteConsumer(stream, consumer.name)
    }
  }
}
