/// The reports about one hand-out of a job, in the order in which its machine has sent them: the server delivers one
/// that was lost with a connection again after a while, when later ones have come. One may come twice.
struct RemoteReportSequence {
  /// How many have counted.
  private var count: UInt64 = 0
  /// Those that wait for earlier ones, by their place.
  private var early: [UInt64: RemoteReport] = [:]

  /// Takes a report, and returns those that count now.
  mutating func take(_ report: RemoteReport) -> [RemoteReport] {
    if report.news.isEmpty { return [] }
    // Nothing of those before it counts.
    if report.startsOver { return [report] }
    guard report.place >= count else { return [] }
    early[report.place] = report
    var next: [RemoteReport] = []
    while let report = early.removeValue(forKey: count) {
      next.append(report)
      count += 1
    }
    return next
  }
}
