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
    trace.text.append(raw: "{")
    trace.text.field("displayTimeUnit", "ms")
    trace.text.object("otherData") { $0.field("started", Double(began) / 1e9) }
    trace.text.append(raw: ",\"traceEvents\":[")
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
      add("X", name, process, row, at: run.started + attempt.start) {
        $0.field("dur", Double(attempt.end - attempt.start) / 1e3)
        $0.field("cat", span.isKept ? "kept" : ByteString(String(describing: span.kind)))
        $0.object("args") {
          $0.field("path", path)
          // In the log of another run it would mean another execution.
          if !span.isInChildRun { $0.field("id", span.id) }
          if span.parent < 0 { $0.field("run", run.runID) }
          $0.field("op", run.name(of: span))
          if span.index > 0 { $0.field("index", span.index) }
          $0.field("attempt", attempt.number)
          $0.field("outcome", attempt.outcome.name)
          $0.field("error", attempt.message)
          $0.field("error_kind", attempt.errorKind?.name)
          $0.field("kept", run.keptLine(of: span))
          if place == 0, span.start > span.queued {
            $0.field("queued_ms", Double(span.start - span.queued) / 1e6)
          }
        }
      }
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
    add("X", "undo \(undo.name)", process, row, at: run.started + undo.start) {
      $0.field("dur", Double(undo.duration) / 1e3)
      $0.field("cat", "undo")
      $0.object("args") {
        $0.field("path", path)
        $0.field("attempt", undo.attempt)
        $0.field("outcome", undo.outcome.name)
        $0.field("error", undo.error)
        $0.field("error_kind", undo.errorKind)
      }
    }
    if let error = undo.error {
      instant("failure", error, path, process, row, at: run.started + undo.end)
    }
  }

  /// A program or request: a slice within its op's where nothing else is.
  private mutating func add(_ work: SpanWork, of run: RunSpans, _ process: Int, row: Int) {
    let logged = work.work
    let subject: ByteString =
      switch logged.kind {
      case .program: "command"
      case .request: "url"
      case .wait: "for"
      }
    add("X", logged.name, process, row, at: run.started + work.start) {
      $0.field("dur", Double(work.end - work.start) / 1e3)
      $0.field("cat", ByteString(String(describing: logged.kind)))
      $0.object("args") {
        $0.field("path", run.path(of: run.spans[Int(work.parent)]))
        $0.field(subject, logged.subject)
        $0.field("outcome", logged.outcome.name)
        $0.field("status", logged.status)
        $0.field("signal", logged.signal)
        $0.field("bytes", logged.byteCount)
        $0.field("error", logged.error)
      }
    }
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
      add("C", "running", process, nil, at: run.started + change.time) {
        $0.object("args") { $0.field("ops", count) }
      }
    }
  }

  // MARK: Events

  private mutating func add(
    _ phase: ByteString, _ name: ByteString, _ process: Int, _ row: Int?, at time: Int64? = nil,
    _ body: (inout JSONText) -> Void
  ) {
    text.append(raw: isFirst ? "\n" : ",\n")
    isFirst = false
    text.object {
      $0.field("ph", phase)
      $0.field("name", name)
      $0.field("pid", process)
      $0.field("tid", row.map { $0 + 1 })
      if let time { $0.field("ts", Double(time - began) / 1e3) }
      body(&$0)
    }
  }

  private mutating func instant(
    _ name: ByteString, _ message: ByteString, _ path: ByteString, _ process: Int, _ row: Int,
    at time: Int64, wait: Int64? = nil
  ) {
    add("i", name, process, row, at: time) {
      $0.field("s", "t")
      $0.object("args") {
        $0.field("path", path)
        $0.field("message", message)
        if let wait { $0.field("wait_ms", Double(wait) / 1e6) }
      }
    }
  }

  private mutating func metadata(
    _ name: ByteString, _ process: Int, _ row: Int?, _ field: ByteString, _ value: ByteString
  ) {
    add("M", name, process, row) { $0.object("args") { $0.field(field, value) } }
  }

  private mutating func metadata(
    _ name: ByteString, _ process: Int, _ row: Int?, _ field: ByteString, _ value: Int
  ) {
    add("M", name, process, row) { $0.object("args") { $0.field(field, value) } }
  }
}
