/// The time of an event loop as a clock of Swift, for everything that takes a `Clock`.
///
/// ```swift
/// Op("PollOp") { context in
///   try await Task.sleep(for: .seconds(60), clock: context.clock)
/// }
/// ```
///
/// Any thread may read it and sleep on it. With a `VirtualClock` a sleep takes no time: the loop advances the clock when
/// it has nothing else to do. A sleep lasts as long as nobody turns the loop, and ends when the loop is shut down.
package struct LoopClock: Clock {
  /// A time of the clock.
  package struct Instant: InstantProtocol {
    /// Nanoseconds since the clock's start, as `FlowEventLoop.now()` has them.
    package let nanoseconds: Int64

    /// Makes the time that many nanoseconds after the clock's start.
    package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The time after `duration`, or before it when that is negative; the latest or the earliest time of the clock when
    /// that is too far.
    package func advanced(by duration: Duration) -> Instant {
      Instant(nanoseconds: nanoseconds.later(by: duration.wholeNanoseconds))
    }

    /// The time from this instant to `other`, negative when `other` is the earlier one.
    package func duration(to other: Instant) -> Duration {
      .nanoseconds(other.nanoseconds) - .nanoseconds(nanoseconds)
    }

    package static func < (one: Instant, other: Instant) -> Bool {
      one.nanoseconds < other.nanoseconds
    }
  }

  private let source: any TimeSource
  private let mailbox: LoopMailbox

  fileprivate init(of loop: FlowEventLoop) {
    source = loop.timeSource
    mailbox = loop.mailbox
  }

  /// The present time.
  package var now: Instant { Instant(nanoseconds: source.now()) }

  /// The smallest difference between two times.
  package var minimumResolution: Duration { .nanoseconds(1) }

  /// Whether time passes only when the loop has nothing else to do, as with a `VirtualClock`.
  package var isVirtual: Bool { source.isVirtual }

  /// Suspends the calling task until the clock has reached a time.
  ///
  /// - Parameters:
  ///   - deadline: The time; one that has passed doesn't wait.
  ///   - tolerance: Ignored: the loop is as exact as the system lets it be.
  /// - Throws: `CancellationError`, at once when the task is cancelled, or when the loop is shut down or released.
  package func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    let (inside, outside) = (LoopTask.current, OutsideWork.current)
    if let loop = inside?.loop(of: mailbox) {
      return try await loop.sleep(untilTime: deadline.nanoseconds)
    }
    try await mailbox.perform { loop in
      // The loop doesn't wait for the caller as long as the caller waits for the loop.
      let caller = outside?.task(on: loop) ?? inside
      caller?.beginWait()
      defer { caller?.endWait() }
      try await loop.sleep(untilTime: deadline.nanoseconds)
    }
  }
}

extension FlowEventLoop {
  /// The loop's time as a clock of Swift, which any thread may use.
  public var clock: some Clock<Duration> { loopClock }

  package var loopClock: LoopClock { LoopClock(of: self) }
}

extension OpContext {
  /// The time of the op's loop as a clock of Swift, which any thread may use.
  public var clock: some Clock<Duration> { loop.loopClock }
}
