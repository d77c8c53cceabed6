internal import FlowEngine
internal import FlowRemote

/// A message with jobs that the server has handed out to this machine: it is acknowledged once all of them have ended.
/// Confined to the thread of the host's loop.
final class RemoteHandout {
  private let message: JetStreamMessage
  private let queue: RemoteQueue
  /// The number of the connection by which the message is known to be in the queue.
  private var connection: Int
  /// What is sent once that is known of another connection.
  private var waiting: (() throws -> Void)?
  private var endsWait: (() -> Void)?
  /// How many jobs it has.
  let count: Int
  /// How many of them haven't ended.
  private var left: Int
  private var isOver = false

  init(_ message: JetStreamMessage, _ count: Int, of queue: RemoteQueue) {
    self.message = message
    self.queue = queue
    connection = queue.connection.number
    self.count = count
    left = count
  }

  /// Extends the lease.
  func extend() {
    if !isOver { send { [message] in try message.inProgress() } }
  }

  /// A job has ended, and the script has its last report: the queue may forget the message after the last one.
  func ended() {
    left -= 1
    if left <= 0 { end { [message] in try message.ack() } }
  }

  /// Removes it from the queue: nobody needs it.
  func drop() { end { [message] in try message.term() } }

  /// Lets the server hand it out again.
  func giveBack() { end { [message] in try message.nak() } }

  private func end(_ action: @escaping () throws -> Void) {
    if isOver { return }
    isOver = true
    send(action)
  }

  /// Sends something about the message; if it doesn't arrive, the message comes again. After a new connection the message
  /// has to be there still.
  private func send(_ action: @escaping () throws -> Void) {
    if queue.connection.isConnected, queue.connection.number == connection {
      try? action()
      return
    }
    let isAsked = waiting != nil
    waiting = action
    if !isAsked { ask() }
  }

  private func ask() {
    endsWait.take()?()
    guard queue.connection.isConnected else {
      endsWait = queue.connection.afterReconnects { [self] in ask() }
      return
    }
    let number = queue.connection.number
    queue.has(message) { [self] isThere in
      let action = waiting.take()
      guard isThere else {
        isOver = true
        return
      }
      connection = number
      if let action { send(action) }
    }
  }
}
