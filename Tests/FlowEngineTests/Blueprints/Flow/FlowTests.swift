@_spi(Scripting) import FlowEngine
import Testing

@Suite("Flows")
struct FlowTests {
  @Test("The summary matches the expected text word for word")
  func theSummaryIsWordForWord() throws {
    let loop = makeLoop()
    let login = waitingOp("MockAsyncLoginOp") { context in
      context.log("simulation of login callback")
      context.set("accessToken", "sdaftadagasg")
    }
    let load = waitingOp("MockAsyncLoadProfileOp") { context in
      context.set("accessToken", 2)
      context.set("email", FlowValue.null)
      context.set("absent", FlowValue.null)
    }
    let run = Flow("signup").data("email", "test@gmail.com").data("password", "123456")
      .add(login).add(load).start(on: loop)
    try run.wait()
    #expect(
      run.summary() == """
        ====== Flow Summary ======
        12:00:00 AM [DataBucket] start with:
        email: test@gmail.com
        password: 123456
        12:00:00 AM [MockAsyncLoginOp] WillStart
        12:00:01 AM [MockAsyncLoginOp] simulation of login callback
        12:00:01 AM [DataBucket] add for accessToken: sdaftadagasg
        12:00:01 AM [MockAsyncLoginOp] DidFinish: successfully
        12:00:01 AM [MockAsyncLoadProfileOp] WillStart
        12:00:02 AM [DataBucket] replace for accessToken: sdaftadagasg -> 2
        12:00:02 AM [DataBucket] remove for email
        12:00:02 AM [MockAsyncLoadProfileOp] DidFinish: successfully
        12:00:02 AM [DataBucket] end with:
        password: 123456
        accessToken: 2
        Flow isSuccess: true
        ======    Ending    ======

        """)
    #expect(run.duration == .seconds(2))
    #expect(run.state == .succeeded)
    let events = run.events.map { "\($0.seconds) \($0.kind.name) \($0.op)" }
    #expect(
      events == [
        "0.0 start MockAsyncLoginOp", "1.0 log MockAsyncLoginOp", "1.0 set MockAsyncLoginOp",
        "1.0 finish MockAsyncLoginOp", "1.0 start MockAsyncLoadProfileOp",
        "2.0 replace MockAsyncLoadProfileOp", "2.0 remove MockAsyncLoadProfileOp",
        "2.0 finish MockAsyncLoadProfileOp",
      ])
  }

  @Test("An op started alone logs its own lines, with times on request")
  func anOpStartedAloneLogsItsOwnLinesAndTimesAsAsked() throws {
    let loop = makeLoop()
    let run = waitingOp("SlowOp", 45_296.789).start(
      on: loop, data: InitialData([("a", .integer(1))]))
    try run.wait()
    #expect(
      run.summary(SummaryOptions(time: .iso, durations: true)) == """
        ====== Flow Summary ======
        2000-01-01T00:00:00.000Z [DataBucket] start with:
        a: 1
        2000-01-01T00:00:00.000Z [SlowOp] WillStart
        2000-01-01T12:34:56.789Z [SlowOp] DidFinish: successfully (45296.8s)
        2000-01-01T12:34:56.789Z [DataBucket] end with:
        a: 1
        Flow isSuccess: true
        ======    Ending    ======

        """)
    #expect(run.summary().description.contains("12:34:56 PM [SlowOp] DidFinish"))
  }

  @Test("Needs and gives are checked in key order")
  func needsAndGivesAreCheckedInKeyOrder() {
    let loop = makeLoop()
    func outcome(_ op: Op, _ data: InitialData) -> String {
      let run = op.start(on: loop, data: data)
      run.markObserved()
      #expect(run.state == .failed)
      return lines(run).first { $0.contains("DidFinish") } ?? "none"
    }
    let needy = Op("NeedyOp", needs: ["password": "string", "email": "string"]) { _ in }
    #expect(
      outcome(needy, [:])
        == "[NeedyOp] DidFinish: withInsufficientInputData: can't find <email> in data bucket")
    #expect(
      outcome(needy, ["email": "x", "password": 123456])
        == "[NeedyOp] DidFinish: withMismatchInputDataType: <password> in data bucket is <123456> "
        + "with type <integer>, but NOT type <string>.")
    #expect(
      outcome(Op("GivingOp", gives: ["url": "string"]) { _ in }, [:])
        == "[GivingOp] DidFinish: withMissingOutputData: can't find <url> in data bucket")
    #expect(
      outcome(Op("GivingOp", gives: ["url": "string"]) { $0.set("url", 1.5) }, [:])
        == "[GivingOp] DidFinish: withMismatchOutputDataType: <url> in data bucket is <1.5> "
        + "with type <float>, but NOT type <string>.")
    #expect(
      outcome(Op("GettingOp") { _ = try $0.value("email", as: String.self) }, [:])
        == "[GettingOp] DidFinish: withInsufficientInputData: can't find <email> in data bucket")
    #expect(
      outcome(Op("ThrowingOp") { _ in throw FlowError(.error, "No such account") }, [:])
        == "[ThrowingOp] DidFinish: withError: No such account")
    #expect(
      outcome(Op("TimeoutOp") { $0.fail(.timeout(after: .seconds(5))) }, [:])
        == "[TimeoutOp] DidFinish: timedOut after 5s")
  }

  @Test("The text of an error equals its log line")
  func errorsReadAsTheirLines() {
    #expect(FlowError.timeout(after: .seconds(0.5)).message == "timed out after 0.5s")
    #expect(FlowError.cancelled().logLine == "cancelled")
    #expect(FlowError.cancelled(reason: "group failed").message == "cancelled: group failed")
    let names = FlowError.Kind.allCases.map(\.name.description).joined(separator: " ")
    #expect(
      names == "error insufficient_input mismatched_input missing_output mismatched_output "
        + "timeout cancelled stalled usage http network memory time crashed instructions")
  }

  @Test("A failure ends the flow")
  func aFailureEndsTheFlow() {
    let loop = makeLoop()
    let run = Flow("failing").add(Op("FirstOp") { $0.fail(FlowError(.error, "bad")) })
      .add(Op("SecondOp") { _ in }).start(on: loop)
    #expect(body(run) == ["[FirstOp] WillStart", "[FirstOp] DidFinish: withError: bad"])
    #expect(run.error?.op == "FirstOp")
    #expect(lines(run).last == "Flow isSuccess: false")
  }

  @Test("A failed op may continue, but its context is closed")
  func aFailedOpMayRunOnButIsClosed() {
    let loop = makeLoop()
    var didRunOn = false
    let run = Op("FailingOp") { context in
      let generation = context.generation
      context.fail(FlowError(.error, "first"))
      context.fail(FlowError(.error, "second"))
      context.set("late", 1)
      context.log("late")
      #expect(context.loop.context(slot: context.slot, generation: generation) == nil)
      didRunOn = true
    }.start(on: loop)
    #expect(didRunOn)
    #expect(
      body(run) == ["[FailingOp] WillStart", "[FailingOp] DidFinish: withError: first"])
    #expect(run.data.count == 0)
  }

  @Test("A context that is used after its op's success is reported once, with the first call")
  func aCallAfterSuccessIsReported() throws {
    let loop = makeLoop()
    var kept: OpContext?
    // The op would keep it, and it the run of the op.
    defer { kept = nil }
    let run = Op("SaveOp") { kept = $0 }.start(on: loop)
    let context = try #require(kept)
    context.set("late", 1)
    context.set("later", 2)
    context.log("late")
    #expect(run.data.count == 0)
    #expect(run.lateErrors.map(\.message) == ["[SaveOp] had ended before <late> was set"])
    #expect(loop.takeUnobservedFailures().map(\.error.kind) == [.usage])
    // Later ops have contexts of their own.
    let other = Op("OtherOp") { $0.set("x", 1) }.start(on: loop)
    context.set("late", 3)
    #expect(other.data.count == 1)
    #expect(loop.takeUnobservedFailures().isEmpty)
  }

  @Test("Each call of a context that comes after the end of an item's op says which")
  func eachLateCallSaysWhich() throws {
    let calls: [((OpContext) -> Void, String)] = [
      ({ $0.log("late") }, "a line was logged"),
      ({ $0.defer { _ in } }, "a cleanup was registered"),
      ({ $0.set("text", [1]) }, "<text> was set"),
      ({ $0.fail(FlowError(.error, "too late")) }, "it failed: too late"),
    ]
    for (call, text) in calls {
      let loop = makeLoop()
      var kept: [OpContext] = []
      defer { kept = [] }
      let run = Flow().data("ns", [1, 2])
        .addGrouped(Op("ItemOp") { kept.append($0) }, GroupDispatcher(input: "ns", as: "n"))
        .start(on: loop)
      call(try #require(kept.last))
      #expect(run.lateErrors.map(\.message) == ["[ItemOp #2] had ended before \(text)"])
    }
  }

  @Test("Passed data replaces the flow's own")
  func givenDataReplacesTheFlowsOwn() {
    let loop = makeLoop()
    let flow = Flow().data(["a": 1, "b": 2]).data("a", 3)
    let run = flow.start(on: loop, data: InitialData([("b", .integer(4)), ("c", .integer(5))]))
    #expect(Array(lines(run)[1...3]) == ["a: 3", "b: 4", "c: 5"])
  }

  @Test("A run keeps the blueprint it began with")
  func aRunKeepsTheBlueprintItBeganWith() throws {
    let loop = makeLoop()
    let inner = Flow("inner").add(Op("OldOp") { _ in })
    let flow = Flow("outer").add(waitingOp("WaitOp")).add(inner)
    let run = flow.start(on: loop)
    flow.add(Op("LateOp") { _ in })
    inner.add(Op("NewOp") { _ in })
    try run.wait()
    let all = body(run)
    #expect(all.contains("[OldOp] WillStart"))
    #expect(!all.contains("[NewOp] WillStart") && !all.contains("[LateOp] WillStart"))
    let second = flow.start(on: loop)
    try second.wait()
    #expect(body(second).contains("[NewOp] WillStart"))
    #expect(body(second).contains("[LateOp] WillStart"))
    // The first run's lines are named by the blueprint it kept.
    #expect(body(run) == all)
  }

  @Test("A copy is an independent flow")
  func aCopyIsAFlowOfItsOwn() {
    let flow = Flow("a").add(Op("OneOp") { _ in })
    let copy = flow.copy(name: "b").add(Op("TwoOp") { _ in })
    #expect(flow.count == 1)
    #expect(copy.count == 2)
    #expect(copy.name == "b")
  }

  @Test("A flow can be started any number of times, also simultaneously")
  func aFlowRunsAsOftenAsItIsStartedAlsoAtTheSameTime() throws {
    let loop = makeLoop()
    let flow = Flow("twice").add(waitingOp("WaitOp") { $0.set("done", true) })
    let runs = (0..<3).map { _ in flow.start(on: loop) }
    #expect(loop.pendingRuns.map(\.id) == runs.map(\.id))
    for run in runs { try run.wait() }
    #expect(runs.allSatisfy { $0.data.boolean("done") == true && $0.duration == .seconds(1) })
    #expect(loop.pendingRuns.isEmpty)
  }

  @Test("A nested flow logs its lines and fills absent keys only")
  func aNestedFlowLogsItsLinesAndFillsAbsentKeysOnly() {
    let loop = makeLoop()
    let inner = Flow("inner").data(["a": 10, "b": 20]).add(Op("InOp") { $0.set("c", 30) })
    let run = Flow("outer").data("a", 1).add(inner).add(Op("OutOp") { _ in }).start(on: loop)
    #expect(
      body(run) == [
        "[inner] WillStart", "[DataBucket] add for b: 20", "[InOp] WillStart",
        "[DataBucket] add for c: 30", "[InOp] DidFinish: successfully",
        "[inner] DidFinish: successfully", "[OutOp] WillStart", "[OutOp] DidFinish: successfully",
      ])
    #expect(run.data.integer("a") == 1)
  }

  @Test("A nested flow fails with the error of its op")
  func aNestedFlowFailsWithTheErrorOfItsOp() {
    let loop = makeLoop()
    let inner = Flow("inner").add(Op("InOp", needs: ["x": "string"]) { _ in })
    let run = Flow("outer").add(inner).add(Op("OutOp") { _ in }).start(on: loop)
    let error = "withInsufficientInputData: can't find <x> in data bucket"
    #expect(
      body(run) == [
        "[inner] WillStart", "[InOp] WillStart", "[InOp] DidFinish: \(error)",
        "[inner] DidFinish: \(error)",
      ])
    #expect(run.error?.kind == .insufficientInput)
    #expect(run.error?.op == "InOp")
  }

  @Test("A top-level flow logs its end when its needs aren't met")
  func aTopLevelFlowLogsItsDidFinishWhenItsNeedsFail() {
    let loop = makeLoop()
    var calls: [String] = []
    let run = Flow("signup").needs(["name": "string"]).add(Op("NeverOp") { _ in })
      .willStart { _ in calls.append("start") }.didFinish { _ in calls.append("finish") }
      .start(on: loop)
    #expect(
      body(run) == [
        "[signup] DidFinish: withInsufficientInputData: can't find <name> in data bucket"
      ])
    #expect(calls == ["start", "finish"])
  }

  @Test("A flow that contains itself fails")
  func aFlowThatContainsItselfFails() {
    let loop = makeLoop()
    let flow = Flow("loop")
    keepReachable(flow)
    flow.add(Flow("inner").add(flow))
    let run = flow.start(on: loop)
    #expect(run.error?.kind == .usage)
    #expect(run.error?.message == "flow 'loop' contains itself")
  }

  @Test("A run started in a body runs at once up to its first wait")
  func aRunStartedInABodyGoesOnToItsFirstWait() throws {
    let loop = makeLoop()
    var child: Run?
    let flow = Flow("outer").add(
      Op("StartOp") { context in
        let run = Flow("child").add(Op("NowOp") { _ in }).add(waitingOp("LaterOp"))
          .start(on: context.loop)
        #expect(body(run).last == "[LaterOp] WillStart")
        child = run
      })
    let run = flow.start(on: loop)
    #expect(run.state == .succeeded)
    try child?.wait()
    #expect(child?.state == .succeeded)
  }

  @Test("A long flow runs in little memory")
  func aLongFlowRunsInLittleMemory() throws {
    let loop = makeLoop()
    let op = Op("OneOp") { _ in }
    let flow = Flow("long")
    for _ in 0..<Scale.count { flow.add(op) }
    let run = flow.start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.log.byteCount <= 80 * Scale.count)
    var count = 0
    for _ in run.events { count += 1 }
    #expect(count == 2 * Scale.count)
  }

  @Test("Deeply nested flows are built, run and released without recursion", .smallStack)
  func deeplyNestedFlowsAreBuiltRunAndReleasedWithoutRecursion() throws {
    let loop = makeLoop()
    var flow = Flow("deepest").add(Op("InOp") { $0.set("reached", true) })
    for _ in 0..<Scale.depth { flow = Flow("f").add(flow) }
    var run: Run? = flow.start(on: loop)
    try run?.wait()
    #expect(run?.state == .succeeded)
    #expect(run?.data.boolean("reached") == true)
    flow = Flow()
    run = nil
  }

  @Test("A chain of flows that never ran is released without recursion", .smallStack)
  func anUnreachedChainOfFlowsIsReleasedWithoutRecursion() {
    var flow = Flow("deepest")
    for _ in 0..<Scale.depth { flow = Flow("f").add(flow) }
    flow = Flow()
    #expect(flow.count == 0)
  }

  @Test("Tables of the data are copied for each run")
  func tablesOfTheDataAreCopiedForEachRun() throws {
    let loop = FlowEventLoop()
    let shared = ListValue([.integer(1)])
    let map = MapValue([("deep", .opaque(MapValue([("list", .opaque(shared))])))])
    var seen: [ListValue] = []
    let flow = Flow("f")
      .data("list", .opaque(shared)).data("map", .secret(.opaque(map)))
      .add(
        Op("AppendOp") { context in
          guard case .opaque(let list)? = context.bucket.get(loop.keys.intern("list")),
            let list = list as? ListValue
          else { return }
          seen.append(list)
          list.append(.integer(2))
        })
    for _ in 1...2 {
      let run = flow.start(on: loop)
      try run.wait()
      guard case .opaque(let copy)? = run.data.get(loop.keys.intern("map")),
        case .opaque(let deep)? = (copy as? MapValue)?["deep"],
        case .opaque(let inner)? = (deep as? MapValue)?["list"]
      else {
        Issue.record("the tables aren't there")
        return
      }
      // The copies of two keys share an inner value that the keys share.
      #expect(inner === seen.last && copy !== map)
      #expect(inner.listCount() == 2)
    }
    #expect(shared.elements.count == 1 && seen.count == 2 && seen[0] !== seen[1])
  }
}
