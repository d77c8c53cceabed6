import FlowEngine
import Testing

/// The meaning of cancelling something that waits.
@Suite("Cancellation of continuations")
struct ContinuationCancellationTests {
  private let loop = makeLoop()

  private func makeContext() -> FlowPromise<Int> { FlowPromise(on: loop, keepsLoop: false) }

  @Test("A cancelled continuation stops a task that only it waits for")
  func aContinuationThatIsCancelledStopsWhatItAloneWaitsFor() {
    let context = makeContext()
    var calls = 0
    let task = context.task.next { _ in calls += 1 }
    #expect(task.cancel(reason: "enough"))
    #expect(context.task.error?.message == "cancelled: enough")
    #expect(task.error?.message == "cancelled: enough")
    #expect(!task.cancel(reason: "again"))
    #expect(calls == 0)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("A shared task continues until its last continuation is cancelled")
  func whatOthersWaitForGoesOnUntilTheLastOfThemIsCancelled() {
    let context = makeContext()
    let tasks = (0..<4).map { number in context.task.nextOnSuccess { $0 + number } }
    #expect(tasks[0].cancel(reason: "first"))
    // It ends at once, as it hasn't to wait for anything.
    #expect(tasks[0].state == .cancelled)
    #expect(tasks[2].cancel())
    #expect(context.task.state == .pending)
    #expect(tasks[1].cancel())
    #expect(context.task.state == .pending)
    #expect(tasks[3].cancel(reason: "last"))
    #expect(context.task.error?.message == "cancelled: last")
    #expect(tasks.map { text($0) }.last == "cancelled: last")
  }

  @Test("Observers of other kinds keep a task running too")
  func observersOfOtherKindsAreSomebodyWhoWaitsToo() throws {
    let job = Job {}
    let observed = makeContext()
    observed.task.observe(job)
    #expect(observed.task.next { _ in 0 }.cancel())
    #expect(observed.task.state == .pending)
    observed.task.unobserve(job)
    let joined = makeContext()
    let all = FlowTask.whenAllSucceed([joined.task], on: loop)
    #expect(joined.task.next { _ in 0 }.cancel())
    #expect(joined.task.state == .pending)
    // Nor does cancelling the join stop it, so there is nobody who does.
    #expect(all.cancel())
    #expect(joined.task.state == .pending)
    let awaited = makeContext()
    let task = awaited.task
    let waiting = loop.task { try await task.value }
    #expect(task.next { _ in 0 }.cancel())
    #expect(task.state == .pending)
    #expect(awaited.trySetResult(4))
    loop.runUntilIdle()
    #expect(waiting.result == 4)
  }

  @Test("The remaining continuations run with the result")
  func theOthersGoOnWithTheResult() {
    let context = makeContext()
    let cancelled = context.task.nextOnSuccess { $0 + 1 }
    let other = context.task.nextOnSuccess { $0 + 2 }
    #expect(cancelled.cancel())
    #expect(context.trySetResult(1))
    #expect(other.result == 3)
    #expect(cancelled.state == .cancelled)
  }

  @Test("The reason of a cancellation reaches the beginning of a chain and its end")
  func theReasonArrivesAtTheBeginningOfAChainAndAtItsEnd() {
    let delay = FlowTask.withDelay(.seconds(1000), 1, on: loop)
    var seen: [String] = []
    let last = delay.finally { seen.append(text($0)) }.nextOnSuccess { $0 + 1 }
      .nextOnError { _ in 0 }.next { $0.state }
    #expect(last.cancel(reason: "enough"))
    #expect(text(delay) == "cancelled: enough")
    // The continuations are cancelled too: none of them runs.
    #expect(seen.isEmpty)
    #expect(text(last) == "cancelled: enough")
  }

  @Test("A cancelled task runs its continuations for cancellation")
  func aTaskThatWasCancelledRunsTheContinuationsForThat() {
    let delay = FlowTask.withDelay(.seconds(1000), 1, on: loop)
    var seen: [String] = []
    delay.next { seen.append("next \(text($0))") }
    delay.finally { seen.append("finally \(text($0))") }
    delay.nextOnSuccess { _ in seen.append("success") }
    delay.nextOnError { _ in
      seen.append("error")
      return 0
    }
    #expect(delay.cancel())
    #expect(seen == ["next cancelled", "finally cancelled"])
  }

  @Test("A cancelled task stops the task it follows")
  func whatATaskFollowsIsStoppedWithIt() {
    let context = makeContext()
    let task = FlowTask.resolved(1, on: loop).next { _ in context.task }
    #expect(task.state == .pending)
    #expect(task.cancel(reason: "enough"))
    #expect(text(context.task) == "cancelled: enough")
    #expect(text(task) == "cancelled: enough")
    let shared = makeContext()
    let followers = (0..<2).map { _ in FlowTask.resolved(1, on: loop).next { _ in shared.task } }
    #expect(followers[0].cancel())
    #expect(followers[0].state == .cancelled)
    #expect(shared.trySetResult(5))
    loop.runUntilIdle()
    #expect(followers[1].result == 5)
  }

  @Test("The return value of stopped code doesn't count")
  func whatCodeReturnsAfterItWasAskedToStopDoesNotMatter() {
    let ways: [(FlowTask<Int>) throws -> FlowTask<Int>] = [
      { _ in .resolved(1, on: self.loop) },
      { _ in throw FlowError(.error, "bad") },
      { _ in .failed(FlowError(.error, "bad"), on: self.loop) },
      { _ in .withDelay(.seconds(5), 5, on: self.loop) },
    ]
    for way in ways {
      let context = makeContext()
      var itself: FlowTask<Int>?
      let task = context.task.next { before in
        #expect(itself?.cancel(reason: "enough") == true)
        #expect(itself?.cancel(reason: "again") == true)
        #expect(itself?.state == .pending)
        return try way(before)
      }
      itself = task
      #expect(context.trySetResult(1))
      itself = nil
      loop.runUntilIdle()
      #expect(text(task) == "cancelled: enough")
    }
    #expect(loop.now() == makeLoop().now())
    #expect(reports(loop).isEmpty)
  }

  @Test("Stopped async code ends as cancelled, whatever it returns")
  func asyncCodeThatWasAskedToStopEndsAsCancelledWhateverItReturns() {
    for way in 0..<3 {
      let context = makeContext()
      let awaited = context.task
      var wasCancelled = false
      let task = loop.task { () async throws -> Int in
        do {
          return try await awaited.value
        } catch {
          wasCancelled = Task.isCancelled
          if way == 1 { throw FlowError(.error, "bad") }
          if way == 2 { throw error }
          return 5
        }
      }
      #expect(task.cancel(reason: "enough"))
      #expect(task.state == .pending)
      loop.runUntilIdle()
      #expect(wasCancelled)
      #expect(text(task) == "cancelled: enough")
      #expect(awaited.state == .pending)
    }
    #expect(reports(loop).isEmpty)
  }

  @Test("A posted continuation that is cancelled doesn't run")
  func aContinuationThatWaitsForItsTurnDoesNotRunOnceCancelled() {
    var calls = 0
    let source = FlowTask.resolved(1, on: loop)
    let task = source.next(.main) { _ in calls += 1 }
    #expect(task.cancel(reason: "enough"))
    loop.runUntilIdle()
    #expect(text(task) == "cancelled: enough")
    #expect(calls == 0)
    #expect(source.state == .succeeded)
  }

  @Test("A continuation may cancel the next one")
  func aContinuationMayCancelTheOneThatComesAfterIt() {
    let context = makeContext()
    var second: FlowTask<Void>?
    var calls = 0
    context.task.next { _ in second?.cancel(reason: "by the first") }
    let task = context.task.next { _ in calls += 1 }
    second = task
    #expect(context.trySetResult(1))
    #expect(calls == 0)
    #expect(text(task) == "cancelled: by the first")
    #expect(context.task.state == .succeeded)
    second = nil
  }

  @Test("A continuation outlives the task it waits for")
  func aContinuationOutlivesWhatItWaitsFor() {
    var pending: [FlowTask<Int>] = []
    for way in 0..<3 {
      var context: FlowPromise<Int>? = makeContext()
      guard let task = context?.task else { continue }
      switch way {
      case 0: pending.append(task.next { _ in 1 })
      case 1: pending.append(FlowTask.resolved(1, on: loop).next { _ in task })
      default: pending.append(FlowTask.whenAllSucceed([task], on: loop).next { _ in 1 })
      }
      context = nil
    }
    for task in pending {
      #expect(task.state == .pending)
      #expect(task.cancel())
      loop.runUntilIdle()
      #expect(task.state == .cancelled)
    }
  }

  @Test("Tasks of a loop that is shut down can be held and cancelled")
  func tasksOfALoopThatIsShutDownCanBeHeldAndCancelled() {
    weak var gone: FlowEventLoop?
    do {
      let loop = makeLoop()
      gone = loop
      let run = waitingOp("WaitOp").start(on: loop)
      let tasks = [
        run.next { _ in 1 }, FlowTask.resolved(1, on: loop).next { _ in run.next { _ in 1 } },
        FlowTask.whenAllSucceed([run], on: loop).next { _ in 1 },
        FlowTask.withDelay(.seconds(1), 1, on: loop).next { _ in 1 },
      ]
      loop.shutdown()
      for task in tasks {
        task.cancel()
        #expect(task.result == nil)
      }
    }
    #expect(gone == nil)
  }

  @Test("A continuation of a run whose loop is gone can be cancelled")
  func aContinuationOfARunThatIsGoneWithItsLoopCanBeCancelled() {
    weak var gone: FlowEventLoop?
    do {
      let loop = makeLoop()
      gone = loop
      let tasks = [
        waitingOp("WaitOp").start(on: loop).next { _ in 1 },
        FlowTask.whenAllSucceed([waitingOp("WaitOp").start(on: loop)], on: loop).next { _ in 1 },
      ]
      loop.shutdown()
      // The tasks that they have waited for are gone.
      for task in tasks { #expect(task.cancel()) }
    }
    #expect(gone == nil)
  }
}
