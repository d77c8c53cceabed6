internal import FlowEngine

/// Which runs a timeline page shows, and how much of each: a script may start any number.
struct TimelineChoice {
  /// The most runs of a page: a third for those that haven't succeeded, a third for the longest, and the rest for a
  /// sample.
  static let mostRuns = 2000

  /// The indices of the runs, in their order.
  let runs: [Int]
  /// The most spans of each of them, and the most programs and requests.
  let mostSpans: [Int]
  let mostWorks: [Int]

  /// Chooses among runs: all of them if they are few enough.
  ///
  /// - Parameters:
  ///   - all: The runs.
  ///   - mostRuns: The most runs.
  ///   - mostSpans: The most spans of all runs together.
  init(
    _ all: [RunSpans], mostRuns: Int = TimelineChoice.mostRuns,
    mostSpans: Int = TimelineData.mostSpans
  ) {
    runs = Self.choose(all, mostRuns)
    self.mostSpans = Self.shares(of: mostSpans, runs.map { all[$0].spans.count })
    mostWorks = Self.shares(of: TimelineData.mostWorks, runs.map { all[$0].works.count })
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
