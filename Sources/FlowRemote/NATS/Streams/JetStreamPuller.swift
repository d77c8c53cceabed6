package import FlowEngine

/// Pulls messages from a consumer continuously, as many as its owner demands.
///
/// It pulls again when its demand isn't fulfilled, when the server's heartbeats stop, and after a new
/// connection. In the latter two cases requests of both may be fulfilled, so that more messages than demanded
/// are delivered. It doesn't keep its loop from being idle.
package final class JetStreamPuller {
  package let stream: ByteString
  package let consumer: ByteString
  private let jetStream: JetStream
  private var connection: NATSConnection { jetStream.connection }
  private let deliver: (JetStreamMessage) -> Void
  private let fail: (FlowError) -> Void

  /// How many more messages the owner takes. Each delivery reduces it by one.
  package var demand = 0 {
    didSet { if demand > oldValue { schedulePull() } }
  }

  /// How many of the demanded messages are part of requests that the server has.
  private var outstanding = 0
  /// The requests that may still deliver, by their numbers: when each one ends.
  private var requests: [UInt64: Int64] = [:]
  private var lastRequest: UInt64 = 0
  private let inbox = NATSConnection.newInbox()
  private var subscription: NATSSubscription?
  private var endReconnects: (() -> Void)?
  private var watch: LoopTimer?
  private var retry: LoopTimer?
  private var isPullScheduled = false
  /// Whether the server is being asked if the consumer exists.
  private var isChecking = false
  /// When something last came, in nanoseconds of the system's clock.
  private var lastSign: Int64 = 0
  package private(set) var isStopped = false

  /// How long a request waits at the server, and how often the server shows that it is still there.
  private let expiry: Duration
  private let heartbeat: Duration
  /// The pause after a failure that may pass.
  private static let pause = Duration.milliseconds(250)
  /// The most messages of one request: servers may have a limit.
  private static let largestBatch = 1024

  /// Makes a puller without demand.
  ///
  /// - Parameters:
  ///   - jetStream: The streams of a connection.
  ///   - stream: The name of the stream.
  ///   - consumer: The name of the consumer, which must exist.
  ///   - heartbeat: How often the server shows that it still has the requests.
  ///   - expiry: How long a request waits at the server: for so long a process that stands still is given messages. Its
  ///     end shows as well as a heartbeat that the server is there.
  ///   - deliver: Called for each message.
  ///   - fail: Called once when pulling has ended because of an error, such as a deleted consumer.
  /// - Throws: A `FlowError` when the connection is closed.
  package init(
    _ jetStream: JetStream, stream: ByteString, consumer: ByteString,
    heartbeat: Duration = .seconds(5), expiry: Duration = .seconds(30),
    deliver: @escaping (JetStreamMessage) -> Void,
    fail: @escaping (FlowError) -> Void
  ) throws(FlowError) {
    self.jetStream = jetStream
    self.stream = stream
    self.consumer = consumer
    self.heartbeat = heartbeat
    self.expiry = expiry
    self.deliver = deliver
    self.fail = fail
    subscription = try connection.subscribe("\(inbox).*") { [weak self] in self?.receive($0) }
    endReconnects = connection.afterReconnects { [weak self] in self?.reconnect() }
  }

  deinit { stop() }

  /// Ends it: nothing is delivered any more. Messages on their way are delivered to others later.
  package func stop() {
    if isStopped { return }
    isStopped = true
    subscription?.unsubscribe()
    endReconnects?()
    endReconnects = nil
    watch?.cancel()
    retry?.cancel()
  }

  private func end(with error: FlowError) {
    if isStopped { return }
    stop()
    fail(error)
  }

  // MARK: Requests

  /// Pulls at the end of the current turn: demand often grows in small steps.
  private func schedulePull() {
    if isPullScheduled || isStopped { return }
    isPullScheduled = true
    connection.loop.enqueue { [weak self] in
      self?.isPullScheduled = false
      self?.pull()
    }
  }

  /// Asks for what is demanded and isn't part of a request. While messages are on their way, it waits until
  /// that is worth a request.
  private func pull() {
    guard !isStopped, !connection.isClosed, connection.isConnected, retry == nil else { return }
    let missing = demand - outstanding
    guard missing > 0, outstanding == 0 || missing >= (demand + 1) / 2 else { return }
    let batch = min(missing, Self.largestBatch)
    lastRequest += 1
    let body = NATSJSON.members([
      ("batch", .integer(batch)), ("expires", .nanoseconds(expiry)),
      ("idle_heartbeat", expiry > heartbeat * 2 ? .nanoseconds(heartbeat) : nil),
    ])
    do throws(FlowError) {
      try connection.publish(
        "$JS.API.CONSUMER.MSG.NEXT.\(stream).\(consumer)", body.text,
        reply: "\(inbox).\(lastRequest)")
    } catch {
      return pullLater()
    }
    let now = SystemClock().now()
    requests[lastRequest] = now.later(by: (expiry + heartbeat).clampedNanoseconds)
    outstanding += batch
    if watch?.isPending != true {
      lastSign = now
      startWatch()
    }
    if demand > outstanding { schedulePull() }
  }

  private func pullLater() {
    if isStopped || retry != nil { return }
    retry = connection.loop.scheduleAside(after: Self.pause) { [weak self] in
      guard let self else { return }
      retry = nil
      pull()
    }
  }

  /// Forgets all requests and pulls again.
  private func begin() {
    requests = [:]
    outstanding = 0
    pull()
  }

  private func reconnect() {
    if isStopped { return }
    retry?.cancel()
    retry = nil
    lastSign = SystemClock().now()
    begin()
    // One that was kept in memory is gone when the server was started again.
    if demand > 0 { checkConsumer() }
  }

  // MARK: Heartbeats

  private func startWatch() {
    watch = connection.loop.scheduleAside(after: heartbeat) { [weak self] in self?.check() }
  }

  /// Notices that the server has forgotten the requests.
  private func check() {
    guard !isStopped, outstanding > 0 else { return }
    let now = SystemClock().now()
    requests = requests.filter { $0.value > now }
    let silence = now - lastSign
    let isLost = silence > (heartbeat * 5 / 2).clampedNanoseconds || requests.isEmpty
    guard connection.isConnected, isLost else { return startWatch() }
    lastSign = now
    checkConsumer()
    begin()
    if watch?.isPending != true { startWatch() }
  }

  /// Ends with the server's error when the consumer doesn't exist any more.
  private func checkConsumer() {
    if isChecking { return }
    isChecking = true
    connection.perform { [jetStream, stream, consumer] in
      try await jetStream.consumerInfo(stream, consumer)
    } then: { [weak self] result in
      self?.isChecking = false
      guard case .failure(let error) = result, let code = error.jetStreamCode,
        code == JetStreamProblem.missingConsumer || code == JetStreamProblem.missingStream
      else { return }
      self?.end(with: error)
    }
  }

  // MARK: Messages

  private func receive(_ message: NATSMessage) {
    lastSign = SystemClock().now()
    guard let message = JetStreamMessage(message, connection) else {
      if let status = message.status { receive(status, message.subject) }
      return
    }
    outstanding = max(0, outstanding - 1)
    demand = max(0, demand - 1)
    deliver(message)
    if demand > outstanding { schedulePull() }
  }

  /// Handles a message of the server about a request, whose number the subject ends with.
  private func receive(_ status: NATSMessage.Status, _ subject: ByteString) {
    let token = subject.bytes.dropFirst(inbox.count + 1)
    let number = UInt64(String(decoding: token, as: UTF8.self)) ?? 0
    // A heartbeat ends nothing; and a request that was given up doesn't count any more.
    if status.code == 100 { return }
    let isKnown = requests.removeValue(forKey: number) != nil
    if isKnown {
      outstanding = requests.isEmpty ? 0 : max(0, outstanding - (status.pending ?? 0))
    }
    let (code, text) = (status.code, status.text)
    if code == 404 || code == 408 { return schedulePull() }
    if code == 400 || Self.finalTexts.contains(where: { text.contains($0) }) {
      return end(
        with: connection.failure(
          "consumer '\(consumer)' of stream '\(stream)': \(text) (\(code))"))
    }
    // No consumer takes requests: it doesn't exist any more, or has no leader at the moment.
    if code == 503 || text.contains("Consumer Deleted") { checkConsumer() }
    pullLater()
  }

  /// Parts of the texts of refusals that another request would get again.
  private static let finalTexts: [ByteString] = [
    "Consumer is push based", "Exceeded MaxRequest", "Bad Request",
  ]
}
