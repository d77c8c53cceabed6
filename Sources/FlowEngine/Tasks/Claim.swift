internal import Synchronization

/// The right to do something that is done once, such as settling a task: the first caller gets it, on any
/// thread.
final class Claim: Sendable {
  private let isTaken = Atomic<Bool>(false)

  /// Returns true once.
  func isFirst() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
