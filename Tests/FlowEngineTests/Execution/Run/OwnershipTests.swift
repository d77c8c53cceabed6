import FlowEngine
import Testing

@Suite("Ownership of runs")
struct OwnershipTests {
  @Test("A run started by an op has its own data and log and appears in the outer summary")
  func aRunThatAnOpStartsHasItsOwnDataAndLogAndIsShownAround() throws {
    let loop = makeLoop()
    var child: Run?
    let inner = waitingOp("InnerOp") { $0.set("x", 2) }
    let op = Op(
      name: "StartOp",
      body: HoldingBody { context in
        let started = context.start(inner, data: InitialData([("x", .integer(1))]))
        child = started
        started.observe(Job { context.end() })
      })
    let run = Flow("f").add(op).start(on: loop)
    try run.wait()
    #expect(
      body(run) == [
        "[StartOp] WillStart", "[StartOp/InnerOp] WillStart",
        "[StartOp/InnerOp] DidFinish: successfully",
        "[StartOp] DidFinish: successfully",
      ])
    #expect(run.data.count == 0)
    let inside = try #require(child)
    #expect(
      lines(inside) == [
        "[DataBucket] start with:", "x: 1", "[InnerOp] WillStart",
        "[DataBucket] replace for x: 1 -> 2", "[InnerOp] DidFinish: successfully",
        "[DataBucket] end with:", "x: 2", "Flow isSuccess: true",
      ])
  }

  @Test("The runs of a failing op are cancelled before it finishes")
  func theRunsOfAFailingOpAreCancelledBeforeItFinishes() throws {
    let loop = makeLoop()
    var children: [Run] = []
    let op = Op("StartOp") { context in
      children = (1...3).map { context.start(waitingOp("Inner\($0)Op", 9)) }
      throw FlowError(.error, "bad")
    }
    let run = Flow("f").add(op).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[StartOp] WillStart", "[StartOp/Inner1Op] WillStart", "[StartOp/Inner2Op] WillStart",
        "[StartOp/Inner3Op] WillStart", "[StartOp/Inner3Op] DidFinish: cancelled: bad",
        "[StartOp/Inner2Op] DidFinish: cancelled: bad",
        "[StartOp/Inner1Op] DidFinish: cancelled: bad",
        "[StartOp] DidFinish: withError: bad",
      ])
    #expect(children.allSatisfy { $0.state == .cancelled && $0.isConcluded })
    #expect(loop.unobservedFailures.map(\.name) == ["f"])
  }

  @Test("The cleanups of children end before their op does")
  func theCleanupsOfChildrenEndBeforeTheirOpDoes() throws {
    let loop = makeLoop()
    let inner = Op(
      name: "InnerOp", body: HoldingBody { $0.addCleanup(WaitingCleanup(0.5)) })
    let op = Op("StartOp") { context in
      context.defer { $0.log("tidy") }
      _ = context.start(Flow("child").add(inner).addFinally(waitingOp("CloseOp", 2)))
      throw FlowError(.error, "bad")
    }.with(timeout: .seconds(1))
    let run = Flow("f").add(op).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      times(run, [.start, .finish, .log]) == [
        "0.0 start StartOp", "0.0 start child", "2.5 finish child", "2.5 log StartOp",
        "2.5 finish StartOp",
      ])
  }

  @Test("The runs of a succeeding op continue until the last op has ended")
  func theRunsOfASucceedingOpGoOnUntilTheLastOpHasEnded() throws {
    let loop = makeLoop()
    var children: [Run] = []
    let op = Op("StartOp") { context in
      children.append(context.start(waitingOp("ShortOp", 1)))
      children.append(context.start(waitingOp("LongOp", 9)))
    }
    let run = Flow("f").add(op).add(waitingOp("WorkOp", 2)).addFinally(waitingOp("CloseOp"))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[StartOp] WillStart", "[StartOp/ShortOp] WillStart", "[StartOp/LongOp] WillStart",
        "[StartOp] DidFinish: successfully", "[WorkOp] WillStart",
        "[StartOp/ShortOp] DidFinish: successfully", "[WorkOp] DidFinish: successfully",
        "[CloseOp] WillStart", "[CloseOp] DidFinish: successfully",
        "[StartOp/LongOp] DidFinish: cancelled",
      ])
    #expect(run.state == .succeeded)
    #expect(children.map(\.state) == [.succeeded, .cancelled])
    #expect(run.duration == .seconds(3))
  }

  @Test("A run settles only after its leftovers have ended")
  func aRunSettlesOnlyWhenWhatItLeavesHasEnded() throws {
    let loop = makeLoop()
    var seen: [String] = []
    var child: Run?
    let inner = Flow("child").add(waitingOp("LongOp", 9)).addFinally(waitingOp("CloseOp", 2))
    let run = Flow("f").add(Op("StartOp") { child = $0.start(inner) })
      .didFinish { _ in seen.append("finish \(child?.isConcluded == true)") }.start(on: loop)
    #expect(run.state == .pending)
    try run.wait()
    #expect(seen == ["finish true"])
    #expect(run.duration == .seconds(2))
  }

  @Test("A stopped op stops its runs")
  func aStoppedOpTakesItsRunsWithIt() throws {
    let loop = makeLoop()
    let op = Op(name: "StartOp", body: HoldingBody { _ = $0.start(waitingOp("InnerOp", 9)) }).with(
      timeout: .seconds(1))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[StartOp] WillStart", "[StartOp/InnerOp] WillStart",
        "[StartOp/InnerOp] DidFinish: cancelled: timed out after 1s",
        "[StartOp] DidFinish: timedOut after 1s",
      ])
    let second = op.start(on: loop)
    second.cancel(reason: "enough")
    try second.waitUntilEnd()
    #expect(
      body(second).suffix(2) == [
        "[StartOp/InnerOp] DidFinish: cancelled: enough", "[StartOp] DidFinish: cancelled: enough",
      ])
  }

  @Test("Each attempt has its own runs")
  func eachAttemptHasRunsOfItsOwn() throws {
    let loop = makeLoop()
    let op = Op("StartOp") { context in
      _ = context.start(waitingOp("InnerOp", 9))
      if context.attempt == 1 { throw FlowError(.error, "bad") }
    }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(1)))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[StartOp] WillStart", "[StartOp/InnerOp] WillStart",
        "[StartOp/InnerOp] DidFinish: cancelled: bad",
        "[StartOp] Retry 2/2 in 1s: bad", "[StartOp/InnerOp] WillStart",
        "[StartOp] DidFinish: successfully", "[StartOp/InnerOp] DidFinish: cancelled",
      ])
  }

  @Test("Runs started by a cleanup belong to the op")
  func runsThatACleanupStartsBelongToTheOpToo() throws {
    let loop = makeLoop()
    let op = Op("StartOp") { context in
      context.defer { _ = $0.start(waitingOp("InnerOp", 9)) }
      throw FlowError(.error, "bad")
    }
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(2) == [
        "[StartOp/InnerOp] DidFinish: cancelled: bad", "[StartOp] DidFinish: withError: bad",
      ])
  }

  @Test("The runs of a member pass to the run of its group")
  func aMembersRunsPassToTheRunOfItsGroup() throws {
    let loop = makeLoop()
    let op = Op("ItemOp", needs: ["i": "integer"]) { _ = $0.start(waitingOp("InnerOp", 9)) }
    let run = Flow("f").data("items", [1, 2])
      .addGrouped(op, GroupDispatcher(input: "items")).add(waitingOp("WorkOp")).start(on: loop)
    try run.wait()
    #expect(
      body(run).suffix(4) == [
        "[WorkOp] WillStart", "[WorkOp] DidFinish: successfully",
        "[ItemOp #2/InnerOp] DidFinish: cancelled", "[ItemOp #1/InnerOp] DidFinish: cancelled",
      ])
  }

  @Test("A run that waits for its leftovers can be cancelled")
  func cancellingARunThatWaitsForItsLeftoversCancelsIt() throws {
    let loop = makeLoop()
    let inner = Flow("child").add(waitingOp("LongOp", 9)).addFinally(waitingOp("CloseOp", 2))
    let run = Flow("f").add(Op("StartOp") { _ = $0.start(inner) }).start(on: loop)
    loop.schedule(at: 1_000_000_000) { #expect(run.cancel(reason: "enough")) }
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(run.duration == .seconds(2))
  }

  @Test("A stuck child of a failing op is ended at last")
  func aStuckChildOfAFailingOpIsEndedInTheEnd() {
    let loop = makeLoop()
    let stuck = StuckBody(endsWhenAsked: false)
    defer { stuck.contexts = [] }
    let op = Op("StartOp") { context in
      _ = context.start(Op(name: "StuckOp", body: stuck))
      throw FlowError(.error, "bad")
    }
    let run = op.start(on: loop)
    loop.runUntilIdle()
    #expect(run.state == .pending)
    // As a host does at the end: the youngest first.
    loop.pendingRuns.last?.failStalled()
    loop.runUntilIdle()
    #expect(run.error?.message == "bad")
    #expect(loop.pendingRuns.isEmpty)
  }
}
