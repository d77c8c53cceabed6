internal import FlowEngine

/// Receives the parts of an object by a consumer of its own, a few at a time, and writes them on helper threads.
///
/// When a part is lost, because the connection was, it continues with another consumer after the last one.
final class ObjectDownload {
  private let store: ObjectStore
  private let info: ObjectInfo
  private var sink: ObjectSink?
  private var puller: JetStreamPuller?
  private var consumer: ByteString?
  /// Parts that have come and aren't written.
  private var parts: [ByteString] = []
  private var isWriting = false
  private var received = 0
  private var receivedBytes = 0
  /// The number in the stream of the last part, and how many the consumer has delivered.
  private var lastSequence: UInt64 = 0
  private var delivered: UInt64 = 0
  /// How many consumers were made since a part came.
  private var attempts = 0
  private var silence: LoopTimer?
  /// Keeps the loop from being idle.
  private var external: ExternalWork?
  /// Lets the connection release the download, which it retains while parts come.
  private var release: (() -> Void)?
  private var then: ((Result<ObjectSink, FlowError>) -> Void)?

  private static let mostAttempts = 5
  /// After how long without a part the download fails.
  private static let patience = Duration.seconds(60)
  /// How often it looks whether the object is still there, while no parts come.
  private static let interval = Duration.seconds(2)

  init(_ store: ObjectStore, _ info: ObjectInfo) {
    self.store = store
    self.info = info
  }

  /// Receives all parts, in memory or for a file.
  func start(path: ByteString?, then: @escaping (Result<ObjectSink, FlowError>) -> Void) {
    self.then = then
    external = store.connection.loop.mailbox.begin()
    release = store.connection.afterReconnects { [self] in
      if silence != nil { startSilence() }
    }
    store.connection.loop.offload {
      Result { () throws(FlowError) in try ObjectSink(path: path) }
    } then: { [self] result in
      switch result {
      case .success(let sink):
        self.sink = sink
        if info.chunks == 0 { write() } else { makeConsumer() }
      case .failure(let error): finish(error)
      }
    }
  }

  private func finish(_ error: FlowError?) {
    guard let then else { return }
    self.then = nil
    endConsumer()
    silence?.cancel()
    let sink = sink
    self.sink = nil
    if let error {
      then(.failure(error))
    } else if let sink {
      then(.success(sink))
    }
    external?.endOnLoop()
    release?()
    release = nil
  }

  // MARK: Consumers

  private func makeConsumer() {
    attempts += 1
    var settings = ConsumerSettings()
    settings.filter = store.chunkSubject(info.nuid)
    settings.isAcknowledged = false
    settings.isInMemory = true
    settings.inactiveThreshold = Self.patience
    if lastSequence > 0 { settings.start = .sequence(lastSequence + 1) }
    store.jetStream.ensureConsumer(store.stream, settings) { [self] result in
      guard then != nil else { return }
      switch result {
      case .success(let consumer): pull(consumer.name)
      case .failure(let error): fail(error)
      }
    }
  }

  private func pull(_ name: ByteString) {
    consumer = name
    delivered = 0
    do throws(FlowError) {
      puller = try JetStreamPuller(store.jetStream, stream: store.stream, consumer: name) {
        [weak self] in
        self?.receive($0)
      } fail: { [weak self] in
        self?.continueAgain($0)
      }
    } catch {
      return fail(error)
    }
    startSilence()
    puller?.demand = min(ObjectStore.window, info.chunks - received)
  }

  private func endConsumer() {
    puller?.stop()
    puller = nil
    guard let consumer else { return }
    self.consumer = nil
    if store.connection.isClosed { return }
    store.jetStream.deleteConsumer(store.stream, consumer) { _ in }
  }

  private func startSilence() {
    silence?.cancel()
    waitForParts(Self.patience)
  }

  private func waitForParts(_ left: Duration) {
    silence = store.connection.loop.scheduleAside(after: Self.interval) { [weak self] in
      guard let self else { return }
      if left <= Self.interval {
        return fail(store.connection.failure("no part of object '\(info.name)' comes"))
      }
      checkPresence()
      waitForParts(left - Self.interval)
    }
  }

  /// Fails if somebody has deleted or replaced the object meanwhile.
  private func checkPresence() {
    store.info(info.name) { [weak self] result in
      guard let self, then != nil, case .success(let now) = result, now?.nuid != info.nuid else {
        return
      }
      fail(
        store.connection.failure("object '\(info.name)' was deleted while it was received"))
    }
  }

  private func fail(_ error: FlowError) { finish(error) }

  /// Makes another consumer for what is left.
  private func continueAgain(_ error: FlowError) {
    guard then != nil else { return }
    endConsumer()
    if attempts >= Self.mostAttempts { fail(error) } else { makeConsumer() }
  }

  // MARK: Parts

  private func receive(_ message: JetStreamMessage) {
    guard then != nil else { return }
    delivered += 1
    guard message.consumerSequence == delivered else {
      return continueAgain(store.connection.failure("a part of object '\(info.name)' was lost"))
    }
    attempts = 0
    lastSequence = message.streamSequence
    received += 1
    receivedBytes += message.data.count
    // More than described would fill the memory or the disk.
    guard receivedBytes <= info.size, received <= info.chunks else {
      return fail(
        store.connection.failure("object '\(info.name)' has more than its description says"))
    }
    parts.append(message.data)
    // All of the demanded ones are on their way again when half of them have come.
    if received % (ObjectStore.window / 2) == 0 { startSilence() }
    write()
  }

  private func write() {
    guard !isWriting, let sink, then != nil else { return }
    isWriting = true
    let written = parts
    parts = []
    let isEnd = received == info.chunks
    store.connection.loop.offload { [info] in
      Result { () throws(FlowError) in
        try sink.add(written)
        if isEnd { try sink.end(info) }
      }
    } then: { [self] result in
      isWriting = false
      if let error = result.failure { return finish(error) }
      if isEnd { return finish(nil) }
      if let puller {
        let left = info.chunks - received
        puller.demand = min(puller.demand + written.count, ObjectStore.window, left)
      }
      if !parts.isEmpty { write() }
    }
  }
}
