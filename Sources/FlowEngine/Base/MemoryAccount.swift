internal import Synchronization

/// Counts the bytes that Swift holds for the scripts of a loop: large texts, whatever holds them, the logs of
/// runs, the outputs that groups collect, those of programs, what comes from outside and nobody has taken, the
/// steps of flows, tasks, and the names of keys. A loop has one only if something limits them.
///
/// The count is approximate: other small objects and texts aren't in it.
package final class MemoryAccount {
  // Atomic, because a log may be released on any thread.
  private let count = Atomic<Int>(0)
  /// On the loop's thread only.
  private var blocks = HeldBlocks()
  /// What helper threads have collected.
  private let collected = CollectedSum()
  /// The growth by small things that wasn't reported.
  private var unreported = 0
  /// Called on the loop's thread when more is held.
  private let onGrowth: () -> Void
  /// The limit; nil for none.
  private let presentLimit: () -> Int?
  /// The limit if it is exceeded.
  private let exceededLimit: () -> Int?

  /// Makes an account.
  ///
  /// - Parameters:
  ///   - limit: Returns the limit, if there is one; called on the loop's thread.
  ///   - onGrowth: Called on the loop's thread when more is held.
  ///   - exceededLimit: Called on the loop's thread when a program has written more: returns the limit if it
  ///     is exceeded.
  package init(
    limit: @escaping () -> Int? = { nil }, onGrowth: @escaping () -> Void,
    exceededLimit: @escaping () -> Int?
  ) {
    presentLimit = limit
    self.onGrowth = onGrowth
    self.exceededLimit = exceededLimit
  }

  /// The bytes of an op or machine, roughly.
  package static var opSize: Int { 1024 }

  /// The most bytes that one thing may have that is read at once; nil for any number. On the loop's thread.
  package var limit: Int? { presentLimit() }

  /// The bytes that are held.
  package var held: Int { held(within: -1) }

  /// The bytes that are held: exactly if they are more than `room`, else perhaps fewer, which is found out
  /// faster.
  package func held(within room: Int) -> Int {
    let others = max(0, count.load(ordering: .relaxed)) + collected.bytes
    if others + blocks.bytes > room { blocks.sweep() }
    return others + blocks.bytes
  }

  /// Adds bytes, or removes some; on the loop's thread.
  func change(by bytes: Int) {
    count.wrappingAdd(bytes, ordering: .relaxed)
    if bytes > 0 { onGrowth() }
  }

  /// Adds the bytes of something small, of which there can be many, or removes some; on the loop's thread.
  func change(bySmall bytes: Int) {
    count.wrappingAdd(bytes, ordering: .relaxed)
    unreported += max(0, bytes)
    // To report each would take longer than to make it.
    guard unreported >= 1 << 14 else { return }
    unreported = 0
    onGrowth()
  }

  /// Removes bytes; on any thread.
  func release(_ bytes: Int) {
    count.wrappingSubtract(bytes, ordering: .relaxed)
  }

  /// Counts a text until the last reference to its bytes is released, unless it is small; on the loop's
  /// thread. A text that is counted again counts once.
  package func add(_ text: ByteString) {
    // Checked here too: most texts are small. One that was put together may have room for more.
    guard text.count >= HeldBlocks.smallest, let storage = text.bytes._owner else { return }
    add(storage, bytes: text.bytes.capacity)
  }

  /// Counts an object with its present size until the last reference to it is released, unless it is small;
  /// on the loop's thread.
  package func add(_ object: AnyObject, bytes: Int) {
    if blocks.insert(object, bytes: bytes) { onGrowth() }
  }

  /// Stops counting a text that another loop counts from now on, whatever holds it here; on the loop's
  /// thread.
  package func handOver(_ text: ByteString) {
    guard text.count >= HeldBlocks.smallest, let storage = text.bytes._owner else { return }
    blocks.handOver(storage)
  }
}

extension MemoryAccount: MemoryMeter {
  package func add(held bytes: Int) -> Int? {
    count.wrappingAdd(bytes, ordering: .relaxed)
    return exceededLimit()
  }

  package func release(held bytes: Int) { release(bytes) }

  package func beginCollecting() -> CollectedBytes? {
    presentLimit().map { CollectedBytes(in: collected, limit: $0) }
  }
}
