package import FlowEngine

/// Reads messages of a stream in their order, by a consumer that the server has in memory. Messages on their way are lost
/// with a connection, as they aren't acknowledged: it continues with another consumer after the last one that has come.
package final class StreamReading {
  private let jetStream: JetStream
  private let stream: ByteString
  private let filter: ByteString
  /// The first message that hasn't come.
  private var start: ConsumerSettings.Start
  /// How many messages may be on their way.
  private let window: Int
  private var puller: JetStreamPuller?
  /// The number of the connection over which it reads.
  private var number = 0
  /// How many messages the consumer has delivered, and those of them that weren't returned.
  private var count: UInt64 = 0
  private var messages: [JetStreamMessage] = []
  private var failure: FlowError?
  /// How many consumers were made since a message came.
  private var attempts = 0
  /// Ends the wait of `next`.
  private var wake: (() -> Void)?

  /// How long the server keeps a consumer from which nobody reads.
  private static let patience = Duration.seconds(60)
  private static let mostAttempts = 5

  private var connection: NATSConnection { jetStream.connection }

  /// - Parameters:
  ///   - jetStream: The streams of a connection.
  ///   - stream: The name of the stream.
  ///   - filter: The subjects of the messages.
  ///   - start: The first one.
  ///   - window: How many may be on their way.
  package init(
    _ jetStream: JetStream, _ stream: ByteString, _ filter: ByteString,
    _ start: ConsumerSettings.Start, window: Int
  ) {
    self.jetStream = jetStream
    self.stream = stream
    self.filter = filter
    self.start = start
    self.window = window
  }

  /// Makes a consumer, and asks for its messages; returns how many there are now. `next` does that unless it was done.
  @discardableResult
  package func open() async throws(FlowError) -> UInt64 {
    attempts += 1
    var settings = ConsumerSettings(nil)
    settings.filter = filter
    settings.inactiveThreshold = Self.patience
    settings.start = start
    let consumer = try await jetStream.ensureConsumer(stream, settings)
    (count, failure) = (0, nil)
    let made = try JetStreamPuller(jetStream, stream: stream, consumer: consumer.name) {
      [weak self] in
      self?.receive($0)
    } fail: { [weak self] in
      self?.fail($0)
    }
    made.demand = window
    puller = made
    number = connection.number
    return consumer.pending
  }

  private func receive(_ message: JetStreamMessage) {
    if failure != nil { return }
    count += 1
    guard message.consumerSequence == count else { return lose() }
    messages.append(message)
    wake.take()?()
  }

  /// A message may have been lost with a connection.
  private func lose() {
    fail(connection.failure("a message of the stream \(stream) was lost on its way: try again"))
  }

  private func fail(_ error: FlowError) {
    failure = failure ?? error
    wake.take()?()
  }

  /// The messages that have come; it waits for some. The result is empty if none came in that time.
  package func next(within limit: Duration) async throws(FlowError) -> [JetStreamMessage] {
    while messages.isEmpty {
      if let failure {
        end()
        // The last messages of subjects are other ones by now.
        if start == .lastOfEachSubject || attempts >= Self.mostAttempts { throw failure }
      }
      if puller == nil { try await open() }
      try await wait(limit)
      if !messages.isEmpty || failure != nil { continue }
      guard connection.isConnected, connection.number != number else { return [] }
      lose()
    }
    attempts = 0
    if let last = messages.last, start != .lastOfEachSubject {
      start = .sequence(last.streamSequence &+ 1)
    }
    puller?.demand += messages.count
    defer { messages = [] }
    return messages
  }

  private func wait(_ limit: Duration) async throws(FlowError) {
    let loop = connection.loop
    var timer: LoopTimer?
    let end: Void? = await loop.value { then in
      wake = { then(()) }
      timer = loop.scheduleAside(after: limit) { then(()) }
    }
    timer?.cancel()
    wake = nil
    if end == nil || connection.isClosed { throw .cancelled() }
  }

  /// Removes the consumer.
  package func end() {
    guard let puller = puller.take() else { return }
    puller.stop()
    connection.perform { [jetStream, stream] in
      try await jetStream.deleteConsumer(stream, puller.consumer)
    }
  }
}
