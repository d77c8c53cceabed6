internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// What a timeline page shows of a run, as JSON: columns of numbers, so that 100,000 spans take less than
/// 3 MB.
///
/// A column of growing numbers has the differences between neighbours. Times are microseconds, and -1 is the
/// length of what is running. See `Page/spans.js`, which reads it.
struct TimelineData {
  /// Beyond it only what is conspicuous is kept, and a sample of the rest.
  static let mostSpans = 200_000
  static let mostWorks = 100_000

  private let run: RunSpans
  private let mostWorks: Int
  private let numbers: RunStatistics
  /// The indices of the spans that are shown, and the place of each among them; -1 for the others.
  private let shown: [Int]
  private let placeOfSpan: [Int32]

  init(
    _ run: RunSpans, mostSpans: Int = TimelineData.mostSpans,
    mostWorks: Int = TimelineData.mostWorks
  ) {
    self.run = run
    numbers = RunStatistics(run)
    self.mostWorks = mostWorks
    shown = Self.choose(run, mostSpans)
    var places = [Int32](repeating: -1, count: run.spans.count)
    for (place, index) in shown.enumerated() {
      places[index] = Int32(truncatingIfNeeded: place)
    }
    placeOfSpan = places
  }

  // MARK: Choice

  /// All spans, or failures, retries, what runs, the slowest one percent and a sample, with what encloses
  /// them.
  private static func choose(_ run: RunSpans, _ most: Int) -> [Int] {
    let spans = run.spans
    guard spans.count > most else { return Array(spans.indices) }
    var keeps = [Bool](repeating: false, count: spans.count)
    var durations = spans.map(\.duration)
    durations.sort()
    let slow = durations[durations.count - 1 - durations.count / 100]
    let step = max(1, spans.count / max(1, most / 2))
    for (index, span) in spans.enumerated() {
      keeps[index] =
        span.childCount > 0 || !span.outcome.isSuccess || span.retryCount > 0
        || span.duration > slow || index % step == 0
    }
    for undo in run.undos { keeps[Int(undo.parent)] = true }
    // Each span comes after its parent.
    for index in spans.indices.reversed() where keeps[index] && spans[index].parent >= 0 {
      keeps[Int(spans[index].parent)] = true
    }
    // What is conspicuous may itself be too much.
    return Array(spans.indices.filter { keeps[$0] }.prefix(most))
  }

  // MARK: Text

  /// Appends the run, with the name of the script that started it, if that is known, its id in the store if it is
  /// kept, and the text of its summary.
  func append(
    to text: inout JSONText, place: ByteString, keptRun: ByteString?, summary: ByteString
  ) {
    let root = run.root
    append("{\"name\":", run.name, to: &text)
    append(",\"id\":", run.runID, to: &text)
    append(",\"state\":", root.outcome.name, to: &text)
    append(",\"error\":", run.error(of: root)?.message ?? "", to: &text)
    append(",\"place\":", place, to: &text)
    append(",\"kept\":", keptRun ?? "", to: &text)
    append(",\"began\":", Double(run.started) / 1e9, to: &text)
    append(",\"duration\":", seconds(root.duration), to: &text)
    appendNumbers(to: &text)
    appendProblems(to: &text)
    appendPath(to: &text)
    appendOps(to: &text)
    text.append(raw: ",\"names\":[")
    for (index, name) in run.names.enumerated() { append(index > 0 ? "," : "", name, to: &text) }
    text.append(raw: "]")
    appendSpans(to: &text)
    append(",\"summary\":", summary, to: &text)
    append(",\"dropped\":", run.bound.note ?? "", to: &text)
    text.append(raw: ",\"omitted\":\(run.spans.count - shown.count)}")
  }

  private func append(_ start: String, _ value: ByteString, to text: inout JSONText) {
    text.append(raw: start)
    text.append(value)
  }

  private func append(_ start: String, _ value: Double, to text: inout JSONText) {
    text.append(raw: start)
    text.append(value)
  }

  private func seconds(_ nanoseconds: Int64) -> Double {
    Double(Self.microseconds(nanoseconds)) / 1e6
  }

  private static func microseconds(_ nanoseconds: Int64) -> Int64 {
    nanoseconds.later(by: 500) / 1000
  }

  private func appendNumbers(to text: inout JSONText) {
    text.append(
      raw: ",\"numbers\":{\"ops\":\(numbers.ops),\"failed\":\(numbers.failed)"
        + ",\"repeated\":\(numbers.repeatedAttempts),\"workers\":\(numbers.workers)"
        + ",\"kept\":\(numbers.kept),\"undone\":\(numbers.undone)"
        + ",\"undosFailed\":\(numbers.undosFailed)")
    append(",\"work\":", seconds(numbers.work), to: &text)
    append(",\"parallel\":", numbers.parallelism, to: &text)
    append(",\"use\":", numbers.workerUse, to: &text)
    text.append(raw: "}")
  }

  private func appendProblems(to text: inout JSONText) {
    text.append(raw: ",\"problems\":[")
    for (index, problem) in RunProblem.all(of: run).prefix(20).enumerated() {
      let isFailure = problem.kind != .recovered
      var title = problem.count == 1 ? "" : "\(problem.name) × \(problem.count)" as ByteString
      var note: [ByteString] = []
      if problem.count == 1, let only = problem.examples.first {
        title = place(
          problem.undo.map { run.path(of: run.undos[$0]) } ?? run.path(of: run.spans[only]))
        if isFailure, problem.attempts > 1 { note.append("after \(problem.attempts) attempts") }
        if !isFailure { note.append("succeeded on attempt \(problem.attempts)") }
      } else {
        let items = problem.examples.map { run.spans[$0].index }.filter { $0 > 0 }
        if !items.isEmpty {
          let list = items.map { "#\($0)" }.joined(separator: ", ")
          note.append(ByteString(problem.count > items.count ? list + ", …" : list))
        }
        if !isFailure {
          note.append("succeeded after \(problem.attempts - problem.count) repeated attempts")
        }
      }
      if problem.kind == .undoFailed { title = "\(title) couldn't be undone" }
      if problem.longestHold > 0 {
        note.append("kept the group waiting, \(Durations.text(of: problem.longestHold))")
      }
      text.append(raw: index > 0 ? ",{" : "{")
      append("\"title\":", title, to: &text)
      append(",\"message\":", problem.message, to: &text)
      let notes = ByteString(note.map(\.bytes).joined(separator: Array("; ".utf8)))
      append(",\"note\":", notes, to: &text)
      let place = problem.examples.lazy.map { Int(placeOfSpan[$0]) }.first { $0 >= 0 } ?? -1
      text.append(raw: ",\"severity\":\"\(isFailure ? "error" : "warning")\",\"span\":\(place)")
      if let undo = problem.undo {
        append(",\"start\":", seconds(run.undos[undo].start), to: &text)
        append(",\"length\":", seconds(run.undos[undo].duration), to: &text)
      }
      text.append(raw: "}")
    }
    text.append(raw: "]")
  }

  /// A path without the name of the run, which the page has already.
  private func place(_ path: ByteString) -> ByteString {
    let start = run.name.bytes + [UInt8(ascii: "/")]
    guard path.bytes.starts(with: start) else { return path }
    return ByteString(path.bytes[start.count...])
  }

  /// The stretches of the critical path; neighbours at one place of the flow are one step.
  private func appendPath(to text: inout JSONText) {
    text.append(raw: ",\"path\":[")
    var isFirst = true
    for step in CriticalPath(run).steps {
      let span = run.spans[step.longest]
      var title = run.displayName(of: span)
      if step.count > 1 { title = "\(run.name(of: span)) × \(step.count)" }
      switch step.kind {
      case .execution: break
      case .retryDelay: title = "\(title), retry delay"
      case .queue: title = "\(title), queued"
      case .undo: title = "undo \(title)"
      case .own: title = span.parent < 0 ? "the run itself" : "\(title), itself"
      }
      text.append(raw: isFirst ? "{" : ",{")
      isFirst = false
      append("\"title\":", title, to: &text)
      append(",\"start\":", seconds(step.start), to: &text)
      append(",\"length\":", seconds(step.end - step.start), to: &text)
      append(",\"waited\":", seconds(step.waited), to: &text)
      let kind =
        switch step.kind {
        case .execution: "work"
        case .undo: "undo"
        case .retryDelay, .queue, .own: "wait"
        }
      text.append(raw: ",\"kind\":\"\(kind)\",\"span\":\(placeOfSpan[step.longest])}")
    }
    text.append(raw: "]")
  }

  private func appendOps(to text: inout JSONText) {
    text.append(raw: ",\"ops\":[")
    for (index, op) in numbers.byOp.enumerated() {
      append(index > 0 ? ",{\"name\":" : "{\"name\":", op.name, to: &text)
      text.append(raw: ",\"runs\":\(op.runs),\"failed\":\(op.failed),\"retried\":\(op.retried)")
      if op.kept > 0 { text.append(raw: ",\"kept\":\(op.kept)") }
      if op.undone > 0 { text.append(raw: ",\"undone\":\(op.undone)") }
      if op.undosFailed > 0 { text.append(raw: ",\"undosFailed\":\(op.undosFailed)") }
      append(",\"total\":", seconds(op.total), to: &text)
      append(",\"median\":", seconds(op.median), to: &text)
      append(",\"p95\":", seconds(op.percentile95), to: &text)
      append(",\"longest\":", seconds(op.longest), to: &text)
      append(",\"queued\":", seconds(op.longestQueued), to: &text)
      text.append(raw: "}")
    }
    text.append(raw: "]")
  }

  // MARK: Spans

  private func appendSpans(to text: inout JSONText) {
    text.append(raw: ",\"spans\":{\"name\":[")
    appendDifferences(to: &text) { Int64($0.name) }
    text.append(raw: "],\"index\":[")
    appendDifferences(to: &text) { Int64($0.index) }
    text.append(raw: "],\"parent\":[")
    appendDifferences(to: &text) { $0.parent < 0 ? -1 : Int64(placeOfSpan[Int($0.parent)]) }
    text.append(raw: "],\"start\":[")
    appendDifferences(to: &text) { Self.microseconds($0.start) }
    text.append(raw: "],\"length\":[")
    text.append(
      shown.lazy.map { index in
        let span = run.spans[index]
        return span.outcome == .running
          ? -1 : Self.microseconds(span.end) - Self.microseconds(span.start)
      })
    text.append(raw: "],\"kind\":[")
    text.append(shown.lazy.map { Int64(run.spans[$0].kind.rawValue) })
    text.append(raw: "],\"state\":[")
    text.append(
      shown.lazy.map { index in
        let span = run.spans[index]
        return Int64((span.isKept ? .kept : span.outcome).rawValue)
      })
    text.append(raw: "],\"lane\":[")
    text.append(shown.lazy.map { Int64(run.spans[$0].lane) })
    text.append(raw: "],\"lanes\":{")
    for (index, lane) in run.lanes.sorted(by: { $0.key < $1.key }).enumerated() {
      append(index > 0 ? ",\"\(lane.key)\":" : "\"\(lane.key)\":", lane.value, to: &text)
    }
    text.append(raw: "}},\"attempts\":[")
    appendAttempts(to: &text)
    text.append(raw: "],\"works\":[")
    appendWorks(to: &text)
    text.append(raw: "],\"undos\":[")
    appendUndos(to: &text)
    text.append(raw: "],\"messages\":{")
    appendTexts(to: &text) { run.error(of: $0)?.message ?? run.keptLine(of: $0) }
    text.append(raw: "},\"labels\":{")
    appendTexts(to: &text) { run.label(of: $0) }
    text.append(raw: "}")
  }

  private func appendDifferences(to text: inout JSONText, _ number: (Span) -> Int64) {
    var last: Int64 = 0
    text.append(
      shown.map { index in
        let next = number(run.spans[index])
        defer { last = next }
        return next - last
      })
  }

  private func appendAttempts(to text: inout JSONText) {
    var isFirst = true
    for (place, index) in shown.enumerated() where run.spans[index].retryCount > 0 {
      let attempts = run.attempts(of: run.spans[index])
      for (number, attempt) in attempts.enumerated() {
        let next = number + 1 < attempts.count ? attempts[number + 1].start : attempt.end
        let start = Self.microseconds(attempt.start)
        let end = Self.microseconds(attempt.end)
        text.append(raw: isFirst ? "[" : ",[")
        isFirst = false
        text.append([
          Int64(place), start, end - start, attempt.outcome == .failed ? 1 : 0,
          Self.microseconds(next) - end,
        ])
        append(",", attempt.message ?? "", to: &text)
        text.append(raw: "]")
      }
    }
  }

  /// The programs and requests of the spans that are shown; of very many the first ones.
  private func appendWorks(to text: inout JSONText) {
    var isFirst = true
    let works = run.works.lazy.filter { $0.work.kind != .wait }
    for work in works.prefix(mostWorks) where placeOfSpan[Int(work.parent)] >= 0 {
      text.append(raw: isFirst ? "[" : ",[")
      isFirst = false
      let start = Self.microseconds(work.start)
      text.append([
        Int64(placeOfSpan[Int(work.parent)]), start,
        work.work.outcome == .running ? -1 : Self.microseconds(work.end) - start,
        work.work.outcome == .succeeded || work.work.outcome == .running ? 0 : 1,
      ])
      append(",", work.work.title.truncated(to: 160), to: &text)
      append(",", ending(of: work.work), to: &text)
      text.append(raw: "]")
    }
  }

  /// The undos of the spans that are shown; of very many those that have failed, and the first ones.
  private func appendUndos(to text: inout JSONText) {
    var isFirst = true
    var left = mostWorks
    for undo in run.undos where placeOfSpan[Int(undo.parent)] >= 0 {
      if left <= 0, undo.error == nil { continue }
      left -= 1
      text.append(raw: isFirst ? "[" : ",[")
      isFirst = false
      let start = Self.microseconds(undo.start)
      text.append([
        Int64(placeOfSpan[Int(undo.parent)]), start,
        undo.outcome == .running ? -1 : Self.microseconds(undo.end) - start,
        Int64(undo.outcome.rawValue),
      ])
      append(",", undo.isOfSpan ? "" : undo.name, to: &text)
      append(",", undo.error?.truncated(to: 500) ?? "", to: &text)
      text.append(raw: "]")
    }
  }

  /// How a program or request ended: `status 3`, `404, 14 kB`.
  private func ending(of work: LoggedWork) -> ByteString {
    if work.outcome == .running { return "running" }
    if let signal = work.signal { return "signal \(signal)" }
    guard let status = work.status else { return work.error?.truncated(to: 200) ?? "" }
    let count = work.byteCount.map { ", \($0) bytes" as ByteString } ?? ""
    return (work.kind == .program ? "status \(status)" : "\(status)") + count
  }

  /// Texts that few spans have, by the places of the spans.
  private func appendTexts(to text: inout JSONText, _ value: (Span) -> ByteString?) {
    var isFirst = true
    for (place, index) in shown.enumerated() {
      guard let value = value(run.spans[index]), !value.isEmpty else { continue }
      append("\(isFirst ? "" : ",")\"\(place)\":", value.truncated(to: 500), to: &text)
      isFirst = false
    }
  }
}
