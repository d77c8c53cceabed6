extension Int64 {
  /// The time this many nanoseconds later, or the last possible time when that is too far. (A long
  /// sleep advances a virtual clock to its end.)
  @inline(__always)
  package func later(by nanoseconds: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(nanoseconds)
    return overflow ? (nanoseconds < 0 ? .min : .max) : sum
  }
}

extension Duration {
  /// Whole nanoseconds, from the smallest number to the largest one.
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (whole, isTooLong) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, isTooLarge) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
    return isTooLong || isTooLarge ? (seconds < 0 ? .min : .max) : sum
  }

  /// Whole nanoseconds, at least 0 and up to the largest number.
  package var clampedNanoseconds: Int64 { max(0, wholeNanoseconds) }
}
