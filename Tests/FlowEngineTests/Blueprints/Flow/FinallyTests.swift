import FlowEngine
import Testing

@Suite("Final steps")
struct FinallyTests {
  @Test("Final steps run in order after success")
  func itRunsAfterSuccessInOrder() throws {
    let loop = makeLoop()
    let run = Flow("f").addFinally(waitingOp("CloseOp")).add(waitingOp("WorkOp"))
      .addFinally(quick("LastOp")).start(on: loop)
    try run.wait()
    #expect(
      times(run) == [
        "0.0 start WorkOp", "1.0 finish WorkOp", "1.0 start CloseOp", "2.0 finish CloseOp",
        "2.0 start LastOp", "2.0 finish LastOp",
      ])
    #expect(run.state == .succeeded)
  }

  @Test("Final steps run after a failure and see the data")
  func itRunsAfterFailureAndSeesTheData() throws {
    let loop = makeLoop()
    let run = Flow("f").add(Op("OpenOp") { $0.set("handle", 7) }).add(failing("BadOp", "bad"))
      .addFinally(Op("CloseOp", needs: ["handle": "integer"]) { $0.set("handle", FlowValue.null) })
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        12:00:00 AM [OpenOp] WillStart
        12:00:00 AM [DataBucket] add for handle: 7
        12:00:00 AM [OpenOp] DidFinish: successfully
        12:00:00 AM [BadOp] WillStart
        12:00:00 AM [BadOp] DidFinish: withError: bad
        12:00:00 AM [CloseOp] WillStart
        12:00:00 AM [DataBucket] remove for handle
        12:00:00 AM [CloseOp] DidFinish: successfully
        12:00:00 AM [DataBucket] end with:
        Flow isSuccess: false
        ======    Ending    ======

        """)
    #expect(run.error?.message == "bad")
  }

  @Test("Final steps run after a cancellation, which doesn't reach them")
  func itRunsAfterCancellationAndNothingReachesIt() throws {
    let loop = makeLoop()
    let run = Flow("f").add(waitingOp("WorkOp", 9)).addFinally(waitingOp("CloseOp", 2))
      .addFinally(waitingOp("LastOp", 2)).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "first") }
    loop.schedule(at: 2_000_000_000) { run.cancel(reason: "second") }
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[WorkOp] WillStart", "[WorkOp] DidFinish: cancelled: first", "[CloseOp] WillStart",
        "[CloseOp] DidFinish: successfully", "[LastOp] WillStart",
        "[LastOp] DidFinish: successfully",
      ])
    #expect(run.state == .cancelled)
    #expect(run.error?.message == "cancelled: first")
    #expect(run.duration == .seconds(5))
  }

  @Test("A cancellation during final steps cancels the run after them")
  func aCancellationWhileItRunsCancelsTheRunBehindIt() throws {
    let loop = makeLoop()
    var seen: [AnyFlowTask.State] = []
    let run = Flow("f").add(quick("WorkOp")).addFinally(waitingOp("CloseOp", 2))
      .didFinish { seen.append($0.state) }.start(on: loop)
    loop.schedule(at: 1_000_000_000) { #expect(run.cancel()) }
    try run.waitUntilEnd()
    #expect(body(run).last == "[CloseOp] DidFinish: successfully")
    #expect(run.state == .cancelled)
    #expect(seen == [.cancelled])
  }

  @Test("Final steps run after a timeout, which doesn't include them")
  func itRunsAfterATimeoutWhichDoesNotCountIt() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(waitingOp("WorkOp", 9)).addFinally(waitingOp("CloseOp", 5))
    let run = Flow("outer").add(inner.with(timeout: .seconds(1))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[inner] WillStart", "[WorkOp] WillStart",
        "[WorkOp] DidFinish: cancelled: timed out after 1s", "[CloseOp] WillStart",
        "[CloseOp] DidFinish: successfully", "[inner] DidFinish: timedOut after 1s",
      ])
    #expect(run.duration == .seconds(6))
    #expect(run.error?.kind == .timeout)
    #expect(run.error?.op == "inner")
  }

  @Test("The timeout of an enclosing flow takes effect after final steps")
  func theTimeoutAroundReachesItOnlyWhenItIsDone() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(quick("WorkOp")).addFinally(waitingOp("CloseOp", 5))
    let middle = Flow("middle").add(inner).add(quick("NeverOp"))
    let run = Flow("outer").add(middle.with(timeout: .seconds(1))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3) == [
        "[CloseOp] DidFinish: successfully", "[inner] DidFinish: cancelled: timed out after 1s",
        "[middle] DidFinish: timedOut after 1s",
      ])
    #expect(run.duration == .seconds(5))
  }

  @Test("A failing final step fails a flow that had succeeded, and the other final steps still run")
  func aFailingOneFailsAFlowThatHadSucceededAndTheOthersStillRun() {
    let loop = makeLoop()
    let run = Flow("f").add(quick("WorkOp")).addFinally(failing("CloseOp", "first"))
      .addFinally(failing("OtherOp", "second")).addFinally(quick("LastOp")).start(on: loop)
    #expect(run.error?.message == "first")
    #expect(body(run).last == "[LastOp] DidFinish: successfully")
    let failed = Flow("f").add(failing("WorkOp", "zeroth"))
      .addFinally(failing("CloseOp", "first")).start(on: loop)
    #expect(failed.error?.message == "zeroth")
  }

  @Test("A final step keeps its own timeout")
  func theTimeoutOfAFinalStepItselfHolds() throws {
    let loop = makeLoop()
    let run = Flow("f").add(quick("WorkOp")).addFinally(
      waitingOp("CloseOp", 5).with(timeout: .seconds(1))
    )
    .addFinally(waitingOp("LastOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3) == [
        "[CloseOp] DidFinish: timedOut after 1s", "[LastOp] WillStart",
        "[LastOp] DidFinish: successfully",
      ])
    #expect(run.error?.kind == .timeout)
  }

  @Test("A stop doesn't reach a flow used as a final step")
  func aFlowAsFinalStepIsLeftAloneToo() throws {
    let loop = makeLoop()
    let closing = Flow("closing").addParallel(waitingOp("LeftOp", 2), waitingOp("RightOp", 3))
      .add(waitingOp("DoneOp")).addFinally(waitingOp("InnerCloseOp"))
    let run = Flow("f").add(waitingOp("WorkOp", 9)).addFinally(closing).start(on: loop)
    for second in 1...6 {
      loop.schedule(at: Int64(second) * 1_000_000_000) { run.cancel(reason: "\(second)") }
    }
    try run.waitUntilEnd()
    #expect(body(run).filter { $0.contains("cancelled") }.count == 1)
    #expect(body(run).last == "[closing] DidFinish: successfully")
    #expect(run.duration == .seconds(6))
    #expect(run.error?.message == "cancelled: 1")
  }

  @Test("Each attempt of a flow runs the final steps")
  func eachAttemptAtAFlowHasItsOwn() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(failing("BadOp", "bad")).addFinally(quick("CloseOp"))
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 2, delay: .seconds(1))))
      .start(
        on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[inner] WillStart", "[BadOp] WillStart", "[BadOp] DidFinish: withError: bad",
        "[CloseOp] WillStart", "[CloseOp] DidFinish: successfully", "[inner] Retry 2/2 in 1s: bad",
        "[BadOp] WillStart", "[BadOp] DidFinish: withError: bad", "[CloseOp] WillStart",
        "[CloseOp] DidFinish: successfully", "[inner] DidFinish: withError: bad",
      ])
  }

  @Test("A failing final step is retried alone")
  func aFailingFinalStepIsTriedAgainByItself() throws {
    let loop = makeLoop()
    var count = 0
    let flaky = Op("FlakyOp") { context in
      count += 1
      if count < 3 { context.fail(FlowError(.error, "\(count)")) }
    }
    let run = Flow("f").add(waitingOp("WorkOp", 9))
      .addFinally(flaky.with(retry: RetryPolicy(attempts: 5, delay: .seconds(1)))).start(on: loop)
    run.cancel()
    try run.waitUntilEnd()
    #expect(count == 3)
    #expect(run.state == .cancelled)
    #expect(run.duration == .seconds(2))
  }

  @Test("Final steps of nested flows run from the inside out")
  func nestedOnesRunFromTheInsideOut() throws {
    let loop = makeLoop()
    var flow = Flow("f0").add(waitingOp("WorkOp", 9)).addFinally(waitingOp("Close0Op"))
    for level in 1...3 {
      flow = Flow("f\(level)").add(flow)
        .addFinally(waitingOp("Close\(level)Op"))
    }
    let run = flow.start(on: loop)
    loop.schedule(at: 500_000_000) { run.cancel() }
    try run.waitUntilEnd()
    let closed = run.events.filter { $0.kind == .finish && $0.op.description.hasPrefix("Close") }
    #expect(
      closed.map { "\($0.seconds) \($0.op) \($0.message ?? "")" } == [
        "1.5 Close0Op successfully", "2.5 Close1Op successfully", "3.5 Close2Op successfully",
        "4.5 Close3Op successfully",
      ])
  }

  @Test("Members run their own final steps")
  func membersHaveTheirs() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(waitingOp("WorkOp", 5)).addFinally(waitingOp("CloseOp", 2))
    let run = Flow("outer").data("items", [1])
      .addParallel(inner, failing("BadOp", "bad", after: 1))
      .addFinally(quick("OuterCloseOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(5) == [
        "[CloseOp] WillStart", "[CloseOp] DidFinish: successfully",
        "[inner] DidFinish: cancelled: group failed", "[OuterCloseOp] WillStart",
        "[OuterCloseOp] DidFinish: successfully",
      ])
    #expect(run.duration == .seconds(3))
  }

  @Test("A timeout inside a final step isn't lost when the run is cancelled")
  func aTimeoutWithinItIsNotLostWhenTheRunIsCancelledMeanwhile() throws {
    let loop = makeLoop()
    let slow = Op(name: "SlowOp", body: HoldingBody { $0.addCleanup(WaitingCleanup(0.5)) })
    let closing = Flow("closing").add(slow).add(quick("NeverOp"))
    let run = Flow("f").add(quick("WorkOp")).addFinally(closing.with(timeout: .seconds(1))).start(
      on: loop)
    // While the op that has timed out cleans up.
    loop.schedule(at: 1_250_000_000) { run.cancel() }
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3) == [
        "[SlowOp] WillStart", "[SlowOp] DidFinish: cancelled: timed out after 1s",
        "[closing] DidFinish: timedOut after 1s",
      ])
    #expect(run.state == .cancelled)
  }

  @Test("A stopped flow cuts final steps after its grace and calls the rest")
  func aStoppedFlowCutsThemAfterItsGraceAndCallsTheRest() throws {
    let loop = makeLoop()
    var called: [String] = []
    let run = Flow("f").add(waitingOp("WorkOp", 9)).addFinally(waitingOp("CloseOp", 2))
      .addFinally(waitingOp("StuckOp", 60)).addFinally(waitingOp("WaitingOp", 1))
      .addFinally(Op("QuickOp") { _ in called.append("quick") })
      .didFinish { _ in called.append("did finish") }.with(grace: .seconds(5)).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "first") }
    loop.schedule(at: 4_000_000_000) { run.cancel(reason: "second") }
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(6))
    #expect(run.error?.message == "cancelled: first")
    #expect(called == ["quick", "did finish"])
    #expect(
      run.lateErrors.map(\.message)
        == ["StuckOp", "WaitingOp"].map {
          "[\($0)], a final step of [f], was cut after a grace of 5s, while it waited"
        })
  }

  @Test("A stop that arrives during final steps limits their time")
  func aStopThatArrivesWhileTheyRunLimitsThem() throws {
    let loop = makeLoop()
    let run = Flow("f").addFinally(waitingOp("CloseOp", 60)).with(grace: .seconds(5)).start(
      on: loop)
    loop.schedule(at: 10_000_000_000) { run.cancel() }
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(15))
    let calm = Flow("f").addFinally(waitingOp("CloseOp", 60)).with(grace: .seconds(5)).start(
      on: loop)
    try calm.waitUntilEnd()
    #expect(calm.duration == .seconds(60))
  }

  @Test("Final steps don't run when the flow never began")
  func itDoesNotRunWhenTheFlowNeverBegan() {
    let loop = makeLoop()
    let run = Flow("f").needs(["x": "string"]).addFinally(quick("CloseOp")).start(on: loop)
    #expect(
      body(run) == ["[f] DidFinish: withInsufficientInputData: can't find <x> in data bucket"])
  }

  @Test("A final step that nothing can end stalls")
  func aStuckOneStalls() {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let run = Flow("f").add(quick("WorkOp")).addFinally(Op(name: "StuckOp", body: stuck))
      .addFinally(quick("LastOp")).start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.message == "stalled: [StuckOp] never finished")
    #expect(body(run).last == "[LastOp] DidFinish: successfully")
  }
}
