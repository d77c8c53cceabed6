import FlowEngine
import Testing

@Suite struct CancellationTests {
  @Test func onlyAPendingRunIsCancelledAndTheFirstReasonCounts() throws {
    let loop = makeLoop()
    let run = waitingOp("SlowOp").start(on: loop)
    #expect(run.cancel(reason: "first"))
    #expect(run.cancel(reason: "second"))
    try run.wait()
    #expect(run.cancel() == false)
    #expect(run.error?.message == "cancelled: first")
    #expect(run.state == .cancelled)
    #expect(loop.unobservedFailures.isEmpty)
    let plain = waitingOp("SlowOp").start(on: loop)
    plain.cancel()
    try plain.wait()
    #expect(body(plain).last == "[SlowOp] DidFinish: cancelled")
    #expect(quick("DoneOp").start(on: loop).cancel() == false)
  }

  @Test func itReachesWhatWaitsWhereverItIs() throws {
    let loop = makeLoop()
    let group = Flow("group").data("items", [1, 2, 3])
      .addGrouped(
        Flow("item").add(waitingOp("ItemOp", 9)),
        GroupDispatcher(input: "items", maxConcurrent: 2, as: "i"))
    let parallel = Flow("parallel").addParallel(
      waitingOp("SleepOp", 9), group,
      failing("FlakyOp", "bad").with(retry: RetryPolicy(attempts: 2, delay: 9)),
      Flow("calls").willStart(WaitingCallback(seconds: nil)).add(quick("NeverOp")))
    let run = Flow("top").add(Flow("nested").add(parallel)).add(quick("NeverOp")).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel(reason: "enough") }
    try run.wait()
    #expect(
      body(run).suffix(10) == [
        "[SleepOp] DidFinish: cancelled: enough", "[ItemOp] DidFinish: cancelled: enough",
        "[ItemOp] DidFinish: cancelled: enough", "[FlakyOp] DidFinish: cancelled: enough",
        "[calls] DidFinish: cancelled: enough", "[item #1] DidFinish: cancelled: enough",
        "[item #2] DidFinish: cancelled: enough", "[group] DidFinish: cancelled: enough",
        "[parallel] DidFinish: cancelled: enough", "[nested] DidFinish: cancelled: enough",
      ])
    #expect(run.duration == 1)
    loop.runUntilIdle()
    #expect(loop.now() == 1_000_000_000)
    #expect(
      body(run).filter { $0 == "[Group] not allow failure in group. stop immediately." }.isEmpty)
  }

  @Test func aCallbackThatCancelsIsAskedWhenItWaits() throws {
    let loop = makeLoop()
    let callback = CancellingCallback()
    let run = Flow("f").willStart(callback).add(quick("NeverOp")).start(on: loop)
    try run.wait()
    #expect(callback.asked == ["cancelled: by itself"])
    #expect(run.state == .cancelled)
    #expect(body(run).isEmpty)
  }

  @Test func anOpThatCancelsItsOwnRunEndsAsCancelled() throws {
    let loop = makeLoop()
    let run = Flow("f").add(Op("SelfOp") { $0.run.cancel(reason: "by itself") })
      .add(quick("NeverOp")).addFinally(quick("CloseOp")).start(on: loop)
    try run.wait()
    #expect(
      body(run) == [
        "[SelfOp] WillStart", "[SelfOp] DidFinish: cancelled: by itself", "[CloseOp] WillStart",
        "[CloseOp] DidFinish: successfully",
      ])
  }

  @Test func aMemberThatCancelsItsRunEndsAllMembers() throws {
    let loop = makeLoop()
    let op = Op(
      name: "ItemOp", primaryInput: "i",
      body: HoldingBody { context in
        if context.index == 3 { context.run.cancel(reason: "by a member") }
      })
    let run = Flow("f").data("items", [1, 2, 3, 4])
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: 4)).start(on: loop)
    try run.wait()
    #expect(
      body(run).suffix(3)
        == (1...3).map {
          "[ItemOp #\($0)] DidFinish: cancelled: by a member"
        })
    #expect(body(run).filter { $0.contains("#4") }.isEmpty)
  }

  @Test func whatABodyMakesOfBeingAskedDoesNotMatter() throws {
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
    try run.wait()
    #expect(body(run).last == "[StubbornOp] DidFinish: cancelled: enough")
  }

  @Test func anErrorOfThatKindIsACancellation() {
    let loop = makeLoop()
    let run = Op("QuitOp") { _ in throw FlowError.cancelled(reason: "no time") }.start(on: loop)
    #expect(run.state == .cancelled)
    #expect(body(run).last == "[QuitOp] DidFinish: cancelled: no time")
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test func aFinishedFlowsCallbackIsNotPartOfWhatIsCancelled() throws {
    let loop = makeLoop()
    var calls: [String] = []
    let inner = Flow("inner").add(quick("WorkOp"))
      .didFinish(WaitingCallback(seconds: 2) { calls.append("done") })
    let run = Flow("outer").add(inner).add(quick("NeverOp")).start(on: loop)
    loop.schedule(at: 1_000_000_000) { run.cancel() }
    try run.wait()
    #expect(calls == ["done"])
    #expect(run.state == .cancelled)
    #expect(body(run).last == "[inner] DidFinish: successfully")
  }

  // MARK: Depth and size

  @Test func nestedFlowsOfAnyDepthAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var flow = Flow("f").add(waitingOp("SlowOp", 9))
    for _ in 0..<10_000 { flow = Flow("f").add(flow, timeout: 100).addFinally(quick("CloseOp")) }
    let run = flow.start(on: loop)
    loop.schedule(at: 1) { run.cancel() }
    try run.wait()
    #expect(run.state == .cancelled)
    #expect(
      run.events.reduce(0) { $0 + ($1.op == "CloseOp" && $1.kind == .finish ? 1 : 0) } == 10_000)
  }

  @Test func nestedGroupsOfAnyDepthAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var flow = Flow("f").add(waitingOp("SlowOp", 9))
    for _ in 0..<10_000 { flow = Flow("f").addParallel(flow) }
    let run = flow.start(on: loop)
    loop.schedule(at: 1) { run.cancel() }
    try run.wait()
    #expect(run.state == .cancelled)
    #expect(run.duration == 1e-9)
  }

  @Test func aHundredThousandMembersAreCancelledAtOnce() throws {
    let loop = makeLoop()
    let count = 100_000
    var begun = 0
    let op = Op(name: "ItemOp", primaryInput: "i", body: HoldingBody { _ in begun += 1 })
    let items = ContiguousArray(repeating: Value.integer(1), count: count)
    let run = Flow("f")
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: count))
      .start(on: loop, data: [("items", .opaque(ListValue(items)))])
    while begun < count, loop.turn(mayBlock: false) == .worked {}
    run.cancel(reason: "enough")
    try run.wait()
    #expect(run.state == .cancelled)
    let finished = run.events.reduce(0) { $1.kind == .finish ? $0 + 1 : $0 }
    #expect(finished == count)
    #expect(loop.pendingRuns.isEmpty)
  }

  @Test func runsNestedInOneAnotherAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var depth = 0
    var deepest: Run?
    var op: Op?
    let nesting = Op(
      name: "NestOp",
      body: HoldingBody { context in
        depth += 1
        guard depth < 10_000 else { return }
        // Not from within: starting is recursion of the op's own.
        loop.enqueue { if let op { deepest = context.start(op) } }
      })
    op = nesting
    let run = nesting.start(on: loop)
    loop.runUntilIdle()
    #expect(depth == 10_000)
    #expect(loop.pendingRuns.count == 10_000)
    run.cancel(reason: "enough")
    try run.wait()
    #expect(run.state == .cancelled)
    #expect(deepest?.error?.message == "cancelled: enough")
    #expect(loop.pendingRuns.isEmpty)
    // The bodies of the runs hold these.
    op = nil
    deepest = nil
  }

  @Test func runsNestedInOneAnotherEndWithoutRecursionToo() throws {
    let loop = makeLoop()
    var depth = 0
    var op: Op?
    let nesting = Op(
      name: "NestOp",
      body: HoldingBody { context in
        depth += 1
        let isDeepest = depth == 10_000
        loop.enqueue {
          if !isDeepest, let op { _ = context.start(op) }
          context.end()
        }
      })
    op = nesting
    let run = nesting.start(on: loop)
    try run.wait()
    #expect(depth == 10_000 || run.isConcluded)
    loop.runUntilIdle()
    #expect(loop.pendingRuns.isEmpty)
    op = nil
  }

  // MARK: The same blueprint, often

  @Test func runsOfOneBlueprintAtTheSameTimeKnowNothingOfEachOther() throws {
    let loop = makeLoop()
    let inner = Flow("inner")
      .case("kind", "slow").add(waitingOp("SlowOp", 9)).case("kind", "bad").add(failing("BadOp"))
      .otherwise().add(waitingOp("FineOp", 1)).combine()
      .addFinally(waitingOp("CloseOp", 0.5))
    let flow = Flow("top").add(inner, retry: RetryPolicy(attempts: 2, delay: 1), timeout: 3)
      .addParallel(waitingOp("LeftOp"), waitingOp("RightOp"))
    let kinds: [ByteString] = ["slow", "bad", "fine", "cancelled"]
    let runs = (0..<40).map { index in
      flow.start(
        on: loop, data: [("kind", .bytes(kinds[index % 4])), ("n", .integer(Int64(index)))])
    }
    loop.schedule(at: 500_000_000) {
      for index in stride(from: 3, to: 40, by: 4) { runs[index].cancel() }
    }
    for run in runs { try run.wait() }
    for (index, run) in runs.enumerated() {
      run.markObserved()
      let alone = flow.start(
        on: loop, data: [("kind", .bytes(kinds[index % 4])), ("n", .integer(Int64(index)))])
      if index % 4 == 3 {
        loop.schedule(at: loop.deadline(after: 0.5)) { alone.cancel() }
      }
      try alone.wait()
      alone.markObserved()
      #expect(lines(run) == lines(alone))
      #expect(run.duration == alone.duration)
    }
    #expect(Set(runs.map(\.state)) == [.failed, .succeeded, .cancelled])
  }

  // MARK: The end of a loop

  /// Starts what waits, each in another way; `made` and the loop are held by it.
  private static let pending: [(name: String, start: @Sendable (EventLoop, TestOpaque) -> Run)] =
    [
      ("op", { loop, made in hold(loop, made).start(on: loop) }),
      (
        "case",
        { loop, made in
          Flow("f").case(where: WaitingPredicate(nil)).add(hold(loop, made)).start(on: loop)
        }
      ),
      (
        "parallel",
        { loop, made in
          let hold = hold(loop, made)
          return Flow("f").addParallel(hold, Flow("inner").add(hold)).start(on: loop)
        }
      ),
      (
        "finally",
        { loop, made in
          Flow("f").add(quick("WorkOp")).addFinally(hold(loop, made)).start(on: loop)
        }
      ),
      (
        "timeout",
        { loop, made in
          Flow("f").add(Flow("inner").add(hold(loop, made)), timeout: 5).start(on: loop)
        }
      ),
      (
        "retry of an op",
        { loop, made in
          let op = Op("BadOp", retry: RetryPolicy(attempts: 2, delay: 5)) { context in
            context.state = made
            throw FlowError(.error, "\(loop.now())")
          }
          return op.start(on: loop)
        }
      ),
      (
        "retry of a flow",
        { loop, made in
          let flow = Flow("f").data("x", .opaque(made)).add(failing("BadOp"))
          return flow.with(retry: RetryPolicy(attempts: 2, delay: 5)).start(on: loop)
        }
      ),
      (
        "cleanup",
        { loop, made in
          Op("TidyOp") { context in
            context.defer { _ in _ = loop.now() }
            context.addCleanup(WaitingCleanup(nil) { _ = (loop, made) })
          }.start(on: loop)
        }
      ),
      (
        "cleanup of a stopped op",
        { loop, made in
          let op = Op(
            name: "TidyOp",
            body: HoldingBody { $0.addCleanup(WaitingCleanup(nil) { _ = (loop, made) }) })
          let run = op.start(on: loop)
          run.cancel()
          while loop.turn(mayBlock: false) == .worked {}
          return run
        }
      ),
      (
        "child",
        { loop, made in
          let hold = hold(loop, made)
          return Op(name: "ChildOp", body: HoldingBody { _ = $0.start(Flow("child").add(hold)) })
            .start(on: loop)
        }
      ),
      (
        "child that is stopped",
        { loop, made in
          let stubborn = Op(
            name: "StubbornOp", body: StubbornBody { $0.state = made })
          return Op("FailOp") { context in
            _ = context.start(stubborn)
            throw FlowError(.error, "\(loop.now())")
          }.start(on: loop)
        }
      ),
      (
        "leftovers",
        { loop, made in
          let stubborn = Op(
            name: "StubbornOp", body: StubbornBody { $0.state = made })
          return Flow("f").add(Op("StartOp") { _ = $0.start(stubborn) }).start(on: loop)
        }
      ),
    ]

  private static func hold(_ loop: EventLoop, _ made: TestOpaque) -> Op {
    Op(
      name: "HoldOp",
      body: HoldingBody { context in
        context.defer { _ in _ = loop.now() }
        context.state = made
      })
  }

  @Test(arguments: pending.indices)
  func aLoopThatIsShutDownLetsGoOfWhateverIsPending(_ index: Int) {
    let (name, start) = Self.pending[index]
    weak var gone: EventLoop?
    weak var state: TestOpaque?
    do {
      let loop = makeLoop()
      gone = loop
      let made = TestOpaque(type: "x", base: "x")
      state = made
      let run = start(loop, made)
      #expect(run.state == .pending)
      loop.shutdown()
      #expect(loop.pendingRuns.isEmpty)
    }
    // Told by itself: the loop isn't shown when this fails.
    let (isLoopGone, isStateGone) = (gone == nil, state == nil)
    #expect(isLoopGone, "\(name)")
    #expect(isStateGone, "\(name)")
  }
}

/// Waits without end, also when it is asked to stop.
private final class StubbornBody: OpBody {
  private let take: (OpContext) -> Void

  init(_ take: @escaping (OpContext) -> Void) {
    self.take = take
  }

  func start(_ context: OpContext) -> OpProgress {
    take(context)
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {}
}

/// Cancels its run, then waits without end.
private final class CancellingCallback: RunCallback {
  var asked: [String] = []

  func call(_ run: Run, completion: CallbackCompletion) -> OpProgress {
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
