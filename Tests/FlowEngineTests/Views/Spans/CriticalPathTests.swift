import FlowEngine
import Testing

@Suite("Critical paths")
struct CriticalPathTests {
  private func parts(_ run: Run) -> [String] {
    let spans = RunSpans(run)
    return CriticalPath(spans).parts.map { part in
      let name = spans.path(of: spans.spans[part.longest])
      return "\(part.kind) \(name) ×\(part.count) \(Double(part.time) / 1e9)"
    }
  }

  @Test("The item that holds its group up is on the path, with its attempts and delays")
  func theSlowestItemIsOnThePath() throws {
    var attempts = 0
    let body = SleepingBody(1) { context in
      guard context.index == 3 else { return }
      attempts += 1
      if attempts < 3 { context.fail(FlowError(.error, "boom")) }
    }
    let item = Op(name: "ItemOp", body: body).with(
      retry: RetryPolicy(attempts: 3, delay: .seconds(0.25)))
    let run = Flow("f").data("list", [Int64(1), 2, 3, 4, 5].flowValue)
      .add(waitingOp("FirstOp", 0.5))
      .addGrouped(item, GroupDispatcher(input: "list", maxConcurrent: 2, as: "x"))
      .addParallel(waitingOp("ShortOp", 1), waitingOp("LongOp", 2))
      .start(on: makeLoop())
    try run.waitUntilEnd()
    // #1 ended first, then #3 took its three attempts.
    #expect(
      parts(run) == [
        "execution f/FirstOp ×1 0.5", "execution f/ItemOp #3 ×2 4.0",
        "retryDelay f/ItemOp #3 ×1 0.5",
        "execution f/LongOp ×1 2.0",
      ], "\(parts(run))")
    let problems = RunProblem.all(of: RunSpans(run))
    #expect(problems.count == 1)
    #expect(problems[0].kind == .recovered && problems[0].message == "boom")
    #expect(problems[0].attempts == 3)
    // #5 ended at 3.5 s, #3 at 5.0 s.
    #expect(problems[0].longestHold == 1_500_000_000)
    let numbers = RunStatistics(RunSpans(run))
    #expect(numbers.ops == 8 && numbers.failed == 0 && numbers.repeatedAttempts == 2)
    #expect(numbers.work == 10_500_000_000)
    let item3 = numbers.byOp[0]
    #expect(item3.name == "ItemOp" && item3.runs == 5 && item3.retried == 2)
    #expect(item3.total == 7_500_000_000 && item3.median == 1_000_000_000)
    #expect(item3.longest == 3_500_000_000 && item3.longestQueued == 2_000_000_000)
  }

  @Test("Items that a limit of starts keeps waiting are on the path as waits")
  func itemsThatWaitForTheirStartAreOnThePath() throws {
    let run = Flow("f").data("list", [Int64(1), 2, 3].flowValue)
      .addGrouped(
        waitingOp("ItemOp", 0.25),
        GroupDispatcher(input: "list", as: "x", rate: RateLimit(1, per: .seconds(1)))
      )
      .start(on: makeLoop())
    try run.wait()
    #expect(
      parts(run) == ["execution f/ItemOp #1 ×3 0.75", "queue f/ItemOp #2 ×2 1.5"], "\(parts(run))")
  }

  @Test("The time of an op in which it executes no other is its own")
  func theOwnTimeOfAnOpIsOnThePath() throws {
    let run = Op(name: "StartOp", body: ChildBody(waitingOp("InOp", 2))).start(on: makeLoop())
    try run.wait()
    #expect(parts(run) == ["execution StartOp/InOp ×1 2.0"])
    #expect(RunStatistics(RunSpans(run)).work == 2_000_000_000)
  }

  @Test("The parts of any run add up to its duration")
  func thePartsAddUp() throws {
    for seed in RandomFlows.firstSeed..<RandomFlows.firstSeed + RandomFlows.count(150) {
      var maker = SpanFlowMaker(seed)
      let loop = makeLoop()
      let run = maker.flow(depth: 3).start(on: loop)
      if maker.random.next() % 4 == 0 {
        let timer = waitingOp("TimerOp", 1).start(on: loop)
        try timer.waitUntilEnd()
        check(RunSpans(run), seed)
        run.cancel()
      }
      try run.waitUntilEnd()
      run.markObserved()
      _ = loop.unobservedFailures
      let spans = RunSpans(run)
      check(spans, seed)
      // Those of the logs of runs that ops have started aren't events of the run.
      let own = spans.spans.filter { $0.log == 0 && $0.kind != .group && $0.parent >= 0 }
      let starts = run.events.filter { $0.kind == .start && $0.parent != nil }
      #expect(own.count == starts.count, "seed \(seed)")
      let failed = run.events.count {
        let message = $0.message ?? ""
        return $0.kind == .finish && $0.parent != nil && message != "successfully"
          && !message.hasPrefix("cancelled")
      }
      #expect(own.count { $0.outcome == .failed } == failed, "seed \(seed)")
    }
  }

  private func check(_ spans: RunSpans, _ seed: UInt64) {
    let path = CriticalPath(spans)
    #expect(path.parts.reduce(0) { $0 + $1.time } == spans.root.duration, "seed \(seed)")
    var time: Int64 = 0
    for stretch in path.stretches {
      #expect(stretch.start == time && stretch.end > stretch.start, "seed \(seed)")
      time = stretch.end
    }
    #expect(time == spans.root.end, "seed \(seed)")
    for (index, span) in spans.spans.enumerated().dropFirst() {
      let parent = spans.spans[Int(span.parent)]
      #expect(Int(span.parent) < index && span.end >= span.start, "seed \(seed)")
      #expect(span.start >= parent.start && span.end <= parent.end, "seed \(seed), \(span)")
      let attempts = spans.attempts(of: span)
      #expect(attempts.first?.start == span.start, "seed \(seed)")
      for attempt in attempts { #expect(attempt.end <= span.end, "seed \(seed)") }
    }
    // Each span starts and ends once, in this order.
    var open = Set<Int32>()
    for entry in spans.order {
      if entry >= 0 {
        #expect(open.insert(entry).inserted)
      } else {
        #expect(open.remove(~entry) != nil)
      }
    }
    #expect(open.isEmpty && spans.order.count == 2 * spans.spans.count)
  }

  @Test("Undos are parts of their own, those of failed attempts at a flow as well")
  func undosArePartsOfTheirOwn() throws {
    let loop = makeLoop()
    var failures = 0
    let create = waitingOp("CreateOp", 1).with(undoBody: SleepingBody(2) { _ in })
    let bad = waitingOp("BadOp", 1).with(
      undoBody: SleepingBody(0.5) { $0.fail(FlowError(.error, "stuck")) })
    let fail = Op("FailOp") { _ in
      failures += 1
      if failures == 1 { throw FlowError(.error, "boom") }
    }
    let inner = Flow("inner").add(bad).add(create).add(fail)
    let run = Flow("f").add(inner.with(retry: RetryPolicy(attempts: 2, delay: .seconds(0.25))))
      .add(Op("LastOp") { _ in throw FlowError(.error, "over") })
      .start(on: loop)
    try run.waitUntilEnd()
    run.markObserved()
    #expect(
      parts(run) == [
        "execution f/inner/BadOp ×2 2.0", "execution f/inner/CreateOp ×2 2.0",
        "undo f/inner/CreateOp ×2 4.0", "undo f/inner/BadOp ×2 1.0",
        "retryDelay f/inner ×1 0.25",
      ], "\(parts(run))")
    let spans = RunSpans(run)
    #expect(spans.undos.map(\.name) == ["CreateOp", "BadOp", "CreateOp", "BadOp"])
    #expect(
      spans.undos.map(\.duration) == [2_000_000_000, 500_000_000, 2_000_000_000, 500_000_000])
    #expect(CriticalPath(spans).steps.map(\.kind).filter { $0 == .undo }.count == 4)
    let numbers = RunStatistics(spans)
    #expect(numbers.undone == 2 && numbers.undosFailed == 2 && numbers.ops == 7)
    // The undos aren't work of the ops.
    #expect(numbers.work == 4_000_000_000)
    let problems = RunProblem.all(of: spans)
    #expect(problems.map(\.kind) == [.failed, .failed, .undoFailed, .recovered], "\(problems)")
    #expect(problems[2].count == 2 && problems[2].message == "stuck")
  }
}

/// Makes flows of waits, failures, retries, groups, nested flows and runs of their own.
struct SpanFlowMaker {
  var random: SeededGenerator
  private var number = 0

  init(_ seed: UInt64) { random = SeededGenerator(state: seed) }

  private mutating func below(_ count: UInt64) -> Int { Int(random.next() % count) }

  mutating func flow(depth: Int) -> Flow {
    number += 1
    let flow = Flow("f\(number)").data("list", (0..<Int64(below(6) + 1)).map { $0 }.flowValue)
    for _ in 0...below(3) {
      switch depth == 0 ? below(2) : below(7) {
      case 0, 1: flow.add(op())
      case 2: flow.add(self.flow(depth: depth - 1))
      case 3:
        flow.addGrouped(
          op(),
          GroupDispatcher(
            input: "list", maxConcurrent: below(3) + 1, allowFailure: below(2) == 0, as: "x"))
      case 4:
        flow.addGrouped(
          self.flow(depth: depth - 1),
          GroupDispatcher(
            input: "list", maxConcurrent: below(3) + 1, allowFailure: below(2) == 0, as: "x"))
      case 5: flow.addParallel(op(), self.flow(depth: depth - 1))
      default: flow.add(Op(name: "ChildOp", body: ChildBody(self.flow(depth: depth - 1))))
      }
    }
    if below(3) == 0 { flow.addFinally(op()) }
    return flow
  }

  private mutating func op() -> Op {
    number += 1
    let fails = below(8)
    let body = SleepingBody(Double(below(4)) / 4) { context in
      if fails == 0 || fails == 1 && context.attempt == 1 { context.fail(FlowError(.error, "no")) }
    }
    let retry = below(3) == 0 ? RetryPolicy(attempts: 2, delay: .milliseconds(125 * below(3))) : nil
    return Op(name: "Op\(number)", body: body).with(retry: retry)
  }
}
