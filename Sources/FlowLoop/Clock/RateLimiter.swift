/// A limit on how often something starts: at most `count` times in any `period`.
///
/// ```swift
/// let minute = RateLimit(100, per: .seconds(60))
/// let group = GroupDispatcher(input: "urls", output: "pages", rate: minute)
/// ```
public struct RateLimit: Sendable, Equatable {
  /// The most starts in a period, at least 1.
  package let count: Int
  /// The length of a period, greater than 0.
  package let period: Duration

  /// Makes a limit; see the properties. Ends the process with a sentence when a value is out of its
  /// range.
  public init(
    _ count: Int, per period: Duration = .seconds(1), file: StaticString = #fileID,
    line: UInt = #line
  ) {
    guard count >= 1, period > .zero else {
      misuse("a RateLimit has at least 1 start in a period greater than 0", file: file, line: line)
    }
    self.count = count
    self.period = period
  }
}

/// The starts in the latest period of a `RateLimit`, and from them the time of the next start.
///
/// The period slides: however it is laid, it contains at most the limit's number of starts, as
/// servers count requests. The first ones may start together.
///
/// It keeps no time itself: each call gets the present time, in nanoseconds of any clock. A time before an earlier
/// call's counts as that one.
package struct RateLimiter: Sendable {
  private let limit: Int
  private let period: Int64
  /// The starts of the latest period, from `first` on, in order of their times.
  private var starts: ContiguousArray<(time: Int64, count: Int)> = []
  private var first = 0
  /// The sum of their counts.
  private var used = 0
  private var latest = Int64.min

  /// Makes a limiter without starts.
  package init(_ limit: RateLimit) {
    self.limit = limit.count
    // At least the period: a server measures it with a clock of its own.
    let whole = limit.period.wholeNanoseconds
    period = .nanoseconds(whole) < limit.period ? whole.later(by: 1) : whole
  }

  /// How many starts the limit allows at `now`.
  package mutating func available(at now: Int64) -> Int {
    dropOld(now)
    return max(0, limit - used)
  }

  /// The earliest time, from `now` on, at which the limit allows a start.
  package mutating func nextStart(at now: Int64) -> Int64 {
    dropOld(now)
    var left = used
    for start in starts[first...] where left >= limit {
      left -= start.count
      if left < limit { return start.time.later(by: period) }
    }
    return latest
  }

  /// Records starts at `now`. They count even when the limit doesn't allow them.
  package mutating func start(_ count: Int = 1, at now: Int64) {
    dropOld(now)
    guard count > 0 else { return }
    used += count
    if first < starts.count, starts[starts.count - 1].time == latest {
      starts[starts.count - 1].count += count
    } else {
      starts.append((latest, count))
    }
  }

  /// Takes back one start, which wasn't one after all. The oldest one goes, so that the limit also holds for the
  /// others.
  package mutating func cancelStart() {
    guard used > 0 else { return }
    used -= 1
    starts[first].count -= 1
    if starts[first].count == 0 { first += 1 }
  }

  /// Records a start at `now` if the limit allows it; returns whether it does.
  package mutating func startIfAllowed(at now: Int64) -> Bool {
    guard available(at: now) > 0 else { return false }
    start(at: now)
    return true
  }

  /// Removes the starts that aren't in the period that ends at `now`.
  private mutating func dropOld(_ now: Int64) {
    latest = max(latest, now)
    while first < starts.count, starts[first].time.later(by: period) <= latest {
      used -= starts[first].count
      first += 1
    }
    if first == starts.count {
      starts.removeAll(keepingCapacity: true)
      first = 0
    } else if first >= 64, first * 2 > starts.count {
      starts.removeSubrange(..<first)
      first = 0
    }
  }
}
