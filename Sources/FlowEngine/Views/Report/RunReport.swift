internal import Glibc

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
    return ByteString(Array(text.bytes.drop { $0 == UInt8(ascii: "\n") }))
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
      .joined(separator: Array(", ".utf8))
    return " (\(ByteString(Array(list)))\(problem.count > items.count ? ", …" : ""))"
  }

  private static func appendPath(of run: RunSpans, to text: inout MarkdownText) {
    let parts = CriticalPath(run).parts
    if parts.isEmpty { return }
    text.append("\n### What the run waited for\n\n| part | time | share |\n|---|---:|---:|\n")
    // Parts of less than half a percent are one, if there are several.
    let small = parts.filter { $0.time < run.root.duration / 200 }
    let large = small.count > 1 ? parts.filter { $0.time >= run.root.duration / 200 } : parts
    for part in large.prefix(mostLines) {
      appendPart(label(of: part, run), part.time, of: run, to: &text)
    }
    let rest = large.dropFirst(mostLines) + (small.count > 1 ? small : [])
    if !rest.isEmpty {
      appendPart(
        "\(rest.count) smaller parts", rest.reduce(0) { $0 + $1.time }, of: run, to: &text)
    }
  }

  private static func appendPart(
    _ label: ByteString, _ time: Int64, of run: RunSpans, to text: inout MarkdownText
  ) {
    let share = Double(time) / Double(max(run.root.duration, 1)) * 100
    text.appendRow([label, Durations.text(of: time), "\(decimal(share, tenths: false)) %"])
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
    case .queue: return "\(label): wait for its turn"
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
    return ByteString(
      "\(1900 + Int(parts.tm_year))-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday)) "
        + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) UTC")
  }
}

extension Run {
  /// The run as a report in Markdown: its numbers, its problems merged by op and message, what it waited
  /// for, and its ops. Of a pending run it describes what has happened so far.
  ///
  /// - Returns: Text without secrets, which ends in a newline.
  public func report() -> String { reportBytes().description }
  /// The bytes of `report`.
  package func reportBytes() -> ByteString { RunReport.text(of: RunSpans(self)) }
}
