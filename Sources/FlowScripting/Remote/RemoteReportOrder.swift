internal import FlowEngine
internal import FlowRemote

/// Passes reports on in the order in which they were sent, although large ones come from the store of objects, which
/// takes longer. Confined to the thread of the host's loop.
final class RemoteReportOrder {
  private final class Slot {
    let message: JetStreamMessage
    var bytes: Result<[UInt8], FlowError>?

    init(_ message: JetStreamMessage) { self.message = message }
  }

  private let queue: RemoteQueue
  private let handle: (RemoteReport) -> Void
  private var slots: [Slot] = []

  /// - Parameters:
  ///   - queue: Where the reports come from.
  ///   - handle: Gets each report, before it is acknowledged.
  init(_ queue: RemoteQueue, _ handle: @escaping (RemoteReport) -> Void) {
    self.queue = queue
    self.handle = handle
  }

  func take(_ message: JetStreamMessage) {
    let slot = Slot(message)
    slots.append(slot)
    queue.bytes(of: message) { [weak self] result in
      slot.bytes = result
      self?.passOn()
    }
  }

  private func passOn() {
    while let first = slots.first, let bytes = first.bytes {
      slots.removeFirst()
      if case .success(let bytes) = bytes {
        for part in RemoteProtocol.parts(of: bytes) ?? [] {
          if let report = RemoteReport.read(part) { handle(report) }
        }
        queue.release(first.message)
      }
      // An acknowledgement that doesn't arrive is sent after the next hand-out.
      try? first.message.ack()
    }
  }
}
