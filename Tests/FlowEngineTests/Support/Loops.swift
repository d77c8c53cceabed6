import FlowEngine
import Glibc

/// The machine's zone must not matter to golden summaries.
private let useUTC: Bool = {
  setenv("TZ", "UTC", 1)
  tzset()
  return true
}()

/// A loop that begins at 12:00:00 AM and needs no real time.
func makeLoop() -> FlowEventLoop {
  _ = useUTC
  return FlowEventLoop(clock: VirtualClock())
}

/// How large the tests of large things are. A sanitizer, which takes ten times as long and more, sees the same code in
/// things of a tenth.
enum Scale {
  static let part = getenv("FLOWLUA_SANITIZER") == nil ? 1 : 10
  /// A nesting that overflows the stack of `.smallStack` if anything recursed: 52 bytes a level suffice.
  static let depth = 10_000
  /// The nesting of things whose time or memory grows with its square: 524 bytes a level.
  static let nesting = 1_000
  /// A number of ops: a million in an optimized build, fewer where a million take half a minute.
  #if DEBUG
    static let count = 100_000 / part
  #else
    static let count = 1_000_000 / part
  #endif
}

/// Keeps an object that holds itself, and is never released, visible to the leak checker.
func keepReachable(_ object: AnyObject) {
  reachable.withLock { $0.append(UInt(bitPattern: Unmanaged.passRetained(object).toOpaque())) }
}

private let reachable = Locked<[UInt]>([])
