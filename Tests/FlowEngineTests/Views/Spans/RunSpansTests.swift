import FlowEngine
import Testing

@Suite("Spans of runs")
struct RunSpansTests {
  /// A line for each span: depth, name, start, end, outcome, attempts.
  private func lines(_ spans: RunSpans) -> [String] {
    spans.spans.map { span in
      var depth = 0
      var parent = span.parent
      while parent >= 0 {
        depth += 1
        parent = spans.spans[Int(parent)].parent
      }
      let times = "\(Double(span.start) / 1e9)–\(Double(span.end) / 1e9)"
      let retries = span.retryCount == 0 ? "" : ", \(spans.attempts(of: span).count) attempts"
      return String(repeating: "  ", count: depth)
        + "\(span.kind) \(spans.displayName(of: span)) \(times) \(span.outcome)\(retries)"
    }
  }

  @Test("Each flow, group, item, inner run and op has a span within that of its parent")
  func eachExecutionHasASpan() throws {
    var isRetried = false
    let item = waitingOp("ItemOp", 1) { context in
      if context.index == 2, !isRetried {
        isRetried = true
        context.fail(FlowError(.error, "boom: no luck"))
      }
    }
    let retried = Op(name: "ItemOp", body: item.body!).with(
      retry: RetryPolicy(attempts: 3, delay: .seconds(0.5)))
    let starting = Op("StartOp") { context in
      _ = context.start(Flow("child").add(waitingOp("InOp")))
    }
    let flow = Flow("publish").data("list", [Int64(1), 2, 3].flowValue)
      .addGrouped(retried, GroupDispatcher(input: "list", maxConcurrent: 2, as: "x"))
      .add(Flow("nested").add(quick("QuickOp")).add(Flow("empty")))
      .addParallel(waitingOp("AOp", 1), waitingOp("BOp", 2))
      .add(starting)
      .add(failing("FailOp", "no"))
      .addFinally(quick("CloseOp"))
    let run = flow.start(on: makeLoop())
    try run.waitUntilEnd()
    run.markObserved()
    let spans = RunSpans(run)
    #expect(
      lines(spans) == [
        "flow publish 0.0–4.5 failed",
        "  group ItemOp 0.0–2.5 succeeded",
        "    op ItemOp #1 0.0–1.0 succeeded",
        "    op ItemOp #2 0.0–2.5 succeeded, 2 attempts",
        "    op ItemOp #3 1.0–2.0 succeeded",
        "  flow nested 2.5–2.5 succeeded",
        "    op QuickOp 2.5–2.5 succeeded",
        "    flow empty 2.5–2.5 succeeded",
        "  op AOp 2.5–3.5 succeeded",
        "  op BOp 2.5–4.5 succeeded",
        "  op StartOp 4.5–4.5 succeeded",
        "    flow child 4.5–4.5 cancelled",
        "  op FailOp 4.5–4.5 failed",
        "  op CloseOp 4.5–4.5 succeeded",
        "      op InOp 4.5–4.5 cancelled",
      ], "\(lines(spans))")
    let second = spans.spans[3]
    #expect(spans.path(of: second) == "publish/ItemOp #2")
    #expect(spans.path(of: spans.spans[6]) == "publish/nested/QuickOp")
    #expect(spans.path(of: spans.spans[11]) == "publish/StartOp/child")
    #expect(second.queued == 0 && spans.spans[4].queued == 0)
    let attempts = spans.attempts(of: second)
    #expect(attempts.map(\.start) == [0, 1_500_000_000])
    #expect(attempts.map(\.end) == [1_000_000_000, 2_500_000_000])
    #expect(attempts.map(\.outcome) == [.failed, .succeeded])
    #expect(attempts[0].message == "boom: no luck")
    #expect(spans.error(of: spans.spans[12])?.message == "no")
    #expect(spans.error(of: spans.root)?.message == "no")
    #expect(spans.order.count == 2 * spans.spans.count)
  }

  @Test("Spans have the ids, parents and paths of the events")
  func spansAgreeWithEvents() throws {
    let flow = Flow("f").data("list", [Int64(1), 2].flowValue)
      .addGrouped(
        Flow("g").add(quick("AOp")).addGrouped(
          quick("BOp"), GroupDispatcher(input: "list", as: "y")
        ).needs(["x": "any"]),
        GroupDispatcher(input: "list", as: "x"))
    let run = flow.start(on: makeLoop())
    try run.wait()
    let spans = RunSpans(run)
    let starts = run.events.filter { $0.kind == .start }
    let found = spans.spans.filter { $0.kind != .group && $0.parent >= 0 }
    #expect(starts.map(\.id) == found.map(\.id))
    #expect(starts.map(\.path) == found.map { spans.path(of: $0) })
    #expect(starts.map(\.parent) == found.map { spans.spans[Int($0.parent)].id })
  }

  @Test("A running run has spans up to now")
  func aRunningRunHasSpansUpToNow() throws {
    let loop = makeLoop()
    let run = Flow("f").add(waitingOp("AOp", 1)).add(waitingOp("BOp", 5)).start(on: loop)
    let timer = waitingOp("TimerOp", 3).start(on: loop)
    try timer.waitUntilEnd()
    let spans = RunSpans(run)
    #expect(spans.isRunning)
    #expect(
      lines(spans) == [
        "flow f 0.0–3.0 running", "  op AOp 0.0–1.0 succeeded", "  op BOp 1.0–3.0 running",
      ])
    #expect(CriticalPath(spans).parts.map(\.time) == [1_000_000_000, 2_000_000_000])
    run.cancel()
    try run.waitUntilEnd()
    let ended = RunSpans(run)
    #expect(ended.root.outcome == .cancelled)
    #expect(ended.spans[2].outcome == .cancelled)
  }

  @Test("A group that a failure stops ends with its last item")
  func aStoppedGroupEndsWithItsLastItem() throws {
    let body = SleepingBody(1) { context in
      context.fail(FlowError(.error, context.index == 1 ? "bad" : "again"))
    }
    let policy = RetryPolicy(attempts: 2, delay: .seconds(9)) { error, _ in error.message == "again"
    }
    let item = Op(name: "ItemOp", body: body).with(retry: policy)
    let flow = Flow("f").data("list", [Int64(1), 2, 3].flowValue)
      .addGrouped(item, GroupDispatcher(input: "list", maxConcurrent: 2, as: "x"))
      .addFinally(waitingOp("CloseOp", 2))
    let run = flow.start(on: makeLoop())
    try run.waitUntilEnd()
    run.markObserved()
    let spans = RunSpans(run)
    #expect(
      lines(spans) == [
        "flow f 0.0–3.0 failed", "  group ItemOp 0.0–1.0 failed", "    op ItemOp #1 0.0–1.0 failed",
        "    op ItemOp #2 0.0–1.0 cancelled, 1 attempts", "  op CloseOp 1.0–3.0 succeeded",
      ], "\(lines(spans))")
    let problems = RunProblem.all(of: spans)
    #expect(problems.map(\.name) == ["ItemOp"])
    #expect(problems[0].examples == [2])
  }

  @Test("The log of a run that an op has started is read")
  func keptLogsOfChildRunsAreRead() throws {
    let loop = makeLoop()
    let inner = Flow("child").data("list", [Int64(1), 2].flowValue)
      .addGrouped(waitingOp("InOp"), GroupDispatcher(input: "list", maxConcurrent: 1, as: "x"))
    let body = ChildBody(inner)
    let run = Flow("f").add(waitingOp("FirstOp")).add(Op(name: "StartOp", body: body)).start(
      on: loop)
    try run.wait()
    let spans = RunSpans(run)
    #expect(
      lines(spans) == [
        "flow f 0.0–3.0 succeeded", "  op FirstOp 0.0–1.0 succeeded",
        "  op StartOp 1.0–3.0 succeeded",
        "    flow child 1.0–3.0 succeeded", "      group InOp 1.0–3.0 succeeded",
        "        op InOp #1 1.0–2.0 succeeded", "        op InOp #2 2.0–3.0 succeeded",
      ], "\(lines(spans))")
    #expect(spans.path(of: spans.spans[6]) == "f/StartOp/child/InOp #2")
  }

  @Test("The spans of very many ops and of deep nesting are found without recursion", .smallStack)
  func manyAndDeepSpansAreFound() throws {
    var deep = Flow("f0").add(quick("AOp"))
    for number in 1...Scale.nesting { deep = Flow("f\(number)").add(deep) }
    let loop = makeLoop()
    let run = deep.start(on: loop)
    try run.wait()
    let spans = RunSpans(run)
    #expect(spans.spans.count == Scale.nesting + 2)
    #expect(CriticalPath(spans).stretches.isEmpty)
    #expect(RunStatistics(spans).ops == 1)
    let list = (0..<Int64(20_000)).map { $0 }.flowValue
    let wide = Flow("wide").data("list", list)
      .addGrouped(waitingOp("AOp"), GroupDispatcher(input: "list", maxConcurrent: 100, as: "x"))
      .start(on: loop)
    try wide.wait()
    let path = CriticalPath(RunSpans(wide))
    #expect(path.parts.count == 1 && path.parts[0].count == 200)
    #expect(path.parts[0].time == 200_000_000_000)
  }
}

/// Waits for a run that it has started.
final class ChildBody: OpBody {
  private let op: Op

  init(_ op: Op) { self.op = op }

  func start(_ context: OpContext) -> CallState {
    context.start(op).observe(Job { context.end() })
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) { context.end(error) }
}
