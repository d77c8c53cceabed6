package import FlowSystem

/// A lock with a condition: threads exclude each other, and wait for what another one changes.
///
/// A pthread mutex rather than `Mutex`, because the thread sanitizer knows it and a condition needs it. Both
/// have memory of their own, as they must not move. Deadlines are times of the monotonic clock, which nobody sets.
/// All methods may be called from any thread; `deinit` requires that none is within one.
// Unchecked: pthread's objects are made for several threads, and the pointers never change.
package struct Monitor: ~Copyable, @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline let condition: UnsafeMutablePointer<pthread_cond_t>

  package init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Calls `body` with the lock held. It isn't recursive, so `body` calls nothing that takes it again.
  @inlinable
  package func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }

  /// Wakes one thread that waits, if there is one.
  @inlinable
  package func signal() { pthread_cond_signal(condition) }

  /// Wakes all threads that wait.
  @inlinable
  package func broadcast() { pthread_cond_broadcast(condition) }

  /// Waits for a signal, without the lock; it must be held at the call, and is held again afterwards. Threads may
  /// wake without a signal: check the condition again.
  @inlinable
  package func wait() { pthread_cond_wait(condition, mutex) }

  /// Waits as `wait` does, but only until a time.
  ///
  /// - Parameter deadline: A time of the monotonic clock in nanoseconds.
  /// - Returns: Whether the deadline hasn't passed.
  package func wait(until deadline: Int64) -> Bool {
    var time = timespec(
      tv_sec: Int(deadline / 1_000_000_000), tv_nsec: Int(deadline % 1_000_000_000))
    return pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT
  }
}
