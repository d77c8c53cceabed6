extension Int64 {
  /// The time this many nanoseconds later, or the last possible time when that is too far. (A long
  /// sleep advances a virtual clock to its end.)
  @inline(__always)
  package func later(by nanoseconds: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(nanoseconds)
    return overflow ? (nanoseconds < 0 ? .min : .max) : sum
  }

  /// The nearest number of whole nanoseconds: 0 for a negative number of seconds and for one that isn't a number, the
  /// largest number for one that is too large.
  package init(clampingSeconds seconds: Double) {
    self = seconds > 0 ? Int64(exactly: (seconds * 1e9).rounded()) ?? .max : 0
  }
}

extension Duration {
  /// The nearest number of whole nanoseconds, from the smallest number to the largest one. (`.seconds(2.3)` may be a few
  /// attoseconds shorter.)
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let half: Int64 = attoseconds < 0 ? -500_000_000 : 500_000_000
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isTooLarge) = whole.addingReportingOverflow((attoseconds + half) / 1_000_000_000)
    return isTooLong || isTooLarge ? (seconds < 0 ? .min : .max) : sum
  }

  /// Whole nanoseconds, at least 0 and up to the largest number.
  package var clampedNanoseconds: Int64 { max(0, wholeNanoseconds) }

  /// The longest duration that a clock counts, 292 years. It stands for an endless one, too.
  package static let longest = Duration.nanoseconds(Int64.max)

  /// A time that has passed, in nanoseconds: never endless, also where a virtual clock is at its end.
  package static func passed(_ nanoseconds: Int64) -> Duration {
    .nanoseconds(min(nanoseconds, .max - 1))
  }

  /// A number of seconds from a script, to the nanosecond: 0 for a negative number and for one that isn't a number,
  /// `longest` for one that is too large. A number greater than 0 stays greater than 0.
  package init(clampingSeconds seconds: Double) {
    guard seconds > 0 else {
      self = .zero
      return
    }
    let nanoseconds = Int64(clampingSeconds: seconds)
    self = nanoseconds > 0 ? .nanoseconds(nanoseconds) : Duration(attoseconds: 1)
  }

  /// The duration as a number of seconds, exact where the number has at most 15 digits; infinite for `longest`.
  package var inSeconds: Double {
    if self >= .longest { return .infinity }
    let (seconds, attoseconds) = components
    // Rounded once where it can be.
    if abs(seconds) < 1 << 20, attoseconds % 1_000_000_000 == 0 {
      return Double(seconds * 1_000_000_000 + attoseconds / 1_000_000_000) / 1e9
    }
    return Double(seconds) + Double(attoseconds) / 1e18
  }
}
