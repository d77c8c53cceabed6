extension Int64 {
  /// A time so many nanoseconds after this one; the last one there is where that is too far. (A long
  /// sleep brings a virtual clock to its end.)
  @inline(__always)
  package func later(by nanoseconds: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(nanoseconds)
    return overflow ? (nanoseconds < 0 ? .min : .max) : sum
  }
}
