@_spi(Scripting) import FlowEngine
import Testing

@Suite("Runs")
struct RunTests {
  @Test("Callbacks are called in order and may wait")
  func callbacksComeInOrderAndMayWait() throws {
    let loop = makeLoop()
    var calls: [String] = []
    let flow = Flow("calls").add(Op("WorkOp") { _ in calls.append("op") })
    flow.willStart { run in calls.append("start \(run.state)") }
    flow.willStart(WaitingCallback { calls.append("waited") })
    flow.didFinish(WaitingCallback { calls.append("finish waited") })
    flow.didFinish { run in calls.append("finish \(run.state) \(run.isConcluded)") }
    let run = flow.start(on: loop)
    run.observe(Job { calls.append("observed 1") })
    run.observe(Job { calls.append("observed 2") })
    #expect(calls == ["start pending"])
    try run.waitUntilEnd()
    run.observe(Job { calls.append("observed late") })
    loop.runUntilIdle()
    #expect(
      calls == [
        "start pending", "waited", "op", "finish waited", "finish succeeded false", "observed 1",
        "observed 2", "observed late",
      ])
    // Time after the outcome doesn't count.
    #expect(run.duration == .seconds(0.5))
  }

  @Test("A wait returns the data, or throws the error, as the awaited value does")
  func aWaitReturnsTheDataOrThrowsTheError() throws {
    let loop = makeLoop()
    let good = Op("GoodOp") { context in
      try await context.sleep(for: .seconds(1))
      context.set("n", 1)
    }
    #expect(try good.start(on: loop).wait().integer("n") == 1)
    let bad = Op("BadOp") { context in
      try await context.sleep(for: .seconds(1))
      throw FlowError(.network, "reset by peer")
    }
    let run = bad.start(on: loop)
    #expect(throws: FlowError.self) { try run.wait() }
    #expect(throws: FlowError.self) { try run.wait() }
    #expect(run.isObserved)
    #expect(loop.unobservedFailures.isEmpty)
    let cancelled = good.start(on: loop)
    cancelled.cancel(reason: "enough")
    let error = #expect(throws: FlowError.self) { try cancelled.wait() }
    #expect(error?.kind == .cancelled)
  }

  @Test("A wait until the end leaves the error to be read")
  func aWaitUntilTheEndLeavesTheErrorToBeRead() throws {
    let loop = makeLoop()
    let run = Op("BadOp") { context in
      try await context.sleep(for: .seconds(1))
      throw FlowError(.network, "reset by peer")
    }.start(on: loop)
    try run.waitUntilEnd()
    #expect(!run.isObserved)
    #expect(loop.unobservedFailures.count == 1)
    #expect(run.error?.kind == .network)
  }

  @Test("An error in will start fails the run before any op")
  func anErrorInWillStartFailsTheRunBeforeAnyOp() throws {
    let loop = makeLoop()
    var finished = 0
    let flow = Flow("calls").add(Op("NeverOp") { _ in })
      .willStart(WaitingCallback(FlowError(.error, "not today")))
      .willStart { _ in finished += 100 }.didFinish { _ in finished += 1 }
    let run = flow.start(on: loop)
    try run.waitUntilEnd()
    #expect(body(run).isEmpty)
    #expect(run.error?.message == "not today")
    #expect(finished == 1)
  }

  @Test("An error in did finish is reported and changes nothing")
  func anErrorInDidFinishIsReportedAndChangesNothing() {
    let loop = makeLoop()
    var calls = 0
    let run = Flow("late").didFinish { _ in throw FlowError(.error, "oops") }
      .didFinish { _ in calls += 1 }.start(on: loop)
    #expect(run.state == .succeeded)
    #expect(run.lateErrors.map(\.message) == ["oops"])
    run.markObserved()
    #expect(loop.unobservedFailures.map { "\($0.name): \($0.error)" } == ["late: [late] oops"])
    #expect(calls == 1)
  }

  @Test("Callbacks of a nested flow are called")
  func callbacksOfANestedFlowAreCalledToo() {
    let loop = makeLoop()
    var calls: [ByteString] = []
    let inner = Flow("inner").willStart { calls.append("start in \($0.name)") }
      .didFinish { calls.append("finish in \($0.name)") }
    let run = Flow("outer").add(inner).start(on: loop)
    #expect(run.state == .succeeded)
    #expect(calls == ["start in outer", "finish in outer"])
  }

  @Test("An unobserved failure stays listed until it is observed")
  func unobservedFailuresAreKnownUntilObserved() {
    let loop = makeLoop()
    let failing = Op("FailingOp") { $0.fail(FlowError(.error, "bad")) }
    weak var gone: EventLog?
    let second: Run
    do {
      let first = failing.start(on: loop, name: "first")
      gone = first.log
      second = failing.start(on: loop, name: "second")
      _ = Op("CancelledOp") { $0.fail(.cancelled()) }.start(on: loop)
      _ = Op("FineOp") { _ in }.start(on: loop)
    }
    #expect(loop.unobservedFailures.map(\.name) == ["first", "second"])
    #expect(gone == nil)
    second.markObserved()
    #expect(loop.unobservedFailures.map(\.name) == ["first"])
  }

  @Test("A kept context never belongs to a later execution")
  func aKeptContextNeverBecomesALaterExecution() throws {
    let loop = makeLoop()
    var kept: [OpContext] = []
    defer { kept = [] }
    var seen: [(UInt32, UInt64)] = []
    let keeping = Op("KeepOp") { context in
      kept.append(context)
      seen.append((context.slot, context.generation))
      #expect(loop.context(slot: context.slot, generation: context.generation) === context)
    }
    let after = Op("AfterOp") { context in
      #expect(!kept.contains { $0 === context })
      for old in kept {
        old.set("stale", 1)
        old.log("stale")
        old.fail(FlowError(.error, "stale"))
        old.end()
        #expect(!old.isOpen)
      }
      for (slot, generation) in seen {
        #expect(loop.context(slot: slot, generation: generation) == nil)
      }
    }
    let run = Flow("f").add(keeping).add(after).add(keeping).add(waitingOp("WaitOp")).add(after)
      .start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(run.data.count == 0)
    #expect(kept[0].displayName == "KeepOp")
    #expect(kept[0].run === run)
    #expect(Set(seen.map(\.1)).count == 2)
  }

  @Test("Contexts are reused when nobody keeps them")
  func contextsAreReusedWhenNobodyKeepsThem() {
    let loop = makeLoop()
    var seen: Set<ObjectIdentifier> = []
    let op = Op("SeeOp") { seen.insert(ObjectIdentifier($0)) }
    let flow = Flow("f")
    for _ in 0..<100 { flow.add(op) }
    for _ in 0..<10 { _ = flow.start(on: loop) }
    #expect(seen.count == 1)
  }

  @Test("The state of a run is released at its end")
  func stateIsReleasedAtTheEnd() {
    let loop = makeLoop()
    weak var state: TestOpaque?
    let op = Op("StateOp") { context in
      let made = TestOpaque(type: "x", base: "x")
      state = made
      context.state = made
    }
    _ = op.start(on: loop)
    #expect(state == nil)
  }

  @Test("A settled run is released with its log")
  func aSettledRunIsReleasedWithItsLog() throws {
    let loop = makeLoop()
    weak var log: EventLog?
    do {
      let inner = Flow("in").data("list", [1, 2, 3]).add(waitingOp("WaitOp"))
        .addGrouped(
          Op(name: "ItemOp", primaryInput: "i", body: CountingBody()),
          GroupDispatcher(input: "list")
        )
        .willStart(WaitingCallback {})
      let run = Flow("out").add(inner).start(on: loop)
      try run.wait()
      log = run.log
    }
    #expect(log == nil)
  }

  @Test("Sinks receive every event at once, with its value")
  func sinksGetEveryEventAtOnceWithItsValue() {
    let loop = makeLoop()
    let sink = CollectingSink()
    let flow = Flow("f").data("items", ["a"])
      .add(Op("SetOp") { $0.set("list", .opaque(ListValue([.integer(1)]))) })
      .addGrouped(Op("ItemOp", primaryInput: "i") { _ in }, GroupDispatcher(input: "items"))
    let run = flow.start(on: loop, sinks: [sink])
    #expect(sink.lines == run.events.map { "\($0.kind) \($0.op) \($0.index) \($0.time)" })
    #expect(sink.values == ["table"])
  }

  @Test("Ops that end inside another one are listed where they ended")
  func opsThatEndWithinAnotherOneAreReadWhereTheyEnded() {
    let loop = makeLoop()
    let sink = CollectingSink()
    var isOver = false
    let inner = Flow("inner").add(waitingOp("WaitOp"))
      .add(Op("SetOp") { $0.set("x", 2) }).add(quick("EmptyOp"))
      .add(Op("LastOp") { _ in isOver = true })
    let outer = Op("OuterOp") { context in
      context.set("x", 1)
      _ = context.loop.turn { isOver }
      context.log("over")
    }
    let run = Flow("f").addParallel(inner, outer).add(quick("NextOp"))
      .start(on: loop, sinks: [sink])
    #expect(run.state == .succeeded)
    #expect(sink.lines == run.events.map { "\($0.kind) \($0.op) \($0.index) \($0.time)" })
    #expect(
      run.events.map { "\($0.kind.name) \($0.op)" } == [
        "start inner", "start WaitOp", "start OuterOp", "set OuterOp", "finish WaitOp",
        "start SetOp", "replace SetOp", "finish SetOp", "start EmptyOp", "finish EmptyOp",
        "start LastOp", "finish LastOp", "finish inner", "log OuterOp", "finish OuterOp",
        "start NextOp", "finish NextOp",
      ])
  }

  @Test("Ending twice or during start does no harm")
  func endingTwiceOrInTheMiddleOfStartDoesNoHarm() throws {
    let loop = makeLoop()
    let run = Flow("f").add(Op(name: "EagerOp", body: EagerBody())).add(Op("NextOp") { _ in })
      .start(on: loop)
    #expect(run.state == .succeeded)
    #expect(body(run).count == 4)
  }

  @Test("Random flows behave as a simple model does")
  func randomFlowsBehaveAsASimpleModelSays() throws {
    let seed = UInt64.random(in: 0...(.max))
    print("flow seed: \(seed)")
    var random = SeededGenerator(state: seed)
    for _ in 0..<300 {
      let loop = makeLoop()
      var expected: [String] = []
      var time = 0
      var isFine = true
      let flow = randomFlow("top", 0, &random, &expected, &time, &isFine)
      let run = flow.start(on: loop)
      try run.waitUntilEnd()
      #expect(body(run) == expected, "seed \(seed)")
      #expect((run.state == .succeeded) == isFine, "seed \(seed)")
      #expect(run.duration == .seconds(time), "seed \(seed)")
    }
  }

  /// Makes a flow, and what its run should log: written as plain recursion, unlike the engine.
  private func randomFlow(
    _ name: String, _ depth: Int, _ random: inout SeededGenerator, _ expected: inout [String],
    _ time: inout Int, _ isFine: inout Bool
  ) -> Flow {
    let flow = Flow("\(name)")
    for number in 0..<Int.random(in: 0...4, using: &random) {
      let step = "\(name)_\(number)"
      // Steps after a failure are added but must leave no line.
      var unreached: [String] = []
      var unreachedTime = 0
      switch Int.random(in: 0..<(depth < 4 ? 6 : 4), using: &random) {
      case 0:
        let fails = Int.random(in: 0..<4, using: &random) == 0
        flow.add(Op("\(step)") { if fails { $0.fail(FlowError(.error, "no")) } })
        guard isFine else { continue }
        expected.append("[\(step)] WillStart")
        expected.append("[\(step)] DidFinish: \(fails ? "withError: no" : "successfully")")
        isFine = !fails
      case 1:
        flow.add(waitingOp(ByteString(step), 2))
        guard isFine else { continue }
        time += 2
        expected += ["[\(step)] WillStart", "[\(step)] DidFinish: successfully"]
      case 2:
        flow.add(Op("\(step)") { $0.set("key", ByteString(step)) })
        guard isFine else { continue }
        let old = expected.last { $0.contains("for key: ") }?.split(separator: " ").last
        let change = old.map { "replace for key: \($0) -> \(step)" } ?? "add for key: \(step)"
        expected += [
          "[\(step)] WillStart", "[DataBucket] \(change)", "[\(step)] DidFinish: successfully",
        ]
      case 3:
        let items = Int.random(in: 1...3, using: &random)
        flow.data("in_\(step)", Array(0..<items))
        // The model knows the data of the top flow alone; deeper groups get theirs as a step.
        flow.addGrouped(
          Op(name: "\(step)", primaryInput: "i", body: CountingBody(seconds: nil)),
          GroupDispatcher(input: depth == 0 ? "in_\(step)" : "missing"))
        guard isFine else { continue }
        if depth > 0 {
          expected.append(
            "[Group] DidFinish: withInsufficientInputData: can't find <missing> in data bucket")
          isFine = false
          continue
        }
        expected.append("[FlowArrayGroupDispatcher] group created: \(items)")
        for item in 1...items {
          expected += [
            "[\(step) #\(item)] WillStart", "[\(step) #\(item)] DidFinish: successfully",
          ]
        }
        expected.append("[FlowArrayGroupDispatcher] all finished. output size: \(items)")
      default:
        if isFine {
          expected.append("[\(step)] WillStart")
          let mark = expected.count
          let inner = randomFlow(step, depth + 1, &random, &expected, &time, &isFine)
          // Its own data comes first.
          for entry in dataLines(inner).reversed() { expected.insert(entry, at: mark) }
          flow.add(inner)
          let failure =
            expected.last { $0.contains("DidFinish: with") }?.split(separator: "]", maxSplits: 1)
            .last.map(String.init) ?? ""
          expected.append("[\(step)]\(isFine ? " DidFinish: successfully" : failure)")
        } else {
          var fine = false
          flow.add(
            randomFlow(step, depth + 1, &random, &unreached, &unreachedTime, &fine))
        }
      }
    }
    return flow
  }

  /// The lines that a nested flow logs for the data it brings.
  private func dataLines(_ flow: Flow) -> [String] {
    flow.ownData.map { "[DataBucket] add for \($0.name): \($0.value.logText)" }
  }
}

final class CollectingSink: EventSink {
  var lines: [String] = []
  var values: [ByteString] = []

  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
    lines.append("\(event.kind) \(event.op) \(event.index) \(event.time)")
    if let value { values.append(value.typeName) }
  }
}

/// Ends within `start`, twice, and claims to wait.
final class EagerBody: OpBody {
  func start(_ context: OpContext) -> CallState {
    context.end()
    context.end(FlowError(.error, "twice"))
    return .suspended
  }
}
