internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

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
    queue.connection.perform { [queue] in
      try await queue.bytes(of: message)
    } then: { [weak self] result in
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

/// The reports about one hand-out of a job, in the order in which its node has sent them: the server delivers one
/// that was lost with a connection again after a while, when later ones have come. One may come twice.
struct RemoteReportSequence {
  /// How many have counted.
  private var count: UInt64 = 0
  /// Those that wait for earlier ones, by their place.
  private var early: [UInt64: RemoteReport] = [:]

  /// Takes a report, and returns those that count now.
  mutating func take(_ report: RemoteReport) -> [RemoteReport] {
    if report.news.isEmpty { return [] }
    // Nothing of those before it counts.
    if report.startsOver { return [report] }
    guard report.place >= count else { return [] }
    if report.place == count, early.isEmpty {
      count += 1
      return [report]
    }
    early[report.place] = report
    var next: [RemoteReport] = []
    while let report = early.removeValue(forKey: count) {
      next.append(report)
      count += 1
    }
    return next
  }
}
