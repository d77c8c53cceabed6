/// A value of one loop that travels with an error through code that isn't confined to the loop.
///
/// It can be read on the loop's thread alone: elsewhere there is none, as errors go anywhere. Released
/// elsewhere, it is sent home to be released.
// `value` is touched on the owner's thread only: `get` checks it, and `deinit` sends it there.
public final class ConfinedValue: @unchecked Sendable {
  private var value: Value
  private let owner: EventLoop.Identity
  private let mailbox: Mailbox

  /// Confines a value to a loop: it is let go of on that loop's thread.
  public init(_ value: Value, on loop: EventLoop) {
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
  public func get() -> Value? { owner.isCurrentThread ? value : nil }
}

// Made on one thread and emptied on another, with the mailbox's lock between.
private final class LastReference: @unchecked Sendable {
  private var value: Value

  init(_ value: Value) {
    self.value = value
  }

  func release() { value = .null }
}
