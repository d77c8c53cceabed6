import FlowEngine
import Testing

@Suite("Cases of flows")
struct CaseTests {
  private func plans() -> Flow {
    Flow("plans").case("plan", "pro").add(quick("ProOp")).add(quick("MoreOp"))
      .case(where: { $0["seats"] != nil }).add(quick("TeamOp"))
      .otherwise().add(quick("FreeOp"))
      .combine().add(quick("AfterOp"))
  }

  private func taken(_ run: Run) -> [String] {
    run.events.filter { $0.kind == .start }.map { $0.op.description }
  }

  @Test("The first branch that matches is taken")
  func theFirstBranchThatMatchesIsTaken() {
    let loop = makeLoop()
    let flow = plans()
    let pro = flow.start(
      on: loop, data: InitialData([("plan", .bytes("pro")), ("seats", .integer(9))]))
    #expect(taken(pro) == ["ProOp", "MoreOp", "AfterOp"])
    let team = flow.start(
      on: loop, data: InitialData([("plan", .bytes("team")), ("seats", .integer(9))]))
    #expect(taken(team) == ["TeamOp", "AfterOp"])
    let free = flow.start(on: loop)
    #expect(taken(free) == ["FreeOp", "AfterOp"])
    let events = [pro, team, free].flatMap { run in
      run.events.filter { $0.kind == .case }.map { "\($0.op) \($0.message ?? "")" }
    }
    #expect(events == ["Cases plan: pro", "Cases case 2", "Cases otherwise"])
    #expect([pro, team, free].allSatisfy { $0.state == .succeeded && !$0.isFinishedEarly })
  }

  @Test("Only a string matches a key")
  func onlyAStringMatchesAKey() {
    let loop = makeLoop()
    let flow = Flow("f").case("n", "1").add(quick("OneOp")).otherwise().add(quick("NoneOp"))
    #expect(taken(flow.start(on: loop, data: InitialData([("n", .integer(1))]))) == ["NoneOp"])
    #expect(taken(flow.start(on: loop, data: InitialData([("n", .bytes("1 "))]))) == ["NoneOp"])
    #expect(taken(flow.start(on: loop, data: InitialData([("n", .bytes("1"))]))) == ["OneOp"])
  }

  @Test("Without a match the flow ends early and succeeds")
  func withoutAMatchTheFlowEndsEarlyAndSuccessfully() throws {
    let loop = makeLoop()
    let run = Flow("early").data("plan", "none").case("plan", "pro").add(quick("ProOp"))
      .combine().add(quick("AfterOp")).addFinally(quick("CloseOp")).start(on: loop)
    try run.wait()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        plan: none
        12:00:00 AM [Cases] no case is matched. finished in early.
        12:00:00 AM [CloseOp] WillStart
        12:00:00 AM [CloseOp] DidFinish: successfully
        12:00:00 AM [DataBucket] end with:
        plan: none
        Flow isSuccess: true
        ======    Ending    ======

        """)
    #expect(run.isFinishedEarly)
    #expect(run.state == .succeeded)
  }

  @Test("A nested flow that ends early doesn't end the outer flow")
  func aNestedFlowEndsItselfAloneEarly() {
    let loop = makeLoop()
    let inner = Flow("inner").gives(["never": "string"]).case("plan", "pro")
      .add(quick("ProOp")).combine().add(quick("InnerOp"))
    let run = Flow("outer").add(inner).add(quick("OuterOp")).start(on: loop)
    #expect(
      body(run) == [
        "[inner] WillStart", "[Cases] no case is matched. finished in early.",
        "[inner] DidFinish: successfully", "[OuterOp] WillStart",
        "[OuterOp] DidFinish: successfully",
      ])
    #expect(!run.isFinishedEarly)
  }

  @Test("A failure after an early finish fails")
  func aFailureAfterAnEarlyFinishFails() {
    let loop = makeLoop()
    let run = Flow("early").case("plan", "pro").add(quick("ProOp"))
      .addFinally(failing("CloseOp")).start(on: loop)
    #expect(run.state == .failed)
    #expect(!run.isFinishedEarly)
  }

  @Test("Blocks of cases follow one another")
  func blocksOfCasesFollowOneAnother() {
    let loop = makeLoop()
    let flow = Flow("f").case("a", "1").add(quick("A1Op")).otherwise().combine()
      .case("b", "1").add(quick("B1Op")).case("b", "2").combine().add(quick("EndOp"))
    #expect(
      taken(flow.start(on: loop, data: InitialData([("a", .bytes("1")), ("b", .bytes("1"))])))
        == ["A1Op", "B1Op", "EndOp"])
    // Branches may be empty.
    #expect(taken(flow.start(on: loop, data: InitialData([("b", .bytes("2"))]))) == ["EndOp"])
    let early = flow.start(on: loop, data: InitialData([("a", .bytes("1"))]))
    #expect(taken(early) == ["A1Op"])
    #expect(early.isFinishedEarly)
  }

  @Test("A failure in a branch ends the flow")
  func aFailureInABranchEndsTheFlow() {
    let loop = makeLoop()
    let run = Flow("f").otherwiseOnly(failing("BadOp")).add(quick("AfterOp")).start(on: loop)
    #expect(taken(run) == ["BadOp"])
    #expect(run.error?.op == "BadOp")
  }

  @Test("Branches hold flows, groups and parallel ops")
  func branchesHoldFlowsGroupsAndParallelOps() throws {
    let loop = makeLoop()
    let inner = Flow("inner").case("x", "y").add(quick("InnerOp"))
    let run = Flow("f").data("items", [1, 2]).data("x", "y")
      .case("x", "no").add(quick("NoOp"))
      .case("x", "y").add(inner)
      .addGrouped(
        Op(name: "ItemOp", primaryInput: "i", body: CountingBody(seconds: nil)),
        GroupDispatcher(input: "items")
      )
      .addParallel(waitingOp("LeftOp"), waitingOp("RightOp"))
      .otherwise().add(quick("OtherOp"))
      .combine().add(quick("EndOp")).start(on: loop)
    try run.wait()
    #expect(
      taken(run) == [
        "inner", "InnerOp", "ItemOp", "ItemOp", "LeftOp", "RightOp", "EndOp",
      ])
    #expect(run.duration == .seconds(1))
  }

  @Test("Predicates may wait")
  func predicatesMayWait() throws {
    let loop = makeLoop()
    let run = Flow("f").case(where: WaitingPredicate(.success(false))).add(quick("FirstOp"))
      .case(where: WaitingPredicate(.success(true))).add(quick("SecondOp"))
      .case(where: { _ in
        Issue.record("asked behind a match")
        return true
      }).add(quick("ThirdOp"))
      .combine().add(quick("EndOp")).start(on: loop)
    #expect(run.state == .pending)
    try run.wait()
    #expect(
      times(run) == [
        "1.0 start SecondOp", "1.0 finish SecondOp", "1.0 start EndOp", "1.0 finish EndOp",
      ])
  }

  @Test("A predicate that fails fails the flow", arguments: [false, true])
  func aPredicateThatFailsFailsTheFlow(_ waits: Bool) throws {
    let loop = makeLoop()
    let error = FlowError(.error, "who knows")
    let flow = Flow("f")
    if waits {
      flow.case(where: WaitingPredicate(.failure(error)))
    } else {
      flow.case(where: { _ in throw error })
    }
    let run = flow.add(quick("NeverOp")).otherwise().add(quick("NeverOp")).combine()
      .add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(body(run) == ["[Cases] DidFinish: withError: who knows"])
    #expect(run.error?.op == "Cases")
    #expect(run.error?.message == "who knows")
    #expect(run.state == .failed)
  }

  @Test("A predicate is cancelled with its run")
  func aPredicateIsCancelledWithItsRun() throws {
    let loop = makeLoop()
    let run = Flow("f").case(where: WaitingPredicate(nil)).add(quick("NeverOp"))
      .otherwise().add(quick("NeverOp")).start(on: loop)
    #expect(run.cancel(reason: "enough"))
    try run.waitUntilEnd()
    #expect(body(run) == ["[Cases] DidFinish: cancelled: enough"])
    #expect(run.state == .cancelled)
    #expect(run.error?.message == "cancelled: enough")
  }

  @Test("A cancelled run chooses no more branches")
  func nothingIsDecidedAnyMoreOnceTheRunIsCancelled() throws {
    let loop = makeLoop()
    var running: Run?
    defer { running = nil }
    let run = Flow("f").willStart { running = $0 }
      .case(where: { _ in
        running?.cancel()
        return false
      }).add(quick("NeverOp"))
      .case(where: { _ in
        Issue.record("asked after the cancellation")
        return true
      }).add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(body(run).isEmpty)
    #expect(run.state == .cancelled)
    #expect(!run.isFinishedEarly)
  }

  @Test("A predicate that nothing can end stalls the flow")
  func aPredicateThatNobodyAnswersStalls() {
    let loop = makeLoop()
    let run = Flow("f").case(where: WaitingPredicate(nil)).add(quick("NeverOp")).start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.message == "stalled: [f] never finished")
  }

  @Test("Each member chooses its branch by its own item")
  func membersDecideByTheirOwnItem() throws {
    let loop = makeLoop()
    let inner = Flow("kind").case("item", "a").add(Op("AOp") { $0.set("out", "A") })
      .otherwise().add(waitingOp("BOp") { $0.set("out", "B") })
    let run = Flow("f").data("items", ["a", "b", "a"])
      .addGrouped(
        inner, GroupDispatcher(input: "items", output: "outs", as: "item", collect: "out")
      ).start(on: loop)
    try run.wait()
    #expect(run.data.value("outs", as: [String].self) == ["A", "B", "A"])
  }

  @Test("A builder call in the wrong place gives its reason")
  func builderCallsInAWrongPlaceHaveAReason() {
    let flow = Flow("f")
    #expect(flow.problemOfOtherwise() == "otherwise() without a case before it")
    #expect(flow.problemOfCombine() == "combine() without a case to join")
    flow.case("a", "b")
    #expect(flow.problemOfCase() == nil && flow.problemOfOtherwise() == nil)
    flow.otherwise()
    #expect(flow.problemOfOtherwise() == "otherwise() twice for the same cases")
    #expect(
      flow.problemOfCase()
        == "a case can't come after otherwise(); join the branches with combine() first")
    flow.combine()
    #expect(flow.problemOfCase() == nil && flow.problemOfCombine() != nil)
  }

  @Test("A copy of a flow continues the open branch")
  func aCopyGoesOnWithTheOpenBranch() {
    let loop = makeLoop()
    let flow = Flow("f").case("a", "b").add(quick("OneOp"))
    let copy = flow.copy(name: "g").add(quick("TwoOp")).combine().add(quick("EndOp"))
    #expect(taken(flow.start(on: loop, data: InitialData([("a", .bytes("b"))]))) == ["OneOp"])
    #expect(
      taken(copy.start(on: loop, data: InitialData([("a", .bytes("b"))]))) == [
        "OneOp", "TwoOp", "EndOp",
      ])
  }
}

extension Flow {
  /// A case that never matches, and `op` for the rest.
  fileprivate func otherwiseOnly(_ op: Op) -> Flow {
    self.case("no such key", "x").otherwise().add(op).combine()
  }
}
