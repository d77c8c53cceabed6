package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Runs as Chrome trace events in JSON, which Perfetto shows: a process for each run, and rows for its
/// executions.
///
/// Each attempt is a slice (`X`), and so is each undo, program, request and logged wait; retries and failures are
/// instants (`i`); the number of executing ops is a counter (`C`). Times are microseconds since the start of the
/// first run.
package struct RunTrace {
  private var text = JSONText()
  private var isFirst = true
  /// When the first run started, in nanoseconds since 1970.
  private let began: Int64

  private init(began: Int64) {
    self.began = began
  }

  /// The trace of these runs; the process of each has the number of its place, from 1 on.
  package static func text(of runs: [RunSpans]) -> ByteString {
    let began = runs.map(\.started).min() ?? 0
    var trace = RunTrace(began: began)
    trace.text.append(raw: "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"started\":")
    trace.text.append(Double(began) / 1e9)
    trace.text.append(raw: "},\"traceEvents\":[")
    for (index, run) in runs.enumerated() { trace.add(run, process: index + 1) }
    trace.text.append(raw: "\n]}\n")
    return ByteString(trace.text.bytes)
  }

  private mutating func add(_ run: RunSpans, process: Int) {
    let rows = SpanRows(run)
    metadata("process_name", process, nil, "name", run.name)
    metadata("process_labels", process, nil, "labels", run.root.outcome.name)
    metadata("process_sort_index", process, nil, "sort_index", process)
    for row in rows.rows.indices {
      metadata("thread_name", process, row, "name", rows.name(of: row))
      metadata("thread_sort_index", process, row, "sort_index", rows.sortIndex(of: row))
    }
    for (index, span) in run.spans.enumerated() {
      add(span, of: run, process, row: rows.rowOfSpan[index])
    }
    for (index, work) in run.works.enumerated() {
      add(work, of: run, process, row: rows.rowOfWork[index])
    }
    for (index, undo) in run.undos.enumerated() {
      add(undo, of: run, process, row: rows.rowOfUndo[index])
    }
    addCounter(run, process)
  }

  private mutating func add(_ span: Span, of run: RunSpans, _ process: Int, row: Int) {
    let name = run.displayName(of: span)
    let path = run.path(of: span)
    let error = run.error(of: span)
    let attempts = run.attempts(of: span)
    for (place, attempt) in attempts.enumerated() {
      begin("X", name, process, row, at: run.started + attempt.start)
      text.append(raw: ",\"dur\":")
      text.append(Double(attempt.end - attempt.start) / 1e3)
      let category = span.isKept ? "kept" : "\(span.kind)"
      text.append(raw: ",\"cat\":\"\(category)\",\"args\":{\"path\":")
      text.append(path)
      // In the log of another run it would mean another execution.
      if !span.isInChildRun {
        text.append(raw: ",\"id\":")
        text.append(Int64(truncatingIfNeeded: span.id))
      }
      if span.parent < 0 {
        text.append(raw: ",\"run\":")
        text.append(run.runID)
      }
      text.append(raw: ",\"op\":")
      text.append(run.name(of: span))
      if span.index > 0 { text.append(raw: ",\"index\":\(span.index)") }
      text.append(raw: ",\"attempt\":\(attempt.number),\"outcome\":\"\(attempt.outcome)\"")
      if let message = attempt.message {
        text.append(raw: ",\"error\":")
        text.append(message)
      }
      if let kind = attempt.errorKind {
        text.append(raw: ",\"error_kind\":")
        text.append(kind.nameBytes)
      }
      if let line = run.keptLine(of: span) {
        text.append(raw: ",\"kept\":")
        text.append(line)
      }
      if place == 0, span.start > span.queued {
        text.append(raw: ",\"queued_ms\":")
        text.append(Double(span.start - span.queued) / 1e6)
      }
      text.append(raw: "}}")
      if attempt.number <= span.retryCount {
        let next = place + 1 < attempts.count ? attempts[place + 1].start : nil
        instant(
          "retry", attempt.message ?? "", path, process, row, at: run.started + attempt.end,
          wait: next.map { $0 - attempt.end })
      }
    }
    if span.outcome == .failed {
      instant("failure", error?.message ?? "", path, process, row, at: run.started + span.end)
    }
  }

  /// An undo, in the row of its op if that is free.
  private mutating func add(_ undo: SpanUndo, of run: RunSpans, _ process: Int, row: Int) {
    let path = run.path(of: undo)
    begin("X", "undo \(undo.name)", process, row, at: run.started + undo.start)
    text.append(raw: ",\"dur\":")
    text.append(Double(undo.duration) / 1e3)
    text.append(raw: ",\"cat\":\"undo\",\"args\":{\"path\":")
    text.append(path)
    text.append(raw: ",\"attempt\":\(undo.attempt),\"outcome\":\"\(undo.outcome)\"")
    if let error = undo.error {
      text.append(raw: ",\"error\":")
      text.append(error)
    }
    if let kind = undo.errorKind {
      text.append(raw: ",\"error_kind\":")
      text.append(kind)
    }
    text.append(raw: "}}")
    if let error = undo.error {
      instant("failure", error, path, process, row, at: run.started + undo.end)
    }
  }

  /// A program or request: a slice within that of its op where nothing else is.
  private mutating func add(_ work: SpanWork, of run: RunSpans, _ process: Int, row: Int) {
    let logged = work.work
    begin("X", logged.name, process, row, at: run.started + work.start)
    text.append(raw: ",\"dur\":")
    text.append(Double(work.end - work.start) / 1e3)
    text.append(raw: ",\"cat\":\"\(logged.kind)\",\"args\":{\"path\":")
    text.append(run.path(of: run.spans[Int(work.parent)]))
    switch logged.kind {
    case .program: text.append(raw: ",\"command\":")
    case .request: text.append(raw: ",\"url\":")
    case .wait: text.append(raw: ",\"for\":")
    }
    text.append(logged.subject)
    text.append(raw: ",\"outcome\":\"\(logged.outcome)\"")
    if let status = logged.status { text.append(raw: ",\"status\":\(status)") }
    if let signal = logged.signal { text.append(raw: ",\"signal\":\(signal)") }
    if let count = logged.byteCount { text.append(raw: ",\"bytes\":\(count)") }
    if let error = logged.error {
      text.append(raw: ",\"error\":")
      text.append(error)
    }
    text.append(raw: "}}")
  }

  /// How many ops and undos execute that execute no other op.
  private mutating func addCounter(_ run: RunSpans, _ process: Int) {
    var changes: [(time: Int64, change: Int)] = []
    for span in run.spans where span.kind == .op && span.childCount == 0 {
      for attempt in run.attempts(of: span) where attempt.end > attempt.start {
        changes.append((attempt.start, 1))
        changes.append((attempt.end, -1))
      }
    }
    for undo in run.undos where undo.end > undo.start {
      changes.append((undo.start, 1))
      changes.append((undo.end, -1))
    }
    changes.sort { $0.time < $1.time }
    var count = 0
    for (index, change) in changes.enumerated() {
      count += change.change
      // Changes at the same time are one.
      if index + 1 < changes.count, changes[index + 1].time == change.time { continue }
      begin("C", "running", process, nil, at: run.started + change.time)
      text.append(raw: ",\"args\":{\"ops\":\(count)}}")
    }
  }

  // MARK: Events

  private mutating func begin(
    _ phase: String, _ name: ByteString, _ process: Int, _ row: Int?, at time: Int64
  ) {
    separate()
    text.append(raw: "{\"ph\":\"\(phase)\",\"name\":")
    text.append(name)
    text.append(raw: ",\"pid\":\(process)")
    if let row { text.append(raw: ",\"tid\":\(row + 1)") }
    text.append(raw: ",\"ts\":")
    text.append(Double(time - began) / 1e3)
  }

  private mutating func instant(
    _ name: ByteString, _ message: ByteString, _ path: ByteString, _ process: Int, _ row: Int,
    at time: Int64, wait: Int64? = nil
  ) {
    begin("i", name, process, row, at: time)
    text.append(raw: ",\"s\":\"t\",\"args\":{\"path\":")
    text.append(path)
    text.append(raw: ",\"message\":")
    text.append(message)
    if let wait {
      text.append(raw: ",\"wait_ms\":")
      text.append(Double(wait) / 1e6)
    }
    text.append(raw: "}}")
  }

  private mutating func metadata(
    _ name: String, _ process: Int, _ row: Int?, _ field: String, _ value: ByteString
  ) {
    beginMetadata(name, process, row, field)
    text.append(value)
    text.append(raw: "}}")
  }

  private mutating func metadata(
    _ name: String, _ process: Int, _ row: Int?, _ field: String, _ value: Int
  ) {
    beginMetadata(name, process, row, field)
    text.append(raw: "\(value)}}")
  }

  private mutating func beginMetadata(_ name: String, _ process: Int, _ row: Int?, _ field: String)
  {
    separate()
    text.append(raw: "{\"ph\":\"M\",\"name\":\"\(name)\",\"pid\":\(process)")
    if let row { text.append(raw: ",\"tid\":\(row + 1)") }
    text.append(raw: ",\"args\":{\"\(field)\":")
  }

  private mutating func separate() {
    text.append(raw: isFirst ? "\n" : ",\n")
    isFirst = false
  }
}
