internal import CNats
internal import FlowEngine
internal import FlowSystem

/// The functions of the library, which a receiver or a handle has loaded.
var nats: cnats_library { cnats_functions().pointee }

/// Calls the library where it may start threads: these take no signals.
func withoutSignals<Value>(_ body: () -> Value) -> Value {
  let before = cnats_block_signals()
  defer { cnats_restore_signals(before) }
  return body()
}

/// Calls the library where it may write to a connection that the server has closed: SIGPIPE would end the process.
func writing<Value>(_ body: () -> Value) -> Value {
  var before = sigset_t()
  let wasPending = cnats_begin_writing(&before)
  defer { cnats_end_writing(wasPending, before) }
  return body()
}

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
      nats.natsConnection_Destroy(OpaquePointer(bitPattern: raw))
    }
  }

  /// Connects; blocks.
  static func connect(
    _ settings: NATSSettings, _ receiver: NATSReceiver
  ) throws(FlowError) -> NATSHandle {
    if let problem = cnats_load() { throw FlowError(.error, ByteString(cText: problem)) }
    var options: OpaquePointer?
    guard nats.natsOptions_Create(&options) == NATS_OK, let options else {
      throw FlowError(.error, "no memory for a connection to \(settings.place)")
    }
    defer { nats.natsOptions_Destroy(options) }
    try settings.apply(to: options, receiver.context(of: 0))
    var raw: OpaquePointer?
    let status = withoutSignals { nats.natsConnection_Connect(&raw, options) }
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
        // The library would close the socket at once: what the server hasn't read may be lost then.
        if nats.natsConnection_Status(raw) == NATS_CONN_STATUS_CONNECTED { _ = flush(900) }
        nats.natsConnection_Close(raw)
        for subscription in subscriptions { subscription.end() }
      }
      external?.end()
    }
  }

  /// Waits for so many milliseconds until the server has all that was published.
  func flush(_ limit: Int64) -> natsStatus {
    writing { nats.natsConnection_FlushTimeout(raw, limit) }
  }

  /// Publishes a message whose parts have been checked. Returns nil, or the problem. May block for the write deadline when
  /// the server doesn't read.
  func publish(
    _ subject: ByteString, _ data: ByteString, reply: ByteString?, headers: [NATSHeader]
  ) -> NATSFailure? {
    let status: natsStatus?? = subject.withCString { subject in
      guard let reply else { return publish(subject, data, nil, headers) }
      return reply.withCString { publish(subject, data, $0, headers) }
    }
    guard let status = status ?? nil else { return NATSFailure(NATS_INVALID_SUBJECT) }
    return status == NATS_OK ? nil : NATSFailure(status)
  }

  private func publish(
    _ subject: UnsafePointer<CChar>, _ data: ByteString, _ reply: UnsafePointer<CChar>?,
    _ headers: [NATSHeader]
  ) -> natsStatus {
    guard let size = Int32(exactly: data.count) else { return NATS_MAX_PAYLOAD }
    return data.withUnsafeBytes { data in
      writing {
        guard !headers.isEmpty else {
          return reply == nil
            ? nats.natsConnection_Publish(raw, subject, data.baseAddress, size)
            : nats.natsConnection_PublishRequest(raw, subject, reply, data.baseAddress, size)
        }
        var message: OpaquePointer?
        let bytes = UnsafeRawPointer(data.baseAddress)?.assumingMemoryBound(to: CChar.self)
        var status = nats.natsMsg_Create(&message, subject, reply, bytes, size)
        guard status == NATS_OK, let message else { return status }
        defer { NATSReceiver.discard(message) }
        for header in headers where status == NATS_OK {
          let added = header.name.withCString { name in
            header.value.withCString { nats.natsMsgHeader_Add(message, name, $0) }
          }
          status = (added ?? nil) ?? NATS_INVALID_ARG
        }
        return status == NATS_OK ? nats.natsConnection_PublishMsg(raw, message) : status
      }
    }
  }

  /// Subscribes to a subject.
  func subscribe(
    _ subject: ByteString, _ context: UnsafeMutableRawPointer?
  ) throws(NATSFailure) -> NATSRawSubscription {
    var made: OpaquePointer?
    // The first subscription starts the thread that delivers.
    let status = subject.withCString { subject in
      writing {
        withoutSignals {
          nats.natsConnection_Subscribe(&made, raw, subject, NATSReceiver.receive, context)
        }
      }
    }
    guard status == NATS_OK, let made else { throw NATSFailure(status ?? NATS_INVALID_SUBJECT) }
    // No limit of the library: messages only pass through.
    _ = nats.natsSubscription_SetPendingLimits(made, -1, -1)
    return NATSRawSubscription(raw: made)
  }
}

/// A subscription of the library.
// The library locks its subscriptions. It ends once.
struct NATSRawSubscription: @unchecked Sendable {
  let raw: OpaquePointer

  func end() {
    writing {
      _ = nats.natsSubscription_Unsubscribe(raw)
      nats.natsSubscription_Destroy(raw)
    }
  }
}

extension ByteString {
  /// The library's text for the last failure of this thread, without the place in its source that it begins with.
  fileprivate static var lastNATSProblem: ByteString {
    let text = ByteString(cText: nats.nats_GetLastError(nil))
    guard text.bytes.first == UInt8(ascii: "("), let end = text.bytes.place(of: "): ") else {
      return text
    }
    return ByteString(text.bytes[end.upperBound...])
  }
}

/// A failed call of the library.
struct NATSFailure: Error {
  /// The library's number of it.
  let status: UInt32
  let text: ByteString

  /// Takes the library's text for the last failure of this thread.
  init(_ status: natsStatus) {
    self.status = status.rawValue
    let name = ByteString(cText: nats.natsStatus_GetText(status))
    let last = ByteString.lastNATSProblem
    text = last.isEmpty || last == name ? name : "\(last) (\(name))"
  }

  func `is`(_ status: natsStatus) -> Bool { self.status == status.rawValue }
}

extension NATSSettings {
  /// Sets the options of the library: a connection reconnects for ever, and notices a dead server within seconds. Times are
  /// in milliseconds.
  fileprivate func apply(
    to options: OpaquePointer, _ context: UnsafeMutableRawPointer?
  ) throws(FlowError) {
    let urls = servers.map { strdup($0.url.description) }
    defer { for url in urls { free(url) } }
    var pointers = urls.map { UnsafePointer($0) }
    func with(_ text: ByteString?, _ set: (UnsafePointer<CChar>) -> natsStatus) -> natsStatus {
      text.map { $0.withCString(set) ?? NATS_INVALID_ARG } ?? NATS_OK
    }
    let statuses = [
      nats.natsOptions_SetServers(options, &pointers, Int32(pointers.count)),
      nats.natsOptions_SetName(options, "flowlua" as String),
      // The limit for one server.
      nats.natsOptions_SetTimeout(options, 5000), nats.natsOptions_SetMaxReconnect(options, -1),
      nats.natsOptions_SetReconnectWait(options, 250),
      nats.natsOptions_SetReconnectJitter(options, 100, 100),
      nats.natsOptions_SetPingInterval(options, 2000),
      nats.natsOptions_SetMaxPingsOut(options, 2), nats.natsOptions_SetWriteDeadline(options, 2000),
      // Each of the buffers for reading and writing.
      nats.natsOptions_SetIOBufSize(options, 1 << 18),
      // So many messages wait for a subscription's thread, which only passes them on.
      nats.natsOptions_SetMaxPendingMsgs(options, 1 << 20),
      // Each message by a call of the system of its own, not up to a millisecond later.
      nats.natsOptions_SetSendAsap(options, true),
      // One thread for all subscriptions: messages keep their order among them.
      nats.natsOptions_UseGlobalMessageDelivery(options, true),
      // A server that was checked to be on this computer may announce others of its cluster that aren't.
      nats.natsOptions_SetIgnoreDiscoveredServers(options, !isEncrypted),
      isEncrypted ? nats.natsOptions_SetSecure(options, true) : NATS_OK,
      // The library's own handler prints failures that belong to no call.
      nats.natsOptions_SetErrorHandler(options, { _, _, _, _ in }, nil),
      nats.natsOptions_SetClosedCB(
        options, { NATSReceiver.add(.disconnected, $1) }, context),
      nats.natsOptions_SetDisconnectedCB(
        options, { NATSReceiver.add(.disconnected, $1) }, context),
      nats.natsOptions_SetReconnectedCB(
        options, { NATSReceiver.add(.reconnected, $1) }, context),
      with(token) { nats.natsOptions_SetToken(options, $0) },
      with(user) { user in
        with(password ?? "") { nats.natsOptions_SetUserInfo(options, user, $0) }
      },
    ]
    if let status = statuses.first(where: { $0 != NATS_OK }) {
      throw FlowError(.error, "can't connect to \(place): \(NATSFailure(status).text)")
    }
  }

  /// The error for a connection that wasn't made.
  fileprivate func failure(_ status: natsStatus, _ text: ByteString) -> FlowError {
    let name = ByteString(cText: nats.natsStatus_GetText(status))
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
