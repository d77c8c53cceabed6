/// Durations in views: their middle, and their texts for people.
package enum Durations {
  /// The median: the middle one, or the lower of the two middle ones. There must be one.
  static func median(of durations: ContiguousArray<Int64>) -> Int64 {
    percentile(50, ofSorted: ContiguousArray(durations.sorted()))
  }

  /// The least duration that so many percent of the sorted ones don't exceed; 0 without any.
  static func percentile(_ percent: Int, ofSorted durations: ContiguousArray<Int64>) -> Int64 {
    guard !durations.isEmpty else { return 0 }
    let rank = (durations.count * percent + 99) / 100
    return durations[max(0, min(rank, durations.count) - 1)]
  }

  /// A duration in nanoseconds with three digits and a unit: `250 µs`, `12.3 ms`, `2.54 s`, `3 min 5 s`,
  /// `2 h 10 min`.
  package static func text(of nanoseconds: Int64) -> ByteString {
    let value = max(0, nanoseconds)
    if value == 0 { return "0 s" }
    if value < 999_500 { return "\(digits(Double(value) / 1e3)) µs" }
    if value < 999_500_000 { return "\(digits(Double(value) / 1e6)) ms" }
    if value < 59_950_000_000 { return "\(digits(Double(value) / 1e9)) s" }
    let seconds = value / 1_000_000_000 + (value % 1_000_000_000 >= 500_000_000 ? 1 : 0)
    if seconds < 3600 { return "\(seconds / 60) min \(seconds % 60) s" }
    let minutes = (seconds + 30) / 60
    return "\(minutes / 60) h \(minutes % 60) min"
  }

  /// At most three digits of a number below 1000.
  private static func digits(_ number: Double) -> ByteString {
    let scale: Double = number < 9.995 ? 100 : number < 99.95 ? 10 : 1
    return FlowValue.text(ofSeconds: (number * scale).rounded() / scale)
  }
}
