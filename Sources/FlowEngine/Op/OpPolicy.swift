/// What an op has besides its body: how often and how long it is tried. Ops without have none.
final class OpPolicy: Sendable {
  let retry: RetryPolicy?
  /// Seconds that an attempt may take.
  let timeout: Double?
  /// Seconds that the cleanups have once it was stopped; nil for the loop's default.
  let grace: Double?

  private init(retry: RetryPolicy?, timeout: Double?, grace: Double?) {
    self.retry = retry
    self.timeout = timeout
    self.grace = grace
  }

  /// Makes a policy out of `base` and what replaces parts of it; nil when that is nothing.
  static func make(
    _ base: OpPolicy?, retry: RetryPolicy? = nil, timeout: Double? = nil, grace: Double? = nil
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
    if retry == nil && timeout == nil && grace == nil { return nil }
    return OpPolicy(retry: retry, timeout: timeout, grace: grace)
  }
}

/// A generator of random numbers that draws the same ones from the same seed (SplitMix64).
///
/// Give one to `EventLoop.randomNumberGenerator` for retries whose jitter can be foretold.
public struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// A generator that draws the same numbers for the same seed.
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
