import FlowEngine
import Glibc
import Testing

@Suite("Async bodies")
struct AsyncBodyTests {
  @Test("A body that awaits nothing ends within the start")
  func aBodyThatAwaitsNothingEndsWithinTheStart() {
    let loop = makeLoop()
    let op = Op("QuickOp", gives: ["url": "string"]) { context in
      await returnAtOnce()
      context.set("url", "u")
    }
    let run = op.start(on: loop)
    #expect(run.state == .succeeded)
    #expect(run.data.string("url") == "u")
    #expect(
      body(run).dropFirst() == [
        "[DataBucket] add for url: u", "[QuickOp] DidFinish: successfully",
      ])
  }

  @Test("Bodies sleep side by side on the loop's clock")
  func sleepsOfBodiesTakeTheTimeOfTheLoopsClockSideBySide() throws {
    let loop = makeLoop()
    let op = Op("NapOp", primaryInput: "nap") { context in
      let nap = try context.value("nap", as: Double.self)
      try await context.sleep(for: .seconds(nap))
      try await context.sleep(for: .seconds(1))
      context.log("awake")
    }
    let run = Flow().data("naps", [100.0, 50, 2])
      .addGrouped(op, GroupDispatcher(input: "naps")).start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(101))
    #expect(
      body(run).filter { $0.hasSuffix("awake") } == [
        "[NapOp #3] awake", "[NapOp #2] awake", "[NapOp #1] awake",
      ])
  }

  @Test("A thrown error fails the op")
  func anErrorThatIsThrownFailsTheOp() throws {
    let loop = makeLoop()
    struct Broken: Error, CustomStringConvertible { var description: String { "it broke" } }
    let early = Op("EarlyOp") { _ in
      await returnAtOnce()
      throw Broken()
    }.start(on: loop)
    #expect(early.error?.message == "it broke")
    let late = Op("LateOp") { context in
      try await context.sleep(for: .seconds(1))
      throw FlowError(.error, "too late", code: 7)
    }.start(on: loop)
    try late.waitUntilEnd()
    #expect(late.error?.code == 7)
    #expect(body(late).last == "[LateOp] DidFinish: withError: too late")
    let missing = Op("ReadOp") { context in
      await returnAtOnce()
      _ = try context.value("absent", as: String.self)
    }.start(on: loop)
    #expect(missing.error?.kind == .insufficientInput)
  }

  @Test("Declared data is checked as for any op")
  func declaredDataIsCheckedAsForAnyOp() throws {
    let loop = makeLoop()
    let op = Op("CheckOp", needs: ["in": "integer"], gives: ["out": "string"]) { context in
      try await context.sleep(for: .seconds(1))
    }
    #expect(op.start(on: loop).error?.kind == .insufficientInput)
    let run = op.start(on: loop, data: InitialData([("in", .integer(1))]))
    try run.waitUntilEnd()
    #expect(run.error?.kind == .missingOutput)
  }

  @Test("Cancelling the op cancels the task and waits for its end")
  func cancellingTheOpCancelsTheTaskAndWaitsForItsEnd() throws {
    let loop = makeLoop()
    let op = Op("LongOp") { context in
      do {
        try await context.sleep(for: .seconds(1000))
      } catch {
        #expect(Task.isCancelled)
        // A cancelled body may still take time, when it insists.
        #expect(await onAnotherThread { true })
        context.log("put away")
        throw error
      }
    }
    let run = op.start(on: loop)
    loop.schedule(at: 2_000_000_000) { run.cancel(reason: "enough") }
    loop.runUntilIdle()
    #expect(run.state == .cancelled)
    #expect(run.duration == .seconds(2))
    #expect(
      body(run) == [
        "[LongOp] WillStart", "[LongOp] put away", "[LongOp] DidFinish: cancelled: enough",
      ])
  }

  @Test("A timeout cancels the task and a retry starts a new one")
  func aTimeoutCancelsTheTaskAndARetryStartsANewOne() throws {
    let loop = makeLoop()
    let op = Op("SlowOp") { context in
      if context.attempt < 3 { try await context.sleep(for: .seconds(60)) }
      try await context.sleep(for: .seconds(1))
    }.with(retry: RetryPolicy(attempts: 3, delay: .seconds(1)), timeout: .seconds(5))
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(13))
    #expect(
      body(run) == [
        "[SlowOp] WillStart", "[SlowOp] Retry 2/3 in 1s: timed out after 5s",
        "[SlowOp] Retry 3/3 in 1s: timed out after 5s", "[SlowOp] DidFinish: successfully",
      ])
  }

  @Test("A cancellation error ends the op as cancelled")
  func aCancellationErrorEndsTheOpAsCancelled() throws {
    let loop = makeLoop()
    let run = Op("StopOp") { context in
      try await context.sleep(for: .seconds(1))
      throw CancellationError()
    }.start(on: loop)
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(run.error?.kind == .cancelled)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Cancellation handlers of a body are called")
  func cancellationHandlersOfABodyAreCalled() throws {
    let loop = makeLoop()
    let isTold = Flag()
    let run = Op("HandlerOp") { context in
      await withTaskCancellationHandler {
        await withUnsafeContinuation { isTold.continuation = $0 }
      } onCancel: {
        isTold.raise()
      }
      try Task.checkCancellation()
    }.start(on: loop)
    #expect(loop.turn(mayBlock: false) == .waiting)
    run.cancel()
    #expect(run.state == .pending)
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
  }

  @Test("A body returns to the loop's thread from other actors")
  func aBodyComesBackToTheLoopsThreadFromOtherActors() throws {
    let loop = makeLoop()
    let home = pthread_self()
    let counter = Counter()
    let run = Op("ActorOp", gives: ["n": "integer"]) { context in
      for _ in 0..<10 {
        let number = await counter.next()
        #expect(pthread_self() == home)
        context.set("n", number)
        _ = await onAnotherThread { pthread_self() != home }
        #expect(pthread_self() == home)
      }
    }.start(on: loop)
    try run.wait()
    #expect(run.data.integer("n") == 10)
  }

  @Test("A loop waits for a task that is resumed elsewhere, and its clock stands still")
  func aLoopWaitsForATaskThatIsResumedElsewhereAndItsClockStandsStill() throws {
    let loop = makeLoop()
    let run = Op("OutsideOp") { context in
      try await Task.sleep(for: .milliseconds(2))
      let isElsewhere = await onAnotherThread { true }
      context.set("elsewhere", isElsewhere)
      await Task.yield()
    }.start(on: loop)
    loop.schedule(at: 3_600_000_000_000) { run.cancel(reason: "the clock went on") }
    try run.waitUntilEnd()
    #expect(run.data.boolean("elsewhere") == true)
    #expect(run.duration == .zero)
    loop.runUntilIdle()
  }

  @Test("A body that waits for a run that can't end is stalled")
  func aBodyThatWaitsForARunThatCannotEndIsStalled() throws {
    let loop = makeLoop()
    // Timers that nobody waits for any more keep what they were for.
    defer { loop.shutdown() }
    let op = Op("OuterOp") { context in
      let stuck = StuckBody()
      context.defer { _ in stuck.contexts = [] }
      _ = try await context.start(Op(name: "StuckOp", body: stuck)).value
    }
    let run = op.start(on: loop)
    #expect(throws: FlowError.self) { try run.waitUntilEnd() }
    #expect(run.error?.kind == .stalled)
  }

  @Test("A body awaits the runs it starts and gets their data or error")
  func aBodyAwaitsRunsThatItStartsAndGetsTheirDataOrError() throws {
    let loop = makeLoop()
    let run = Op("ParentOp", gives: ["sum": "integer"]) { context in
      let child = Op("ChildOp", gives: ["n": "integer"]) { context in
        try await context.sleep(for: .seconds(1))
        context.set("n", 4)
      }
      let first = context.start(child)
      let second = context.start(child)
      let a = try await first.value.integer("n") ?? 0
      let b = try await second.value.integer("n") ?? 0
      context.set("sum", a + b)
      let failing = context.start(Op("FailOp") { _ in throw FlowError(.error, "no") })
      await #expect(throws: FlowError.self) { _ = try await failing.value }
    }.start(on: loop)
    try run.wait()
    #expect(run.data.integer("sum") == 8)
    #expect(run.duration == .seconds(1))
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Cancelling the code that awaits a run cancels the run only on request")
  func cancellingWhoAwaitsARunCancelsTheRunOnlyWhenAsked() throws {
    for cancelsTask in [false, true] {
      let loop = makeLoop()
      let inner = waitingOp("InnerOp", 10).start(on: loop)
      nonisolated(unsafe) let awaited = inner
      let outer = Op("OuterOp") { _ in _ = try await awaited.value(cancelsTask: cancelsTask) }
        .start(on: loop)
      loop.schedule(at: 1_000_000_000) { outer.cancel() }
      loop.runUntilIdle()
      #expect(outer.state == .cancelled)
      #expect(outer.duration == .seconds(1))
      #expect(inner.state == (cancelsTask ? .cancelled : .succeeded))
      #expect(inner.duration == .seconds(cancelsTask ? 1 : 10))
    }
  }

  @Test("Many bodies suspend at the same time")
  func manyBodiesSuspendAtTheSameTime() throws {
    let loop = makeLoop()
    let count = 2000
    let op = Op("YieldOp", primaryInput: "i") { context in
      for _ in 0..<3 { await Task.yield() }
      try await context.sleep(for: .milliseconds(5))
      context.set("done", true)
    }
    let run = Flow().data("items", Array(0..<count))
      .addGrouped(
        op,
        GroupDispatcher(input: "items", output: "results", maxConcurrent: count, collect: "done")
      )
      .start(on: loop)
    try run.wait()
    #expect(run.data.value("results", as: [Bool].self)?.count == count)
    #expect(run.duration == .seconds(0.005))
  }

  @Test("A loop that is shut down cancels and releases its tasks")
  func aLoopThatIsShutDownCancelsItsTasksAndLetsThemGo() {
    weak var gone: FlowEventLoop?
    let ended = Flag()
    do {
      let loop = makeLoop()
      gone = loop
      let run = Op("SleepOp") { context in
        do {
          try await context.sleep(for: .seconds(1000))
        } catch {
          context.log("no longer heard")
          ended.raise()
        }
      }.start(on: loop)
      #expect(run.state == .pending)
      loop.shutdown()
      #expect(ended.isRaised)
      #expect(run.state == .pending)
      #expect(loop.turn(mayBlock: true) == .idle)
    }
    #expect(gone == nil)
  }

  @Test("Code on another thread runs a function on the loop and gets its result")
  func codeElsewhereRunsSomethingOnTheLoopAndGetsItsResult() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let text = try await mailbox.perform { loop in
      let home = pthread_self()
      let op = Op("PartOp", gives: ["text": "string"]) { context in
        try await context.sleep(for: .microseconds(10))
        #expect(pthread_self() == home)
        context.set("text", "done")
      }
      return try await op.start(on: loop).value.string("text")
    }
    #expect(text == "done")
    await #expect(throws: FlowError.self) {
      try await mailbox.perform { _ in throw FlowError(.error, "refused") }
    }
    await thread.shutdown()
  }

  @Test("Cancelling a call to a loop cancels the function it runs there")
  func cancellingWhoCallsALoopCancelsWhatIsDoneThere() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let hasBegun = Flag()
    let task = Task.detached {
      try await mailbox.perform { loop in
        hasBegun.raise()
        try await loop.sleep(for: .seconds(1_000_000))
      }
    }
    await hasBegun.wait()
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    let early = Task.detached {
      withUnsafeCurrentTask { $0?.cancel() }
      try await mailbox.perform { loop in try await loop.sleep(for: .seconds(1_000_000)) }
    }
    await #expect(throws: CancellationError.self) { try await early.value }
    await thread.shutdown()
  }

  @Test("A call to a loop that is shut down throws")
  func aCallToALoopThatIsShutDownThrows() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    try await mailbox.perform { loop in loop.enqueue { loop.shutdown() } }
    await #expect(throws: CancellationError.self) { try await mailbox.perform { _ in } }
    await thread.shutdown()
    let closed = makeLoop().mailbox
    await #expect(throws: CancellationError.self) { try await closed.perform { _ in } }
  }
}

/// Suspends nothing.
private func returnAtOnce() async {}

private actor Counter {
  private var count = 0

  func next() -> Int {
    count += 1
    return count
  }
}
