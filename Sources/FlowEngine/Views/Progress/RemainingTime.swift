internal import Glibc

/// The estimate of the time that the rest of something takes.
///
/// The rate is an average of what was done, in which the last third of the time weighs most. The result
/// follows the estimate smoothly and never increases, unless it turns out to be wrong by a factor of two.
struct RemainingTime {
  /// The part that was done, and the seconds since the start, when the rate was last computed.
  private var share = 0.0
  private var time = 0.0
  /// The part that was done at the last change, its time, and the greatest increase.
  private var last: (share: Double, time: Double, step: Double) = (0, 0, 0)
  /// The part that is done in a second.
  private var rate = 0.0
  /// The last result and its time.
  private var shown: (left: Double, time: Double)?

  /// For shorter times an estimate would be a mere guess.
  private static let shortest = 1.0
  /// How slowly the result follows the estimate at most, in seconds.
  private static let smoothing = 3.0

  /// Updates the estimate.
  ///
  /// - Parameters:
  ///   - share: The part that is done, from 0 to 1.
  ///   - seconds: The time since the start.
  /// - Returns: The seconds that are left; nil while an estimate would be a mere guess.
  mutating func update(_ share: Double, at seconds: Double) -> Double? {
    // An op may report less than before, and another total.
    if share < self.share { self = RemainingTime() }
    if share > last.share { last = (share, seconds, max(share - last.share, last.step * 0.5)) }
    let rate = measure(share, at: seconds)
    guard rate > 0, share < 1, seconds >= Self.shortest else {
      shown = nil
      return nil
    }
    // What has been done since the last change counts, but no more than such a change.
    let since = min(rate * (seconds - last.time), last.step * 0.9)
    let estimate = max(0, 1 - share - since) / rate
    let left = follow(estimate, at: seconds)
    shown = (left, seconds)
    return left
  }

  /// Updates the average and returns it, or less if nothing has changed for too long.
  private mutating func measure(_ share: Double, at seconds: Double) -> Double {
    let passed = seconds - time
    guard passed >= 0.5 else { return rate }
    let weight = 1 - exp(-passed / max(5, seconds / 3))
    if share > self.share {
      let sample = (share - self.share) / passed
      rate = rate == 0 ? sample : rate + (sample - rate) * weight
      (self.share, time) = (share, seconds)
      return rate
    }
    let most = last.step / passed
    return most < rate ? rate + (most - rate) * weight : rate
  }

  private func follow(_ estimate: Double, at seconds: Double) -> Double {
    guard let shown else { return estimate }
    let passed = seconds - shown.time
    let expected = max(0, shown.left - passed)
    if estimate > expected * 2 + 10 { return estimate }
    let smoothing = min(max(expected / 4, 0.2), Self.smoothing)
    let followed = expected + (estimate - expected) * (1 - exp(-passed / smoothing))
    return max(0, min(followed, shown.left))
  }
}
