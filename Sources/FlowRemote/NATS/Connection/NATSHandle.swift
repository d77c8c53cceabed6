internal import CNats
internal import FlowEngine

/// A connection of the library, which any thread may use until the last reference ends.
// The library locks its connections; `subscriptions` is guarded by a lock.
final class NATSHandle: @unchecked Sendable {
  let raw: OpaquePointer
  private let receiver: NATSReceiver
  private let closing = Locked(false)

  private init(_ raw: OpaquePointer, _ receiver: NATSReceiver) {
    self.raw = raw
    self.receiver = receiver
  }

  deinit {
    receiver.close()
    let raw = UInt(bitPattern: raw)
    // It may wait for the library's threads. A thread of its own: the last reference may end while the helper
    // threads' lock is held, with a piece of work.
    _ = try? SignalFreeThread.start {
      if let raw = OpaquePointer(bitPattern: raw) { cnats_destroy(raw) }
    }
  }

  /// Connects; blocks.
  static func connect(
    _ settings: NATSSettings, _ receiver: NATSReceiver
  ) throws(FlowError) -> NATSHandle {
    if let problem = cnats_load() { throw FlowError(.error, ByteString(cText: problem)) }
    NATSReceiver.setEvents()
    guard let options = cnats_options_make(receiver.context(of: 0), settings.isEncrypted) else {
      throw FlowError(.error, "no memory for a connection to \(settings.place)")
    }
    defer { cnats_options_free(options) }
    try settings.apply(to: options)
    var raw: OpaquePointer?
    let status = cnats_connect(options, &raw)
    guard status == NATS_OK, let raw else {
      throw settings.failure(status, ByteString.lastNATSProblem)
    }
    return NATSHandle(raw, receiver)
  }

  /// Closes the connection on a helper thread, after its subscriptions' end; `external` ends with that.
  func close(_ subscriptions: [NATSRawSubscription], _ external: ExternalWork?) {
    let isFirst = closing.withLock { isClosing in
      defer { isClosing = true }
      return !isClosing
    }
    guard isFirst else { return }
    receiver.close()
    HelperThreads.shared.run { [self] in
      HelperThreads.shared.standAside {
        cnats_close(raw)
        for subscription in subscriptions { subscription.end() }
      }
      external?.end()
    }
  }

  /// Publishes a message whose parts have been checked. Returns nil, or the problem.
  func publish(
    _ subject: ByteString, _ data: ByteString, reply: ByteString?, headers: [NATSHeader]
  ) -> NATSFailure? {
    var block: [UInt8] = []
    for header in headers {
      block += header.name.bytes
      block.append(0)
      block += header.value.bytes
      block.append(0)
    }
    let status: natsStatus?? = subject.withCString { subject in
      data.withUnsafeBytes { data in
        block.withUnsafeBytes { block in
          let headers = block.baseAddress?.assumingMemoryBound(to: CChar.self)
          guard let reply else {
            return cnats_publish(
              raw, subject, nil, data.baseAddress, data.count, headers, block.count)
          }
          return reply.withCString { reply in
            cnats_publish(raw, subject, reply, data.baseAddress, data.count, headers, block.count)
          }
        }
      }
    }
    guard let status = status ?? nil else { return NATSFailure(NATS_INVALID_SUBJECT) }
    return status == NATS_OK ? nil : NATSFailure(status)
  }
}

/// A subscription of the library.
// The library locks its subscriptions. It ends once.
struct NATSRawSubscription: @unchecked Sendable {
  let raw: OpaquePointer

  func end() { cnats_unsubscribe(raw) }
}

extension ByteString {
  /// The library's text for the last failure of this thread, without the place in its source that it begins with.
  fileprivate static var lastNATSProblem: ByteString {
    let text = ByteString(cText: cnats_last_problem())
    guard text.bytes.first == UInt8(ascii: "("), let end = text.bytes.place(of: "): ") else {
      return text
    }
    return ByteString(text.bytes[end.upperBound...])
  }
}

/// A failed call of the library.
struct NATSFailure: Sendable {
  /// The library's number of it.
  let status: UInt32
  let text: ByteString

  /// Takes the library's text for the last failure of this thread.
  init(_ status: natsStatus) {
    self.status = status.rawValue
    let name = ByteString(cText: cnats_status_text(status))
    let last = ByteString.lastNATSProblem
    text = last.isEmpty || last == name ? name : "\(last) (\(name))"
  }

  func `is`(_ status: natsStatus) -> Bool { self.status == status.rawValue }
}

extension NATSSettings {
  /// Sets the options of the library that are texts.
  fileprivate func apply(to options: OpaquePointer) throws(FlowError) {
    func set(
      _ option: cnats_option, _ text: ByteString?, _ name: ByteString, password: ByteString = ""
    ) throws(FlowError) {
      guard let text else { return }
      let status: natsStatus?? = text.withCString { text in
        password.withCString { cnats_set(options, option, text, $0) }
      }
      guard let status = status ?? nil else { throw .usage("\(name) has a NUL byte") }
      if status == NATS_OK { return }
      throw FlowError(.error, "can't use \(name): \(NATSFailure(status).text)")
    }
    try set(CNATS_SERVERS, place, "the servers '\(place)'")
    try set(CNATS_NAME, "flowlua", "the connection's name")
    try set(CNATS_TOKEN, token, "the token")
    try set(CNATS_USER, user, "the user or password", password: password ?? "")
  }

  /// The error for a connection that wasn't made.
  fileprivate func failure(_ status: natsStatus, _ text: ByteString) -> FlowError {
    let name = ByteString(cText: cnats_status_text(status))
    let reason = text.isEmpty ? name : text
    switch status {
    case NATS_NO_SERVER:
      let shown: ByteString = servers.count > 1 ? "none of the servers" : "no server"
      return FlowError(.error, "\(place): \(shown) listens there (\(reason))")
    case NATS_CONNECTION_AUTH_FAILED:
      let refused: ByteString =
        token != nil
        ? "the token"
        : user != nil ? "the user or password" : "a connection without credentials"
      return FlowError(.error, "\(place) refused \(refused): \(reason)")
    case NATS_SSL_ERROR: return FlowError(.error, "\(place): TLS failed: \(reason)")
    case NATS_SECURE_CONNECTION_REQUIRED:
      return FlowError(.error, "\(place): the server demands TLS: use tls:// (\(reason))")
    case NATS_SECURE_CONNECTION_WANTED:
      return FlowError(.error, "\(place): the server has no TLS: use nats:// (\(reason))")
    case NATS_TIMEOUT:
      return FlowError(.error, "\(place): no server responds there (\(reason))")
    default: return FlowError(.error, "\(place): \(reason)")
    }
  }
}
