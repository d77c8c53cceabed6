extension Int64 {
  /// The time this many nanoseconds later, or the last possible time when that is too far. (A long
  /// sleep advances a virtual clock to its end.)
  @inline(__always)
  package func later(by nanoseconds: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(nanoseconds)
    return overflow ? (nanoseconds < 0 ? .min : .max) : sum
  }
}
