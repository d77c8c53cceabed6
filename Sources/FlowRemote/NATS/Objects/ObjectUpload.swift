internal import FlowEngine

/// Sends the parts of an object: reads them on helper threads, and has a few unacknowledged ones on their way.
///
/// The helper threads publish, too, because a publication waits while the network is slower than the source.
final class ObjectUpload {
  struct Sent: Sendable {
    var size = 0
    var chunks = 0
    var digest: ByteString = ""
  }

  /// The work of one helper thread.
  private struct Step: Sendable {
    /// The size of each part that was sent.
    var parts: [Int] = []
    /// Set at the end of the source.
    var digest: ByteString?
  }

  let nuid = NATSUniqueName.make()
  private let store: ObjectStore
  private let source: ObjectSource
  private let digest: ObjectDigest
  private let publish: @Sendable (ByteString, ByteString, ByteString) -> ByteString?
  private var sent = Sent()
  private var unacknowledged = 0
  private var isSending = false
  /// Requested when no further part is to be sent.
  private let stopped = Cancellation()
  /// The failure of a part while others were being sent.
  private var failure: FlowError?
  private var hasEnded = false
  private var then: ((Result<Sent, FlowError>) -> Void)?

  /// The limit for the acknowledgement of a part.
  private static let patience = Duration.seconds(30)

  init(_ store: ObjectStore, _ source: ObjectSource) throws(FlowError) {
    self.store = store
    self.source = source
    digest = try ObjectDigest()
    publish = try store.connection.publisher()
  }

  /// Sends all parts. The upload is retained by its work.
  func start(then: @escaping (Result<Sent, FlowError>) -> Void) {
    self.then = then
    sendMore()
  }

  /// Ends the upload with an error, unless it has ended.
  func stop(_ error: FlowError) {
    stopped.request()
    finish(.failure(error))
  }

  /// Ends the upload, once no thread sends: what it left is removed then.
  private func finish(_ result: Result<Sent, FlowError>) {
    if isSending {
      failure = failure ?? result.failure
      return
    }
    let then = then
    self.then = nil
    then?(result)
  }

  private func sendMore() {
    guard then != nil, !isSending, !hasEnded else { return }
    // In groups: handing work to a thread takes time, too.
    let room = ObjectStore.window - unacknowledged
    guard room >= ObjectStore.window / 4 else { return }
    var requests: [NATSPreparedRequest] = []
    let subject = store.chunkSubject(nuid)
    do throws(FlowError) {
      for _ in 0..<room {
        requests.append(
          try store.connection.prepareRequest(subject, timeout: Self.patience) { [self] result in
            receive(result, subject)
          })
      }
    } catch {
      for request in requests { store.connection.cancel(request) }
      return finish(.failure(error))
    }
    isSending = true
    unacknowledged += room
    let prepared = requests
    store.connection.loop.offload { [source, digest, publish, stopped] in
      Result { () throws(FlowError) in
        try Self.step(source, digest, subject, prepared.map(\.reply), stopped, publish)
      }
    } then: { [self] result in
      isSending = false
      let used = (try? result.get())?.parts.count ?? 0
      for request in prepared.dropFirst(used) { store.connection.cancel(request) }
      unacknowledged -= prepared.count - used
      take(result)
    }
  }

  /// Sends as many parts as there are subjects for their acknowledgements.
  private static func step(
    _ source: ObjectSource, _ digest: ObjectDigest, _ subject: ByteString, _ replies: [ByteString],
    _ stopped: Cancellation, _ publish: (ByteString, ByteString, ByteString) -> ByteString?
  ) throws(FlowError) -> Step {
    var step = Step()
    for reply in replies where !stopped.isRequested {
      let part = try source.next(ObjectStore.chunkSize)
      if part.isEmpty {
        step.digest = try digest.end()
        break
      }
      try digest.add(part)
      if let problem = publish(subject, part, reply) {
        throw FlowError(.error, "can't send a part of an object: \(problem)")
      }
      step.parts.append(part.count)
    }
    return step
  }

  private func take(_ result: Result<Step, FlowError>) {
    if let failure { return finish(.failure(failure)) }
    switch result {
    case .failure(let error): finish(.failure(error))
    case .success(let step):
      for size in step.parts { sent.size += size }
      sent.chunks += step.parts.count
      if let digest = step.digest {
        sent.digest = digest
        hasEnded = true
      }
      proceed()
    }
  }

  private func receive(_ result: Result<NATSMessage, FlowError>, _ subject: ByteString) {
    unacknowledged -= 1
    switch store.jetStream.sequence(of: result, subject) {
    case .success: proceed()
    case .failure(let error): finish(.failure(error))
    }
  }

  private func proceed() {
    if hasEnded, unacknowledged == 0 { return finish(.success(sent)) }
    sendMore()
  }
}
