import FlowEngine
import Testing

/// Runs and programs are tasks too, and tasks belong to what has started them.
@Suite("Continuations of runs")
struct RunContinuationTests {
  private let loop = makeLoop()

  @Test("A continuation receives the run after its callbacks")
  func aContinuationGetsTheRunAfterItsCallbacks() throws {
    var calls: [String] = []
    let flow = Flow("f").add(waitingOp("WorkOp") { $0.set("n", 4) })
      .didFinish(WaitingCallback(seconds: 2) { calls.append("waited") })
      .didFinish { calls.append("finished \($0.isConcluded)") }
    let run = flow.start(on: loop)
    let number = run.nextOnSuccess { data in
      calls.append("continued \(run.isConcluded)")
      return data.integer("n")
    }
    let same = run.next { $0 === run }
    try run.wait()
    #expect(calls == ["waited", "finished false", "continued true"])
    #expect(number.result == 4)
    #expect(same.result == true)
    #expect(run.next { $0.result?.integer("n") }.result == 4)
  }

  @Test("A run that fails is observed by its continuation")
  func aRunThatFailsIsObservedByItsContinuation() throws {
    let run = failing("BadOp", "bad", after: 1).start(on: loop)
    let message = run.nextOnError { error in
      #expect(error.op == "BadOp")
      return run.data
    }
    loop.runUntilIdle()
    #expect(message.result === run.data)
    #expect(run.isObserved)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Continuations that start runs form a chain")
  func continuationsThatStartRunsMakeAChain() throws {
    let first = waitingOp("FirstOp") { $0.set("n", 1) }
    let second = waitingOp("SecondOp") { $0.set("n", ($0.run.data.integer("n") ?? 0) + 1) }
    let begun = loop.now()
    let task = first.start(on: loop)
      .nextOnSuccess { [loop] data -> FlowTask<DataBucket> in
        second.start(on: loop, data: InitialData([("n", .integer(data.integer("n") ?? 0))]))
      }
      .nextOnSuccess { $0.integer("n") }
    loop.runUntilIdle()
    #expect(task.result == 2)
    #expect(loop.now() - begun == 2_000_000_000)
  }

  @Test("Cancelling the continuation of a run cancels the run")
  func cancellingTheContinuationOfARunCancelsTheRun() throws {
    let run = Flow("f").add(waitingOp("LongOp", 9)).addFinally(waitingOp("CloseOp", 2))
      .start(on: loop)
    let task = run.next { _ in 0 }
    #expect(task.cancel(reason: "enough"))
    // It waits for the end of the run, final steps included.
    #expect(task.state == .pending)
    #expect(run.state == .pending)
    try run.waitUntilEnd()
    #expect(run.duration == .seconds(2))
    #expect(body(run).contains("[LongOp] DidFinish: cancelled: enough"))
    #expect(text(task) == "cancelled: enough")
  }

  @Test("A run with other waiters continues")
  func aRunThatOthersWaitForGoesOn() throws {
    let run = waitingOp("LongOp", 9).start(on: loop)
    let tasks = (0..<2).map { _ in run.next { _ in 0 } }
    #expect(tasks[0].cancel())
    #expect(tasks[0].state == .cancelled)
    try run.waitUntilEnd()
    #expect(run.state == .succeeded)
    #expect(tasks[1].result == 0)
  }

  @Test("A continuation of a program gets its output")
  func aContinuationOfAProgramGetsItsOutput() {
    let text = ProcessTask(ProcessRequest(["echo", "hello"]), on: loop)
      .nextOnSuccess { $0.stdout }
    let status = ProcessTask(ProcessRequest(["sh", "-c", "exit 3"]), on: loop).nextOnError {
      error in
      #expect(error.code == 3)
      throw FlowError(.error, "no", code: 4)
    }.next { $0.error?.code }
    loop.runUntilIdle()
    #expect(text.result == "hello\n")
    #expect(status.result == 4)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Cancelling the continuation of a program stops it")
  func cancellingTheContinuationOfAProgramStopsIt() {
    let program = ProcessTask(ProcessRequest(["sleep", "100"]), on: loop)
    let task = program.next { _ in 0 }
    #expect(task.cancel(reason: "enough"))
    #expect(task.state == .pending)
    loop.runUntilIdle()
    #expect(text(task) == "cancelled: enough")
    #expect(text(program) == "cancelled: enough")
  }

  // MARK: Ownership

  @Test("A task adopted by a failing op is cancelled before the op finishes")
  func aTaskThatAFailingOpHasAdoptedIsCancelledBeforeTheOpFinishes() throws {
    var task: FlowTask<Int>?
    var stateAtTheEnd: AnyFlowTask.State?
    let op = Op("StartOp") { context in
      let delay = FlowTask.withDelay(.seconds(9), 1, on: context.loop)
      context.adopt(delay)
      delay.finally { _ in stateAtTheEnd = context.run.state }
      task = delay
      throw FlowError(.error, "bad")
    }
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(task.map(text) == "cancelled: bad")
    #expect(stateAtTheEnd == .pending)
    #expect(run.error?.message == "bad")
  }

  @Test("A task adopted by an op is cancelled with it", arguments: [false, true])
  func aTaskThatAnOpHasAdoptedIsCancelledWithIt(_ isTimeout: Bool) throws {
    let tasks = Flow("f")
    var task: FlowTask<Int>?
    let op = Op(
      name: "HoldOp",
      body: HoldingBody { context in
        let delay = FlowTask.withDelay(.seconds(9), 1, on: context.loop)
        context.adopt(delay)
        task = delay
      }
    ).with(timeout: isTimeout ? .seconds(2) : nil)
    loop.gracePeriod = .zero
    let run = tasks.add(op).start(on: loop)
    if !isTimeout { loop.schedule(at: loop.now() + 2_000_000_000) { run.cancel(reason: "enough") } }
    try run.waitUntilEnd()
    #expect(
      task?.error?.message == (isTimeout ? "cancelled: timed out after 2s" : "cancelled: enough"))
    #expect(run.duration == .seconds(2))
  }

  @Test("Tasks of an op that succeeds pass to its run")
  func tasksOfAnOpThatSucceedsPassToItsRun() throws {
    var tasks: [FlowTask<Int>] = []
    let op = Op("StartOp") { context in
      for seconds in [1.0, 9] {
        let delay = FlowTask.withDelay(.seconds(seconds), 1, on: context.loop)
        tasks.append(delay)
        context.adopt(delay)
      }
    }
    let run = Flow("f").add(op).add(waitingOp("WorkOp", 3)).start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(3))
    #expect(tasks.map(text) == ["1", "cancelled"])
  }

  @Test("Continuations of owned tasks aren't owned")
  func continuationsOfOwnedTasksAreNotOwned() throws {
    var last: FlowTask<String>?
    let op = Op("StartOp") { context in
      let delay = FlowTask.withDelay(.seconds(9), 1, on: context.loop)
      context.adopt(delay)
      last = delay.next { "after \(text($0))" }
      throw FlowError(.error, "bad")
    }
    let run = op.start(on: loop)
    try run.waitUntilEnd()
    #expect(last?.result == "after cancelled: bad")
  }

  @Test("An adopted task that has ended has no owner")
  func anAdoptedTaskThatHasEndedIsNobodysAnyMore() throws {
    let op = Op("StartOp") { context in
      let settled = FlowTask.resolved(1, on: context.loop)
      context.adopt(settled)
      let pending = FlowPromise<Int>(on: context.loop)
      context.adopt(pending.task)
      #expect(pending.trySetResult(1))
    }
    let run = Flow("f").add(op).add(waitingOp("WorkOp")).start(on: loop)
    try run.wait()
    #expect(run.state == .succeeded)
    #expect(run.duration == .seconds(1))
  }
}
