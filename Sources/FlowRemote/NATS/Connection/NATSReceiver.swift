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
    // Released without the lock.
    _ = state.withLock { state in
      state.isClosed = true
      defer { state.events = [] }
      return state.events
    }
  }

  /// The context of callbacks for a subscription; 0 for the connection itself.
  // A number in the form of an address: the library only hands it back, and nothing follows it.
  func context(of subscription: UInt32) -> UnsafeMutableRawPointer? {
    UnsafeMutableRawPointer(bitPattern: UInt(number) << 32 | UInt(subscription))
  }

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

  // MARK: Callbacks of the library, on its threads

  /// Passes an event on to the receiver with a context.
  static func add(_ event: Event, _ context: UnsafeMutableRawPointer?) {
    let number = UInt32(truncatingIfNeeded: UInt(bitPattern: context) >> 32)
    table.withLock { $0.receivers[number] }?.add(event)
  }

  /// Takes a message of a subscription.
  static let receive: natsMsgHandler = { _, _, message, context in
    guard let message else { return }
    let number = UInt32(truncatingIfNeeded: UInt(bitPattern: context))
    add(.message(number, NATSMessage(copying: message)), context)
    discard(message)
  }

  /// The messages that have no further use, and how many bytes their data has.
  private static let done = Locked((messages: [UInt](), bytes: 0))

  /// Destroys a message, with others: up to 64, of 64 KiB. The library frees messages on a thread of its own and wakes
  /// that thread for each one, which took a twentieth of the time of an op on another node.
  static func discard(_ message: OpaquePointer) {
    let size = Int(nats.natsMsg_GetDataLength(message))
    let list = done.withLock { done in
      done.messages.append(UInt(bitPattern: message))
      done.bytes += size
      if done.messages.count < 64, done.bytes <= 1 << 16 { return [UInt]() }
      defer { done = ([], 0) }
      return done.messages
    }
    for message in list { nats.natsMsg_Destroy(OpaquePointer(bitPattern: message)) }
  }
}

extension NATSMessage {
  /// Copies a message of the library.
  fileprivate init(copying message: OpaquePointer) {
    subject = ByteString(cText: nats.natsMsg_GetSubject(message))
    let reply = ByteString(cText: nats.natsMsg_GetReply(message))
    self.reply = reply.isEmpty ? nil : reply
    let count = Int(max(0, nats.natsMsg_GetDataLength(message)))
    data = ByteString(
      Array(UnsafeRawBufferPointer(start: nats.natsMsg_GetData(message), count: count)))
    func header(_ name: StaticString) -> ByteString? {
      var value: UnsafePointer<CChar>?
      let status = name.withUTF8Buffer { name in
        name.withMemoryRebound(to: CChar.self) {
          nats.natsMsgHeader_Get(message, $0.baseAddress, &value)
        }
      }
      return status == NATS_OK ? value.map { ByteString(cText: $0) } : nil
    }
    let code = header("Status").flatMap { Int($0.description) }
    status = code.map {
      Status(
        code: $0, text: header("Description") ?? "",
        pending: header("Nats-Pending-Messages").flatMap { Int($0.description) })
    }
  }
}
