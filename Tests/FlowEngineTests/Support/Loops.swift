import FlowEngine
import Glibc

/// The machine's zone must not matter to golden summaries.
private let useUTC: Bool = {
  setenv("TZ", "UTC", 1)
  tzset()
  return true
}()

/// A loop that begins at 12:00:00 AM and needs no real time.
func makeLoop() -> EventLoop {
  _ = useUTC
  return EventLoop(clock: VirtualClock())
}

/// How large the tests of large things are.
enum Scale {
  /// A nesting that overflows a stack of 8 MiB if anything recursed: 56 bytes a level suffice.
  static let depth = 150_000
  /// A number of ops: a million in an optimized build, fewer where a million take half a minute.
  #if DEBUG
    static let count = 100_000
  #else
    static let count = 1_000_000
  #endif
}

/// Keeps an object that holds itself, and is never released, visible to the leak checker.
func keepReachable(_ object: AnyObject) {
  reachable.withLock { $0.append(UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())) }
}

private let reachable = Locked<[UInt]>([])
