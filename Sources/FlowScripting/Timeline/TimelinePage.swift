package import FlowEngine
internal import Glibc
@_spi(Scripting) internal import LuaVM

/// Runs as one HTML page that needs nothing else: what each op did when, what went wrong, and what the run
/// waited for.
///
/// The page is the files in `Page`; the data is JSON within it.
package struct TimelinePage {
  /// What becomes of a page.
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
  ///   - stage: What becomes of the page: a live one loads itself again.
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
    var escaped: [UInt8] = []
    escaped.reserveCapacity(json.count + json.count / 16)
    for byte in json {
      if byte == UInt8(ascii: "<") { escaped += "\\u003c".utf8 } else { escaped.append(byte) }
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
