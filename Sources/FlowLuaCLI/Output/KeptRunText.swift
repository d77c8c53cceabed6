internal import FlowEngine
internal import FlowJournal
internal import FlowScripting
internal import FlowSystem

/// Texts about kept runs, for people.
enum KeptRunText {
  /// A line for each run, after the names of the columns.
  static func table(of runs: [KeptRunSummary]) -> ByteString {
    var rows: [[ByteString]] = [["RUN", "STATE", "BEGAN", "CHANGED", "OPS", "SCRIPT"]]
    for run in runs {
      rows.append([
        run.id.onOneLine, state(of: run), time(run.began), time(run.changed), counts(of: run),
        run.script.onOneLine,
      ])
    }
    let last = rows[0].count - 1
    let widths = (0..<last).map { column in rows.map { $0[column].count }.max() ?? 0 }
    var text: [UInt8] = []
    for row in rows {
      for (cell, width) in zip(row, widths) {
        text += cell.bytes + [UInt8](repeating: 0x20, count: width - cell.count + 2)
      }
      text += row[last].bytes + [0x0A]
    }
    return ByteString(text)
  }

  /// The lines about a run as a whole.
  static func head(of run: KeptRunSummary) -> ByteString {
    var lines: [ByteString] = ["run \(run.id.onOneLine): \(state(of: run))"]
    lines.append("  script   \(run.script.onOneLine)")
    if !run.words.isEmpty { lines.append("  words    \(list(run.words.map(quoted), " "))") }
    lines.append("  began    \(time(run.began))")
    lines.append("  changed  \(time(run.changed))")
    lines.append("  executed by \(run.epoch) \(run.epoch == 1 ? "process" : "processes")")
    lines.append("  ops      \(counts(of: run))")
    return list(lines, "\n") + "\n"
  }

  /// The line about a wait of a run.
  static func line(of wait: KeptWait, in run: ByteString) -> ByteString {
    let question = wait.ask.map { " (\($0.onOneLine))" as ByteString } ?? ""
    return "\(run.onOneLine) waits for <\(wait.name.onOneLine)>\(question): flowlua --send "
      + "\(run.onOneLine) \(quoted("\(wait.name)=\(wait.example)"))"
  }

  /// The lines about the execution of an op.
  static func lines(of record: OpRecord) -> ByteString {
    let (flow, name) = names(of: record)
    var notes: [ByteString] = []
    if !flow.isEmpty { notes.append("in \(flow.onOneLine)") }
    if record.attempt > 1 { notes.append("attempt \(record.attempt)") }
    if record.isOnce { notes.append("executed only once") }
    if let place = record.place { notes.append(place.onOneLine) }
    let note = notes.isEmpty ? "" : " (\(list(notes, ", ")))" as ByteString
    let end: ByteString
    switch record.state {
    case .finished: end = "finished in \(duration(of: record))\(note)"
    case .started: end = "started \(time(record.began))\(note)"
    case .undone: end = "undone\(note)"
    case .failed, .stopped:
      let error = record.error.map { ": \($0.onOneLine)" as ByteString } ?? ""
      let what: ByteString = record.state == .failed ? "failed" : "stopped"
      end = "\(what) after \(duration(of: record))\(note)\(error)"
    }
    // The names of other than keys begin with a zero.
    let writes = record.writes.filter { $0.shownName != nil || $0.isResult }
    let changes: ByteString = writes.isEmpty ? "" : "  \(list(writes.map(change), ", "))\n"
    return "[\(name.onOneLine)] \(end)\n\(changes)"
  }

  // MARK: Parts

  static func state(of run: KeptRunSummary) -> ByteString {
    switch run.state {
    case .finished, .unfinished, .failed: run.word
    case .live(let pid, let host):
      host == hostName ? "executing (pid \(pid))" : "executing (pid \(pid) on \(host.onOneLine))"
    }
  }

  /// The name of this computer.
  private static let hostName: ByteString = {
    var name = utsname()
    guard uname(&name) == 0 else { return "" }
    return withUnsafeBytes(of: &name.nodename) { ByteString($0.prefix { $0 != 0 }) }
  }()

  private static func counts(of run: KeptRunSummary) -> ByteString {
    var parts: [ByteString] = ["\(run.finished) finished"]
    if run.failed > 0 { parts.append("\(run.failed) failed") }
    if run.stopped > 0 { parts.append("\(run.stopped) stopped") }
    if run.undone > 0 { parts.append("\(run.undone) undone") }
    if run.started > 0 { parts.append("\(run.started) started") }
    return list(parts, ", ")
  }

  /// The names of what encloses an op, and its own, such as `UploadOp #7 cat.png`.
  private static func names(of record: OpRecord) -> (flow: ByteString, name: ByteString) {
    let names = KeptSpan(
      path: record.path, op: record.op, label: nil, began: 0, ended: nil, outcome: .running,
      error: nil
    ).names
    return (names.around, names.own)
  }

  private static func change(_ write: KeptWrite) -> ByteString {
    let name = write.isResult ? "its result" : (write.shownName ?? write.name).onOneLine
    switch write.content {
    case .removed: return "removed \(name)"
    case .bytes(let bytes): return "set \(name) (\(size(Int64(bytes.count))))"
    case .file(let file): return "set \(name) (\(size(file.size)))"
    }
  }

  /// A number of bytes: `17 bytes`, `64.5 KiB`.
  private static func size(_ bytes: Int64) -> ByteString {
    if bytes < 1024 { return "\(bytes) \(bytes == 1 ? "byte" : "bytes")" }
    var number = Double(bytes) / 1024
    var units = ["KiB", "MiB", "GiB"][...]
    while number >= 1024, units.count > 1 {
      number /= 1024
      units.removeFirst()
    }
    let tenths = FlowValue.text(ofSeconds: (number * 10).rounded() / 10)
    return "\(tenths) \(units.first ?? "")"
  }

  private static func duration(of record: OpRecord) -> ByteString {
    // A store that isn't what was written may have any number.
    Durations.text(of: Int64(exactly: ((record.ended - record.began) * 1e9).rounded()) ?? 0)
  }

  /// Seconds since 1970 as local time: `2026-11-23 09:05:00`.
  static func time(_ seconds: Double) -> ByteString {
    var parts = tm()
    guard var whole = time_t(exactly: seconds.rounded(.down)), localtime_r(&whole, &parts) != nil
    else { return "unknown" }
    var buffer = [UInt8](repeating: 0, count: 64)
    let length = buffer.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) {
        strftime($0.baseAddress, $0.count, "%Y-%m-%d %H:%M:%S" as String, &parts)
      }
    }
    return ByteString(buffer.prefix(length))
  }

  /// A word of a command line, in quotes if a shell would take it for something else.
  static func quoted(_ word: ByteString) -> ByteString {
    let isPlain = word.bytes.allSatisfy {
      $0 >= 0x80 || "-_./:=,+@%".bytes.contains($0) || $0.isDigit || $0.isLetter
    }
    return isPlain && !word.isEmpty ? word.onOneLine : "'\(word.onOneLine)'"
  }

  private static func list(_ parts: [ByteString], _ separator: String) -> ByteString {
    ByteString(parts.map(\.bytes).joined(separator: Array(separator.utf8)))
  }
}

/// The text that `--why` prints about a run.
enum RehearsalText {
  static func text(of rehearsal: KeptRehearsal, _ run: Run) -> ByteString {
    var lines: [UInt8] = []
    var counts = Counts()
    var place = 0
    let findings = rehearsal.findings
    var item = findings.first.flatMap { Item($0.path) }
    while place < findings.count {
      let first = findings[place]
      let firstItem = item
      var last = place
      var lastNumber = firstItem?.number ?? 0
      item = nil
      // Items of a group about which the same is to be said share a line.
      while last + 1 < findings.count {
        item = Item(findings[last + 1].path)
        guard let firstItem, let next = item, next.number == lastNumber + 1,
          findings[last + 1].line == first.line, next.name == firstItem.name
        else { break }
        lastNumber = next.number
        last += 1
      }
      counts.add(first.verdict, last - place + 1)
      var path = first.path
      if last > place, let firstItem { path = "\(firstItem.path) to #\(lastNumber)" }
      lines += ("[\(path.onOneLine)] \(first.line.onOneLine)\n" as ByteString).bytes
      place = last + 1
    }
    if let unknown = rehearsal.unknown {
      lines +=
        ("what follows [\(unknown.path.onOneLine)] isn't known before it has been executed\n"
        as ByteString).bytes
    }
    return ByteString(lines)
      + "\(run.loop.secrets.redacted(run.name).onOneLine): \(counts.text)\n"
  }

  /// The path of an item of a group.
  private struct Item {
    /// The path without the number.
    let name: ByteString
    /// The path without the label.
    let path: ByteString
    let number: Int

    init?(_ path: ByteString) {
      guard let sign = path.itemSign else { return nil }
      let digits = path.bytes[(sign + 2)...].prefix(while: \.isDigit)
      guard let number = Int(String(decoding: digits, as: UTF8.self)) else { return nil }
      name = ByteString(path.bytes[..<sign])
      self.path = ByteString(path.bytes[..<digits.endIndex])
      self.number = number
    }
  }

  private struct Counts {
    private var kept = 0
    private var again = 0
    private var new = 0
    private var questions = 0

    mutating func add(_ verdict: KeptRehearsal.Verdict, _ count: Int) {
      switch verdict {
      case .kept: kept += count
      case .again: again += count
      case .new: new += count
      case .question: questions += count
      case .unknown: break
      }
    }

    var text: ByteString {
      var parts: [ByteString] = []
      if kept > 0 { parts.append("\(kept) kept") }
      if again > 0 { parts.append("\(again) again") }
      if new > 0 { parts.append("\(new) new") }
      if questions > 0 { parts.append("\(questions) to be settled") }
      return parts.isEmpty ? "no ops" : parts.reduce("") { $0.isEmpty ? $1 : $0 + ", " + $1 }
    }
  }
}
