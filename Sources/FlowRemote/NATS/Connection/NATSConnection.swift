internal import CNats
package import FlowEngine

/// A connection to the servers of one cluster, which connects again by itself when it is lost.
///
/// It belongs to the thread of its loop, and stays open until `close` or the end of the loop. An open
/// connection doesn't keep the loop from ending; a pending request does. Nothing here waits for a server,
/// except a publication while the server doesn't read and the buffers of the system are full: 2 s at most.
package final class NATSConnection: LoopExtension {
  /// Holds its extensions until it is shut down.
  package unowned let loop: FlowEventLoop
  let settings: NATSSettings
  let handle: NATSHandle
  private let receiver: NATSReceiver
  private var subscriptions: [UInt32: NATSSubscription] = [:]
  private var lastSubscription: UInt32 = 0
  /// Events that have come to the loop's thread, and the place of the first that hasn't been handled.
  private var events: [NATSReceiver.Event] = []
  private var nextEvent = 0
  private var isHandling = false
  /// Further code that wants to know of a new connection, by numbers.
  private var reconnectHandlers: [UInt32: () -> Void] = [:]
  private var lastHandler: UInt32 = 0
  /// The start of the subjects of all replies to this connection, and the requests that wait for them.
  let inbox = newInbox()
  var requests: [UInt64: NATSPendingRequest] = [:]
  var lastRequest: UInt64 = 0

  /// Whether `close` was called, or the loop has ended.
  package private(set) var isClosed = false
  /// Whether the connection isn't interrupted, as far as is known.
  package private(set) var isConnected = true
  /// How many connections there have been.
  package private(set) var number = 1
  /// When the server last showed by a message that it is there, in nanoseconds of the system's clock.
  package private(set) var lastReceived = SystemClock().now()
  /// Called when the connection is lost.
  package var onDisconnect: (() -> Void)?
  /// Called when there is a connection again. All subscriptions are in effect then.
  package var onReconnect: (() -> Void)?

  /// How many events are handled in one turn of the loop.
  private static let eventsPerTurn = 256

  /// The work that sends the last messages; nil before `close`.
  private var lastWork: ExternalWork?
  /// Whether the connection is closed and the server has all that was published, or hasn't taken it for 1 s.
  package var hasEnded: Bool { isClosed && lastWork?.isOver != false }

  private init(
    _ handle: NATSHandle, _ receiver: NATSReceiver, _ settings: NATSSettings, _ loop: FlowEventLoop
  ) {
    self.handle = handle
    self.receiver = receiver
    self.settings = settings
    self.loop = loop
  }

  deinit { handle.close([], nil) }

  /// Connects on a helper thread. Until then the loop isn't idle.
  package static func connect(
    _ settings: NATSSettings, on loop: FlowEventLoop
  ) async throws(FlowError) -> NATSConnection {
    let receiver = NATSReceiver.make(for: loop.mailbox)
    let handle = try await loop.onHelperThread {
      do {
        // A server that doesn't respond takes all of the time.
        return try HelperThreads.shared.standAside { try NATSHandle.connect(settings, receiver) }
      } catch {
        receiver.close()
        throw error
      }
    }
    let made = NATSConnection(handle, receiver, settings, loop)
    receiver.connection = made
    loop.extensions[ObjectIdentifier(made)] = made
    do throws(FlowError) {
      try made.subscribe("\(made.inbox).*") { [unowned made] in made.handleReply($0) }
    } catch {
      made.close()
      throw error
    }
    // Events that have come meanwhile.
    made.handleEvents()
    return made
  }

  // MARK: State

  /// The most bytes of a message, its headers included.
  package var maxPayload: Int {
    isClosed ? 0 : Int(exactly: nats.natsConnection_GetMaxPayload(handle.raw)) ?? 0
  }

  /// The URL of the server of the connection; nil while there is none.
  package var serverURL: String? {
    guard !isClosed, isConnected else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 512) { buffer in
      guard let start = buffer.baseAddress,
        nats.natsConnection_GetConnectedUrl(handle.raw, start, buffer.count) == NATS_OK,
        start[0] != 0
      else { return nil }
      return String(cString: start)
    }
  }

  /// The server for error messages.
  var place: ByteString { serverURL.map { ByteString($0) } ?? settings.place }

  package func failure(_ text: ByteString) -> FlowError { FlowError(.error, "\(place): \(text)") }

  private func failure(_ failure: NATSFailure) -> FlowError {
    if failure.is(NATS_INSUFFICIENT_BUFFER) {
      return self.failure("the connection is lost, and the buffer for messages to send is full")
    }
    return self.failure(failure.text)
  }

  private func checkOpen() throws(FlowError) {
    // The loop may have ended then.
    if isClosed { throw closed }
    loop.checkThread()
  }

  private var closed: FlowError { .usage("the connection to \(settings.place) is closed") }

  // MARK: Messages

  /// Publishes a message. While the connection is lost, up to 8 MiB of messages wait for the next one.
  package func publish(
    _ subject: ByteString, _ data: ByteString, reply: ByteString? = nil, headers: [NATSHeader] = []
  ) throws(FlowError) {
    try checkOpen()
    guard subject.isNATSSubject else { throw .usage("'\(subject)' isn't a subject") }
    if let reply, !reply.isNATSSubject { throw .usage("'\(reply)' isn't a subject") }
    if let wrong = headers.first(where: { !$0.isValid }) {
      throw .usage("'\(wrong.name)' can't be a header with this value")
    }
    guard let problem = handle.publish(subject, data, reply: reply, headers: headers) else {
      return
    }
    if problem.is(NATS_MAX_PAYLOAD) {
      throw failure("a message of \(data.count) bytes is too large: the server takes \(maxPayload)")
    }
    throw failure(problem)
  }

  /// Subscribes to a subject, which may have wildcards.
  ///
  /// The handler is called on the loop's thread, as long as the subscription and the connection are open.
  @discardableResult
  package func subscribe(
    _ subject: ByteString, handler: @escaping (NATSMessage) -> Void
  ) throws(FlowError) -> NATSSubscription {
    try checkOpen()
    guard subject.isNATSSubject else { throw .usage("'\(subject)' isn't a subject") }
    lastSubscription &+= 1
    let number = lastSubscription
    let raw: NATSRawSubscription
    do throws(NATSFailure) {
      raw = try handle.subscribe(subject, receiver.context(of: number))
    } catch {
      throw failure(error)
    }
    let made = NATSSubscription(number: number, raw: raw, handler: handler, connection: self)
    subscriptions[number] = made
    return made
  }

  fileprivate func end(_ subscription: NATSSubscription) {
    guard subscriptions.removeValue(forKey: subscription.number) != nil else { return }
    subscription.raw.end()
  }

  /// Has `body` called after each new connection, after `onReconnect`; returns a function that ends that.
  package func afterReconnects(_ body: @escaping () -> Void) -> () -> Void {
    lastHandler &+= 1
    let number = lastHandler
    reconnectHandlers[number] = body
    return { [weak self] in self?.reconnectHandlers[number] = nil }
  }

  // MARK: Waits

  /// Waits until the server has all that was published; 10 s at most.
  package func flush() async throws(FlowError) {
    try checkOpen()
    let failure = try await loop.onHelperThread { [handle] in
      HelperThreads.shared.standAside {
        let status = handle.flush(10_000)
        return status == NATS_OK ? nil : NATSFailure(status)
      }
    }
    try checkOpen()
    if let failure { throw self.failure(failure) }
  }

  // MARK: Events

  /// Handles events that the library's threads have passed on. A long row of them leaves turns to other jobs.
  func handleEvents() {
    if isHandling || isClosed { return }
    isHandling = true
    defer { isHandling = false }
    var left = Self.eventsPerTurn
    while left > 0, !isClosed {
      if nextEvent == events.count {
        nextEvent = 0
        events = receiver.takeAll()
        if events.isEmpty { return }
      }
      let event = events[nextEvent]
      nextEvent += 1
      left -= 1
      handle(event)
    }
    if !isClosed { loop.enqueue { [weak self] in self?.handleEvents() } }
  }

  private func handle(_ event: NATSReceiver.Event) {
    switch event {
    case .message(let number, let message):
      lastReceived = SystemClock().now()
      subscriptions[number]?.handler(message)
    case .disconnected:
      guard isConnected else { return }
      isConnected = false
      onDisconnect?()
    case .reconnected:
      isConnected = true
      number += 1
      lastReceived = SystemClock().now()
      onReconnect?()
      for (_, handler) in reconnectHandlers.sorted(by: { $0.key < $1.key }) where !isClosed {
        handler()
      }
    }
  }

  // MARK: The end

  /// Closes the connection. Messages that have been published are still sent, for which the loop waits up to 1 s;
  /// no handler is called any more, and pending requests fail.
  package func close() {
    if isClosed { return }
    loop.checkThread()
    let external = loop.mailbox.begin()
    lastWork = external
    loop.scheduleAside(after: .seconds(1)) { external.end() }
    end(external)
    loop.extensions[ObjectIdentifier(self)] = nil
  }

  package func loopIsShutDown() {
    if !isClosed { end(nil) }
  }

  private func end(_ external: ExternalWork?) {
    isClosed = true
    isConnected = false
    let ended = subscriptions.values.map(\.raw)
    subscriptions = [:]
    events = []
    nextEvent = 0
    let waiting = requests.values
    requests = [:]
    for request in waiting { request.end(.failure(closed)) }
    reconnectHandlers = [:]
    (onDisconnect, onReconnect) = (nil, nil)
    handle.close(ended, external)
  }
}

/// A subscription of a connection; it lasts until `unsubscribe` or the end of the connection.
package struct NATSSubscription {
  fileprivate let number: UInt32
  fileprivate let raw: NATSRawSubscription
  fileprivate let handler: (NATSMessage) -> Void
  fileprivate weak var connection: NATSConnection?

  /// Ends it at once: the handler isn't called any more.
  package func unsubscribe() { connection?.end(self) }
}
