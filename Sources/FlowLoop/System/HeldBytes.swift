internal import Synchronization
internal import FlowSystem

/// Counts the bytes that are held for the code of a loop, outside of its own memory; see
/// `FlowEventLoop.memoryMeter`.
package protocol MemoryMeter: AnyObject {
  /// Adds bytes, on the loop's thread.
  ///
  /// - Returns: The limit if they exceed it; nil otherwise.
  func add(held bytes: Int) -> Int?
  /// Removes bytes, on any thread.
  func release(held bytes: Int)
  /// Makes the count of something that another thread collects, on the loop's thread; nil without a limit.
  func beginCollecting() -> CollectedBytes?
}

/// The share of one holder in what a meter counts, as long as the holder, or a result with the share, exists.
// Unchecked: the number is only changed on the loop's thread, before a result has it.
package final class HeldBytes: @unchecked Sendable {
  private let meter: any MemoryMeter
  private var count = 0

  /// Makes an empty share.
  package init(_ meter: any MemoryMeter) {
    self.meter = meter
  }

  deinit { meter.release(held: count) }

  /// Changes the number of bytes; returns the limit if there are more now, and they exceed it.
  package func set(_ bytes: Int) -> Int? {
    let growth = bytes - count
    count = bytes
    if growth > 0 { return meter.add(held: growth) }
    meter.release(held: -growth)
    return nil
  }
}

/// The bytes that helper threads have collected for a loop, and that its code hasn't taken yet.
package final class CollectedSum: Sendable {
  private let count = Atomic<Int>(0)

  package init() {}

  /// The bytes; on any thread.
  package var bytes: Int { count.load(ordering: .relaxed) }

  fileprivate func change(by bytes: Int) -> Int {
    count.wrappingAdd(bytes, ordering: .relaxed).newValue
  }
}

/// The bytes that one thread collects: counted until the code that takes them calls `release`, or until the last reference
/// to this is gone. The thread may have one for a moment after the loop has its result.
///
/// A loop that is busy takes nothing, so that any number of results may wait for it: the thread itself has
/// to find that there is no room.
package final class CollectedBytes: Sendable {
  private let sum: CollectedSum
  /// The most bytes that all threads together may collect.
  package let limit: Int
  private let own = Atomic<Int>(0)

  package init(in sum: CollectedSum, limit: Int) {
    self.sum = sum
    self.limit = limit
  }

  deinit { release() }

  /// Adds bytes; on one thread at a time.
  ///
  /// - Throws: `ENOMEM` when there is no room for them.
  package func add(_ bytes: Int) throws(SystemError) {
    own.wrappingAdd(bytes, ordering: .relaxed)
    if sum.change(by: bytes) > limit { throw SystemError("not enough memory", code: ENOMEM) }
  }

  /// Removes all that was added, on any thread.
  package func release() {
    _ = sum.change(by: -own.exchange(0, ordering: .relaxed))
  }
}

/// The output of a program doesn't fit into the memory that there is for it.
package struct ProcessOutputLimit: Error {
  /// The limit in bytes.
  package let limit: Int
}
