internal import FlowSystem
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
  ///   - begun: When the first of the loop's waits without an event began, 0 without one: a timer that is due now and
  ///     then doesn't end the wait for async code.
  ///   - wait: Waits until that limit.
  @inline(__always)
  static func perform(
    awaitsSwift: Bool, runsMainActor: Bool, timeout: Int64, since begun: inout Int64,
    _ wait: (Int64) -> Void
  ) {
    if timeout == 0 { return wait(0) }
    if let threads = HelperThreads.current {
      threads.standAside { wait(timeout) }
    } else if awaitsSwift, !runsMainActor, !isReported.load(ordering: .relaxed) {
      watch(timeout, &begun, wait)
    } else {
      begun = 0
      wait(timeout)
    }
  }

  @inline(never)
  private static func watch(_ timeout: Int64, _ begun: inout Int64, _ wait: (Int64) -> Void) {
    let place = flowsystem_blocked_place()
    if place == FLOWSYSTEM_OWN_THREAD { return wait(timeout) }
    let isPool = place == FLOWSYSTEM_POOL_THREAD
    if isPool { blocked.add(1, ordering: .relaxed) }
    defer { if isPool { blocked.subtract(1, ordering: .relaxed) } }
    let patience = patience.load(ordering: .relaxed)
    let begin = SystemClock.read(CLOCK_MONOTONIC)
    if begun == 0 { begun = begin }
    let limit = timeout < 0 ? patience : min(timeout, patience)
    wait(limit)
    let end = SystemClock.read(CLOCK_MONOTONIC)
    if end - begin < limit { begun = 0 }
    guard begun > 0, end - begun >= patience else { return }
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
    _ = line.bytes.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
