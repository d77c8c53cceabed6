import FlowEngine
import Testing

/// An op that fails with `errors`, one attempt after another, then succeeds.
private func flaky(
  _ name: ByteString, _ errors: [FlowError], retry: RetryPolicy? = nil, timeout: Duration? = nil,
  seen: @escaping (OpContext) -> Void = { _ in }
) -> Op {
  var left = errors
  return Op(name.description) { context in
    seen(context)
    if !left.isEmpty { context.fail(left.removeFirst()) }
  }.with(retry: retry, timeout: timeout)
}

@Suite("Retries")
struct RetryTests {
  private let bad = FlowError(.error, "bad")

  @Test("A retried op logs one start and one finish")
  func anOpIsTriedAgainAndLogsOneStartAndOneFinish() throws {
    let loop = makeLoop()
    var attempts: [Int] = []
    let op = flaky(
      "FlakyOp", [bad, .timeout(after: .seconds(5)), .missingOutput("url")],
      retry: RetryPolicy(attempts: 5, delay: .seconds(1), factor: 2)
    ) { context in
      attempts.append(context.attempt)
      context.set("attempt", context.attempt)
    }
    let run = Flow("f").add(op).add(quick("NextOp")).start(on: loop)
    #expect(run.state == .pending)
    try run.waitUntilEnd()
    #expect(attempts == [1, 2, 3, 4])
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        12:00:00 AM [FlakyOp] WillStart
        12:00:00 AM [DataBucket] add for attempt: 1
        12:00:00 AM [FlakyOp] Retry 2/5 in 1s: bad
        12:00:01 AM [DataBucket] replace for attempt: 1 -> 2
        12:00:01 AM [FlakyOp] Retry 3/5 in 2s: timed out after 5s
        12:00:03 AM [DataBucket] replace for attempt: 2 -> 3
        12:00:03 AM [FlakyOp] Retry 4/5 in 4s: can't find <url> in data bucket
        12:00:07 AM [DataBucket] replace for attempt: 3 -> 4
        12:00:07 AM [FlakyOp] DidFinish: successfully
        12:00:07 AM [NextOp] WillStart
        12:00:07 AM [NextOp] DidFinish: successfully
        12:00:07 AM [DataBucket] end with:
        attempt: 4
        Flow isSuccess: true
        ======    Ending    ======

        """)
    let events = run.events.filter { $0.op == "FlakyOp" }.map { "\($0.kind) \($0.attempt)" }
    #expect(
      events == [
        "start 1", "set 1", "retry 1", "replace 2", "retry 2", "replace 3", "retry 3",
        "replace 4", "finish 4",
      ])
  }

  @Test("The error of the last attempt is the op's")
  func theLastAttemptsErrorIsTheOps() throws {
    let loop = makeLoop()
    let errors = (1...3).map { FlowError(.error, "bad \($0)") }
    let run = flaky("FlakyOp", errors, retry: RetryPolicy(attempts: 3)).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error === run.error && run.error?.message == "bad 3")
    #expect(
      body(run) == [
        "[FlakyOp] WillStart", "[FlakyOp] Retry 2/3 in 0s: bad 1",
        "[FlakyOp] Retry 3/3 in 0s: bad 2", "[FlakyOp] DidFinish: withError: bad 3",
      ])
    #expect(loop.unobservedFailures.map(\.error.message) == ["bad 3"])
  }

  @Test("Delays grow up to their limit")
  func delaysGrowUpToTheirLimit() throws {
    func delays(_ policy: RetryPolicy) throws -> [Double] {
      let loop = makeLoop()
      loop.randomNumberGenerator = FlowEngine.SeededGenerator(seed: 42)
      let errors = Array(repeating: bad, count: policy.attempts - 1)
      let run = flaky("FlakyOp", errors, retry: policy).start(on: loop)
      try run.wait()
      #expect(run.state == .succeeded)
      let times = run.events.filter { $0.kind == .retry || $0.kind == .finish }.map(\.time)
      return zip(times, times.dropFirst()).map { ($1 - $0) / .seconds(1) }
    }
    #expect(try delays(RetryPolicy(attempts: 5)) == [0, 0, 0, 0])
    #expect(try delays(RetryPolicy(attempts: 4, delay: .seconds(2))) == [2, 2, 2])
    #expect(
      try delays(RetryPolicy(attempts: 6, delay: .seconds(1), factor: 3, maxDelay: .seconds(10)))
        == [1, 3, 9, 10, 10])
    #expect(try delays(RetryPolicy(attempts: 4, delay: .seconds(8), factor: 0.5)) == [8, 4, 2])
    #expect(try delays(RetryPolicy(attempts: 4, delay: .seconds(8), factor: 0)) == [8, 0, 0])
    #expect(
      try delays(RetryPolicy(attempts: 3, delay: .seconds(8), maxDelay: .seconds(5))) == [5, 5])
    let drawn = try delays(
      RetryPolicy(attempts: 200, delay: .seconds(10), maxDelay: .seconds(10.5), jitter: 0.1))
    #expect(drawn.allSatisfy { $0 > 8.999 && $0 < 10.501 })
    #expect(Set(drawn).count > 50)
    #expect((drawn.min() ?? 9) < 9.2 && (drawn.max() ?? 10) > 10.4)
    // One seed always draws the same delays.
    #expect(
      try delays(
        RetryPolicy(attempts: 200, delay: .seconds(10), maxDelay: .seconds(10.5), jitter: 0.1))
        == drawn)
  }

  @Test("Endless delays don't overflow")
  func endlessDelaysDoNotOverflow() throws {
    let loop = makeLoop()
    let policy = RetryPolicy(attempts: .max, delay: .longest, factor: 1e300, jitter: 1)
    let run = flaky("FlakyOp", [bad], retry: policy).start(on: loop)
    #expect(run.state == .pending)
    run.cancel()
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
  }

  @Test(
    "An error that another attempt can't fix isn't retried",
    arguments: [
      FlowError.missingInput("x"), .mismatchedInput("x", .integer(1), wanted: "string"),
      .mismatchedOutput("x", .integer(1), wanted: "string"), .usage("wrong"), .cancelled(),
      .stalled(op: "AnOp"),
    ])
  func whatAnotherAttemptCannotMendIsNotTriedAgain(_ error: FlowError) {
    let loop = makeLoop()
    let run = flaky("FlakyOp", [error], retry: RetryPolicy(attempts: 3)).start(on: loop)
    run.markObserved()
    #expect(run.error?.kind == error.kind)
    #expect(body(run).count == 2)
  }

  @Test("Missing inputs and outputs count as failures")
  func declaredInputsAndOutputsCount() throws {
    let loop = makeLoop()
    var calls = 0
    let needy = Op("NeedyOp", needs: ["x": "string"]) { _ in
      calls += 1
    }.with(retry: RetryPolicy(attempts: 3))
    let run = needy.start(on: loop)
    #expect(run.error?.kind == .insufficientInput)
    #expect(calls == 0)
    let giving = Op("GivingOp", gives: ["x": "integer"]) {
      if $0.attempt == 3 { $0.set("x", 3) }
    }.with(retry: RetryPolicy(attempts: 3))
    let second = giving.start(on: loop)
    try second.waitUntilEnd()
    #expect(second.state == .succeeded)
    #expect(second.data["x"]?.logText == "3")
  }

  @Test("The steps of a retried flow run in the same data")
  func theStepsOfAFlowRunAgainInTheSameData() throws {
    let loop = makeLoop()
    var count = 0
    let inner = Flow("inner").data("own", 1)
      .add(
        Op("CountOp") { context in
          count += 1
          context.set("own", count)
        }
      )
      .case(where: { _ in count < 3 }).add(failing("BadOp", "bad"))
      .case("no", "match").combine().add(quick("NeverOp"))
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 4))).add(quick("NextOp"))
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(count == 3)
    #expect(
      body(run) == [
        "[inner] WillStart", "[DataBucket] add for own: 1", "[CountOp] WillStart",
        "[DataBucket] replace for own: 1 -> 1", "[CountOp] DidFinish: successfully",
        "[BadOp] WillStart", "[BadOp] DidFinish: withError: bad", "[inner] Retry 2/4 in 0s: bad",
        "[CountOp] WillStart", "[DataBucket] replace for own: 1 -> 2",
        "[CountOp] DidFinish: successfully", "[BadOp] WillStart",
        "[BadOp] DidFinish: withError: bad", "[inner] Retry 3/4 in 0s: bad", "[CountOp] WillStart",
        "[DataBucket] replace for own: 2 -> 3", "[CountOp] DidFinish: successfully",
        "[Cases] no case is matched. finished in early.", "[inner] DidFinish: successfully",
        "[NextOp] WillStart", "[NextOp] DidFinish: successfully",
      ])
  }

  @Test("A top-level flow logs its retries and calls its callbacks once")
  func aFlowAtTheTopLogsItsRetriesAndCallsBackOnce() throws {
    let loop = makeLoop()
    var calls: [String] = []
    var left = 2
    let flow = Flow("top").add(
      Op("FlakyOp") { context in
        left -= 1
        if left >= 0 { context.fail(FlowError(.error, "bad")) }
      }
    )
    .willStart { _ in calls.append("start") }.didFinish { calls.append("finish \($0.state)") }
    let run = flow.with(retry: RetryPolicy(attempts: 3, delay: .seconds(0.25))).start(on: loop)
    try run.waitUntilEnd()
    #expect(calls == ["start", "finish succeeded"])
    #expect(
      body(run).filter { $0.hasPrefix("[top]") } == [
        "[top] Retry 2/3 in 0.25s: bad", "[top] Retry 3/3 in 0.25s: bad",
      ])
  }

  @Test("Each outer attempt repeats the inner ones")
  func outerAttemptsRunInnerOnesAgain() throws {
    let loop = makeLoop()
    var count = 0
    let op = Op("BadOp") { context in
      count += 1
      #expect(context.attempt == (count - 1) % 3 + 1)
      context.fail(FlowError(.error, "bad"))
    }.with(retry: RetryPolicy(attempts: 3))
    let inner = Flow("inner").add(op)
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 4))).start(on: loop)
    try run.waitUntilEnd()
    #expect(count == 12)
  }

  @Test("Members of a group are retried alone")
  func membersOfAGroupAreTriedAgainByThemselves() throws {
    let loop = makeLoop()
    var left: [Int64: Int] = [1: 0, 2: 2, 3: 1]
    let op = Op("ItemOp", needs: ["i": "integer"], gives: ["o": "integer"]) { context in
      let item = try context.value("i", as: Int64.self)
      left[item, default: 0] -= 1
      if left[item, default: 0] >= 0 { throw FlowError(.error, "bad") }
      context.set("o", item * 10)
    }.with(retry: RetryPolicy(attempts: 3, delay: .seconds(1)))
    let run = Flow("f").data("items", [1, 2, 3])
      .addGrouped(op, GroupDispatcher(input: "items", output: "out")).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.data.value("out", as: [Int64].self) == [10, 20, 30])
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 3", "[ItemOp #1] WillStart",
        "[ItemOp #1] DidFinish: successfully", "[ItemOp #2] WillStart",
        "[ItemOp #2] Retry 2/3 in 1s: bad", "[ItemOp #3] WillStart",
        "[ItemOp #3] Retry 2/3 in 1s: bad", "[ItemOp #2] Retry 3/3 in 1s: bad",
        "[ItemOp #3] DidFinish: successfully", "[ItemOp #2] DidFinish: successfully",
        "[FlowArrayGroupDispatcher] all finished. output size: 3",
        "[DataBucket] add for out: {10, 20, 30}",
      ])
  }

  @Test("A failing member ends the retries of the others")
  func aFailingMemberEndsTheRetriesOfTheOthers() throws {
    let loop = makeLoop()
    let op = Op("ItemOp", needs: ["i": "integer"]) {
      if try $0.value("i", as: Int64.self) == 2 { throw FlowError.usage("not this") }
      throw FlowError(.error, "bad")
    }.with(retry: RetryPolicy(attempts: 2, delay: .seconds(5)))
    let run = Flow("f").data("items", [1, 2, 3])
      .addGrouped(op, GroupDispatcher(input: "items")).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 3", "[ItemOp #1] WillStart",
        "[ItemOp #1] Retry 2/2 in 5s: bad", "[ItemOp #2] WillStart",
        "[ItemOp #2] DidFinish: withError: not this",
        "[Group] not allow failure in group. stop immediately.",
        "[ItemOp #1] DidFinish: cancelled: group failed",
      ])
    #expect(run.duration == .zero)
    #expect(run.error?.op == "ItemOp #2")
  }

  @Test("Cancelling ends the delay")
  func cancellingEndsTheDelay() throws {
    let loop = makeLoop()
    let op = flaky("FlakyOp", [bad], retry: RetryPolicy(attempts: 2, delay: .seconds(10)))
    let inner = Flow("inner").add(op)
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 9, delay: .seconds(10))))
      .start(
        on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(3) == [
        "[FlakyOp] Retry 2/2 in 10s: bad", "[FlakyOp] DidFinish: cancelled: enough",
        "[inner] DidFinish: cancelled: enough",
      ])
    #expect(run.duration == .seconds(1))
    loop.runUntilIdle()
    #expect(loop.now() == 1_000_000_000)
  }

  @Test("Cancelling ends the delay of a flow")
  func cancellingEndsTheDelayOfAFlow() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(failing("BadOp", "bad"))
    let run = Flow("outer").add(inner.with(retry: RetryPolicy(attempts: 9, delay: .seconds(10))))
      .start(
        on: loop)
    loop.schedule(at: 11_000_000_000) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(
      body(run).suffix(2) == [
        "[inner] Retry 3/9 in 10s: bad", "[inner] DidFinish: cancelled: enough",
      ])
    #expect(run.duration == .seconds(11))
  }

  @Test("A context kept by a body doesn't belong to the next attempt")
  func aContextThatABodyKeptIsNotTheNextAttempts() throws {
    let loop = makeLoop()
    var kept: [OpContext] = []
    defer { kept = [] }
    let op = Op(
      name: "KeepOp",
      body: HoldingBody { context in
        kept.append(context)
        if context.attempt == 3 {
          loop.enqueue { context.end() }
          return
        }
        // The answer to an attempt that has timed out comes during the next one.
        loop.schedule(after: .seconds(1.5)) {
          #expect(!context.isOpen)
          context.set("late", context.attempt)
          context.log("late")
          context.end()
        }
      }
    ).with(retry: RetryPolicy(attempts: 3), timeout: .seconds(1))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    loop.runUntilIdle()
    #expect(kept.map(\.attempt) == [1, 2, 3])
    #expect(Set(kept.map(ObjectIdentifier.init)).count == 3)
    #expect(
      body(run) == [
        "[KeepOp] WillStart", "[KeepOp] Retry 2/3 in 0s: timed out after 1s",
        "[KeepOp] Retry 3/3 in 0s: timed out after 1s", "[KeepOp] DidFinish: successfully",
      ])
    #expect(run.data.count == 0)
    #expect(kept.allSatisfy { $0.displayName == "KeepOp" })
  }

  @Test("The policy of a place replaces the op's policy part by part")
  func placePolicyReplacesTheOpsPartByPart() throws {
    let loop = makeLoop()
    let op = Op(name: "SlowOp", body: SleepingBody(9) { _ in }).with(
      retry: RetryPolicy(attempts: 2), timeout: .seconds(1))
    let run = Flow("f").add(op.with(timeout: .seconds(2))).start(on: loop)
    try run.waitUntilEnd()
    #expect(
      times(run) == ["0.0 start SlowOp", "2.0 retry SlowOp", "4.0 finish SlowOp"])
    let second = Flow("f").add(op.with(retry: RetryPolicy(attempts: 1))).start(on: loop)
    try second.waitUntilEnd()
    #expect(times(second) == ["0.0 start SlowOp", "1.0 finish SlowOp"])
    let third = op.with(name: "OtherOp", timeout: .seconds(3)).start(on: loop)
    try third.waitUntilEnd()
    #expect(third.duration == .seconds(6))
    #expect(op.timeout == .seconds(1))
  }
}
