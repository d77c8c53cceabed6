import FlowEngine
import Testing

/// Chains of tasks of any length: they are run, cancelled and released without growing the stack, and
/// keep nothing that has settled.
@Suite("Long chains of tasks")
struct TaskChainTests {
  private let loop = makeLoop()
  /// A chain of so many tasks overflows any stack if something recursed.
  private static let length = Scale.count

  private func makeContext() -> FlowPromise<Int> { FlowPromise(on: loop, keepsLoop: false) }

  private func chain(
    of count: Int = length, after task: FlowTask<Int>, _ thread: ContinuationThread = .automatic
  ) -> FlowTask<Int> {
    var task = task
    for _ in 0..<count { task = task.nextOnSuccess(thread) { $0 + 1 } }
    return task
  }

  // MARK: Running

  @Test("A long chain runs", arguments: [ContinuationThread.automatic, .immediate, .main])
  func aLongChainRuns(_ thread: ContinuationThread) {
    let context = makeContext()
    let last = chain(after: context.task, thread)
    #expect(context.trySetResult(0))
    loop.runUntilIdle()
    #expect(last.result == Self.length)
  }

  @Test("An error passes through a long chain")
  func anErrorGoesThroughALongChain() {
    let context = makeContext()
    let last = chain(after: context.task)
    #expect(context.trySetError(FlowError(.error, "bad")))
    loop.runUntilIdle()
    #expect(text(last) == "bad")
    #expect(reports(loop) == ["bad"])
  }

  @Test("A long chain of settled tasks runs while it is built")
  func aLongChainOfSettledTasksRunsWhileItIsMade() {
    let last = chain(after: .resolved(0, on: loop))
    #expect(last.result == Self.length)
  }

  @Test("A long chain of returned tasks runs")
  func aLongChainOfTasksThatAreReturnedRuns() {
    let context = makeContext()
    var last = context.task
    for _ in 0..<Self.length / 2 {
      last = last.nextOnSuccess { [loop] in .resolved($0 + 1, on: loop) }
    }
    #expect(context.trySetResult(0))
    loop.runUntilIdle()
    #expect(last.result == Self.length / 2)
  }

  @Test("A long row of tasks that follow each other ends")
  func aLongRowOfTasksThatFollowEachOtherEnds() {
    let context = makeContext()
    var last = context.task
    let source = FlowTask.resolved(0, on: loop)
    for _ in 0..<Self.length {
      let next = last
      last = source.next { _ in next }
    }
    #expect(last.state == .pending)
    #expect(context.trySetResult(7))
    loop.runUntilIdle()
    #expect(last.result == 7)
  }

  @Test("An endless loop of continuations keeps no memory")
  func aLoopOfContinuationsKeepsNothing() {
    var (count, alive, most) = (0, 0, 0)
    // Each round is a task of its own that ends with the next one.
    func round(_ left: Int) -> FlowTask<Int> {
      let token = Counted { alive += $0 }
      count += 1
      most = max(most, alive)
      return FlowTask.resolved(left, on: loop).next(.main) { [loop] task in
        withExtendedLifetime(token) {}
        return FlowTask.resolved(task.result ?? 0, on: loop)
      }
    }
    func step(_ left: Int) {
      round(left).finallyOnSuccess { if $0 > 1 { step($0 - 1) } }
    }
    step(Self.length / 2)
    loop.runUntilIdle()
    #expect(count == Self.length / 2)
    #expect(alive == 0)
    #expect(most <= 3)
  }

  @Test("Settled tasks of a chain are released as the chain runs")
  func settledTasksOfAChainAreReleasedAsItGoes() {
    let context = makeContext()
    var (alive, most) = (0, 0)
    var last = context.task.next { _ in Counted { alive += $0 } }
    weak let first = last
    for _ in 0..<1000 {
      last = last.next(.main) { task in
        most = max(most, alive)
        withExtendedLifetime(task) {}
        return Counted { alive += $0 }
      }
    }
    #expect(context.trySetResult(1))
    #expect(first?.isConcluded != false)
    loop.runUntilIdle()
    #expect(first == nil)
    #expect(alive == 1)
    #expect(most <= 2)
    #expect(last.isConcluded)
  }

  // MARK: Releasing

  @Test("A long pending chain is released with its first task")
  func aLongPendingChainIsReleasedWithItsFirstTask() {
    var alive = 0
    var context: FlowPromise<Int>? = makeContext()
    if var task = context?.task {
      for _ in 0..<Self.length {
        let token = Counted { alive += $0 }
        task = task.nextOnSuccess { value in withExtendedLifetime(token) { value } }
      }
    }
    #expect(alive == Self.length)
    context = nil
    #expect(alive == 0)
  }

  @Test("A long pending chain of second continuations is released")
  func aLongPendingChainOfSecondContinuationsIsReleasedToo() {
    weak var gone: FlowTask<Int>?
    var context: FlowPromise<Int>? = makeContext()
    if var task = context?.task {
      for _ in 0..<Self.length {
        task.finally { _ in }
        task = task.nextOnSuccess { $0 }
      }
      gone = task
    }
    #expect(gone != nil)
    context = nil
    #expect(gone == nil)
  }

  @Test("A long pending chain of joins is released")
  func aLongPendingChainOfJoinsIsReleasedToo() {
    weak var gone: FlowTask<Int>?
    var context: FlowPromise<Int>? = makeContext()
    if let task = context?.task { gone = joins(after: task) }
    #expect(gone != nil)
    context = nil
    #expect(gone == nil)
  }

  @Test("The end of an abandoned chain stays pending and can be cancelled")
  func theEndOfAChainThatIsGivenUpStaysPendingAndCanBeCancelled() {
    var context: FlowPromise<Int>? = makeContext()
    var last: FlowTask<Int>?
    if let task = context?.task { last = chain(of: 3, after: task) }
    context = nil
    #expect(last?.state == .pending)
    #expect(last?.cancel(reason: "enough") == true)
    #expect(last.map(text) == "cancelled: enough")
  }

  // MARK: Cancelling

  @Test("Cancelling the end of a long chain cancels all of it")
  func cancellingTheEndOfALongChainCancelsAllOfIt() {
    let context = makeContext()
    let last = chain(after: context.task)
    #expect(last.cancel(reason: "enough"))
    loop.runUntilIdle()
    #expect(context.task.error?.message == "cancelled: enough")
    #expect(last.error?.message == "cancelled: enough")
    #expect(!context.trySetResult(1))
  }

  @Test("Cancelling the beginning of a long chain passes through it")
  func cancellingTheBeginningOfALongChainGoesThroughIt() {
    let context = makeContext()
    let last = chain(after: context.task)
    #expect(context.task.cancel(reason: "enough"))
    loop.runUntilIdle()
    #expect(last.error?.message == "cancelled: enough")
  }

  @Test("Cancelling the last of a long row of followers cancels all of it")
  func cancellingTheLastOfALongRowOfFollowersCancelsAllOfIt() {
    let context = makeContext()
    var last = context.task
    let source = FlowTask.resolved(0, on: loop)
    for _ in 0..<Self.length {
      let next = last
      last = source.next { _ in next }
    }
    #expect(last.cancel(reason: "enough"))
    loop.runUntilIdle()
    #expect(context.task.state == .cancelled)
    #expect(last.error?.message == "cancelled: enough")
  }

  // MARK: Joins

  @Test("A long chain of joins ends without recursion")
  func aLongChainOfJoinsEndsWithoutRecursion() {
    let context = makeContext()
    let last = joins(after: context.task)
    #expect(context.trySetResult(1))
    loop.runUntilIdle()
    #expect(last.result == Self.length / 4)
  }

  @Test("A join of very many tasks ends")
  func aJoinOfVeryManyTasksEnds() {
    let contexts = (0..<Self.length / 4).map { _ in makeContext() }
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    for (index, context) in contexts.enumerated().reversed() {
      #expect(all.state == .pending)
      _ = context.trySetResult(index)
    }
    #expect(all.result == Array(0..<contexts.count))
  }

  /// A task that each of many joins has to pass.
  private func joins(after task: FlowTask<Int>) -> FlowTask<Int> {
    var all = FlowTask.whenAllSucceed([task], on: loop)
    var last = task
    for _ in 0..<Self.length / 4 {
      last = all.next(.immediate) { $0.result?.first ?? 0 }
      all = FlowTask.whenAllSucceed([last], on: loop)
    }
    return all.nextOnSuccess { [length = Self.length / 4] in $0 == [1] ? length : 0 }
  }
}
