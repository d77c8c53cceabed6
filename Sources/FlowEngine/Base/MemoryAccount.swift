internal import Synchronization

/// Counts the bytes that the runs of a loop hold: their logs, with the values that ops have set, the outputs
/// that groups collect, and those of programs. A loop has one only if something limits them.
///
/// The count is approximate: what is small and doesn't grow with the work isn't in it.
package final class MemoryAccount {
  // Atomic, because a log may be released on any thread.
  private let count = Atomic<Int>(0)
  /// Called on the loop's thread when more is held.
  private let onGrowth: () -> Void
  /// The limit if it is exceeded.
  private let exceededLimit: () -> Int?

  /// Makes an account.
  ///
  /// - Parameters:
  ///   - onGrowth: Called on the loop's thread when runs hold more.
  ///   - exceededLimit: Called on the loop's thread when a program has written more: returns the limit if it
  ///     is exceeded.
  package init(onGrowth: @escaping () -> Void, exceededLimit: @escaping () -> Int?) {
    self.onGrowth = onGrowth
    self.exceededLimit = exceededLimit
  }

  /// The bytes that are held; on any thread.
  package var held: Int { max(0, count.load(ordering: .relaxed)) }

  /// Adds bytes, or removes some; on the loop's thread.
  func change(by bytes: Int) {
    count.wrappingAdd(bytes, ordering: .relaxed)
    if bytes > 0 { onGrowth() }
  }

  /// Removes bytes; on any thread.
  func release(_ bytes: Int) {
    count.wrappingSubtract(bytes, ordering: .relaxed)
  }
}

extension MemoryAccount: OutputMeter {
  package func add(output bytes: Int) -> Int? {
    count.wrappingAdd(bytes, ordering: .relaxed)
    return exceededLimit()
  }

  package func release(output bytes: Int) { release(bytes) }
}
