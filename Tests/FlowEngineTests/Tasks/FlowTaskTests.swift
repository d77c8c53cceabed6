import FlowEngine
import Testing

/// A task by itself: one outcome, reported unless somebody knows of it.
@Suite("Tasks")
struct FlowTaskTests {
  @Test("A task that succeeded has its result")
  func aTaskThatHasSucceededHasItsResult() {
    let loop = makeLoop()
    let task = FlowTask.resolved(7, on: loop)
    #expect(task.state == .succeeded)
    #expect(task.isConcluded)
    #expect(task.result == 7)
    #expect(task.error == nil)
    #expect(text(task) == "7")
    #expect(!task.cancel())
    #expect(task.state == .succeeded)
  }

  @Test("A task that failed has its error and no result")
  func aTaskThatHasFailedHasItsErrorAndNoResult() {
    let loop = makeLoop()
    let error = FlowError(.error, "bad", code: 3)
    let task = FlowTask<Int>.failed(error, on: loop)
    #expect(task.state == .failed)
    #expect(task.isConcluded)
    #expect(task.result == nil)
    #expect(task.error === error)
    #expect(text(task) == "bad")
    #expect(!task.cancel(reason: "late"))
    #expect(task.error === error)
  }

  @Test("Any Swift error becomes an error of the engine")
  func anyErrorOfSwiftIsOneOfTheEngine() {
    let loop = makeLoop()
    struct Broken: Error, CustomStringConvertible { var description: String { "it broke" } }
    let task = FlowTask<Int>.failed(Broken(), on: loop)
    #expect(task.state == .failed)
    #expect(task.error?.kind == .error)
    #expect(task.error?.message == "it broke")
  }

  @Test("An error of kind cancelled is a cancellation")
  func anErrorOfThatKindIsACancellation() {
    let loop = makeLoop()
    let tasks = [
      FlowTask<Int>.cancelled(on: loop), .failed(CancellationError(), on: loop),
      .failed(FlowError.cancelled(), on: loop),
    ]
    for task in tasks {
      #expect(task.state == .cancelled)
      #expect(task.result == nil)
      #expect(task.error?.kind == .cancelled)
      #expect(text(task) == "cancelled")
    }
    #expect(text(FlowTask<Int>.cancelled(reason: "rain", on: loop)) == "cancelled: rain")
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("A result may be optional or empty")
  func aResultMayBeOptionalOrEmpty() {
    let loop = makeLoop()
    let none = FlowTask<Int?>.resolved(nil, on: loop)
    #expect(none.state == .succeeded)
    #expect(none.result == .some(nil))
    let void = FlowTask.resolved((), on: loop)
    #expect(void.result != nil)
    #expect(none.next { $0.result == .some(nil) }.result == true)
  }

  @Test("Tasks are numbered in the order of their creation")
  func tasksAreNumberedInTheOrderOfMaking() {
    let loop = makeLoop()
    let tasks = (0..<3).map { FlowTask.resolved($0, on: loop) }
    #expect(tasks.map(\.id) == [1, 2, 3])
    #expect(FlowTask.resolved(0, on: makeLoop()).id == 1)
  }

  @Test("Observers are notified in order, and removed ones aren't")
  func observersAreToldInOrderAndThoseTakenBackAreNot() {
    let loop = makeLoop()
    var told: [Int] = []
    let jobs = (0..<5).map { number in Job { told.append(number) } }
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    for job in jobs { context.task.observe(job) }
    for index in [0, 3] { context.task.unobserve(jobs[index]) }
    context.task.unobserve(jobs[0])
    #expect(context.trySetResult(1))
    context.task.observe(Job { told.append(9) })
    #expect(told.isEmpty)
    loop.runUntilIdle()
    #expect(told == [1, 2, 4, 9])
  }

  // MARK: Failures that nobody observed

  @Test("A failure is reported at most once, and never after it was observed")
  func aFailureIsReportedOnceAndNotAnyMoreOnceObserved() {
    let loop = makeLoop()
    let first = FlowTask<Int>.failed(FlowError(.error, "one"), on: loop)
    let second = FlowTask<Int>.failed(FlowError(.error, "two"), on: loop)
    _ = FlowTask<Int>.failed(FlowError(.error, "three"), on: loop)
    _ = FlowTask<Int>.cancelled(on: loop)
    _ = FlowTask.resolved(1, on: loop)
    #expect(reports(loop) == ["one", "two", "three"])
    #expect(loop.unobservedFailures.map(\.id) == [1, 2, 3])
    #expect(loop.unobservedFailures.allSatisfy { $0.name == "task" })
    // Reading it in Swift isn't observing it; a program that shows a task says so.
    #expect(first.error != nil)
    #expect(!first.isObserved)
    first.markObserved()
    first.markObserved()
    #expect(first.isObserved)
    #expect(reports(loop) == ["two", "three"])
    // A continuation of any kind observes, and takes the failure on.
    let last = second.nextOnSuccess { $0 + 1 }.finally { _ in }
    #expect(second.isObserved)
    #expect(reports(loop) == ["three", "two"])
    #expect(loop.unobservedFailures.last?.id == last.id)
    last.nextOnError { _ in 0 }
    #expect(reports(loop) == ["three"])
  }

  @Test("A task observed before it fails is never reported")
  func whatIsObservedBeforeItFailsIsNeverReported() {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    context.task.markObserved()
    #expect(context.trySetError(FlowError(.error, "bad")))
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("An awaited task is observed")
  func aTaskThatIsAwaitedIsObserved() throws {
    let loop = makeLoop()
    let failing = loop.task { () async throws -> Int in
      try await loop.sleep(for: .seconds(1))
      throw FlowError(.error, "bad")
    }
    let waiting = loop.task {
      await #expect(throws: FlowError.self) { _ = try await failing.value }
    }
    loop.runUntilIdle()
    #expect(waiting.state == .succeeded)
    #expect(failing.isObserved)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("A followed or joined task is observed")
  func aTaskThatIsFollowedOrJoinedIsObserved() throws {
    let loop = makeLoop()
    let bad = FlowError(.error, "bad")
    let followed = FlowTask<Int>.failed(bad, on: loop)
    let follower = FlowTask.resolved(1, on: loop).next { _ in followed }
    let joined = FlowTask<Int>.failed(bad, on: loop)
    let joins = [
      FlowTask.whenAllSucceed([joined], on: loop).next { _ in 0 },
      FlowTask.whenAllFinish([joined], on: loop).next { _ in 0 },
      try FlowTask.whenAnyFinish([joined], on: loop).next { _ in 0 },
    ]
    #expect(joins.allSatisfy { $0.state == .succeeded })
    #expect(loop.unobservedFailures.map(\.id) == [follower.id])
  }

  // MARK: Delays

  @Test("A delay runs on the loop's clock")
  func aDelayTakesTheTimeOfTheLoopsClock() {
    let loop = makeLoop()
    let begun = loop.now()
    let task = FlowTask.withDelay(.seconds(3600), "late", on: loop)
    var ends: [Int64] = []
    task.finally { _ in ends.append(loop.now() - begun) }
    FlowTask.withDelay(.seconds(0.5), on: loop).finally { _ in ends.append(loop.now() - begun) }
    #expect(task.state == .pending)
    loop.runUntilIdle()
    #expect(task.result == "late")
    #expect(ends == [500_000_000, 3_600_000_000_000])
  }

  @Test("A delay of zero or less ends at once", arguments: [0, -1])
  func aDelayThatIsNotPositiveIsNone(_ seconds: Double) {
    let loop = makeLoop()
    let begun = loop.now()
    let task = FlowTask.withDelay(.seconds(seconds), on: loop)
    loop.runUntilIdle()
    #expect(task.state == .succeeded)
    #expect(loop.now() == begun)
  }

  @Test("A cancelled delay ends at once and lets the loop be idle")
  func aDelayThatIsCancelledEndsAtOnceAndLetsTheLoopBeIdle() {
    let loop = makeLoop()
    let begun = loop.now()
    weak var given: Job?
    var job: Job? = Job {}
    given = job
    let task = FlowTask.withDelay(.seconds(1000), job, on: loop)
    job = nil
    var told = 0
    task.finally { _ in told += 1 }
    #expect(given != nil)
    #expect(task.cancel(reason: "enough"))
    #expect(!task.cancel(reason: "again"))
    #expect(told == 1)
    #expect(task.error?.message == "cancelled: enough")
    #expect(given == nil)
    loop.runUntilIdle()
    #expect(loop.now() == begun)
    #expect(told == 1)
  }

  @Test("A delay that nobody holds still runs")
  func aDelayGoesOnWhenNobodyHoldsIt() {
    let loop = makeLoop()
    var told = 0
    FlowTask.withDelay(.seconds(1), on: loop).finally { _ in told += 1 }
    loop.runUntilIdle()
    #expect(told == 1)
  }
}
