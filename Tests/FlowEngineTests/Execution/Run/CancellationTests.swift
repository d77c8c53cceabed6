import FlowEngine
import Testing

@Suite("Cancellation")
struct CancellationTests {
  @Test("Only a pending run can be cancelled, and the first reason counts")
  func onlyAPendingRunIsCancelledAndTheFirstReasonCounts() throws {
    let loop = makeLoop()
    let run = waitingOp("SlowOp").start(on: loop)
    #expect(run.cancel(reason: "first"))
    #expect(run.cancel(reason: "second"))
    try run.waitUntilEnd()
    #expect(run.cancel() == false)
    #expect(run.error?.message == "cancelled: first")
    #expect(run.state == .cancelled)
    #expect(loop.unobservedFailures.isEmpty)
    let plain = waitingOp("SlowOp").start(on: loop)
    plain.cancel()
    try plain.waitUntilEnd()
    #expect(body(plain).last == "[SlowOp] DidFinish: cancelled")
    #expect(quick("DoneOp").start(on: loop).cancel() == false)
  }

  @Test("A cancellation reaches every wait, wherever it is")
  func itReachesWhatWaitsWhereverItIs() throws {
    let loop = makeLoop()
    let group = Flow("group").data("items", [1, 2, 3])
      .addGrouped(
        Flow("item").add(waitingOp("ItemOp", 9)),
        GroupDispatcher(input: "items", maxConcurrent: 2, as: "i"))
    let parallel = Flow("parallel").addParallel(
      waitingOp("SleepOp", 9), group,
      failing("FlakyOp", "bad").with(retry: RetryPolicy(attempts: 2, delay: .seconds(9))),
      Flow("calls").willStart(WaitingCallback(seconds: nil)).add(quick("NeverOp")))
    let run = Flow("top").add(Flow("nested").add(parallel)).add(quick("NeverOp")).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(10) == [
        "[SleepOp] DidFinish: cancelled: enough", "[item #1/ItemOp] DidFinish: cancelled: enough",
        "[item #2/ItemOp] DidFinish: cancelled: enough", "[FlakyOp] DidFinish: cancelled: enough",
        "[calls] DidFinish: cancelled: enough", "[item #1] DidFinish: cancelled: enough",
        "[item #2] DidFinish: cancelled: enough", "[group] DidFinish: cancelled: enough",
        "[parallel] DidFinish: cancelled: enough", "[nested] DidFinish: cancelled: enough",
      ])
    #expect(run.duration == .seconds(1))
    loop.runUntilIdle()
    #expect(loop.now() == 1_000_000_000)
    #expect(
      body(run).filter { $0 == "[Group] not allow failure in group. stop immediately." }.isEmpty)
  }

  @Test("A callback that cancels its own run is stopped at its next wait")
  func aCallbackThatCancelsIsAskedWhenItWaits() throws {
    let loop = makeLoop()
    let callback = CancellingCallback()
    let run = Flow("f").willStart(callback).add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(callback.asked == ["cancelled: by itself"])
    #expect(run.state == .cancelled)
    #expect(body(run).isEmpty)
  }

  @Test("An op that cancels its own run ends as cancelled")
  func anOpThatCancelsItsOwnRunEndsAsCancelled() throws {
    let loop = makeLoop()
    let run = Flow("f").add(Op("SelfOp") { $0.run.cancel(reason: "by itself") })
      .add(quick("NeverOp")).addFinally(quick("CloseOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[SelfOp] WillStart", "[SelfOp] DidFinish: cancelled: by itself", "[CloseOp] WillStart",
        "[CloseOp] DidFinish: successfully",
      ])
  }

  @Test("A member that cancels its run ends all members")
  func aMemberThatCancelsItsRunEndsAllMembers() throws {
    let loop = makeLoop()
    let op = Op(
      name: "ItemOp", primaryInput: "i",
      body: HoldingBody { context in
        if context.index == 3 { context.run.cancel(reason: "by a member") }
      })
    let run = Flow("f").data("items", [1, 2, 3, 4])
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: 4)).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3)
        == (1...3).map {
          "[ItemOp #\($0)] DidFinish: cancelled: by a member"
        })
    #expect(body(run).filter { $0.contains("#4") }.isEmpty)
  }

  @Test("A cancelled body can't change the outcome")
  func whatABodyMakesOfBeingAskedDoesNotMatter() throws {
    let loop = makeLoop()
    let stuck = StuckBody(endsWhenAsked: false)
    defer { stuck.contexts = [] }
    let run = Op(name: "StubbornOp", body: stuck).start(on: loop)
    run.cancel(reason: "enough")
    run.cancel(reason: "again")
    #expect(stuck.asked.map(\.message) == ["cancelled: enough"])
    loop.runUntilIdle()
    #expect(run.state == .pending)
    stuck.contexts[0].end(FlowError(.error, "other"))
    try run.waitUntilEnd()
    #expect(body(run).last == "[StubbornOp] DidFinish: cancelled: enough")
  }

  @Test("An error of kind cancelled is a cancellation")
  func anErrorOfThatKindIsACancellation() {
    let loop = makeLoop()
    let run = Op("QuitOp") { _ in throw FlowError.cancelled(reason: "no time") }.start(on: loop)
    #expect(run.state == .cancelled)
    #expect(body(run).last == "[QuitOp] DidFinish: cancelled: no time")
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("A cancellation doesn't reach the callback of a finished flow")
  func aFinishedFlowsCallbackIsNotPartOfWhatIsCancelled() throws {
    let loop = makeLoop()
    var calls: [String] = []
    let inner = Flow("inner").add(quick("WorkOp"))
      .didFinish(WaitingCallback(seconds: 2) { calls.append("done") })
    let run = Flow("outer").add(inner).add(quick("NeverOp")).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel() }
    try run.waitUntilEnd()
    #expect(calls == ["done"])
    #expect(run.state == .cancelled)
    #expect(body(run).last == "[inner] DidFinish: successfully")
  }
}

/// Cancels its run, then waits without end.
private final class CancellingCallback: RunCallback {
  var asked: [String] = []

  func call(_ run: Run, completion: CallbackCompletion) -> CallState {
    run.cancel(reason: "by itself")
    // Too early to be asked: it isn't waiting yet.
    #expect(asked.isEmpty)
    return .suspended
  }

  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    asked.append(error.message.description)
    completion.finish(error)
  }
}
