internal import FlowEngine

/// Sends the parts of an object: reads them on helper threads, and has a few unacknowledged ones on their way.
///
/// The helper threads publish, too, because a publication waits while the network is slower than the source.
final class ObjectUpload {
  struct Sent: Sendable {
    var size = 0
    var chunks = 0
    /// Set at the end of the source.
    var digest: ByteString?
  }

  let nuid = ByteString.unique
  private let store: ObjectStore
  private let source: ObjectSource
  private let digest: FileHash.Digest
  private var sent = Sent()
  private var unacknowledged = 0
  /// Requested when no further part is to be sent.
  private let stopped = Cancellation()
  private var failure: FlowError?
  /// Ends the wait for an acknowledgement.
  private var wake: (() -> Void)?

  /// The limit for the acknowledgement of a part.
  private static let patience = Duration.seconds(30)

  init(_ store: ObjectStore, _ source: ObjectSource) throws(FlowError) {
    self.store = store
    self.source = source
    digest = try asFlowErrors { () throws(SystemError) in try FileHash.Digest(.sha256) }
  }

  /// Ends the upload with an error, unless it has ended: once no thread sends.
  func stop(_ error: FlowError) {
    stopped.request()
    fail(error)
  }

  private func fail(_ error: FlowError) {
    failure = failure ?? error
    wake.take()?()
  }

  /// Sends all parts, and waits until the server has stored them.
  func send() async throws(FlowError) -> Sent {
    while sent.digest == nil || unacknowledged > 0 {
      // In groups: handing work to a thread takes time, too.
      let room = ObjectStore.window - unacknowledged
      if sent.digest == nil, room >= ObjectStore.window / 4 {
        try await sendParts(room)
      } else {
        let end: Void? = await store.connection.loop.value { then in wake = { then(()) } }
        if end == nil { throw .cancelled() }
      }
      if let failure { throw failure }
    }
    return sent
  }

  private func sendParts(_ count: Int) async throws(FlowError) {
    let connection = store.connection
    let subject = store.chunkSubject(nuid)
    var requests: [NATSPreparedRequest] = []
    var used = 0
    defer { for request in requests.dropFirst(used) { connection.cancel(request) } }
    for _ in 0..<count {
      requests.append(
        connection.prepareRequest(subject, timeout: Self.patience) { [self] result in
          unacknowledged -= 1
          do throws(FlowError) {
            try store.jetStream.sequence(of: result.get())
            wake.take()?()
          } catch {
            fail(error)
          }
        })
    }
    unacknowledged += count
    let replies = requests.map(\.reply)
    let step = try await connection.loop.onHelperThread {
      [source, digest, stopped, handle = connection.handle] in
      try Self.step(source, digest, subject, replies, stopped, handle)
    }
    used = step.chunks
    unacknowledged -= count - used
    sent = Sent(
      size: sent.size + step.size, chunks: sent.chunks + used, digest: step.digest)
  }

  /// Sends as many parts as there are subjects for their acknowledgements.
  private static func step(
    _ source: ObjectSource, _ digest: FileHash.Digest, _ subject: ByteString,
    _ replies: [ByteString], _ stopped: Cancellation, _ handle: NATSHandle
  ) throws(SystemError) -> Sent {
    var step = Sent()
    for reply in replies where !stopped.isRequested {
      let part = try source.next(ObjectStore.chunkSize)
      if part.isEmpty {
        step.digest = ObjectStore.digest(ofHash: try digest.end())
        break
      }
      try digest.add(part.bytes)
      if let problem = handle.publish(subject, part, reply: reply, headers: []) {
        throw SystemError("can't send a part of an object: \(problem.text)")
      }
      step.size += part.count
      step.chunks += 1
    }
    return step
  }
}

/// The content of an object that is sent, part by part. Blocks; for helper threads.
// One thread uses it at a time.
final class ObjectSource: @unchecked Sendable {
  private let bytes: ByteString?
  private var offset = 0
  private let reader: FileReader

  init(bytes: ByteString) {
    self.bytes = bytes
    reader = FileReader("")
  }

  init(path: ByteString) {
    bytes = nil
    reader = FileReader(path)
  }

  /// The next part, which is full unless it is the last; empty at the end.
  func next(_ size: Int) throws(SystemError) -> ByteString {
    if let bytes {
      let part = bytes.bytes[offset..<min(offset + size, bytes.count)]
      offset += part.count
      return ByteString(part)
    }
    var part: [UInt8] = []
    while part.count < size {
      let read = try reader.read(size - part.count, Cancellation())
      if read.isEmpty { break }
      if part.isEmpty { part = read.bytes } else { part += read.bytes }
    }
    return ByteString(part)
  }
}
