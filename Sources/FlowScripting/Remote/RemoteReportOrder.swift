internal import FlowEngine
internal import FlowRemote

/// Passes reports on in the order in which they were sent, although large ones come from the store of objects, which
/// takes longer. Confined to the thread of the host's loop.
final class RemoteReportOrder {
  private final class Slot {
    let message: JetStreamMessage
    var bytes: Result<[UInt8]?, FlowError>?

    init(_ message: JetStreamMessage) { self.message = message }
  }

  private let queue: RemoteQueue
  private let handle: ([RemoteReport], JetStreamMessage?) -> Bool
  private var slots: [Slot] = []
  /// The number in the stream of the last one that was passed on.
  private(set) var passed: UInt64 = 0

  /// - Parameters:
  ///   - queue: Where the reports come from.
  ///   - handle: Gets the reports of a message, before it is acknowledged; returns whether it acknowledges it itself, later.
  init(_ queue: RemoteQueue, _ handle: @escaping ([RemoteReport], JetStreamMessage?) -> Bool) {
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

  /// Passes the reports of a bundle on at once, and returns them.
  @discardableResult
  func passOn(_ bundle: [UInt8]) -> [RemoteReport] {
    let reports = RemoteReport.readAll(bundle)
    _ = handle(reports, nil)
    return reports
  }

  private func passOn() {
    while let first = slots.first, let bytes = first.bytes {
      slots.removeFirst()
      defer { passed = max(passed, first.message.streamSequence) }
      if case .success(let bytes?) = bytes {
        if handle(RemoteReport.readAll(bytes), first.message) { continue }
        queue.release(first.message)
      }
      // An acknowledgement that doesn't arrive is sent after the next hand-out.
      try? first.message.ack()
    }
  }
}
