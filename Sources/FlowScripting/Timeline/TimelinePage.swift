package import FlowEngine
internal import FlowSystem
@_spi(Scripting) internal import LuaVM

/// Runs as one HTML page that needs nothing else: what each op did when, what went wrong, and what the run
/// waited for.
///
/// The page is the files in `Page`; the data is JSON within it.
package struct TimelinePage {
  /// The stage of a page.
  package enum Stage: Sendable {
    /// It shows its runs as they were when it was made.
    case excerpt
    /// The script is executing, and the file is written again about this often, in seconds.
    case live(every: Double)
    /// The script has ended.
    case final
  }

  /// A run of the page.
  package struct Entry: Sendable {
    package let spans: RunSpans
    /// The text of its summary; of a long one the start and the end.
    package let summary: ByteString
    /// The number of records that it is made of.
    package let recordCount: Int
    /// The id of the run of the store that it belongs to; nil when it isn't kept.
    package let keptRun: ByteString?

    /// The most records of a log whose summary the page has whole.
    private static let mostRecords = 4000

    /// A run of which only a store has something.
    package init(_ spans: RunSpans, recordCount: Int, keptRun: ByteString) {
      self.spans = spans
      summary = ""
      self.recordCount = recordCount
      self.keptRun = keptRun
    }

    package init(_ run: Run) {
      spans = RunSpans(run)
      summary = run.summaryExcerpt(most: Self.mostRecords)
      recordCount = run.log.allAppended
      keptRun = run.keeper?.runID
    }
  }

  /// The page of these runs.
  ///
  /// - Parameters:
  ///   - runs: The runs, in the order of their starts.
  ///   - script: The name of the script that started them; empty if unknown.
  ///   - version: The version of the program; empty if unknown.
  ///   - stage: The stage of the page: a live one loads itself again.
  /// - Returns: HTML without secrets.
  package static func text(
    of runs: [Entry], script: ByteString = "", version: ByteString = "",
    _ stage: Stage = .excerpt
  ) -> ByteString {
    var data = JSONText()
    data.append(raw: "{\"version\":")
    data.append(version)
    data.append(raw: ",\"host\":")
    data.append(host)
    append(stage, to: &data)
    data.append(raw: ",\"runs\":[")
    let choice = TimelineChoice(runs)
    for (place, index) in choice.runs.enumerated() {
      if place > 0 { data.append(raw: ",") }
      let run = runs[index]
      let shown = TimelineData(
        run.spans, mostSpans: choice.mostSpans[place], mostWorks: choice.mostWorks[place])
      let summary = TimelineChoice.excerpt(of: run.summary, most: choice.mostSummary[place])
      shown.append(to: &data, place: script, keptRun: run.keptRun, summary: summary)
    }
    data.append(raw: "],\"omitted\":\(runs.count - choice.runs.count)}")
    var page: [UInt8] = []
    page.reserveCapacity(data.bytes.count + data.bytes.count / 8 + (1 << 16))
    // Each mark of the frame stands for a part; the parts come in this order.
    var rest = PackageResources.timeline_html[...]
    for (mark, part): (ByteString, [UInt8]) in [
      ("/* timeline.css */", PackageResources.timeline_css), ("/* data */", escaped(data.bytes)),
      ("/* timeline.js */", code),
    ] {
      guard let place = rest.place(of: mark) else { continue }
      page += rest[..<place.lowerBound]
      page += part
      rest = rest[place.upperBound...]
    }
    page += rest
    return ByteString(page)
  }

  private static var code: [UInt8] {
    PackageResources.spans_js + PackageResources.rows_js + PackageResources.chart_js
      + PackageResources.live_js + PackageResources.page_js
  }

  private static func append(_ stage: Stage, to data: inout JSONText) {
    switch stage {
    case .excerpt: data.append(raw: ",\"stage\":\"excerpt\"")
    case .final: data.append(raw: ",\"stage\":\"final\"")
    case .live(let interval):
      data.append(raw: ",\"stage\":\"live\",\"every\":")
      data.append(interval)
      data.append(raw: ",\"written\":")
      let clock = SystemClock()
      data.append(Double(clock.wallBase + clock.now()) / 1e9)
    }
  }

  /// JSON in which nothing can end the element around it.
  private static func escaped(_ json: [UInt8]) -> [UInt8] {
    guard json.contains(UInt8(ascii: "<")) else { return json }
    let mark = "\\u003c".bytes
    var escaped: [UInt8] = []
    escaped.reserveCapacity(json.count + json.count / 16)
    for byte in json {
      if byte == UInt8(ascii: "<") { escaped += mark } else { escaped.append(byte) }
    }
    return escaped
  }

  /// `build-3, 2 cores`
  private static var host: ByteString {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    let text = ByteString(name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) })
    let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    return cores > 0 ? "\(text), \(cores) \(cores == 1 ? "core" : "cores")" : text
  }
}

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
