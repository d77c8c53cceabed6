internal import FlowSystem

/// Reports of runs in Markdown, for people who paste them and for the job summaries of CI services.
package enum RunReport {
  /// How many runs are described one by one.
  private static let mostRuns = 20
  /// How many lines a list or table has.
  static let mostLines = 30

  /// The report of the runs of a program: of several runs a table, and then each of them. Of many, those
  /// that failed and the longest ones are described.
  ///
  /// - Parameters:
  ///   - runs: The runs, in the order of their starts.
  ///   - title: The name of the program.
  /// - Returns: Markdown, which ends in a newline.
  package static func text(of runs: [RunSpans], title: ByteString) -> ByteString {
    var text = MarkdownText()
    text.append("# Runs of \(MarkdownText.code(title))\n")
    if runs.isEmpty { text.append("\nNothing was started.\n") }
    if runs.count > 1 { appendTable(of: runs, to: &text) }
    for run in chosen(runs) { append(run, to: &text) }
    return ByteString(text.bytes)
  }

  /// The report of one run.
  package static func text(of run: RunSpans) -> ByteString {
    var text = MarkdownText()
    append(run, to: &text)
    return ByteString(text.bytes.drop { $0 == UInt8(ascii: "\n") })
  }

  /// The runs that are described, in their order.
  private static func chosen(_ runs: [RunSpans]) -> [RunSpans] {
    if runs.count <= mostRuns { return runs }
    let places = runs.indices.sorted { a, b in
      let (one, other) = (runs[a].root, runs[b].root)
      if (one.outcome == .succeeded) != (other.outcome == .succeeded) {
        return one.outcome != .succeeded
      }
      return one.duration == other.duration ? a < b : one.duration > other.duration
    }
    return places.prefix(mostRuns).sorted().map { runs[$0] }
  }

  private static func appendTable(of runs: [RunSpans], to text: inout MarkdownText) {
    text.append("\n| run | outcome | duration | ops | failed |\n|---|---|---:|---:|---:|\n")
    let shown = runs.count <= mostLines ? runs : chosen(runs)
    for run in shown {
      let numbers = RunStatistics(run)
      text.appendRow([
        cell(run.name), run.root.outcome.name, Durations.text(of: numbers.duration),
        "\(numbers.ops)", "\(numbers.failed)",
      ])
    }
    if shown.count < runs.count {
      text.append(
        "\n\(runs.count) runs; the table has those that failed, and the longest ones.\n")
    }
  }

  // MARK: One run

  private static func append(_ run: RunSpans, to text: inout MarkdownText) {
    text.append("\n## \(MarkdownText.code(run.name, limit: 60)) \(ending(of: run.root))\n\n")
    if let error = run.error(of: run.root) {
      text.append("\(MarkdownText.code(error.message))\n\n")
    }
    let numbers = RunStatistics(run)
    append(numbers, run, to: &text)
    appendProblems(of: run, to: &text)
    appendUndos(numbers, of: run, to: &text)
    appendPath(of: run, to: &text)
    appendOps(numbers, to: &text)
    appendWorks(WorkStatistics(run).tallies, to: &text)
  }

  private static func ending(of root: Span) -> ByteString {
    switch root.outcome {
    case .running: "is still running"
    case .succeeded, .kept: "succeeded"
    case .failed: "failed"
    case .cancelled: "was cancelled"
    }
  }

  private static func append(
    _ numbers: RunStatistics, _ run: RunSpans, to text: inout MarkdownText
  ) {
    var head: [ByteString] = ["duration", "ops", "failed"]
    var row: [ByteString] = [
      Durations.text(of: numbers.duration), "\(numbers.ops)", "\(numbers.failed)",
    ]
    let further: [(ByteString, Int)] = [
      ("cancelled", numbers.cancelled), ("undone", numbers.undone),
      ("undos failed", numbers.undosFailed), ("kept", numbers.kept),
    ]
    for (name, count) in further where count > 0 {
      head.append(name)
      row.append("\(count)")
    }
    head += ["attempts repeated", "work in all", "parallelism on average"]
    row += [
      "\(numbers.repeatedAttempts)", Durations.text(of: numbers.work),
      decimal(numbers.parallelism, tenths: true),
    ]
    if numbers.workers > 0 {
      head.append("workers' use")
      row.append("\(numbers.workers) × \(decimal(numbers.workerUse * 100, tenths: false)) %")
    }
    text.appendRow(head)
    text.append("|\(ByteString(String(repeating: "---:|", count: head.count)))\n")
    text.appendRow(row)
    text.append("\nStarted \(date(run.started)), run \(MarkdownText.code(run.runID)).\n")
    if let note = run.bound.note { text.append("\n\(note).\n") }
  }

  private static func appendProblems(of run: RunSpans, to text: inout MarkdownText) {
    let problems = RunProblem.all(of: run)
    if problems.isEmpty { return }
    text.append("\n### Problems\n\n")
    for problem in problems.prefix(mostLines) {
      text.append("- \(subject(of: problem, run))")
      switch problem.kind {
      case .failed: text.append(" failed: \(MarkdownText.code(problem.message))")
      case .undoFailed:
        text.append(" couldn't be undone: \(MarkdownText.code(problem.message))")
      case .recovered:
        text.append(
          problem.count == 1
            ? " succeeded on attempt \(problem.attempts) after \(MarkdownText.code(problem.message))"
            : " succeeded after \(problem.attempts - problem.count) failed attempts: "
              + MarkdownText.code(problem.message))
      }
      text.append(examples(of: problem, run))
      if problem.longestHold > 0 {
        text.append("; kept its group waiting for \(Durations.text(of: problem.longestHold))")
      }
      text.append("\n")
    }
    if problems.count > mostLines {
      text.append("- and \(problems.count - mostLines) other problems\n")
    }
  }

  /// `FetchOp × 104`, or the path of the only one.
  private static func subject(of problem: RunProblem, _ run: RunSpans) -> ByteString {
    if problem.count == 1, let only = problem.examples.first {
      let path = problem.undo.map { run.path(of: run.undos[$0]) } ?? run.path(of: run.spans[only])
      return MarkdownText.code(path, limit: 120)
    }
    return "\(MarkdownText.code(problem.name, limit: 60)) × \(problem.count)"
  }

  /// `: #108, #1311, …` of the items among several.
  private static func examples(of problem: RunProblem, _ run: RunSpans) -> ByteString {
    let items = problem.examples.map { run.spans[$0] }.filter { $0.index > 0 }
    if problem.count == 1 || items.isEmpty { return "" }
    let list = items.map { MarkdownText.code(run.number(of: $0), limit: 60).bytes }
      .joined(separator: ", ".bytes)
    return " (\(ByteString(list))\(problem.count > items.count ? ", …" : ""))"
  }

  private static func appendPath(of run: RunSpans, to text: inout MarkdownText) {
    let path = CriticalPath(run)
    let parts = path.parts
    if parts.isEmpty { return }
    // Without a graph nothing else would take the time.
    let savings = run.edges.isEmpty ? nil : RunSavings(run)
    let places = savings == nil ? [] : path.allPlaces()
    text.append(
      savings == nil
        ? "\n### What the run waited for\n\n| part | time | share |\n|---|---:|---:|\n"
        : "\n### What the run waited for\n\n| part | time | share | shorter without it |\n|---|---:|---:|---:|\n"
    )
    // Parts of less than half a percent are one, if there are several.
    let small = parts.filter { $0.time < run.root.duration / 200 }
    let large = small.count > 1 ? parts.filter { $0.time >= run.root.duration / 200 } : parts
    for part in large.prefix(mostLines) {
      let saved = savings.map { savings -> ByteString in
        guard part.kind == .execution, !savings.isUnknown(part.longest) else { return "" }
        let time = savings.time { places[$0] == places[part.longest] }
        return Durations.text(of: time)
      }
      appendPart(label(of: part, run), part.time, saved, of: run, to: &text)
    }
    let rest = large.dropFirst(mostLines) + (small.count > 1 ? small : [])
    if !rest.isEmpty {
      appendPart(
        "\(rest.count) smaller parts", rest.reduce(0) { $0 + $1.time }, savings.map { _ in "" },
        of: run, to: &text)
    }
  }

  private static func appendPart(
    _ label: ByteString, _ time: Int64, _ saved: ByteString?, of run: RunSpans,
    to text: inout MarkdownText
  ) {
    let share = Double(time) / Double(max(run.root.duration, 1)) * 100
    var row = [label, Durations.text(of: time), "\(decimal(share, tenths: false)) %"]
    if let saved { row.append(saved) }
    text.appendRow(row)
  }

  private static func label(of part: CriticalPath.Part, _ run: RunSpans) -> ByteString {
    let span = run.spans[part.longest]
    var label: ByteString
    if part.count == 1 {
      label = MarkdownText.code(run.path(of: span), limit: 120, isCell: true)
    } else {
      let longest = MarkdownText.code(run.number(of: span), limit: 60, isCell: true)
      let time = Durations.text(of: part.longestTime)
      let place = MarkdownText.code(run.place(of: span), limit: 120, isCell: true)
      label = "\(place) × \(part.count)"
      if span.index > 0 { label = "\(label), the longest: \(longest) with \(time)" }
    }
    switch part.kind {
    case .execution: return label
    case .retryDelay: return "\(label): delay before another attempt"
    case .queue:
      guard let limits = run.limits(of: span) else { return "\(label): wait for its turn" }
      let shown = MarkdownText.code(limits, limit: 60, isCell: true)
      return "\(label): queued \(Durations.text(of: part.time)) for \(shown)"
    case .undo: return "undo of \(label)"
    case .own:
      return span.kind == .group ? "\(label): the group itself" : "\(label): the flow itself"
    }
  }

  static func cell(_ name: ByteString) -> ByteString {
    MarkdownText.code(name, limit: 60, isCell: true)
  }

  private static func decimal(_ number: Double, tenths: Bool) -> ByteString {
    FlowValue.text(ofSeconds: tenths ? (number * 10).rounded() / 10 : number.rounded())
  }

  /// A time since 1970 in nanoseconds as `2000-01-01 16:17:18 UTC`.
  private static func date(_ nanoseconds: Int64) -> ByteString {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    guard gmtime_r(&seconds, &parts) != nil else { return "" }
    func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return
      "\(1900 + Int(parts.tm_year))-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
      + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC"
  }
}

extension Run {
  /// The run as a report in Markdown: its numbers, its problems merged by op and message, what it waited
  /// for, and its ops. Of a pending run it describes what has happened so far.
  ///
  /// ```swift
  /// try run.waitUntilEnd()
  /// if run.state != .succeeded { print(run.report()) }
  /// ```
  ///
  /// - Returns: Text without secrets, which ends in a newline.
  public func report() -> ByteString { RunReport.text(of: RunSpans(self)) }
}

// The tables of a report.
extension RunReport {
  /// Appends the undone ops, those that couldn't be, and those that are being undone.
  static func appendUndos(
    _ numbers: RunStatistics, of run: RunSpans, to text: inout MarkdownText
  ) {
    if run.undos.isEmpty { return }
    text.append("\n### Undos\n")
    let ops = numbers.byOp.filter { $0.undone > 0 || $0.undosFailed > 0 }
      .sorted { ($0.undoTotal, $1.name) > ($1.undoTotal, $0.name) }
    if !ops.isEmpty {
      text.append("\n| op | undone | failed | total | longest |\n|---|---:|---:|---:|---:|\n")
    }
    for op in ops.prefix(mostLines) {
      text.appendRow([
        cell(op.name), "\(op.undone)", "\(op.undosFailed)", Durations.text(of: op.undoTotal),
        Durations.text(of: op.longestUndo),
      ])
    }
    if ops.count > mostLines {
      text.append("\n\(ops.count) ops; the table has those with the greatest totals.\n")
    }
    let open = run.undos.filter { $0.outcome == .running }
    for undo in open.prefix(mostLines) {
      let path = MarkdownText.code(run.path(of: undo), limit: 120)
      text.append("\n\(path) is being undone for \(Durations.text(of: undo.duration)).\n")
    }
  }

  static func appendOps(_ numbers: RunStatistics, to text: inout MarkdownText) {
    let ops = numbers.byOp.filter { $0.runs > 0 || $0.kept > 0 }
    if ops.isEmpty { return }
    let hasKept = numbers.kept > 0
    var head: [ByteString] = ["op", "runs"]
    if hasKept { head.append("kept") }
    head += ["failed", "retried", "total", "median", "95 %", "longest", "longest queued"]
    text.append("\n### Ops\n\n")
    text.appendRow(head)
    text.append("|---|\(ByteString(String(repeating: "---:|", count: head.count - 1)))\n")
    for op in ops.prefix(mostLines) {
      var row: [ByteString] = [cell(op.name), "\(op.runs)"]
      if hasKept { row.append("\(op.kept)") }
      row += ["\(op.failed)", "\(op.retried)"]
      row += [op.total, op.median, op.percentile95, op.longest].map { Durations.text(of: $0) }
      let limits: ByteString = op.queuedFor.map { " for \(cell($0))" } ?? ""
      row.append(Durations.text(of: op.longestQueued) + limits)
      text.appendRow(row)
    }
    if ops.count > mostLines {
      text.append("\n\(ops.count) ops; the table has those with the greatest totals.\n")
    }
  }

  static func appendWorks(
    _ works: [WorkStatistics.Tally], to text: inout MarkdownText
  ) {
    if works.isEmpty { return }
    text.append(
      """

      ### Programs and requests

      | program or server | runs | failed | total | median | longest |
      |---|---:|---:|---:|---:|---:|

      """)
    for work in works.prefix(mostLines) {
      text.appendRow([
        cell(work.name), "\(work.runs)", "\(work.failed)", Durations.text(of: work.total),
        Durations.text(of: work.median), Durations.text(of: work.longest),
      ])
    }
    if works.count > mostLines {
      text.append("\n\(works.count) in all; the table has those with the greatest totals.\n")
    }
  }
}

/// Markdown that a program writes itself. Names and messages come from scripts and servers, so that they are
/// put into code spans: nothing in them is a tag, a link, a mention or a cell of a table.
struct MarkdownText {
  private(set) var bytes: [UInt8] = []

  /// Appends what is Markdown already.
  mutating func append(_ text: ByteString) { bytes += text.bytes }

  /// Appends a row of a table.
  mutating func appendRow(_ cells: [ByteString]) {
    append("| \(cells.joined(separator: " | ")) |\n")
  }

  /// A text in a code span, on one line and with at most so many characters.
  ///
  /// - Parameters:
  ///   - text: Any bytes.
  ///   - limit: The number of characters before it is cut.
  ///   - isCell: Whether it is in a table, where a bar separates cells even in code.
  /// - Returns: The code span, with its marks.
  static func code(_ text: ByteString, limit: Int = 160, isCell: Bool = false) -> ByteString {
    var shown: [UInt8] = []
    var fence = 1
    var ticks = 0
    for byte in text.truncated(to: limit).onOneLine.truncated(to: limit).bytes {
      ticks = byte == UInt8(ascii: "`") ? ticks + 1 : 0
      fence = max(fence, ticks + 1)
      if byte == UInt8(ascii: "|"), isCell { shown.append(UInt8(ascii: "\\")) }
      shown.append(byte)
    }
    // A code span without anything to see isn't one; a space at both ends isn't shown.
    if shown.allSatisfy({ $0 == UInt8(ascii: " ") }) { shown = "\u{2423}".bytes }
    let edges = [shown.first, shown.last]
    let isPadded =
      edges.contains(UInt8(ascii: "`")) || edges.allSatisfy { $0 == UInt8(ascii: " ") }
    let marks = ByteString(Array(repeating: UInt8(ascii: "`"), count: fence))
    let content = ByteString(shown)
    return isPadded ? "\(marks) \(content) \(marks)" : "\(marks)\(content)\(marks)"
  }
}
