import FlowEngine
import Testing

@Suite("Timeouts")
struct TimeoutTests {
  @Test("An op that waits too long times out")
  func anOpThatWaitsTooLongTimesOut() throws {
    let loop = makeLoop()
    let slow = waitingOp("SlowOp", 9).with(timeout: .seconds(5))
    let run = Flow("f").add(slow).add(quick("NeverOp")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        12:00:00 AM [SlowOp] WillStart
        12:00:05 AM [SlowOp] DidFinish: timedOut after 5s
        12:00:05 AM [DataBucket] end with:
        Flow isSuccess: false
        ======    Ending    ======

        """)
    #expect(run.error?.kind == .timeout)
    #expect(run.error?.message == "timed out after 5s")
    #expect(run.error?.limit == .seconds(5))
    #expect(run.error?.op == "SlowOp")
    #expect(run.state == .failed)
  }

  @Test("An op that is in time leaves no timer")
  func anOpThatIsInTimeLeavesNoTimer() throws {
    let loop = makeLoop()
    let run = Flow("f").add(waitingOp("InTimeOp", 1).with(timeout: .seconds(100)))
      .add(Flow("inner").add(waitingOp("AlsoOp", 1)).with(timeout: .seconds(100)))
      .addGrouped(
        waitingOp("ItemOp", 1).with(timeout: .seconds(100), primaryInput: "i"),
        GroupDispatcher(input: "items")
      ).start(on: loop, data: InitialData([("items", list(["a", "b"]))]))
    try run.wait()
    #expect(run.state == .succeeded)
    loop.runUntilIdle()
    #expect(loop.now() == 3_000_000_000)
  }

  @Test("Each attempt has the whole time")
  func eachAttemptHasTheWholeTime() throws {
    let loop = makeLoop()
    let op = waitingOp("SlowOp", 9).with(
      retry: RetryPolicy(attempts: 3, delay: .seconds(10)), timeout: .seconds(2))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(
      times(run) == [
        "0.0 start SlowOp", "2.0 retry SlowOp", "14.0 retry SlowOp", "26.0 finish SlowOp",
      ])
  }

  @Test("A flow times out by the policy of its place")
  func aFlowTimesOutAtItsPlace() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(waitingOp("FirstOp", 2)).add(waitingOp("SecondOp", 2))
      .add(quick("NeverOp"))
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 2), timeout: .seconds(3)))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[inner] WillStart", "[FirstOp] WillStart", "[FirstOp] DidFinish: successfully",
        "[SecondOp] WillStart", "[SecondOp] DidFinish: cancelled: timed out after 3s",
        "[inner] Retry 2/2 in 0s: timed out after 3s", "[FirstOp] WillStart",
        "[FirstOp] DidFinish: successfully", "[SecondOp] WillStart",
        "[SecondOp] DidFinish: cancelled: timed out after 3s",
        "[inner] DidFinish: timedOut after 3s",
      ])
    #expect(run.duration == .seconds(6))
    #expect(run.error?.op == "inner")
    #expect(run.state == .failed)
  }

  @Test("The innermost due timeout stops only its level")
  func theInnermostOfNestedTimeoutsThatIsDueStopsItsLevelAlone() throws {
    let loop = makeLoop()
    let op = waitingOp("SlowOp", 99)
    func run(_ leaf: Double?, _ inner: Double?, _ outer: Double?) throws -> [String] {
      let innerFlow = Flow("inner").add(op.with(timeout: leaf.map { .seconds($0) }))
      let outerFlow = Flow("outer").add(innerFlow.with(timeout: inner.map { .seconds($0) }))
      let run = Flow("top").add(outerFlow.with(timeout: outer.map { .seconds($0) })).start(on: loop)
      try run.waitUntilEnd()
      return body(run).suffix(3) + ["\(run.duration.inSeconds) \(run.error?.op ?? "")"]
    }
    #expect(
      try run(1, 2, 3) == [
        "[SlowOp] DidFinish: timedOut after 1s", "[inner] DidFinish: timedOut after 1s",
        "[outer] DidFinish: timedOut after 1s", "1.0 SlowOp",
      ])
    #expect(
      try run(3, 1, 2) == [
        "[SlowOp] DidFinish: cancelled: timed out after 1s",
        "[inner] DidFinish: timedOut after 1s", "[outer] DidFinish: timedOut after 1s", "1.0 inner",
      ])
    #expect(
      try run(2, 3, 1) == [
        "[SlowOp] DidFinish: cancelled: timed out after 1s",
        "[inner] DidFinish: cancelled: timed out after 1s",
        "[outer] DidFinish: timedOut after 1s", "1.0 outer",
      ])
    // At the same moment the one furthest out counts, as it was set first.
    #expect(
      try run(1, 1, 1) == [
        "[SlowOp] DidFinish: cancelled: timed out after 1s",
        "[inner] DidFinish: cancelled: timed out after 1s",
        "[outer] DidFinish: timedOut after 1s", "1.0 outer",
      ])
  }

  @Test("A flow that retries a timed-out step continues")
  func aFlowThatCatchesTheTimeoutOfItsStepByRetryGoesOn() throws {
    let loop = makeLoop()
    // Timers that nobody waits for any more keep what they were for.
    defer { loop.shutdown() }
    var waits = [9.0, 9, 0.5]
    let op = Op(
      name: "SlowOp",
      body: HoldingBody { context in
        let seconds = waits.removeFirst()
        context.state = loop.schedule(after: .seconds(seconds)) { context.end() }
      }
    ).with(retry: RetryPolicy(attempts: 3), timeout: .seconds(1))
    let run = Flow("f").add(Flow("inner").add(op).with(timeout: .seconds(5))).add(quick("NextOp"))
      .start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(2.5))
  }

  @Test("A member times out alone")
  func aMemberTimesOutByItself() throws {
    let loop = makeLoop()
    // Timers that nobody waits for any more keep what they were for.
    defer { loop.shutdown() }
    let op = Op(
      name: "ItemOp", primaryInput: "i",
      body: HoldingBody { context in
        let isSlow = context.index == 2
        loop.schedule(after: .seconds(isSlow ? 9 : 1)) { context.end() }
      }
    ).with(timeout: .seconds(2))
    let run = Flow("f").data("items", [1, 2, 3])
      .addGrouped(op, GroupDispatcher(input: "items", allowFailure: true, failures: "failed"))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(body(run).contains("[ItemOp #2] DidFinish: timedOut after 2s"))
    #expect(run.data["failed"]?.logText.description.contains("timed out after 2s") == true)
    #expect(run.duration == .seconds(2))
  }

  @Test("The timeout around a group stops its members")
  func membersAreStoppedByTheTimeoutAroundTheirGroup() throws {
    let loop = makeLoop()
    let inner = Flow("inner").data("items", [1, 2])
      .addGrouped(
        waitingOp("ItemOp", 9).with(primaryInput: "i"),
        GroupDispatcher(input: "items", allowFailure: true))
    let run = Flow("outer").add(inner.with(timeout: .seconds(3))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3) == [
        "[ItemOp #1] DidFinish: cancelled: timed out after 3s",
        "[ItemOp #2] DidFinish: cancelled: timed out after 3s",
        "[inner] DidFinish: timedOut after 3s",
      ])
    #expect(run.error?.kind == .timeout)
  }

  @Test("Cleanups don't count towards the timeout")
  func cleanupsDoNotCount() throws {
    let loop = makeLoop()
    let op = Op("TidyOp") { $0.addCleanup(WaitingCleanup(5)) }.with(timeout: .seconds(1))
    let run = op.start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(5))
  }

  @Test("A busy body times out at the level that is due")
  func aBusyBodyExpiresTheLevelThatIsDue() throws {
    let loop = makeLoop()
    /// Is busy beyond its deadline, as far as it can tell.
    func busy(_ name: ByteString) -> Op {
      Op(name.description) { context in
        #expect(context.deadline != .max)
        context.end(context.expire())
      }
    }
    let own = Flow("f").add(busy("OwnOp").with(timeout: .seconds(1))).start(on: loop)
    #expect(body(own).last == "[OwnOp] DidFinish: timedOut after 1s")
    let inner = Flow("inner").add(busy("BusyOp")).add(quick("NeverOp"))
    let around = Flow("outer").add(inner.with(timeout: .seconds(2))).start(on: loop)
    #expect(
      body(around).suffix(2) == [
        "[BusyOp] DidFinish: cancelled: timed out after 2s", "[inner] DidFinish: timedOut after 2s",
      ])
    let grouped = Flow("grouped").data("items", [1, 2])
      .addGrouped(
        Flow("member").add(busy("BusyOp")),
        GroupDispatcher(input: "items", allowFailure: true, as: "i"))
    let group = Flow("outer").add(grouped.with(timeout: .seconds(2))).start(on: loop)
    try group.waitUntilEnd()
    #expect(
      body(group).suffix(3) == [
        "[member #1/BusyOp] DidFinish: cancelled: timed out after 2s",
        "[member #1] DidFinish: cancelled: timed out after 2s",
        "[grouped] DidFinish: timedOut after 2s",
      ])
    let parallel = Flow("parallel").addParallel(waitingOp("SlowOp", 9), busy("BusyOp"))
    let both = Flow("outer").add(parallel.with(timeout: .seconds(2))).start(on: loop)
    try both.waitUntilEnd()
    #expect(
      body(both).suffix(3) == [
        "[BusyOp] DidFinish: cancelled: timed out after 2s",
        "[SlowOp] DidFinish: cancelled: timed out after 2s",
        "[parallel] DidFinish: timedOut after 2s",
      ])
  }

  @Test("A will_start callback that takes too long times its flow out")
  func aWillStartThatTakesTooLongTimesItsFlowOut() throws {
    let loop = makeLoop()
    let inner = Flow("inner").willStart(WaitingCallback(seconds: nil)).add(quick("NeverOp"))
    let run = Flow("outer").add(inner.with(timeout: .seconds(2))).start(on: loop)
    try run.waitUntilEnd()
    #expect(body(run) == ["[inner] WillStart", "[inner] DidFinish: timedOut after 2s"])
    #expect(run.error?.kind == .timeout)
    #expect(run.state == .failed)
  }

  @Test("A predicate that takes too long times its flow out")
  func aPredicateThatTakesTooLongTimesItsFlowOut() throws {
    let loop = makeLoop()
    let inner = Flow("inner").case(where: WaitingPredicate(nil)).add(quick("NeverOp"))
    let run = Flow("outer").add(inner.with(timeout: .seconds(2))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[inner] WillStart", "[Cases] DidFinish: cancelled: timed out after 2s",
        "[inner] DidFinish: timedOut after 2s",
      ])
  }

  @Test("At the moment of the deadline the timer that was set first counts")
  func atTheVeryMomentOfTheTimeoutTheFirstOfBothCounts() throws {
    let loop = makeLoop()
    // The timeout is set before the body sets its timer.
    let run = Flow("f").add(waitingOp("TieOp", 1).with(timeout: .seconds(1))).start(on: loop)
    try run.waitUntilEnd()
    #expect(body(run).last == "[TieOp] DidFinish: timedOut after 1s")
  }

  @Test("A due timeout never stops another op", arguments: 0..<16)
  func aTimeoutThatWasDueBelongsToNobodyElse(_ turns: Int) throws {
    let clock = VirtualClock()
    let loop = FlowEventLoop(clock: clock)
    var contexts: [OpContext] = []
    defer { contexts = [] }
    let first = Op(name: "FirstOp", body: HoldingBody { contexts.append($0) }).with(
      timeout: .seconds(1))
    let run = Flow("f").add(first).add(waitingOp("SecondOp", 2).with(timeout: .seconds(9))).start(
      on: loop)
    // The op ends when its timeout is due. Now and then the loop looks for due timers before it is
    // out of jobs; in one of these cases just before the flow continues.
    loop.schedule(at: 999_999_999) {
      clock.advance(to: 1_000_000_000)
      for _ in 0..<turns { loop.enqueue {} }
      loop.enqueue { contexts[0].end() }
    }
    try run.waitUntilEnd()
    #expect(
      times(run).suffix(2) == ["1.0 start SecondOp", "3.0 finish SecondOp"]
        || times(run).last == "1.0 finish FirstOp")
    let outcome = run.error?.op ?? "none"
    #expect(outcome != "SecondOp")
  }

  @Test("A body knows the earliest enclosing timeout")
  func aBodyKnowsTheFirstOfTheTimeoutsAroundIt() throws {
    let loop = makeLoop()
    var seen: [String] = []
    func look(_ name: ByteString) -> Op {
      waitingOp(name, 1) { context in
        let deadline = context.deadline
        seen.append("\(name) \(deadline == .max ? "never" : "\(Double(deadline) / 1e9)")")
        if context.attempt == 1, name == "again" { context.fail(FlowError(.error, "bad")) }
      }
    }
    let deep = Flow("deep").add(look("deep")).addFinally(look("in finally"))
    let inner = Flow("inner").add(look("inner"))
      .add(deep.with(timeout: .seconds(5))).add(look("behind deep"))
      .add(look("own").with(timeout: .seconds(2)))
      .add(look("again").with(retry: RetryPolicy(attempts: 2), timeout: .seconds(3)))
      .addParallel(look("member"), Flow("within").add(look("member's").with(timeout: .seconds(50))))
      .addFinally(look("at the end"))
    let run = Flow("outer").add(inner.with(timeout: .seconds(20))).add(look("outer")).start(
      on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(
      seen == [
        "inner 20.0", "deep 6.0", "in finally 50.0", "behind deep 20.0", "own 6.0", "again 8.0",
        "again 9.0", "member 20.0", "member's 20.0", "at the end never", "outer never",
      ])
  }

  @Test("An infinite timeout never fires")
  func endlessTimeoutsAreFine() throws {
    let loop = makeLoop()
    let run = Flow("f").add(waitingOp("FirstOp").with(timeout: .longest))
      .add(Flow("inner").add(waitingOp("SecondOp")).with(timeout: .longest))
      .start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(2))
  }
}
