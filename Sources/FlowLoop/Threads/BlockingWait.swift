internal import CFlowSystem
internal import Glibc
package import Synchronization

/// A wait of a loop that blocks its thread, perhaps one that other code needs.
///
/// Threads of this package let another one take their place. The threads of Swift's cooperative pool are as
/// many as there are cores, and the main actor has only one: a loop that blocks them may wait for the very
/// code that they keep from running. That can't be known for certain, so it is reported, once, after
/// the wait has lasted for `patience`.
package enum BlockingWait {
  /// How long a wait lasts before it is reported, in nanoseconds; tests have less.
  package static let patience = Atomic<Int64>(10_000_000_000)
  /// How many threads of the pool block in such a wait.
  private static let blocked = Atomic<Int>(0)
  private static let isReported = Atomic<Bool>(false)

  /// Performs a wait, which may return early.
  ///
  /// - Parameters:
  ///   - awaitsSwift: Whether the loop waits for async code that isn't on its thread.
  ///   - runsMainActor: Whether the loop runs the code of the main actor meanwhile.
  ///   - timeout: Its limit in nanoseconds, negative for none.
  ///   - wait: Waits until that limit.
  @inline(__always)
  static func perform(
    awaitsSwift: Bool, runsMainActor: Bool, timeout: Int64, _ wait: (Int64) -> Void
  ) {
    if timeout == 0 { return wait(0) }
    if let threads = HelperThreads.current {
      threads.standAside { wait(timeout) }
    } else if awaitsSwift, !runsMainActor, !isReported.load(ordering: .relaxed) {
      watch(timeout, wait)
    } else {
      wait(timeout)
    }
  }

  @inline(never)
  private static func watch(_ timeout: Int64, _ wait: (Int64) -> Void) {
    let place = flowsystem_blocked_place()
    if place == FLOWSYSTEM_OWN_THREAD { return wait(timeout) }
    let isPool = place == FLOWSYSTEM_POOL_THREAD
    if isPool { blocked.add(1, ordering: .relaxed) }
    defer { if isPool { blocked.subtract(1, ordering: .relaxed) } }
    let patience = patience.load(ordering: .relaxed)
    if timeout >= 0, timeout < patience { return wait(timeout) }
    let begin = SystemClock.read(CLOCK_MONOTONIC)
    wait(patience)
    guard SystemClock.read(CLOCK_MONOTONIC) - begin >= patience else { return }
    let isStarving =
      !isPool || blocked.load(ordering: .relaxed) >= sysconf(Int32(_SC_NPROCESSORS_ONLN))
    if isStarving, !isReported.exchange(true, ordering: .relaxed) {
      report(isPool, seconds: patience / 1_000_000_000)
    }
  }

  private static func report(_ isPool: Bool, seconds: Int64) {
    let thread = isPool ? "all threads of Swift's cooperative pool" : "the thread of the main actor"
    let line =
      "FlowLoop: an event loop has waited \(seconds) s for async code while loops block \(thread), on which "
      + "such code may have to run; await the run (`try await run.value`), or use a LoopThread\n"
    _ = Array(line.utf8).withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
