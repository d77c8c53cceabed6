import FlowEngine
import Testing

@Suite("Parallel ops")
struct ParallelTests {
  @Test("Parallel ops run at the same time over the same data")
  func opsRunAtTheSameTimeOverTheSameData() throws {
    let loop = makeLoop()
    let run = Flow("both").data("x", 1)
      .addParallel(
        waitingOp("MailOp", 2) { $0.set("x", 2) }, waitingOp("AuditOp", 1) { $0.set("x", 3) },
        quick("QuickOp")
      )
      .add(quick("NextOp")).start(on: loop)
    try run.wait()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        x: 1
        12:00:00 AM [MailOp] WillStart
        12:00:00 AM [AuditOp] WillStart
        12:00:00 AM [QuickOp] WillStart
        12:00:00 AM [QuickOp] DidFinish: successfully
        12:00:01 AM [DataBucket] replace for x: 1 -> 3
        12:00:01 AM [AuditOp] DidFinish: successfully
        12:00:02 AM [DataBucket] replace for x: 3 -> 2
        12:00:02 AM [MailOp] DidFinish: successfully
        12:00:02 AM [NextOp] WillStart
        12:00:02 AM [NextOp] DidFinish: successfully
        12:00:02 AM [DataBucket] end with:
        x: 2
        Flow isSuccess: true
        ======    Ending    ======

        """)
  }

  @Test("The first failure cancels the others")
  func theFirstFailureCancelsTheOthers() throws {
    let loop = makeLoop()
    let run = Flow("both")
      .addParallel(waitingOp("SlowOp", 9), failing("BadOp", "bad", after: 1), quick("QuickOp"))
      .add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[SlowOp] WillStart", "[BadOp] WillStart", "[QuickOp] WillStart",
        "[QuickOp] DidFinish: successfully", "[BadOp] DidFinish: withError: bad",
        "[Group] not allow failure in group. stop immediately.",
        "[SlowOp] DidFinish: cancelled: group failed",
      ])
    #expect(run.error?.op == "BadOp")
    #expect(run.duration == .seconds(1))
  }

  @Test("No op starts after an immediate failure")
  func nothingStartsBehindAnImmediateFailure() {
    let loop = makeLoop()
    let run = Flow("both").addParallel(failing("BadOp"), quick("NeverOp")).start(on: loop)
    #expect(
      body(run) == [
        "[BadOp] WillStart", "[BadOp] DidFinish: withError: no",
        "[Group] not allow failure in group. stop immediately.",
      ])
  }

  @Test("Flows can be parallel members")
  func flowsAreMembersToo() throws {
    let loop = makeLoop()
    let left = Flow("left").data("own", 1).add(waitingOp("LeftOp")).add(quick("ThenOp"))
    let right = Flow("right").addParallel(waitingOp("InOp", 3), waitingOp("OnOp", 2))
    let run = Flow("both").addParallel(left, right).start(on: loop)
    try run.wait()
    #expect(
      body(run) == [
        "[left] WillStart", "[DataBucket] add for own: 1", "[LeftOp] WillStart",
        "[right] WillStart", "[InOp] WillStart", "[OnOp] WillStart",
        "[LeftOp] DidFinish: successfully", "[ThenOp] WillStart",
        "[ThenOp] DidFinish: successfully", "[left] DidFinish: successfully",
        "[OnOp] DidFinish: successfully", "[InOp] DidFinish: successfully",
        "[right] DidFinish: successfully",
      ])
    #expect(run.state == .succeeded)
  }

  @Test("A failure in a member flow stops the others through all levels")
  func aFailureInAMemberFlowReachesTheOthersThroughAllLevels() throws {
    let loop = makeLoop()
    let deep = Flow("deep").addParallel(waitingOp("DeepOp", 9), waitingOp("TwinOp", 8))
    let bad = Flow("bad").add(failing("BadOp", "bad", after: 1)).add(quick("NeverOp"))
    let run = Flow("both").addParallel(deep, bad).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(6) == [
        "[BadOp] DidFinish: withError: bad", "[bad] DidFinish: withError: bad",
        "[Group] not allow failure in group. stop immediately.",
        "[DeepOp] DidFinish: cancelled: group failed",
        "[TwinOp] DidFinish: cancelled: group failed",
        "[deep] DidFinish: cancelled: group failed",
      ])
    #expect(run.error?.message == "bad")
  }

  @Test("A member of a group may run ops in parallel")
  func aMemberOfAGroupMayRunOpsInParallel() throws {
    let loop = makeLoop()
    let inner = Flow("inner").addParallel(
      waitingOp("LeftOp") { $0.set("left", $0.bucket["i"] ?? .null) },
      waitingOp("RightOp") { $0.set("right", 1) })
    let run = Flow("outer").data("items", [7, 8])
      .addGrouped(
        inner, GroupDispatcher(input: "items", output: "lefts", as: "i", collect: "left")
      ).start(on: loop)
    try run.wait()
    #expect(run.data.value("lefts", as: [Int64].self) == [7, 8])
    #expect(run.data["left"] == nil && run.data["right"] == nil)
    // Values that members set aren't logged.
    #expect(body(run).filter { $0.contains("DataBucket") }.count == 1)
    #expect(run.duration == .seconds(1))
  }

  @Test("Of two failures at once the first counts")
  func twoFailuresAtOnceAreOne() throws {
    let loop = makeLoop()
    let run = Flow("both")
      .addParallel(failing("OneOp", "one", after: 1), failing("TwoOp", "two", after: 1))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.message == "one")
    #expect(body(run).filter { $0.hasPrefix("[Group]") }.count == 1)
    #expect(loop.unobservedFailures.count == 1)
  }

  @Test("A stuck member stalls while the others continue")
  func aStuckMemberStallsTheOthersGoOn() {
    let loop = makeLoop()
    let stuck = StuckBody()
    defer { stuck.contexts = [] }
    let run = Flow("both").addParallel(Op(name: "StuckOp", body: stuck), waitingOp("SlowOp", 5))
      .start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(
      body(run) == [
        "[StuckOp] WillStart", "[SlowOp] WillStart", "[SlowOp] DidFinish: successfully",
        "[StuckOp] DidFinish: withError: stalled: [StuckOp] never finished",
        "[Group] not allow failure in group. stop immediately.",
      ])
  }

  @Test("An empty parallel step succeeds")
  func noOpsAtAllSucceed() {
    let run = Flow("none").addParallel([]).add(quick("NextOp")).start(on: makeLoop())
    #expect(run.state == .succeeded)
    #expect(body(run).count == 2)
  }
}
