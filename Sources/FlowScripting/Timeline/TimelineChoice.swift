internal import FlowEngine

/// Which runs a timeline page shows, and how much of each: a script may start any number.
struct TimelineChoice {
  /// The most runs of a page: a third for those that haven't succeeded, a third for the longest, and the rest for a
  /// sample.
  static let mostRuns = 2000

  /// The indices of the runs, in their order.
  let runs: [Int]
  /// The most spans of each of them, and the most programs and requests; also the most undos.
  let mostSpans: [Int]
  let mostWorks: [Int]
  /// The most bytes of the summary of each of them.
  let mostSummary: [Int]

  /// The most bytes of all summaries together, unless that leaves nothing of one.
  private static let mostSummaries = 16 << 20

  /// Chooses among runs: all of them if they are few enough.
  ///
  /// - Parameters:
  ///   - all: The runs.
  ///   - mostRuns: The most runs.
  ///   - mostSpans: The most spans of all runs together.
  ///   - mostSummaries: The most bytes of all summaries together.
  init(
    _ all: [TimelinePage.Entry], mostRuns: Int = TimelineChoice.mostRuns,
    mostSpans: Int = TimelineData.mostSpans, mostSummaries: Int = TimelineChoice.mostSummaries
  ) {
    runs = Self.choose(all.map(\.spans), mostRuns)
    mostSummary = Self.shares(of: mostSummaries, runs.map { all[$0].summary.bytes.count })
    self.mostSpans = Self.shares(of: mostSpans, runs.map { all[$0].spans.spans.count })
    mostWorks = Self.shares(
      of: TimelineData.mostWorks,
      runs.map { max(all[$0].spans.works.count, all[$0].spans.undos.count) })
  }

  private static func choose(_ all: [RunSpans], _ most: Int) -> [Int] {
    guard all.count > most else { return Array(all.indices) }
    let third = most / 3
    var chosen = Set(all.indices.filter { all[$0].root.outcome != .succeeded }.prefix(third))
    // A stable order, so that a page that is written again shows the same ones.
    let byLength = all.indices.sorted {
      (all[$1].root.duration, $0) < (all[$0].root.duration, $1)
    }
    chosen.formUnion(byLength.prefix(third))
    let others = all.indices.filter { !chosen.contains($0) }
    let free = most - chosen.count
    for number in 0..<free { chosen.insert(others[number * others.count / free]) }
    return chosen.sorted()
  }

  /// The start and the end of a summary of more bytes than `most`, as whole lines.
  static func excerpt(of summary: ByteString, most: Int) -> ByteString {
    guard summary.bytes.count > most else { return summary }
    let line = UInt8(ascii: "\n")
    let start = summary.bytes.prefix(most / 2)
    let end = summary.bytes.suffix(most / 2)
    let head = start[..<((start.lastIndex(of: line) ?? start.startIndex - 1) + 1)]
    let tail = end[((end.firstIndex(of: line) ?? end.endIndex - 1) + 1)...]
    let note = ByteString(
      "… \(summary.bytes.count - head.count - tail.count) bytes are left out here …\n")
    return ByteString(head + note.bytes + tail)
  }

  /// Shares a number between some that want so much: those that want less than an equal share leave the rest to the
  /// others. Each gets 1 at least.
  private static func shares(of total: Int, _ wanted: [Int]) -> [Int] {
    var shares = wanted
    var (left, count) = (total, wanted.count)
    for index in wanted.indices.sorted(by: { wanted[$0] < wanted[$1] }) {
      shares[index] = max(1, min(wanted[index], left / count))
      left = max(0, left - shares[index])
      count -= 1
    }
    return shares
  }
}
