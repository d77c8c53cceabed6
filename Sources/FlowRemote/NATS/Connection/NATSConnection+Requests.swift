package import FlowEngine

/// A request that waits for its reply.
struct NATSPendingRequest {
  let subject: ByteString
  let timer: LoopTimer
  /// Keeps the loop from being idle, even where its clock is a virtual one.
  let external: ExternalWork
  let then: (Result<NATSMessage, FlowError>) -> Void

  func end(_ result: Result<NATSMessage, FlowError>?) {
    timer.cancel()
    external.endOnLoop()
    if let result { then(result) }
  }
}

/// A request that has a subject for its reply, and is sent later.
struct NATSPreparedRequest: Sendable {
  fileprivate let number: UInt64
  let reply: ByteString
}

extension NATSConnection {
  /// A subject for replies that nobody else uses, without wildcards.
  package static func newInbox() -> ByteString { "_INBOX.\(ByteString.unique)" }

  /// Runs code that makes requests, at once until its first wait. `then` gets its result, unless the connection is
  /// closed by then; the waits of the code end with an error in that case.
  package func perform<Value>(
    _ body: @escaping () async throws -> Value,
    then: @escaping (Result<Value, FlowError>) -> Void = { _ in }
  ) {
    if isClosed { return }
    loop.perform(body) { [self] in if !isClosed { then($0) } }
  }

  /// Waits until there is a connection.
  package func connected() async throws(FlowError) {
    if isConnected { return }
    if isClosed { throw .cancelled() }
    var end: (() -> Void)?
    let isBack: Void? = await loop.value { then in end = afterReconnects { then(()) } }
    end?()
    if isBack == nil { throw .cancelled() }
  }

  /// Publishes a message and waits for the first reply. It fails at once when nobody handles the subject, and with kind
  /// `timeout` when there is no reply in time.
  package func request(
    _ subject: ByteString, _ data: ByteString, headers: [NATSHeader] = [],
    timeout: Duration = .seconds(5)
  ) async throws(FlowError) -> NATSMessage {
    let result: Result<NATSMessage, FlowError>? = await loop.value { then in
      let prepared = prepareRequest(subject, timeout: timeout, then: then)
      do throws(FlowError) {
        try publish(subject, data, reply: prepared.reply, headers: headers)
      } catch {
        cancel(prepared)
        then(.failure(error))
      }
    }
    guard let result else { throw .cancelled() }
    return try result.get()
  }

  /// Prepares a request that a helper thread sends, and begins to wait for the reply.
  func prepareRequest(
    _ subject: ByteString, timeout: Duration,
    then: @escaping (Result<NATSMessage, FlowError>) -> Void
  ) -> NATSPreparedRequest {
    lastRequest += 1
    let number = lastRequest
    let timer = loop.scheduleOutside(after: timeout) { [weak self] in
      guard let self else { return }
      let limit = FlowValue.text(of: timeout)
      let error = FlowError(
        .timeout, "\(place): no reply to '\(subject)' within \(limit)", limit: timeout)
      requests.removeValue(forKey: number)?.end(.failure(error))
    }
    requests[number] = NATSPendingRequest(
      subject: subject, timer: timer, external: loop.mailbox.begin(), then: then)
    return NATSPreparedRequest(number: number, reply: "\(inbox).\(number)")
  }

  /// Forgets a request; its code isn't called.
  func cancel(_ request: NATSPreparedRequest) {
    requests.removeValue(forKey: request.number)?.end(nil)
  }

  func handleReply(_ message: NATSMessage) {
    let token = message.subject.bytes.dropFirst(inbox.count + 1)
    guard let number = UInt64(String(decoding: token, as: UTF8.self)),
      let request = requests.removeValue(forKey: number)
    else { return }
    guard message.status?.code == 503, message.data.isEmpty else {
      return request.end(.success(message))
    }
    let error = FlowError(
      .error, "\(place): nobody handles '\(request.subject)' (no responders)",
      underlying: NATSNoResponders())
    request.end(.failure(error))
  }
}

/// Has errors of the system as those of ops.
package func asFlowErrors<Value>(
  _ body: () throws(SystemError) -> Value
) throws(FlowError) -> Value {
  do throws(SystemError) { return try body() } catch { throw .from(error) }
}

extension FlowEventLoop {
  /// Performs something again after pauses, until it has a result; nil when the time is over.
  package func retrying<Value>(
    for time: Duration, every pause: Duration = .milliseconds(100),
    _ body: () async throws(FlowError) -> Value?
  ) async throws(FlowError) -> Value? {
    let end = SystemClock().now().later(by: time.clampedNanoseconds)
    while true {
      if let value = try await body() { return value }
      if SystemClock().now() >= end { return nil }
      try await self.pause(pause)
    }
  }
}

/// The reason of a failed request: no program has subscribed to its subject.
package struct NATSNoResponders: Error {}
