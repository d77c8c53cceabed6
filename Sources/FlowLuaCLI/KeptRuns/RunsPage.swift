internal import FlowEngine
internal import FlowJournal
internal import FlowScripting

/// A page of all runs of a store, for a browser: `--runs --html FILE`.
struct RunsPage {
  private let runs: [KeptRunSummary]
  private let store: JournalStore
  private let path: ByteString

  /// How long the finished runs of each script have taken, the shortest first.
  private let durations: [ByteString: [Double]]

  init(_ runs: [KeptRunSummary], _ store: JournalStore, at path: ByteString) {
    self.runs = runs
    let finished = runs.filter { $0.word == "finished" }
    durations = Dictionary(grouping: finished, by: \.script).mapValues {
      $0.map { $0.changed - $0.began }.sorted()
    }
    self.store = store
    self.path = path
  }

  /// How many runs, the newest ones, have timelines beside the page: a file for each of very many would fill the disk.
  private static let mostTimelines = 200

  /// Writes the page, and beside it the timelines of the newest runs. Returns why that failed; nil for success.
  func write() -> ByteString? {
    var text = Self.head.bytes
    for (index, run) in runs.reversed().enumerated() {
      let hasTimeline = index < Self.mostTimelines
      // The others are only counted.
      let view =
        hasTimeline || run.failed > 0 ? try? KeptRunView(run.id, in: store) : nil
      var link: ByteString?
      if hasTimeline, let view {
        let name = stem + "." + run.id + ".html"
        if let reason = TextFile.write(view.timeline, to: folder + name) {
          return "can't write '\(folder)\(name)': \(reason)"
        }
        link = name
      }
      text += row(run, view, link, isRead: hasTimeline || run.failed > 0).bytes
    }
    text += ("</table>\n" + note + "</body>\n</html>\n").bytes
    return TextFile.write(ByteString(text), to: path).map { "can't write '\(path)': \($0)" }
  }

  /// How the timelines of the other runs are seen.
  private var note: ByteString {
    let rest = runs.count - Self.mostTimelines
    guard rest > 0 else { return "" }
    return "<p>The newest \(Self.mostTimelines) runs have timelines; of the \(rest) others "
      + "<code>flowlua --show RUN --timeline FILE</code> writes one.</p>\n"
  }

  /// The folder of the page, with a slash; empty for the present one.
  private var folder: ByteString {
    guard let slash = path.bytes.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return ByteString(path.bytes[...slash])
  }

  /// The name of the page without `.html`.
  private var stem: ByteString {
    let name = path.fileName
    return name.hasSuffix(".html") ? ByteString(name.bytes.dropLast(5)) : name
  }

  private func row(
    _ run: KeptRunSummary, _ view: KeptRunView?, _ link: ByteString?, isRead: Bool
  ) -> ByteString {
    let id = Self.escaped(run.id)
    let cell =
      link.map { "<a href=\"\(Self.escaped(Self.encoded($0)))\">\(id)</a>" as ByteString } ?? id
    var notes: [ByteString] = []
    if view == nil, isRead { notes.append("it can't be read: flowlua --verify shows why") }
    for record in view?.records.filter({ $0.state == .failed }).prefix(5) ?? [] {
      let error = record.error.map { ": \($0.onOneLine)" as ByteString } ?? ""
      notes.append("[\(record.path.onOneLine)]\(error)")
    }
    for wait in run.word == "finished" ? [] : (try? store.waits(of: run.id)) ?? [] {
      notes.append(KeptRunText.line(of: wait, in: run.id))
    }
    let usual = usualDuration(of: run).map { " (usually \(Self.text($0)))" as ByteString } ?? ""
    let ops: ByteString =
      "\(run.finished) finished"
      + (run.failed > 0 ? ", \(run.failed) failed" : "")
      + (run.started + run.stopped > 0 ? ", \(run.started + run.stopped) not finished" : "")
    let cells: [ByteString] = [
      cell, Self.escaped(KeptRunText.state(of: run)), KeptRunText.time(run.began),
      Self.text(run.changed - run.began) + usual, ops, Self.escaped(run.script.onOneLine),
      notes.map { Self.escaped($0) }.reduce("") { $0.isEmpty ? $1 : $0 + "<br>" + $1 },
    ]
    let body = cells.map { "<td>\($0)</td>" as ByteString }.reduce("", +)
    return "<tr class=\"\(run.word)\">\(body)</tr>\n"
  }

  /// The median of the finished other runs of the script, in seconds; nil without any.
  private func usualDuration(of run: KeptRunSummary) -> Double? {
    guard let times = durations[run.script] else { return nil }
    guard run.word == "finished" else { return times[times.count / 2] }
    if times.count == 1 { return nil }
    let middle = (times.count - 1) / 2
    // Without its own, which moves the later ones.
    return run.changed - run.began <= times[middle] ? times[middle + 1] : times[middle]
  }

  private static func text(_ seconds: Double) -> ByteString {
    Durations.text(of: Int64(exactly: (max(0, seconds) * 1e9).rounded()) ?? 0)
  }

  /// Text for HTML.
  private static func escaped(_ text: ByteString) -> ByteString {
    var bytes: [UInt8] = []
    for byte in text.bytes {
      switch byte {
      case UInt8(ascii: "&"): bytes += "&amp;".bytes
      case UInt8(ascii: "<"): bytes += "&lt;".bytes
      case UInt8(ascii: ">"): bytes += "&gt;".bytes
      case UInt8(ascii: "\""): bytes += "&quot;".bytes
      default: bytes.append(byte)
      }
    }
    return ByteString(bytes)
  }

  /// A name of a file as a relative URL.
  private static func encoded(_ name: ByteString) -> ByteString {
    var bytes: [UInt8] = "./".bytes
    let digits = "0123456789ABCDEF".bytes
    for byte in name.bytes {
      if byte.isLetter || byte.isDigit || "-_.~".bytes.contains(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return ByteString(bytes)
  }

  private static let head: ByteString = """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
    <meta name="viewport" content="width=device-width">
    <title>Kept runs</title>
    <style>
    :root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif }
    table { border-collapse: collapse }
    th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border-bottom: 1px solid #8884 }
    tr.unfinished td:nth-child(2) { color: #b60 }
    tr.failed td:nth-child(2) { color: #c22 }
    tr.executing td:nth-child(2) { color: #07c }
    </style>
    </head>
    <body>
    <h1>Kept runs</h1>
    <table>
    <tr><th>Run</th><th>State</th><th>Began</th><th>Duration</th><th>Ops</th><th>Script</th><th>Notes</th></tr>

    """
}
