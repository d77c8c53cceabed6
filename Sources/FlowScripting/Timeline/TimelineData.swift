internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The data of a run for a timeline page, as JSON: columns of numbers, so that 100,000 spans take less than
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
    // The conspicuous spans may themselves be too many.
    return Array(spans.indices.filter { keeps[$0] }.prefix(most))
  }

  // MARK: Text

  /// Appends the run with the text of its summary; with the name of the script that started it, if that is known, and
  /// its id in the store if it is kept.
  func append(
    to text: inout JSONText, place: ByteString, keptRun: ByteString?, summary: ByteString
  ) {
    let root = run.root
    text.object { text in
      text.field("name", run.name)
      text.field("id", run.runID)
      text.field("state", root.outcome.name)
      text.field("error", run.error(of: root)?.message ?? "")
      text.field("place", place)
      text.field("kept", keptRun ?? "")
      text.field("began", Double(run.started) / 1e9)
      text.field("duration", seconds(root.duration))
      text.object("numbers") { append(numbers, to: &$0) }
      text.list("problems") { appendProblems(to: &$0) }
      text.list("path") { appendPath(to: &$0) }
      text.list("ops") { appendOps(to: &$0) }
      text.list("names") { text in
        for name in run.names { text.element(name) }
      }
      appendSpans(to: &text)
      text.field("summary", summary)
      text.field("dropped", run.bound.note ?? "")
      text.field("omitted", run.spans.count - shown.count)
    }
  }

  private func seconds(_ nanoseconds: Int64) -> Double {
    Double(Self.microseconds(nanoseconds)) / 1e6
  }

  private static func microseconds(_ nanoseconds: Int64) -> Int64 {
    nanoseconds.later(by: 500) / 1000
  }

  private func append(_ numbers: RunStatistics, to text: inout JSONText) {
    text.field("ops", numbers.ops)
    text.field("failed", numbers.failed)
    text.field("repeated", numbers.repeatedAttempts)
    text.field("workers", numbers.workers)
    text.field("kept", numbers.kept)
    text.field("undone", numbers.undone)
    text.field("undosFailed", numbers.undosFailed)
    text.field("work", seconds(numbers.work))
    text.field("parallel", numbers.parallelism)
    text.field("use", numbers.workerUse)
  }

  private func appendProblems(to text: inout JSONText) {
    for problem in RunProblem.all(of: run).prefix(20) {
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
          note.append(problem.count > items.count ? list + ", …" : list)
        }
        if !isFailure {
          note.append("succeeded after \(problem.attempts - problem.count) repeated attempts")
        }
      }
      if problem.kind == .undoFailed { title = "\(title) couldn't be undone" }
      if problem.longestHold > 0 {
        note.append("kept the group waiting, \(Durations.text(of: problem.longestHold))")
      }
      let place = problem.examples.lazy.map { Int(placeOfSpan[$0]) }.first { $0 >= 0 } ?? -1
      text.separate()
      text.object {
        $0.field("title", title)
        $0.field("message", problem.message)
        $0.field("note", note.joined(separator: "; "))
        $0.field("severity", isFailure ? "error" : "warning")
        $0.field("span", place)
        guard let undo = problem.undo else { return }
        $0.field("start", seconds(run.undos[undo].start))
        $0.field("length", seconds(run.undos[undo].duration))
      }
    }
  }

  /// A path without the name of the run, which the page has already.
  private func place(_ path: ByteString) -> ByteString {
    let start = run.name.bytes + [UInt8(ascii: "/")]
    guard path.bytes.starts(with: start) else { return path }
    return ByteString(path.bytes[start.count...])
  }

  /// The stretches of the critical path; neighbours at one place of the flow are one step.
  private func appendPath(to text: inout JSONText) {
    for step in CriticalPath(run).steps {
      let span = run.spans[step.longest]
      var title = run.displayName(of: span)
      if step.count > 1 { title = "\(run.name(of: span)) × \(step.count)" }
      switch step.kind {
      case .execution: break
      case .retryDelay: title = "\(title), retry delay"
      case .queue:
        title = "\(title), queued"
        if let limits = run.limits(of: span) { title = "\(title) for \(limits)" }
      case .undo: title = "undo \(title)"
      case .own: title = span.parent < 0 ? "the run itself" : "\(title), itself"
      }
      let kind: ByteString =
        switch step.kind {
        case .execution: "work"
        case .undo: "undo"
        case .retryDelay, .queue, .own: "wait"
        }
      text.separate()
      text.object {
        $0.field("title", title)
        $0.field("start", seconds(step.start))
        $0.field("length", seconds(step.end - step.start))
        $0.field("waited", seconds(step.waited))
        $0.field("kind", kind)
        $0.field("span", placeOfSpan[step.longest])
      }
    }
  }

  private func appendOps(to text: inout JSONText) {
    for op in numbers.byOp {
      text.separate()
      text.object {
        $0.field("name", op.name)
        $0.field("runs", op.runs)
        $0.field("failed", op.failed)
        $0.field("retried", op.retried)
        if op.kept > 0 { $0.field("kept", op.kept) }
        if op.undone > 0 { $0.field("undone", op.undone) }
        if op.undosFailed > 0 { $0.field("undosFailed", op.undosFailed) }
        $0.field("total", seconds(op.total))
        $0.field("median", seconds(op.median))
        $0.field("p95", seconds(op.percentile95))
        $0.field("longest", seconds(op.longest))
        $0.field("queued", seconds(op.longestQueued))
      }
    }
  }

  // MARK: Spans

  private func appendSpans(to text: inout JSONText) {
    text.object("spans") { text in
      appendDifferences("name", to: &text) { Int64($0.name) }
      appendDifferences("index", to: &text) { Int64($0.index) }
      appendDifferences("parent", to: &text) {
        $0.parent < 0 ? -1 : Int64(placeOfSpan[Int($0.parent)])
      }
      appendDifferences("start", to: &text) { Self.microseconds($0.start) }
      appendNumbers("length", to: &text) {
        $0.outcome == .running ? -1 : Self.microseconds($0.end) - Self.microseconds($0.start)
      }
      appendNumbers("kind", to: &text) { Int64($0.kind.rawValue) }
      appendNumbers("state", to: &text) { Int64(($0.isKept ? .kept : $0.outcome).rawValue) }
      appendNumbers("lane", to: &text) { Int64($0.lane) }
      text.object("lanes") {
        for (lane, name) in run.lanes.sorted(by: { $0.key < $1.key }) { $0.field("\(lane)", name) }
      }
    }
    text.list("attempts") { appendAttempts(to: &$0) }
    text.list("works") { appendWorks(to: &$0) }
    text.list("undos") { appendUndos(to: &$0) }
    text.list("edges") { appendEdges(to: &$0) }
    text.object("messages") {
      appendTexts(to: &$0) { run.error(of: $0)?.message ?? run.keptLine(of: $0) }
    }
    text.list("queues") { appendQueues(to: &$0) }
    text.object("labels") { appendTexts(to: &$0) { run.label(of: $0) } }
  }

  /// A column of the spans that are shown.
  private func appendNumbers(
    _ name: ByteString, to text: inout JSONText, _ number: (Span) -> Int64
  ) {
    text.list(name) { $0.append(shown.map { number(run.spans[$0]) }) }
  }

  private func appendDifferences(
    _ name: ByteString, to text: inout JSONText, _ number: (Span) -> Int64
  ) {
    var last: Int64 = 0
    appendNumbers(name, to: &text) { span in
      let next = number(span)
      defer { last = next }
      return next - last
    }
  }

  private func appendAttempts(to text: inout JSONText) {
    for (place, index) in shown.enumerated() where run.spans[index].retryCount > 0 {
      let attempts = run.attempts(of: run.spans[index])
      for (number, attempt) in attempts.enumerated() {
        let next = number + 1 < attempts.count ? attempts[number + 1].start : attempt.end
        let start = Self.microseconds(attempt.start)
        let end = Self.microseconds(attempt.end)
        text.separate()
        text.list {
          $0.append([
            Int64(place), start, end - start, attempt.outcome == .failed ? 1 : 0,
            Self.microseconds(next) - end,
          ])
          $0.element(attempt.message ?? "")
        }
      }
    }
  }

  /// The orders of graphs between spans that are shown: both spans, and the name of the key; of very many the first ones.
  private func appendEdges(to text: inout JSONText) {
    for edge in run.edges.prefix(4 * shown.count) {
      let (from, to) = (placeOfSpan[Int(edge.from)], placeOfSpan[Int(edge.to)])
      guard from >= 0, to >= 0 else { continue }
      text.separate()
      text.list { $0.append([Int64(from), Int64(to), Int64(edge.key)]) }
    }
  }

  /// The waits for limits of the spans that are shown.
  private func appendQueues(to text: inout JSONText) {
    for (place, index) in shown.enumerated() {
      let span = run.spans[index]
      guard let line = run.queuedLine(of: span) else { continue }
      text.separate()
      text.list {
        $0.append([Int64(place), Self.microseconds(span.start) - Self.microseconds(span.queued)])
        $0.element(line.truncated(to: 200))
      }
    }
  }

  /// The programs and requests of the spans that are shown; of very many the first ones.
  private func appendWorks(to text: inout JSONText) {
    let works = run.works.lazy.filter { $0.work.kind != .wait }
    for work in works.prefix(mostWorks) where placeOfSpan[Int(work.parent)] >= 0 {
      let start = Self.microseconds(work.start)
      text.separate()
      text.list {
        $0.append([
          Int64(placeOfSpan[Int(work.parent)]), start,
          work.work.outcome == .running ? -1 : Self.microseconds(work.end) - start,
          work.work.outcome == .succeeded || work.work.outcome == .running ? 0 : 1,
        ])
        $0.element(work.work.title.truncated(to: 160))
        $0.element(ending(of: work.work))
      }
    }
  }

  /// The undos of the spans that are shown; of very many those that have failed, and the first ones.
  private func appendUndos(to text: inout JSONText) {
    var left = mostWorks
    for undo in run.undos where placeOfSpan[Int(undo.parent)] >= 0 {
      if left <= 0, undo.error == nil { continue }
      left -= 1
      let start = Self.microseconds(undo.start)
      text.separate()
      text.list {
        $0.append([
          Int64(placeOfSpan[Int(undo.parent)]), start,
          undo.outcome == .running ? -1 : Self.microseconds(undo.end) - start,
          Int64(undo.outcome.rawValue),
        ])
        $0.element(undo.isOfSpan ? "" : undo.name)
        $0.element(undo.error?.truncated(to: 500) ?? "")
      }
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
    for (place, index) in shown.enumerated() {
      guard let value = value(run.spans[index]), !value.isEmpty else { continue }
      text.field("\(place)", value.truncated(to: 500))
    }
  }
}
