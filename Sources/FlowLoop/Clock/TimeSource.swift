public import FlowSystem
internal import Synchronization

/// The source of an event loop's time. It may be read on any thread.
@usableFromInline package protocol TimeSource: AnyObject, Sendable {
  /// Nanoseconds since an arbitrary start; never decreases.
  func now() -> Int64
  /// Nanoseconds from 1970-01-01 00:00:00 UTC to the clock's start, as known at the call.
  var wallBase: Int64 { get }
  /// Whether time passes only by `advance(to:)`.
  var isVirtual: Bool { get }
  /// Advances a virtual clock to `time`; does nothing on a real one, and never moves a clock back.
  func advance(to time: Int64)
}

/// The machine's monotonic clock.
@usableFromInline package final class SystemClock: TimeSource {
  /// Makes a clock that reads the system's monotonic time.
  package init() {}

  @usableFromInline package func now() -> Int64 { Self.read(CLOCK_MONOTONIC) }

  @usableFromInline package var wallBase: Int64 {
    Self.read(CLOCK_REALTIME) - Self.read(CLOCK_MONOTONIC)
  }

  @usableFromInline package var isVirtual: Bool { false }

  @usableFromInline package func advance(to time: Int64) {}

  @inlinable
  @inline(__always)
  package static func read(_ clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}

/// A clock that jumps: it starts at 2000-01-01 00:00:00 UTC and doesn't advance while there is
/// work.
///
/// Its loop advances it to the next timer when nothing is ready and no work is in progress off the
/// loop.
///
/// ```swift
/// let loop = FlowEventLoop(clock: VirtualClock())
/// let run = SleepOp(.seconds(3600)).start(on: loop)
/// try run.waitUntilEnd()  // takes no time
/// print(run.duration)  // 3600.0 seconds
/// ```
public final class VirtualClock: TimeSource, Sendable {
  private let time = Atomic<Int64>(0)

  /// Makes a clock that begins at 2000-01-01 UTC.
  public init() {}

  @usableFromInline package func now() -> Int64 { time.load(ordering: .acquiring) }

  @usableFromInline package var wallBase: Int64 { 946_684_800_000_000_000 }

  @usableFromInline package var isVirtual: Bool { true }

  @usableFromInline package func advance(to time: Int64) {
    self.time.max(time, ordering: .acquiringAndReleasing)
  }

  /// Starts again, for a loop on which nothing is pending.
  package func restart() { time.store(0, ordering: .releasing) }
}
