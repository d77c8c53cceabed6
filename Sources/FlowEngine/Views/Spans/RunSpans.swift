/// The spans of a run: what was executed when, for how long, in which attempts, and how it ended.
///
/// They are made of the run's log in one pass, whether or not the run has ended, and don't follow the run
/// afterwards. All texts are without secrets.
package struct RunSpans: Sendable {
  /// The spans; the first one is the run itself, and each one comes after its parent.
  package internal(set) var spans: ContiguousArray<Span> = []
  /// The order of starts and ends: the index of a span that starts, the complement of one that ends.
  package internal(set) var order: ContiguousArray<Int32> = []
  /// The names of spans, each one once.
  package internal(set) var names: ContiguousArray<ByteString> = []
  /// The labels of items.
  package internal(set) var labels: ContiguousArray<ByteString> = []
  /// The programs and requests of the spans, in the order of their ends; those that are running come last.
  package internal(set) var works: ContiguousArray<SpanWork> = []
  /// The undos of the spans, in the order of their starts.
  package internal(set) var undos: ContiguousArray<SpanUndo> = []
  /// The indices of the undos of each span that has some.
  private let undosOfSpan: [Int32: [Int]]
  /// The orders of graphs that were followed.
  package internal(set) var edges: ContiguousArray<SpanEdge> = []
  var retries: ContiguousArray<SpanRetry> = []
  var failures: ContiguousArray<SpanFailure> = []

  /// The names of lanes of other nodes.
  package internal(set) var lanes: [UInt8: ByteString] = [:]

  /// The name of a lane: `worker 3`, or the name of a worker of another node.
  package func name(ofLane lane: UInt8) -> ByteString { lanes[lane] ?? "worker \(lane)" }

  /// The name of the run.
  package let name: ByteString
  /// The id of the run, unique across processes.
  package let runID: ByteString
  /// When it started: nanoseconds since 1970-01-01 00:00:00 UTC.
  package let started: Int64
  /// Whether the run has neither succeeded nor failed.
  package let isRunning: Bool
  /// The limit of its log, with the number of dropped events.
  package let bound: LogBound
  private let secrets: SecretTexts
  private let runIDs: ContiguousArray<ByteString>

  /// Reads the log of a run, on the thread of its loop.
  package init(_ run: Run) {
    run.loop.checkThread()
    let now = run.loop.now()
    let log = run.log
    secrets = log.keys.secrets
    lanes = log.keys.lanes.all
    bound = log.bound
    name = log.shown(run.name)
    runID = run.identifier
    started = log.wallBase.later(by: log.began)
    isRunning = run.state == .pending
    var reader = SpanReader(log)
    reader.read()
    var failure: SpanFailure?
    if let error = run.error {
      failure = SpanFailure(message: error.message, kind: error.kind)
    }
    let end = run.ended.map { $0 - log.began } ?? now - log.began
    reader.endAll(
      at: end,
      outcome: isRunning
        ? .running
        : run.state == .succeeded
          ? .succeeded : run.error?.kind == .cancelled ? .cancelled : .failed,
      failure)
    (spans, order, names) = (reader.spans, reader.order, reader.names)
    (retries, failures, labels) = (reader.retries, reader.failures, reader.labels)
    (works, runIDs, undos, edges) = (reader.works, reader.runIDs, reader.undos, reader.edges)
    undosOfSpan = Dictionary(grouping: undos.indices) { reader.undos[$0].parent }
  }

  /// Makes spans of a kept run, of what a store says about it.
  ///
  /// - Parameters:
  ///   - id: The id of the run.
  ///   - script: Its script, the name of the whole.
  ///   - began: When it began, in seconds since 1970.
  ///   - ended: When it last changed.
  ///   - outcome: How it has ended.
  ///   - ops: The executions of its ops.
  package init(
    kept id: ByteString, script: ByteString, began: Double, ended: Double,
    _ outcome: Span.Outcome, _ ops: [KeptSpan]
  ) {
    let reader = KeptSpanReader(script, began: began, ended: ended, outcome, ops)
    secrets = SecretTexts()
    bound = LogBound()
    name = script
    runID = id
    started = Int64(exactly: (began * 1e9).rounded()) ?? 0
    isRunning = outcome == .running
    (spans, order, names) = (reader.spans, reader.order, reader.names)
    (labels, failures) = (reader.labels, reader.failures)
    runIDs = [id]
    undosOfSpan = [:]
  }

  /// The run itself.
  package var root: Span { spans[0] }

  /// The name of a span, `UploadOp`; without the index of an item.
  package func name(of span: Span) -> ByteString { names[Int(span.name)] }

  /// The label of an item; nil without one.
  package func label(of span: Span) -> ByteString? {
    span.label < 0 ? nil : labels[Int(span.label)]
  }

  /// The name of a span as lines show it: in a group `UploadOp #3`, or with a label `UploadOp #3 cat.png`.
  package func displayName(of span: Span) -> ByteString {
    span.index == 0 ? name(of: span) : "\(name(of: span)) \(number(of: span))"
  }

  /// The number of an item in its group, and its label if it has one: `#3 cat.png`.
  package func number(of span: Span) -> ByteString {
    label(of: span).map { "#\(span.index) \($0)" } ?? "#\(span.index)"
  }

  /// The path of a span in its run: `publish/ShardsOp #2/CountOp #1`. A group has the name of its op.
  package func path(of span: Span) -> ByteString { path(of: span) { displayName(of: $0) } }

  /// The path without the numbers of items, which all executions at one place of a flow share:
  /// `publish/ShardsOp/CountOp`.
  package func place(of span: Span) -> ByteString { path(of: span) { name(of: $0) } }

  private func path(of span: Span, _ name: (Span) -> ByteString) -> ByteString {
    var parts = [name(span)]
    var parent = span.parent
    while parent >= 0 {
      let enclosing = spans[Int(parent)]
      // The items of a group have its name, and an index.
      if enclosing.kind != .group { parts.append(name(enclosing)) }
      parent = enclosing.parent
    }
    let bytes = parts.reversed().map(\.bytes).joined(separator: [UInt8(ascii: "/")])
    return secrets.redacted(ByteString(bytes))
  }

  /// The id of a span in a trace, which programs and requests of its op get.
  package func traceID(of span: Span) -> UInt64 {
    span.ownLog == 0
      ? SpanID.execution(run: runIDs[Int(span.log)], id: span.id)
      : SpanID.execution(run: runIDs[Int(span.ownLog)], id: 0)
  }

  /// The line that says where the result of a span comes from, if it is kept.
  package func queuedLine(of span: Span) -> ByteString? {
    span.queuedLine >= 0 ? names[Int(span.queuedLine)] : nil
  }

  /// Which limits a span has waited for: `limit db`; nil if it hasn't.
  package func limits(of span: Span) -> ByteString? {
    guard let line = queuedLine(of: span)?.bytes else { return nil }
    let mark = "for limit ".bytes
    let place = line.indices.first { line[$0...].starts(with: mark) }
    return place.map { ByteString(line[($0 + 4)...]) }
  }

  /// The line about a kept result.
  package func keptLine(of span: Span) -> ByteString? {
    span.isKept ? names[Int(span.keptLine)] : nil
  }

  /// The undos of a span, the first one first, as indices in `undos`.
  package func undos(of span: Int32) -> [Int] { undosOfSpan[span] ?? [] }

  /// The undo of a span that was executed at a time, as an index in `undos`; nil without one.
  package func undo(of span: Int32, at time: Int64) -> Int? {
    undos(of: span).first { undos[$0].start <= time && time <= undos[$0].end }
  }

  /// The error's message of a span that has failed or was cancelled, and the kind of the error.
  package func error(of span: Span) -> (message: ByteString, kind: FlowError.Kind?)? {
    guard span.failure >= 0 else { return nil }
    let failure = failures[Int(span.failure)]
    return (failure.message, failure.kind)
  }

  /// The retries of a span, the first one first.
  func retries(of span: Span) -> [SpanRetry] {
    var found: [SpanRetry] = []
    var next = span.lastRetry
    while next >= 0 {
      let retry = retries[Int(next)]
      found.append(retry)
      next = retry.previous
    }
    return found.reversed()
  }

  /// The attempts of a span, the first one first. One that hasn't begun, because its delay was ended by a
  /// stop, isn't among them.
  package func attempts(of span: Span) -> [SpanAttempt] {
    var attempts: [SpanAttempt] = []
    var start = span.start
    for retry in retries(of: span) {
      attempts.append(
        SpanAttempt(
          number: retry.attempt, start: start, end: max(start, retry.time), outcome: .failed,
          message: retry.message, errorKind: nil))
      start = min(retry.next, span.end)
    }
    if span.retryCount > 0, !span.outcome.isSuccess, start == span.end { return attempts }
    let error = error(of: span)
    attempts.append(
      SpanAttempt(
        number: Int(span.retryCount) + 1, start: start, end: span.end, outcome: span.outcome,
        message: error?.message, errorKind: error?.kind))
    return attempts
  }
}
