internal import CNats
internal import FlowEngine
internal import FlowSystem

/// Passes messages and changes of a connection from libnats' threads to its loop.
///
/// The library's callbacks get a number instead of a pointer: they may still come while a connection is
/// closed, and find nothing then.
// The lock guards the state; `connection` belongs to the loop's thread; the others never change.
final class NATSReceiver: @unchecked Sendable {
  enum Event: Sendable {
    /// A message for the subscription with this number.
    case message(UInt32, NATSMessage)
    case disconnected
    case reconnected
    case closed
    case failed(ByteString)
  }

  private struct State {
    var events: [Event] = []
    /// Whether the loop knows that there are events.
    var isPosted = false
    var isClosed = false
  }

  private struct Table {
    var last: UInt32 = 0
    var receivers: [UInt32: NATSReceiver] = [:]
  }

  private static let table = Locked(Table())

  let number: UInt32
  /// Set once. Weak, because what was posted to a loop that is shut down stays in its mailbox, with the connection.
  private weak var mailbox: LoopMailbox?
  private let state = Locked(State())
  /// Set once the connection has been made.
  weak var connection: NATSConnection?

  private init(_ number: UInt32, _ mailbox: LoopMailbox) {
    self.number = number
    self.mailbox = mailbox
  }

  /// Makes one, which the library's callbacks find until it is closed.
  static func make(for mailbox: LoopMailbox) -> NATSReceiver {
    table.withLock { table in
      repeat { table.last &+= 1 } while table.last == 0 || table.receivers[table.last] != nil
      let made = NATSReceiver(table.last, mailbox)
      table.receivers[table.last] = made
      return made
    }
  }

  /// Drops all events, and those to come. Any thread.
  func close() {
    Self.table.withLock { _ = $0.receivers.removeValue(forKey: number) }
    let dropped = state.withLock { state in
      state.isClosed = true
      let events = state.events
      state.events = []
      return events
    }
    // Released without the lock.
    _ = dropped
  }

  /// The context of callbacks for a subscription; 0 for the connection itself.
  func context(of subscription: UInt32) -> UInt64 { UInt64(number) << 32 | UInt64(subscription) }

  /// Removes all events. When there are none, the next one is posted to the loop again.
  func takeAll() -> [Event] {
    state.withLock { state in
      let events = state.events
      state.events = []
      if events.isEmpty { state.isPosted = false }
      return events
    }
  }

  private func add(_ event: Event) {
    let posts = state.withLock { state in
      if state.isClosed { return false }
      state.events.append(event)
      defer { state.isPosted = true }
      return !state.isPosted
    }
    guard posts else { return }
    // Without a connection they wait until there is one.
    let isOpen = mailbox?.postIfOpen { [self] _ in connection?.handleEvents() }
    if isOpen != true { close() }
  }

  private static func find(_ context: UInt64) -> NATSReceiver? {
    table.withLock { $0.receivers[UInt32(truncatingIfNeeded: context >> 32)] }
  }

  /// Sets the library's callbacks.
  static func setEvents() { cnats_set_events(events) }

  // Allocated once, for ever.
  private static nonisolated(unsafe) let events: UnsafePointer<cnats_events> = {
    let events = UnsafeMutablePointer<cnats_events>.allocate(capacity: 1)
    events.initialize(
      to: cnats_events(
        received: { context, message in
          guard let message, let receiver = NATSReceiver.find(context) else { return }
          receiver.add(.message(UInt32(truncatingIfNeeded: context), NATSMessage(copying: message)))
        },
        changed: { context, change in
          guard let receiver = NATSReceiver.find(context) else { return }
          switch change {
          case CNATS_DISCONNECTED: receiver.add(.disconnected)
          case CNATS_RECONNECTED: receiver.add(.reconnected)
          default: receiver.add(.closed)
          }
        },
        failed: { context, status, text in
          guard let receiver = NATSReceiver.find(context) else { return }
          let text = ByteString(cText: text)
          let name = ByteString(cText: cnats_status_text(status))
          receiver.add(.failed(text.isEmpty || text == name ? name : "\(text) (\(name))"))
        }))
    return UnsafePointer(events)
  }()
}

extension NATSMessage {
  /// Copies a message of the library.
  fileprivate init(copying message: OpaquePointer) {
    subject = ByteString(cText: cnats_subject(message))
    reply = cnats_reply(message).map { ByteString(cText: $0) }
    var count = 0
    let data = cnats_data(message, &count)
    self.data = ByteString(
      Array(UnsafeRawBufferPointer(start: data, count: data == nil ? 0 : count)))
    func header(_ name: StaticString) -> ByteString? {
      name.withUTF8Buffer { name in
        name.withMemoryRebound(to: CChar.self) {
          cnats_header(message, $0.baseAddress).map { ByteString(cText: $0) }
        }
      }
    }
    let code = header("Status").flatMap { Int($0.description) }
    status = code.map {
      Status(
        code: $0, text: header("Description") ?? "",
        pending: header("Nats-Pending-Messages").flatMap { Int($0.description) })
    }
  }
}
