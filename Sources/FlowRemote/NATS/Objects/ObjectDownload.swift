internal import FlowEngine

/// Receives the parts of an object, a few at a time, and writes them on helper threads.
///
/// When a part is lost, because the connection was, it continues after the last one.
final class ObjectDownload {
  private let store: ObjectStore
  private let info: ObjectInfo
  private var reading: StreamReading?
  private var received = 0
  private var receivedBytes = 0
  /// The number in the stream of the last part.
  private var lastSequence: UInt64 = 0
  /// How many consumers were made since a part came.
  private var attempts = 0
  /// How long no part has come.
  private var silence = Duration.zero

  private static let mostAttempts = 5
  /// After how long without a part the download fails.
  private static let patience = Duration.seconds(60)
  /// How often it looks whether the object is still there, while no parts come.
  private static let interval = Duration.seconds(2)

  init(_ store: ObjectStore, _ info: ObjectInfo) {
    self.store = store
    self.info = info
  }

  private func failure(_ text: ByteString) -> FlowError { store.connection.failure(text) }

  /// Receives all parts, in memory or for a file.
  func receive(path: ByteString?) async throws(FlowError) -> ObjectSink {
    let loop = store.connection.loop
    // No part may come for a while, during which the loop isn't idle.
    let external = loop.mailbox.begin()
    let endReconnects = store.connection.afterReconnects { [self] in silence = .zero }
    defer {
      reading?.end()
      endReconnects()
      external.endOnLoop()
    }
    let sink = try await loop.onHelperThread { try ObjectSink(path: path) }
    while true {
      let parts = received < info.chunks ? try await nextParts() : []
      let isEnd = received == info.chunks
      try await loop.onHelperThread { [info] in
        try sink.add(parts)
        if isEnd { try sink.end(info) }
      }
      if isEnd { return sink }
      if let reading {
        reading.demand = min(
          reading.demand + parts.count, ObjectStore.window, info.chunks - received)
      }
    }
  }

  private func nextParts() async throws(FlowError) -> [ByteString] {
    while true {
      let reading = try await openReading()
      do throws(FlowError) {
        let messages = try await reading.next(within: Self.interval)
        if !messages.isEmpty { return try parts(messages) }
      } catch {
        reading.end()
        self.reading = nil
        if attempts >= Self.mostAttempts || store.connection.isClosed { throw error }
        continue
      }
      silence += Self.interval
      if silence >= Self.patience { throw failure("no part of object '\(info.name)' comes") }
      try await checkPresence()
    }
  }

  private func openReading() async throws(FlowError) -> StreamReading {
    if let reading { return reading }
    attempts += 1
    silence = .zero
    let made = try await StreamReading.begin(
      store.jetStream, store.stream, store.chunkSubject(info.nuid),
      lastSequence > 0 ? .sequence(lastSequence + 1) : .all,
      loss: failure("a part of object '\(info.name)' was lost"))
    made.demand = min(ObjectStore.window, info.chunks - received)
    reading = made
    return made
  }

  /// Fails if somebody has deleted or replaced the object meanwhile.
  private func checkPresence() async throws(FlowError) {
    let now: ObjectInfo?
    do throws(FlowError) { now = try await store.info(info.name) } catch { return }
    if now?.nuid != info.nuid {
      throw failure("object '\(info.name)' was deleted while it was received")
    }
  }

  private func parts(_ messages: [JetStreamMessage]) throws(FlowError) -> [ByteString] {
    attempts = 0
    silence = .zero
    lastSequence = messages.last?.streamSequence ?? lastSequence
    received += messages.count
    receivedBytes += messages.reduce(0) { $0 + $1.data.count }
    // More than described would fill the memory or the disk.
    guard receivedBytes <= info.size, received <= info.chunks else {
      throw failure("object '\(info.name)' has more than its description says")
    }
    return messages.map(\.data)
  }
}
