package import Glibc

/// A value that threads use one after another, each with the lock held.
///
/// It has a pthread mutex: `Mutex` of the standard library does the same in less time, but the thread sanitizer doesn't
/// see how a thread waits for that one, and reports races that aren't there. All methods may be called from any thread.
// Unchecked: the lock guards the value.
package final class Locked<Value>: @unchecked Sendable {
  // Of its own, because it must not move.
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline var value: Value

  package init(_ value: Value) {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    self.value = value
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls `body` with the lock held. It isn't recursive, so `body` calls nothing that takes it again.
  @inlinable
  package func withLock<Result, Failure: Error>(
    _ body: (inout Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}
