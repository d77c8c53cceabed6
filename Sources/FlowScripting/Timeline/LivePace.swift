/// When the page of an executing script is written again.
///
/// Making the page takes time of a processor, and a part of it the loop's, so the pauses grow with it. A page that would only be older isn't
/// written, but while a run is open there is a sign of life now and then. Times are nanoseconds of any clock that
/// doesn't go back.
package struct LivePace {
  /// The time before the first page.
  static let first: Int64 = 200_000_000
  /// The shortest time between two pages.
  package static let shortest: Int64 = 2_000_000_000
  /// How many times as long as the making of a page the time before the next one is: 5 %.
  static let share: Int64 = 20
  /// After this time an unchanged page of an open run is written again.
  static let quiet: Int64 = 15_000_000_000

  /// The time until the next look.
  package private(set) var interval = LivePace.first
  private var last: (size: Int, time: Int64)?

  package init() {}

  /// Decides about a page.
  ///
  /// - Parameters:
  ///   - time: The time.
  ///   - size: The number of records that the page is made of, which only grows.
  ///   - isRunning: Whether a run is open.
  /// - Returns: Whether the page has to be written.
  package func isDue(at time: Int64, size: Int, isRunning: Bool) -> Bool {
    guard let last else { return size > 0 }
    return size != last.size || isRunning && time - last.time >= Self.quiet
  }

  /// Records that a page was made between two times.
  package mutating func made(from begin: Int64, to end: Int64, size: Int) {
    last = (size, begin)
    interval = max(Self.shortest, min(end - begin, .max / Self.share) * Self.share)
  }
}
