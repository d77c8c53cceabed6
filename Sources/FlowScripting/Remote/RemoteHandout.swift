internal import FlowEngine
internal import FlowRemote

/// A message with jobs that the server has handed out to this machine: it is acknowledged once all of them have ended.
/// Confined to the thread of the host's loop.
final class RemoteHandout {
  private let message: JetStreamMessage
  /// How many jobs it has.
  let count: Int
  /// How many of them haven't ended.
  private var left: Int
  private var isOver = false

  init(_ message: JetStreamMessage, _ count: Int) {
    self.message = message
    self.count = count
    left = count
  }

  /// Extends the lease.
  func extend() {
    if !isOver { try? message.inProgress() }
  }

  /// A job has ended, and the script has its last report: the queue may forget the message after the last one.
  func ended() {
    left -= 1
    if left <= 0 { end { try message.ack() } }
  }

  /// Removes it from the queue: nobody needs it.
  func drop() { end { try message.term() } }

  /// Lets the server hand it out again.
  func giveBack() { end { try message.nak() } }

  private func end(_ send: () throws -> Void) {
    if isOver { return }
    isOver = true
    // If it doesn't arrive, the message comes again.
    try? send()
  }
}
