import FlowEngine
import Testing

@Suite("Cleanups")
struct CleanupTests {
  @Test("Cleanups run last-in first-out before the op finishes")
  func theyRunLastInFirstOutBeforeTheOpFinishes() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      context.defer { $0.log("first") }
      context.addCleanup(WaitingCleanup(1) { context.log("second") })
      context.defer { context in
        context.set("x", 1)
        context.log("third at attempt \(context.attempt) of \(context.displayName)")
      }
      context.log("body")
    }
    let run = Flow("f").add(op).add(quick("NextOp")).start(on: loop)
    try run.wait()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        12:00:00 AM [TidyOp] WillStart
        12:00:00 AM [TidyOp] body
        12:00:00 AM [DataBucket] add for x: 1
        12:00:00 AM [TidyOp] third at attempt 1 of TidyOp
        12:00:01 AM [TidyOp] second
        12:00:01 AM [TidyOp] first
        12:00:01 AM [TidyOp] DidFinish: successfully
        12:00:01 AM [NextOp] WillStart
        12:00:01 AM [NextOp] DidFinish: successfully
        12:00:01 AM [DataBucket] end with:
        x: 1
        Flow isSuccess: true
        ======    Ending    ======

        """)
  }

  @Test(
    "Cleanups run whatever the outcome",
    arguments: ["success", "failure", "throw", "missing output", "timeout", "cancel", "stall"])
  func theyRunWhateverTheOutcome(_ outcome: String) {
    let loop = makeLoop()
    var calls: [String] = []
    let stuck = StuckBody()
    let op = Op(
      name: "TidyOp", gives: outcome == "missing output" ? [Self.url] : [],
      body: HoldingBody { context in
        context.defer { _ in calls.append("one") }
        context.addCleanup(WaitingCleanup(0.5) { calls.append("two") })
        switch outcome {
        case "success", "missing output": context.end()
        case "failure":
          context.fail(FlowError(.error, "bad"))
          context.end()
        case "throw": context.end(FlowError(.error, "bad"))
        default: stuck.contexts.append(context)
        }
      }
    ).with(timeout: outcome == "timeout" ? .seconds(1) : nil)
    let run = op.start(on: loop)
    if outcome == "cancel" { run.cancel() }
    try? run.waitUntilEnd()
    run.markObserved()
    #expect(calls == ["two", "one"])
    let kinds: [String: FlowError.Kind] = [
      "failure": .error, "throw": .error, "missing output": .missingOutput, "timeout": .timeout,
      "cancel": .cancelled, "stall": .stalled,
    ]
    #expect(run.error?.kind == kinds[outcome])
    #expect(body(run).count == 2)
    #expect(loop.unobservedFailures.isEmpty)
    stuck.contexts = []
  }

  private static var url: Declaration {
    Op("x", gives: ["url": "string"]) { _ in }.gives[0]
  }

  @Test("A failing cleanup fails an op that had succeeded, and the other cleanups still run")
  func oneThatFailsFailsAnOpThatHadSucceededAndTheOthersRun() throws {
    let loop = makeLoop()
    var calls: [Int] = []
    let op = Op("TidyOp") { context in
      context.defer { _ in calls.append(1) }
      context.defer { _ in throw FlowError(.error, "second") }
      context.addCleanup(WaitingCleanup(1, FlowError(.error, "third")))
      context.defer { _ in calls.append(4) }
    }
    let run = Flow("f").add(op).add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(calls == [4, 1])
    #expect(run.error?.message == "third")
    #expect(run.error?.op == "TidyOp")
    #expect(body(run).last == "[TidyOp] DidFinish: withError: third")
    // An error that comes when the outcome is known is reported.
    #expect(run.lateErrors.map(\.message) == ["second"])
  }

  @Test("A failing cleanup of a failing op is reported as unobserved")
  func oneThatFailsInAFailingOpIsReportedAsNobodyObservedIt() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      context.defer { _ in throw FlowError(.error, "late") }
      throw FlowError(.error, "early")
    }
    let run = op.start(on: loop)
    #expect(run.error?.message == "early")
    run.markObserved()
    #expect(
      loop.unobservedFailures.map { "\($0.name) \($0.error) \($0.error.op ?? "")" } == [
        "TidyOp [TidyOp] late TidyOp"
      ])
  }

  @Test("A cleanup whose data is missing fails only for that reason")
  func aCleanupThatMissesDataFailsByThatAlone() {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      context.defer { _ = try $0.value("absent", as: String.self) }
      throw FlowError(.error, "early")
    }
    let run = op.start(on: loop)
    #expect(run.error?.message == "early")
    #expect(run.lateErrors.map(\.message) == ["can't find <absent> in data bucket"])
    let fine = Op("FineOp") { $0.defer { _ = try $0.value("absent", as: String.self) } }
      .start(on: loop)
    #expect(fine.error?.kind == .insufficientInput)
  }

  @Test("Each attempt has its own cleanups")
  func eachAttemptHasItsOwn() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      let attempt = context.attempt
      context.defer { $0.log("tidy \(attempt) \($0.attempt)") }
      if attempt < 3 { throw FlowError(.error, "bad") }
    }.with(retry: RetryPolicy(attempts: 3, delay: .seconds(1)))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[TidyOp] WillStart", "[TidyOp] tidy 1 1", "[TidyOp] Retry 2/3 in 1s: bad",
        "[TidyOp] tidy 2 2", "[TidyOp] Retry 3/3 in 1s: bad", "[TidyOp] tidy 3 3",
        "[TidyOp] DidFinish: successfully",
      ])
  }

  @Test("A failing cleanup is repeated with its op")
  func aFailingCleanupIsTriedAgainWithItsOp() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      if context.attempt == 1 { context.defer { _ in throw FlowError(.error, "untidy") } }
    }.with(retry: RetryPolicy(attempts: 2))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[TidyOp] WillStart", "[TidyOp] Retry 2/2 in 0s: untidy",
        "[TidyOp] DidFinish: successfully",
      ])
  }

  @Test("A cleanup may add another, which runs next")
  func aCleanupMayAddAnotherWhichIsNext() {
    let loop = makeLoop()
    var calls: [Int] = []
    let run = Op("TidyOp") { context in
      context.defer { _ in calls.append(1) }
      context.defer { context in
        calls.append(2)
        context.defer { _ in calls.append(3) }
      }
    }.start(on: loop)
    #expect(calls == [2, 3, 1])
    #expect(run.state == .succeeded)
  }

  @Test("All cleanups of a stopped op share one grace period")
  func cleanupsOfAStoppedOpHaveAGracePeriodInAll() throws {
    let loop = makeLoop()
    var calls: [Int] = []
    let op = Op(
      name: "TidyOp",
      body: HoldingBody { context in
        context.defer { _ in calls.append(1) }
        context.addCleanup(WaitingCleanup(nil))
        context.addCleanup(WaitingCleanup(0.25) { calls.append(3) })
      }
    ).with(grace: .seconds(1))
    let run = op.start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(calls == [3, 1])
    #expect(run.duration == .seconds(2))
    #expect(run.error?.message == "cancelled: enough")
    #expect(
      run.lateErrors.map(\.message) == [
        "the cleanup of [TidyOp] was cut after a grace of 1s, while it waited"
      ])
    loop.runUntilIdle()
    #expect(loop.now() == 2_000_000_000)
  }

  @Test("The default grace is that of the loop")
  func theGraceIsTheLoopsByDefault() throws {
    let loop = makeLoop()
    // Timers that nobody waits for any more keep what they were for.
    defer { loop.shutdown() }
    #expect(loop.cleanupGrace == .seconds(30))
    loop.cleanupGrace = .seconds(0.25)
    let op = Op(
      name: "TidyOp",
      body: HoldingBody { context in
        context.addCleanup(WaitingCleanup(9))
        context.addCleanup(WaitingCleanup(9))
      }
    ).with(timeout: .seconds(1))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(1.25))
    #expect(run.lateErrors.count == 2)
    #expect(run.error?.message == "timed out after 1s")
  }

  @Test("Cleanups of an op that failed by itself have no limit")
  func cleanupsOfAnOpThatFailedByItselfHaveNoLimit() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { context in
      context.addCleanup(WaitingCleanup(60))
      throw FlowError(.error, "bad")
    }
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(60))
    #expect(run.lateErrors.isEmpty)
  }

  @Test("A stop that arrives during a cleanup takes effect after all cleanups")
  func aStopThatArrivesDuringCleanupComesWhenTheyAreDone() throws {
    let loop = makeLoop()
    var calls: [Int] = []
    let op = Op("TidyOp") { context in
      context.addCleanup(WaitingCleanup(0.3) { calls.append(1) })
      context.addCleanup(WaitingCleanup(0.3) { calls.append(2) })
    }
    let run = Flow("f").add(op).add(quick("NeverOp")).start(on: loop)
    loop.schedule(at: 100_000_000) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(calls == [2, 1])
    #expect(run.duration == .seconds(0.6))
    #expect(
      body(run) == ["[TidyOp] WillStart", "[TidyOp] DidFinish: successfully"])
    #expect(run.error?.message == "cancelled: enough")
  }

  @Test("The timeout of an enclosing flow takes effect after all cleanups")
  func aTimeoutAroundArrivesWhenCleanupsAreDone() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { $0.addCleanup(WaitingCleanup(1.5)) }
    let inner = Flow("inner").add(op).add(quick("NeverOp"))
    let run = Flow("outer").add(inner.with(timeout: .seconds(1))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[inner] WillStart", "[TidyOp] WillStart", "[TidyOp] DidFinish: successfully",
        "[inner] DidFinish: timedOut after 1s",
      ])
    #expect(run.duration == .seconds(1.5))
    #expect(run.lateErrors.isEmpty)
  }

  @Test(
    "A stop that arrives during a cleanup limits its time",
    arguments: ["cancel", "timeout of the flow", "failure beside it"])
  func aStopThatArrivesDuringCleanupLimitsIt(_ stop: String) throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var calls: [Int] = []
    let op = Op("TidyOp") { context in
      context.defer { _ in calls.append(1) }
      context.addCleanup(WaitingCleanup(3600))
      context.addCleanup(WaitingCleanup(2) { calls.append(3) })
    }.with(grace: .seconds(1))
    let flow = Flow("f")
    switch stop {
    case "cancel": flow.add(op)
    case "timeout of the flow": flow.add(Flow("inner").add(op).with(timeout: .seconds(5)))
    default: flow.addParallel(op, failing("BadOp", "bad", after: 5))
    }
    let run = flow.add(quick("NeverOp")).start(on: loop)
    if stop == "cancel" { loop.schedule(at: 5_000_000_000) { run.cancel() } }
    try run.waitUntilEnd()
    run.markObserved()
    #expect(run.duration == .seconds(6))
    #expect(calls == [3, 1])
    #expect(run.state == (stop == "cancel" ? .cancelled : .failed))
    let cut = "the cleanup of [TidyOp] was cut after a grace of 1s, while it waited"
    #expect(run.lateErrors.map(\.message) == [ByteString(cut)])
    // The op had succeeded before.
    #expect(body(run).contains("[TidyOp] DidFinish: withError: \(cut)"))
  }

  @Test("The cleanups of a member end before its group")
  func aMembersCleanupsEndBeforeItsGroup() throws {
    let loop = makeLoop()
    let tidy = Op(
      name: "TidyOp", body: HoldingBody { $0.addCleanup(WaitingCleanup(0.5)) })
    let run = Flow("f").addParallel(tidy, failing("BadOp", "bad", after: 1)).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      times(run) == [
        "0.0 start TidyOp", "0.0 start BadOp", "1.0 finish BadOp", "1.5 finish TidyOp",
      ])
    #expect(run.duration == .seconds(1.5))
  }

  @Test("A failure in a cleanup doesn't settle the run twice")
  func failingInACleanupDoesNotSettleTwice() {
    let loop = makeLoop()
    let run = Op("TidyOp") { context in
      context.defer { context in
        context.fail(FlowError(.error, "in the cleanup"))
        context.end(FlowError(.error, "end in the cleanup"))
        context.log("still open")
      }
    }.start(on: loop)
    #expect(
      body(run) == [
        "[TidyOp] WillStart", "[TidyOp] still open", "[TidyOp] DidFinish: successfully",
      ])
  }

  @Test("A cleanup that nothing can end stalls")
  func aStuckCleanupStalls() {
    let loop = makeLoop()
    let run = Op("TidyOp") { $0.addCleanup(WaitingCleanup(nil)) }.start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(body(run).last == "[TidyOp] DidFinish: withError: stalled: [TidyOp] never finished")
  }

  @Test("Cleanups leave nothing open")
  func nothingIsLeftOpenAfterwards() throws {
    let loop = makeLoop()
    var seen: Set<ObjectIdentifier> = []
    let op = Op("TidyOp") { context in
      seen.insert(ObjectIdentifier(context))
      context.defer { _ in }
    }
    let flow = Flow("f")
    for _ in 0..<100 { flow.add(op) }
    for _ in 0..<3 { _ = flow.start(on: loop) }
    #expect(seen.count == 1)
    #expect(loop.pendingRuns.isEmpty)
  }
}
