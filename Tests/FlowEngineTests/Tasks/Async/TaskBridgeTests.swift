import FlowEngine
import Glibc
import Testing

/// Tasks of a loop that Swift's tasks wait for, and the other way round.
@Suite("Tasks and async code")
struct TaskBridgeTests {
  // MARK: Async code as a task

  @Test("Async code starts at once, and its result is the task's")
  func asyncCodeStartsAtOnceAndItsResultIsTheTasks() {
    let loop = makeLoop()
    var hasBegun = false
    let quick = loop.task { () async -> Int in
      hasBegun = true
      return 5
    }
    #expect(hasBegun)
    #expect(quick.result == 5)
    let slow = loop.task { () async throws -> Int in
      try await loop.sleep(for: .seconds(3600))
      return 6
    }
    #expect(slow.state == .pending)
    loop.runUntilIdle()
    #expect(slow.result == 6)
  }

  @Test("An error of async code fails the task")
  func anErrorOfAsyncCodeFailsTheTask() {
    let loop = makeLoop()
    let tasks = [FlowError(.error, "bad"), CancellationError() as any Error].map { error in
      loop.task { () async throws -> Int in
        await Task.yield()
        throw error
      }
    }
    loop.runUntilIdle()
    #expect(tasks.map(text) == ["bad", "cancelled"])
    #expect(loop.unobservedFailures.map(\.id) == [tasks[0].id])
  }

  @Test("Async code returns to the loop's thread and keeps the loop alive")
  func asyncCodeComesBackToTheLoopsThreadAndKeepsTheLoop() {
    let loop = makeLoop()
    let home = pthread_self()
    let task = loop.task { () async -> Bool in
      for _ in 0..<10 {
        let isElsewhere = await onAnotherThread { pthread_self() != home }
        guard isElsewhere, pthread_self() == home else { return false }
      }
      return true
    }
    // A running clock would end this first.
    let limit = FlowTask.withDelay(.seconds(1), on: loop).finally { _ in #expect(task.isConcluded) }
    loop.runUntilIdle()
    #expect(task.result == true)
    #expect(limit.isConcluded)
  }

  @Test("A task of async code can have continuations and be followed")
  func aTaskOfAsyncCodeHasContinuationsAndIsFollowed() {
    let loop = makeLoop()
    let task = FlowTask.withDelay(.seconds(1), 2, on: loop).nextOnSuccess { number in
      loop.task { () async throws -> Int in
        try await loop.sleep(for: .seconds(1))
        return number + 1
      }
    }.nextOnSuccess { $0 * 10 }
    loop.runUntilIdle()
    #expect(task.result == 30)
  }

  @Test("Cancelling a task cancels its async code and waits for its end")
  func cancellingATaskCancelsItsAsyncCodeAndWaitsForItsEnd() {
    let loop = makeLoop()
    let begun = loop.now()
    var steps: [String] = []
    let task = loop.task {
      do {
        try await loop.sleep(for: .seconds(1000))
      } catch {
        steps.append("\(Task.isCancelled)")
        _ = await onAnotherThread { true }
        steps.append("put away")
      }
    }
    task.finally { _ in steps.append("ended") }
    #expect(task.cancel(reason: "enough"))
    #expect(!task.isConcluded)
    loop.runUntilIdle()
    #expect(steps == ["true", "put away", "ended"])
    #expect(text(task) == "cancelled: enough")
    #expect(loop.now() == begun)
  }

  @Test("Cancelling the continuation cancels the async code")
  func cancellingTheContinuationCancelsTheAsyncCode() {
    let loop = makeLoop()
    let task = loop.task { try await loop.sleep(for: .seconds(1000)) }
    let last = task.next { _ in 0 }
    #expect(last.cancel(reason: "enough"))
    loop.runUntilIdle()
    #expect(text(task) == "cancelled: enough")
    #expect(text(last) == "cancelled: enough")
  }

  // MARK: Tasks in async code

  @Test("Async code awaits tasks of its loop")
  func asyncCodeAwaitsTasksOfItsLoop() {
    let loop = makeLoop()
    let task = loop.task { () async throws -> [Int] in
      let settled = try await FlowTask.resolved(1, on: loop).value
      let delayed = try await FlowTask.withDelay(.seconds(5), 2, on: loop).value
      let chained = try await FlowTask.resolved(2, on: loop).nextOnSuccess(.main) { $0 + 1 }.value
      let all = try await FlowTask.whenAllSucceed([.resolved(4, on: loop)], on: loop).value
      return [settled, delayed, chained] + all
    }
    loop.runUntilIdle()
    #expect(task.result == [1, 2, 3, 4])
  }

  @Test("The error of a task is thrown")
  func theErrorOfATaskIsThrown() {
    let loop = makeLoop()
    let bad = FlowError(.error, "bad", code: 7)
    let task = loop.task {
      let error = await #expect(throws: FlowError.self) {
        _ = try await FlowTask<Int>.failed(bad, on: loop).value
      }
      #expect(error === bad)
      let cancelled = await #expect(throws: FlowError.self) {
        _ = try await FlowTask<Int>.cancelled(reason: "rain", on: loop).value
      }
      #expect(cancelled?.message == "cancelled: rain")
    }
    loop.runUntilIdle()
    #expect(task.state == .succeeded)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("A cancelled awaiter stops its task only on request", arguments: [false, true])
  func whoIsCancelledWhileItAwaitsATaskStopsItOnlyWhenAsked(_ cancelsTask: Bool) {
    let loop = makeLoop()
    let delay = FlowTask.withDelay(.seconds(10), 1, on: loop)
    var thrown: (any Error)?
    let waiting = loop.task {
      do {
        _ = try await delay.value(cancelsTask: cancelsTask)
      } catch {
        thrown = error
        throw error
      }
    }
    loop.schedule(at: loop.now() + 1_000_000_000) { waiting.cancel(reason: "enough") }
    loop.runUntilIdle()
    #expect(text(waiting) == "cancelled: enough")
    #expect(text(delay) == (cancelsTask ? "cancelled" : "1"))
    #expect((thrown is CancellationError) == !cancelsTask)
    #expect((thrown as? FlowError)?.kind == (cancelsTask ? .cancelled : nil))
  }

  @Test("Many wait for one task")
  func manyWaitForOneTask() {
    let loop = makeLoop()
    let delay = FlowTask.withDelay(.seconds(1), 3, on: loop)
    let tasks = (0..<100).map { number in
      loop.task { () async throws -> Int in try await delay.value + number }
    }
    #expect(tasks[50].cancel())
    loop.runUntilIdle()
    #expect(tasks.compactMap(\.result) == (3..<103).filter { $0 != 53 })
  }

  // MARK: From other threads

  @Test("A handle gives the outcome on any thread")
  func aHandleGivesTheOutcomeAnywhere() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let (good, bad, late) = try await mailbox.perform { loop in
      (
        FlowTask.withDelay(.seconds(0.001), 5, on: loop).handle,
        FlowTask<Int>.failed(FlowError(.error, "bad"), on: loop).handle,
        FlowTask.resolved("x", on: loop).next(.main) { ($0.result ?? "") + "y" }.handle
      )
    }
    #expect(try await good.value == 5)
    #expect(try await good.value == 5)
    #expect(try await late.value == "xy")
    let error = await #expect(throws: FlowError.self) { try await bad.value }
    #expect(error?.message == "bad")
    await thread.shutdown()
  }

  @Test("Many threads await and cancel one task")
  func manyThreadsAwaitAndCancelOneTask() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let context = try await mailbox.perform { loop in FlowPromise<Int>(on: loop) }
    let handle = try await mailbox.perform { _ in context.task.handle }
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<20 { group.addTask { try await handle.value } }
      group.addTask { context.trySetResult(2) ? 0 : 1000 }
      return try await group.reduce(0, +)
    }
    #expect(sum == 40)
    handle.cancel()
    #expect(try await handle.value == 2)
    await thread.shutdown()
  }

  @Test("A handle cancels its task")
  func aHandleCancelsItsTask() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let handle = try await mailbox.perform { FlowTask.withDelay(.seconds(1000), 1, on: $0).handle }
    handle.cancel(reason: "from elsewhere")
    handle.cancel(reason: "again")
    let error = await #expect(throws: FlowError.self) { try await handle.value }
    #expect(error?.message == "cancelled: from elsewhere")
    await thread.shutdown()
  }

  @Test(
    "An awaiter cancelled on another thread stops its task only on request",
    arguments: [false, true])
  func whoIsCancelledElsewhereStopsTheTaskOnlyWhenAsked(_ cancelsTask: Bool) async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let context = try await mailbox.perform { loop in FlowPromise<Int>(on: loop) }
    let handle = try await mailbox.perform { _ in context.task.handle }
    let waiting = Task.detached { try await handle.value(cancelsTask: cancelsTask) }
    // It waits there once the loop has come to it; before that, it is as well.
    try await mailbox.perform { _ in }
    waiting.cancel()
    if cancelsTask {
      let error = await #expect(throws: FlowError.self) { try await waiting.value }
      #expect(error?.kind == .cancelled)
      #expect(!context.trySetResult(1))
    } else {
      await #expect(throws: CancellationError.self) { try await waiting.value }
      #expect(context.trySetResult(1))
      #expect(try await handle.value == 1)
    }
    await thread.shutdown()
  }

  @Test("A handle released on another thread releases its task on the loop's thread")
  func aHandleThatIsReleasedElsewhereReleasesItsTaskAtHome() async {
    let isRight = await onLoopThread { loop in
      let home = pthread_self()
      let ended = Locked<Bool?>(nil)
      let external = loop.mailbox.begin()
      do {
        let token = Counted { change in
          if change < 0 { ended.withLock { $0 = pthread_self() == home } }
        }
        let context = FlowPromise<Int>(on: loop, keepsLoop: false)
        context.task.next { _ in withExtendedLifetime(token) {} }
        let sent = Locked<FlowTaskHandle<Int>?>(context.task.handle)
        startThread {
          sent.withLock { $0 = nil }
          external.end()
        }
      }
      loop.runUntilIdle()
      return ended.withLock { $0 }
    }
    #expect(isRight == true)
  }

  // MARK: A loop that is shut down

  @Test(
    "Awaiting a handle ends with an error when its loop is shut down", arguments: [false, true])
  func whoAwaitsAHandleOfALoopThatIsShutDownIsTold(_ cancelsTask: Bool) async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let hasBegun = Flag()
    let waiting = Task.detached {
      try await mailbox.perform { loop in
        let run = waitingOp("WaitOp", 1000).start(on: loop)
        // The loop is shut down once this waits.
        loop.enqueue {
          hasBegun.raise()
          loop.enqueue { loop.shutdown() }
        }
        return try await run.value(cancelsTask: cancelsTask).count
      }
    }
    await hasBegun.wait()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    await thread.shutdown()
  }

  @Test("A handle of a loop that was shut down throws")
  func aHandleOfALoopThatWasShutDownThrows() async throws {
    let thread = try LoopThread()
    let mailbox = thread.mailbox
    let handle = try await mailbox.perform { loop in
      loop.enqueue { loop.shutdown() }
      return FlowTask.resolved(1, on: loop).handle
    }
    await #expect(throws: CancellationError.self) {
      // The call may still come in before the end.
      while true { _ = try await handle.value }
    }
    handle.cancel()
    keepReachable(handle)
    await thread.shutdown()
  }

  @Test("Shutting down a loop cancels its async code")
  func asyncCodeOfALoopThatIsShutDownIsCancelled() {
    weak var gone: FlowEventLoop?
    do {
      let loop = makeLoop()
      gone = loop
      var wasCancelled = false
      let context = FlowPromise<Int>(on: loop, keepsLoop: false)
      let tasks = [
        loop.task {
          try? await loop.sleep(for: .seconds(1000))
          wasCancelled = Task.isCancelled
        },
        loop.task { _ = try await context.task.value },
      ]
      loop.shutdown()
      #expect(wasCancelled)
      // The code has ended, as it could without waiting.
      #expect(tasks.map(\.state) == [.succeeded, .cancelled])
      #expect(loop.turn(mayBlock: true) == .idle)
    }
    #expect(gone == nil)
  }
}
