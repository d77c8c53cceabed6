/// How often an op is tried again when an attempt fails, and how long to wait before.
///
/// Tried again after errors, timeouts and missing outputs; never after input errors, wrong use,
/// cancellation or stalls.
public struct RetryPolicy: Sendable, Equatable {
  /// How often the op is executed at most, at least 1.
  public let attempts: Int
  /// Seconds before the second attempt.
  public let delay: Double
  /// What each delay is multiplied with for the next one.
  public let factor: Double
  /// The longest delay in seconds; nil for no limit.
  public let maxDelay: Double?
  /// The share of each delay, from 0 to 1, by which it is made longer or shorter at random.
  public let jitter: Double

  /// Ends the process with a sentence when a value is out of its range; see `problem`.
  public init(
    attempts: Int, delay: Double = 0, factor: Double = 1, maxDelay: Double? = nil,
    jitter: Double = 0
  ) {
    self.attempts = attempts
    self.delay = delay
    self.factor = factor
    self.maxDelay = maxDelay
    self.jitter = jitter
    let isTime = { (seconds: Double) in seconds.isFinite && seconds >= 0 }
    guard attempts >= 1, isTime(delay), isTime(factor), isTime(maxDelay ?? 0),
      (0...1).contains(jitter)
    else {
      misuse(
        "a RetryPolicy has at least 1 attempt, finite delays and a factor of at least 0, "
          + "and a jitter from 0 to 1")
    }
  }

  /// Seconds before `attempt`, which is 2 or more.
  func delay(before attempt: Int, using generator: inout any RandomNumberGenerator) -> Double {
    guard delay > 0 else { return 0 }
    var seconds = delay
    // The power itself would be imprecise for the usual whole factors.
    var left = attempt - 2
    while left > 0, factor != 1, seconds > 0, seconds < .greatestFiniteMagnitude {
      seconds = min(seconds * factor, .greatestFiniteMagnitude)
      left -= 1
      if let maxDelay, factor > 1, seconds >= maxDelay { break }
    }
    seconds = min(seconds, maxDelay ?? seconds)
    guard jitter > 0 else { return seconds }
    let drawn = seconds * (1 + jitter * Double.random(in: -1...1, using: &generator))
    return min(max(0, drawn), maxDelay ?? .greatestFiniteMagnitude)
  }
}

extension FlowError.Kind {
  /// Whether another attempt may mend it.
  var isRetriable: Bool {
    switch self {
    case .error, .timeout, .missingOutput: true
    case .insufficientInput, .mismatchedInput, .mismatchedOutput, .cancelled, .stalled, .usage:
      false
    }
  }
}

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
