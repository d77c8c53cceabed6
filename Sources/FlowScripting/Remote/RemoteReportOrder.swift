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
  /// The number in the stream of the last one that was passed on.
  private(set) var passed: UInt64 = 0

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

  /// Passes the reports of a bundle on at once.
  func passOn(_ bundle: [UInt8]) {
    for part in RemoteProtocol.parts(of: bundle) ?? [] {
      if let report = RemoteReport.read(part) { handle(report) }
    }
  }

  private func passOn() {
    while let first = slots.first, let bytes = first.bytes {
      slots.removeFirst()
      if case .success(let bytes) = bytes {
        passOn(bytes)
        queue.release(first.message)
      }
      passed = max(passed, first.message.streamSequence)
      // An acknowledgement that doesn't arrive is sent after the next hand-out.
      try? first.message.ack()
    }
  }
}
