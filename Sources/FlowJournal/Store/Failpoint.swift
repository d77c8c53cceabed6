#if DEBUG
  internal import FlowSystem
  import Synchronization
#endif

/// A place at which a test ends the process, as a crash would.
///
/// The environment variable `FLOWLUA_CRASH_AT` has the number of the place, counted from 1 through the
/// process; only a debug build reads it, and in others nothing is left of the places.
package enum Failpoint {
  #if DEBUG
    private static let passed = Atomic<Int>(0)
    private static let last: Int = {
      guard let text = getenv("FLOWLUA_CRASH_AT") else { return 0 }
      return Int(String(cString: text)) ?? 0
    }()
  #endif

  /// Passes a place; any thread.
  @inline(__always)
  package static func pass() {
    #if DEBUG
      guard last > 0 else { return }
      if passed.add(1, ordering: .relaxed).newValue == last { kill(getpid(), SIGKILL) }
    #endif
  }
}
