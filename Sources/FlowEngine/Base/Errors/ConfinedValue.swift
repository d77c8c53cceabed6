/// A value of one loop that an error carries through code that isn't confined to the loop.
///
/// It can be read on the loop's thread only: elsewhere `get` returns nil, because errors go
/// anywhere. When it is released elsewhere, the value is sent to its own thread to be released
/// there.
// `value` is touched on the owner's thread only: `get` checks that, and `deinit` sends the value
// there.
package final class ConfinedValue: @unchecked Sendable {
  private var value: FlowValue
  private let owner: FlowEventLoop.Identity
  private let mailbox: LoopMailbox

  /// Confines a value to a loop: it is released on that loop's thread.
  package init(_ value: FlowValue, on loop: FlowEventLoop) {
    loop.checkThread()
    self.value = value
    owner = loop.identity
    mailbox = loop.mailbox
  }

  deinit {
    guard !owner.isCurrentThread else { return }
    let last = LastReference(value)
    value = .null
    mailbox.post { _ in last.release() }
  }

  /// The value, for callers on the loop's thread; nil on any other.
  package func get() -> FlowValue? { owner.isCurrentThread ? value : nil }
}

// Made on one thread and emptied on another, with the mailbox's lock between.
private final class LastReference: @unchecked Sendable {
  private var value: FlowValue

  init(_ value: FlowValue) {
    self.value = value
  }

  func release() { value = .null }
}
