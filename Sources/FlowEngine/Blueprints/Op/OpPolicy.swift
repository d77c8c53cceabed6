/// What happens to an op of a kept run that an earlier process may have executed already.
public enum OpEffect: String, CaseIterable, Sendable {
  /// It is executed again, with the same key.
  case `repeat`
  /// It isn't executed again unless somebody says so.
  case once
}

/// How often an op is tried, and how long. An op without retries, timeout, grace and effect has no policy.
final class OpPolicy: Sendable {
  let retry: RetryPolicy?
  /// Seconds that an attempt may take.
  let timeout: Double?
  /// Seconds that the cleanups have after a stop; nil for the loop's default.
  let grace: Double?
  /// What a kept run does about it; nil for `repeat`.
  let effect: OpEffect?

  private init(retry: RetryPolicy?, timeout: Double?, grace: Double?, effect: OpEffect?) {
    self.retry = retry
    self.timeout = timeout
    self.grace = grace
    self.effect = effect
  }

  /// Makes a policy from `base` and the values that replace parts of it; nil when the result would
  /// be empty.
  static func make(
    _ base: OpPolicy?, retry: RetryPolicy? = nil, timeout: Double? = nil, grace: Double? = nil,
    effect: OpEffect? = nil
  ) -> OpPolicy? {
    if let timeout, !(timeout > 0 && timeout.isFinite) {
      misuse("a timeout is a finite number of seconds greater than 0")
    }
    if let grace, !(grace >= 0) {
      misuse("a grace is a number of seconds of at least 0, or infinite")
    }
    let retry = retry ?? base?.retry
    let timeout = timeout ?? base?.timeout
    let grace = grace ?? base?.grace
    let effect = effect ?? base?.effect
    if retry == nil && timeout == nil && grace == nil && effect == nil { return nil }
    return OpPolicy(retry: retry, timeout: timeout, grace: grace, effect: effect)
  }
}

/// A generator of random numbers that draws the same ones from the same seed (SplitMix64).
///
/// Set one as `EventLoop.randomNumberGenerator` to make the jitter of retries predictable.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator that draws the same numbers for the same seed.
  public init(seed: UInt64) {
    state = seed
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}
