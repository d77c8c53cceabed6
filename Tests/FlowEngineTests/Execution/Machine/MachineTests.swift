@_spi(Scripting) import FlowEngine
import Testing

@Suite("Machines")
struct MachineTests {
  let loop = makeLoop()

  @Test("Transitions and ops of steps are lines of the log")
  func transitionsAndOpsOfStepsAreLines() throws {
    let ask = Op("AskOp") { $0.set("amount", 200) }
    var script = MachineScript("transfer", start: "amount")
    script.step("amount", ask, .on("tooLow", .stay), .next(.forward(to: "tariffs")))
    script.step("tariffs", .next(.forward(to: "end"))) { _, call in
      call.context?.log("hello")
      return .null
    }
    script.step("end")
    let run = try script.make().start(on: loop, from: MapValue.state(["country": .bytes("DE")]))
    #expect(run.state == .succeeded)
    #expect(
      lines(run) == [
        "[DataBucket] start with:", "country: DE", "[transfer] WillStart", "[AskOp] WillStart",
        "[AskOp] DidFinish: successfully", "[transfer] state: {amount = 200, country = DE}",
        "[transfer] amount -> tariffs", "[transfer] hello", "[transfer] tariffs -> end",
        "[DataBucket] replace for country: DE -> DE",
        "[DataBucket] add for amount: 200", "[transfer] DidFinish: successfully",
        "[DataBucket] end with:", "country: DE", "amount: 200", "Flow isSuccess: true",
      ])
    #expect(run.finishValue?.fields?.count == 2)
  }

  @Test("A result becomes the state unless there is a reducer")
  func resultsBecomeTheStateUnlessAReducerDecides() throws {
    var script = MachineScript(start: "a")
    script.step("a", .next(.forward(to: "b"))) { state, _ in .integer((state.integer ?? 0) + 1) }
    script.step("b", .next(.forward(to: "c")))
    script.step("c") { state, _ in .integer((state.integer ?? 0) * 10) }
    let run = try script.make().start(on: loop, from: .integer(4))
    #expect(run.finishValue?.integer == 50)

    script.logic.reducer = { state, result in
      let sum = (state.integer ?? 0) + (result.integer ?? 0)
      return sum > 8 ? .finish(.bytes("enough")) : .continue(.integer(sum))
    }
    let reduced = try script.make().start(on: loop, from: .integer(4))
    #expect(reduced.finishValue?.logText == "enough")
    #expect(transitions(reduced) == [])
    #expect(transitions(run) == ["a -> b", "b -> c"])
  }

  @Test("A step's own transition takes precedence over the machine's")
  func eventsTakeTheStepsOwnWayBeforeThatOfAnyStep() throws {
    func machine(anyFirst: Bool) throws -> Run {
      var script = MachineScript(start: "a")
      script.definition.triesAnyStepFirst = anyFirst
      script.anyStep(.on("e", .forward(to: "any")))
      script.step("a", .on("e", .forward(to: "own")))
      script.step("any")
      script.step("own")
      script.logic.emitter = { _, _ in "e" }
      script.logic.reducer = { state, _ in
        state.integer == 1 ? .finish(state) : .continue(.integer(1))
      }
      return try script.make().start(on: loop, from: .null)
    }
    #expect(transitions(try machine(anyFirst: false)) == ["a -> own on e"])
    #expect(transitions(try machine(anyFirst: true)) == ["a -> any on e"])
  }

  @Test("A machine goes back to the previous step and to a named one")
  func goesBackToThePreviousAndToANamedStep() throws {
    var visits: [String] = []
    var script = MachineScript(start: "a")
    func note(_ state: FlowValue, _ call: MachineCall) -> FlowValue {
      visits.append(call.logic?.name(ofStep: call.step).description ?? "")
      return .integer(Int64(visits.count))
    }
    script.step("a", .next(.forward(to: "b")), body: note)
    script.step("b", .next(.forward(to: "c")), body: note)
    script.step("c", .on("one", .back(to: nil)), .on("all", .back(to: "a")), body: note)
    script.logic.emitter = { result, _ in [3: "one", 5: "all"][result.integer ?? 0] }
    let run = try script.make().start(on: loop, from: .null)
    #expect(visits == ["a", "b", "c", "b", "c", "a", "b", "c"])
    #expect(
      transitions(run) == [
        "a -> b", "b -> c", "c -> b on one", "b -> c", "c -> a on all", "a -> b", "b -> c",
      ])
    #expect(
      run.error?.message
        == "line 102: machine 'machine' has no transition without an event for step 'c'")
  }

  @Test("A retry uses the previous result and the state of that moment")
  func retryTakesThePreviousResultAgainWithTheStateOfThen() throws {
    var reduced: [String] = []
    var script = MachineScript(start: "a")
    script.step("a", .next(.forward(to: "b"))) { _, _ in .integer(1) }
    script.step("b", .next(.forward(to: "c"))) { _, _ in .integer(10) }
    var attempts: Int64 = 0
    script.step("c") { _, _ in
      attempts += 1
      return .integer(attempts * 100)
    }
    script.logic.reducer = { state, result in
      reduced.append("\(state.integer ?? -1)+\(result.integer ?? -1)")
      if result.integer == 100 { return .retry }
      // The second time the result of b comes, a's is taken again as well.
      if result.integer == 10, reduced.count == 4 { return .retry }
      return .continue(.integer((state.integer ?? 0) + (result.integer ?? 0)))
    }
    let run = try script.make().start(on: loop, from: .integer(0))
    #expect(reduced == ["0+1", "1+10", "11+100", "1+10", "0+1", "1+10", "11+200"])
    #expect(
      transitions(run) == ["a -> b", "b -> c", "retry b", "retry a", "a -> b", "b -> c"])
    #expect(run.finishValue?.integer == 211)
  }

  @Test("A retry at the first step repeats it")
  func retryAtTheFirstStepPerformsItAgain() throws {
    var script = MachineScript(start: "a")
    var count: Int64 = 0
    script.step("a") { _, _ in
      count += 1
      return .integer(count)
    }
    script.logic.reducer = { _, result in
      (result.integer ?? 0) < 3 ? .retry : .finish(result)
    }
    let run = try script.make().start(on: loop, from: .null)
    #expect(run.finishValue?.integer == 3)
    #expect(transitions(run) == ["retry a", "retry a"])
  }

  @Test("An unhandled event is an error")
  func anEventThatNobodyHandlesIsAnError() throws {
    var script = MachineScript("m", start: "a")
    script.step("a", .on("known", .stay))
    for event in ["known", "strange"] as [ByteString] {
      script.logic.emitter = { _, _ in event }
      script.logic.reducer = { state, _ in
        state.integer == 1 ? .finish(.null) : .continue(.integer(1))
      }
      let run = try script.make().start(on: loop, from: .null)
      let isKnown = event == "known"
      #expect((run.error == nil) == isKnown)
      if !isKnown {
        #expect(run.error?.kind == .usage)
        #expect(
          run.error?.message
            == "line 100: machine 'm' has no transition on event 'strange' for step 'a'")
      }
    }
  }

  @Test("Endless loops end")
  func endlessLoopsEnd() throws {
    var script = MachineScript(start: "a")
    script.step("a", .next(.forward(to: "b")))
    script.step("b", .next(.forward(to: "a")))
    let usual = try script.make().start(on: loop, from: .null)
    try usual.waitUntilEnd()
    #expect(usual.error?.message == "exceeded max_transitions (10000)")
    #expect(transitions(usual).count == 10_000)
    script.definition.maxTransitions = 2
    let short = try script.make().start(on: loop, from: .null)
    #expect(short.error?.message == "exceeded max_transitions (2)")
    #expect(transitions(short) == ["a -> b", "b -> a"])
  }

  @Test("Going back without history is an error")
  func goingBackWithoutHistoryIsAnError() throws {
    var script = MachineScript("m", start: "a")
    script.step("a", .next(.back(to: nil)))
    let run = try script.make().start(on: loop, from: .null)
    #expect(
      run.error?.message == "line 1: machine 'm' goes back from step 'a' with an empty history")

    var named = MachineScript("m", start: "a")
    named.step("a", .on("e", .forward(to: "b")), .next(.back(to: "b")))
    named.step("b")
    #expect(
      try named.make().start(on: loop, from: .null).error?.message
        == "line 2: machine 'm' goes back from step 'a' to step 'b', which wasn't entered before")
  }

  @Test("A machine continues after a step with a result from elsewhere")
  func continuesBehindAStepWithAResultFromElsewhere() throws {
    var script = MachineScript(start: "a")
    script.step("a", .next(.forward(to: "b"))) { _, _ in .integer(1) }
    script.step("b", .on("up", .forward(to: "c")), .next(.back(to: nil)))
    script.step("c", .next(.back(to: "b"))) { state, _ in .integer((state.integer ?? 0) + 1) }
    script.logic.emitter = { result, _ in result.integer == 7 ? "up" : nil }
    let run = try script.make().continue(
      on: loop, after: script.logic.step("b"), result: .integer(7), state: .null)
    // The history begins with b: it is gone back to, and there is nothing before it.
    #expect(transitions(run) == ["b -> c on up", "c -> b"])
    #expect(run.error?.message.description.contains("with an empty history") == true)
  }

  @Test("Transitions from a provider need no table")
  func providedTransitionsNeedNoTable() throws {
    var script = MachineScript("m", start: "a")
    script.step("a")
    script.step("b")
    script.logic.provider = { step, _, _ in step == "a" ? .forward(to: "b") : nil }
    #expect(transitions(try script.make().start(on: loop, from: .null)) == ["a -> b"])
    script.logic.provider = { _, _, _ in .forward(to: "nowhere") }
    #expect(
      try script.make().start(on: loop, from: .null).error?.message
        == "machine 'm' goes forward from step 'a' to unknown step 'nowhere'")
  }

  // MARK: As an op

  @Test("Every function of a machine may wait")
  func everyFunctionMayWait() throws {
    var script = MachineScript(start: "a")
    script.logic.wait = 1
    script.logic.reducer = { _, result in .continue(result) }
    script.logic.emitter = { result, _ in result.integer == 1 ? "go" : nil }
    script.step("a", .on("go", .forward(to: "b"))) { _, _ in .integer(1) }
    script.step("b") { _, _ in .integer(2) }
    let run = try script.make().start(on: loop, from: .null)
    #expect(run.state == .pending)
    try run.wait()
    #expect(run.finishValue?.integer == 2)
    #expect(run.duration == .seconds(6))
  }

  @Test("A machine in a flow reads and writes its data")
  func aMachineInAFlowTakesAndLeavesItsData() throws {
    var script = MachineScript("inner", start: "a")
    script.step("a", Op("AddOp") { $0.set("sum", ($0.bucket.integer("one") ?? 0) + 1) })
    let flow = Flow("outer").data("one", 1).add(try script.make())
      .add(Op("AfterOp") { $0.log(($0.bucket["sum"] ?? .null).logText) })
    #expect(flow.check().isEmpty)
    let run = flow.start(on: loop)
    #expect(
      body(run) == [
        "[inner] WillStart", "[AddOp] WillStart", "[AddOp] DidFinish: successfully",
        "[DataBucket] replace for one: 1 -> 1", "[DataBucket] add for sum: 2",
        "[inner] DidFinish: successfully", "[AfterOp] WillStart", "[AfterOp] 2",
        "[AfterOp] DidFinish: successfully",
      ])
    #expect(run.finishValue == nil || run.finishValue?.isNull == true)
  }

  @Test("A machine runs for each item and in branches")
  func aMachineRunsForEachItemAndInBranches() throws {
    var script = MachineScript("each", start: "a")
    script.step("a", .next(.forward(to: "b"))) { state, _ in
      let item = state.fields?.first { $0.0 == "item" }?.1.integer ?? 0
      return MapValue.state(["out": .integer(item * 2)])
    }
    script.step("b", waitingOp("WaitOp", 1))
    let machine = try script.make()
    let flow = Flow("f").data("items", [1, 2, 3]).data("plan", "pro")
      .case("plan", "pro")
      .addGrouped(
        machine,
        GroupDispatcher(input: "items", output: "outs", as: "item", collect: "out"))
    let run = flow.start(on: loop)
    try run.wait()
    #expect(run.data.value("outs", as: [Int].self) == [2, 4, 6])
    #expect(body(run).contains("[each #2] a -> b"))
    #expect(run.duration == .seconds(1))
  }

  @Test("A stopped machine stops the task it waits for")
  func stopsWhatItWaitsFor() throws {
    var script = MachineScript("m", start: "a")
    script.step("a", waitingOp("WaitOp", 100))
    let run = try script.make().start(on: loop, from: .null)
    run.cancel(reason: "enough")
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(
      body(run) == [
        "[m] WillStart", "[WaitOp] WillStart", "[WaitOp] DidFinish: cancelled: enough",
        "[m] DidFinish: cancelled: enough",
      ])

    var waiting = MachineScript("m", start: "a")
    waiting.logic.wait = 100
    waiting.step("a")
    let timed = try waiting.make(timeout: .seconds(5)).start(on: loop, from: .null)
    try timed.waitUntilEnd()
    #expect(timed.error?.kind == .timeout)
    #expect(timed.duration == .seconds(5))
    #expect(waiting.logic.cancelled == 1)
  }

  @Test("A retried machine begins with its first state")
  func isTriedAgainFromItsFirstState() throws {
    var script = MachineScript("m", start: "a")
    var seen: [Int64] = []
    script.step("a", .next(.forward(to: "b"))) { state, _ in
      seen.append(state.integer ?? -1)
      return .integer(9)
    }
    script.step("b") { _, _ in throw FlowError(.error, "broken") }
    script.logic.reducer = { _, result in .continue(result) }
    let run = try script.make(retry: RetryPolicy(attempts: 2, delay: .seconds(1)))
      .start(on: loop, from: .integer(3))
    try run.waitUntilEnd()
    #expect(seen == [3, 3])
    #expect(body(run).contains("[m] Retry 2/2 in 1s: broken"))
  }

  @Test("A failing step fails the machine")
  func aFailingStepFailsTheMachine() throws {
    var script = MachineScript("m", start: "a")
    script.step("a", failing("FailOp", "broken"))
    let run = try script.make(retry: RetryPolicy(attempts: 2))
      .start(on: loop, from: MapValue.state([:]))
    try run.waitUntilEnd()
    #expect(run.error?.message == "broken")
    #expect(run.error?.op == "FailOp")
    #expect(body(run).filter { $0.hasPrefix("[FailOp] Did") }.count == 2)
    #expect(loop.unobservedFailures.map(\.name) == ["m"])
  }

  @Test("A machine that nothing can end is stalled")
  func whatNothingEndsIsStalled() throws {
    var script = MachineScript("m", start: "a")
    let stuck = StuckBody()
    script.step("a", Op(name: "StuckOp", body: stuck))
    let run = try script.make().start(on: loop, from: .null)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.message == "stalled: [StuckOp] never finished")
    stuck.contexts = []
  }

  @Test("Machines in machines don't recurse", .smallStack)
  func machinesInMachinesDontRecurse() throws {
    var machine = quick("InnermostOp") as Op
    for _ in 0..<Scale.nesting {
      var script = MachineScript("m", start: "a")
      script.step("a", machine)
      machine = try script.make()
    }
    let run = machine.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)

    var waiting = waitingOp("InnermostOp", 100) as Op
    for _ in 0..<Scale.nesting {
      var script = MachineScript("m", start: "a")
      script.step("a", waiting)
      waiting = try script.make()
    }
    let stopped = waiting.start(on: loop)
    stopped.cancel()
    try stopped.waitUntilEnd()
    #expect(stopped.state == .cancelled)
  }

  @Test("Shutting down the loop releases waiting machines")
  func shutdownLetsGoOfWhatWaits() throws {
    weak var logic: ScriptedLogic?
    do {
      let loop = makeLoop()
      var script = MachineScript("m", start: "a")
      logic = script.logic
      script.logic.wait = 10
      script.step("a")
      _ = try script.make().start(on: loop, from: .null)
      var outer = MachineScript("n", start: "a")
      outer.step("a", try script.make())
      _ = try outer.make().start(on: loop, from: .null)
      loop.shutdown()
    }
    #expect(logic == nil)
  }

  @Test("Secrets stay secret in steps")
  func secretsStaySecretInSteps() throws {
    var script = MachineScript("m", start: "a")
    script.step("a", Op("UseOp") { $0.log(($0.bucket["word"] ?? .null).logText) })
    let flow = Flow("f").data("word", FlowSecret("sesame")).data("pin", FlowSecret("12"))
      .add(try script.make())
    let run = flow.start(on: loop)
    #expect(run.state == .succeeded)
    #expect(!run.summary().description.contains("sesame"))
    #expect(!run.summary().description.contains("12\n"))
  }
}
