import FlowEngine
import Testing

/// The use that continuations make of the tasks that they follow.
@Suite("Continuations")
struct ContinuationTests {
  private let loop = makeLoop()
  private static let bad = FlowError(.error, "bad")

  /// A task of each outcome, settled before or afterwards.
  private func sources() -> [(task: FlowTask<Int>, settle: () -> Void)] {
    let contexts = (0..<3).map { _ in FlowPromise<Int>(on: loop, keepsLoop: false) }
    let later: [(FlowTask<Int>, () -> Void)] = [
      (contexts[0].task, { _ = contexts[0].trySetResult(1) }),
      (contexts[1].task, { _ = contexts[1].trySetError(Self.bad) }),
      (contexts[2].task, { _ = contexts[2].tryCancel() }),
    ]
    let before: [(FlowTask<Int>, () -> Void)] = [
      (.resolved(1, on: loop), {}), (.failed(Self.bad, on: loop), {}),
      (.cancelled(on: loop), {}),
    ]
    return before + later
  }

  /// The outcomes of what `continued` makes of each source, and whether its code was run.
  private func ends<New>(
    _ continued: (FlowTask<Int>, _ note: @escaping () -> Void) -> FlowTask<New>
  ) -> [String] {
    sources().map { task, settle in
      var calls = 0
      let next = continued(task) { calls += 1 }
      settle()
      loop.runUntilIdle()
      #expect(next.isConcluded)
      return "\(text(next)) \(calls)"
    }
  }

  // MARK: Outcomes

  @Test("next runs in any case, and its value is the result")
  func nextRunsInAnyCaseAndItsValueIsTheResult() {
    let ends = ends { task, note in
      task.next { before in
        note()
        #expect(before === task)
        return "after \(text(before))"
      }
    }
    #expect(
      ends == twice(["after 1 1", "after bad 1", "after cancelled 1"]))
  }

  @Test("next_on_success runs after a success, and other outcomes pass through")
  func nextOnSuccessRunsAfterASuccessAndTheRestPassesThrough() {
    let ends = ends { task, note in
      task.nextOnSuccess { value in
        note()
        return value + 1
      }
    }
    #expect(ends == twice(["2 1", "bad 0", "cancelled 0"]))
  }

  @Test("next_on_error runs after a failure but not after a cancellation")
  func nextOnErrorRunsAfterAFailureButNotAfterACancellation() {
    let ends = ends { task, note in
      task.nextOnError { error in
        note()
        #expect(error === Self.bad)
        return 5
      }
    }
    #expect(ends == twice(["1 0", "5 1", "cancelled 0"]))
  }

  @Test("finally runs in any case and keeps the outcome")
  func finallyRunsInAnyCaseAndKeepsTheOutcome() {
    let ends = ends { task, note in task.finally { _ in note() } }
    #expect(ends == twice(["1 1", "bad 1", "cancelled 1"]))
  }

  @Test("finally_on_success runs after a success and keeps the outcome")
  func finallyOnSuccessRunsAfterASuccessAndKeepsTheOutcome() {
    let ends = ends { task, note in
      task.finallyOnSuccess { value in
        #expect(value == 1)
        note()
      }
    }
    #expect(ends == twice(["1 1", "bad 0", "cancelled 0"]))
  }

  @Test("A thrown error fails the task")
  func anErrorThatIsThrownFailsTheTask() {
    let thrown = FlowError(.error, "thrown", code: 9)
    func fail(_ note: () -> Void) throws -> Int {
      note()
      throw thrown
    }
    #expect(
      ends { task, note in task.next { _ in try fail(note) } }
        == twice(["thrown 1", "thrown 1", "thrown 1"]))
    #expect(
      ends { task, note in task.nextOnSuccess { _ in try fail(note) } }
        == twice(["thrown 1", "bad 0", "cancelled 0"]))
    #expect(
      ends { task, note in task.nextOnError { _ in try fail(note) } }
        == twice(["1 0", "thrown 1", "cancelled 0"]))
    #expect(
      ends { task, note in task.finally { _ in _ = try fail(note) } }
        == twice(["thrown 1", "thrown 1", "thrown 1"]))
    #expect(
      ends { task, note in task.finallyOnSuccess { _ in _ = try fail(note) } }
        == twice(["thrown 1", "bad 0", "cancelled 0"]))
    #expect(FlowTask.resolved(1, on: loop).next { _ in try fail {} }.error === thrown)
  }

  @Test("A thrown cancellation cancels the task")
  func aCancellationThatIsThrownCancelsTheTask() {
    let source = FlowTask.resolved(1, on: loop)
    let tasks = [
      source.next { _ in throw CancellationError() },
      source.finally { _ in throw FlowError.cancelled() },
    ]
    #expect(tasks.allSatisfy { $0.state == .cancelled })
    #expect(loop.unobservedFailures.isEmpty)
  }

  // MARK: Tasks that are returned

  @Test("A returned task is followed")
  func aTaskThatIsReturnedIsFollowed() {
    for (index, (followed, settle)) in sources().enumerated() {
      let expected = ["1", "bad", "cancelled"][index % 3]
      let source = FlowTask.resolved(0, on: loop)
      let failed = FlowTask<Int>.failed(Self.bad, on: loop)
      let tasks = [
        source.next { _ in followed }, source.nextOnSuccess { _ in followed },
        failed.nextOnError { _ in followed },
        source.next { _ in followed.next { _ in followed } },
      ]
      for task in tasks { #expect(task.isConcluded == followed.isConcluded) }
      settle()
      loop.runUntilIdle()
      #expect(tasks.map(text) == Array(repeating: expected, count: tasks.count))
    }
  }

  @Test("A returned task may still be pending")
  func whatIsReturnedMayTakeItsTime() {
    let begun = loop.now()
    let task = FlowTask.withDelay(.seconds(1), 5, on: loop)
      .nextOnSuccess { FlowTask.withDelay(.seconds(2), $0 + 1, on: loop) }
      .nextOnSuccess { FlowTask.withDelay(.seconds(3), "\($0)", on: loop) }
    #expect(task.state == .pending)
    loop.runUntilIdle()
    #expect(task.result == "6")
    #expect(loop.now() - begun == 6_000_000_000)
  }

  @Test("A chain skips continuations for other outcomes")
  func aChainSkipsWhatDoesNotApply() {
    var calls: [String] = []
    let task = FlowTask.resolved(1, on: loop)
      .nextOnSuccess { value -> Int in
        calls.append("a\(value)")
        throw Self.bad
      }
      .nextOnSuccess { value -> Int in
        calls.append("b")
        return value
      }
      .finallyOnSuccess { _ in calls.append("c") }
      .nextOnError { error in
        calls.append("d \(error)")
        return 4
      }
      .nextOnError { _ in
        calls.append("e")
        return 0
      }
      .finally { calls.append("f \(text($0))") }
    #expect(calls == ["a1", "d bad", "f 4"])
    #expect(task.result == 4)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Only the end of a failing chain is reported")
  func onlyTheEndOfAChainThatFailsIsReported() {
    let task = FlowTask<Int>.failed(Self.bad, on: loop).nextOnSuccess { $0 }.finally { _ in }
    #expect(loop.unobservedFailures.map(\.id) == [task.id])
    #expect(task.error === Self.bad)
  }

  @Test("A task may have several continuations")
  func aTaskBranchesToSeveral() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    let branches = (0..<5).map { number in context.task.nextOnSuccess { $0 * number } }
    #expect(context.trySetResult(3))
    #expect(branches.map(\.result) == [0, 3, 6, 9, 12])
  }

  // MARK: Tasks that wait for themselves

  @Test("A task that follows itself fails")
  func aTaskThatFollowsItselfFails() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var itself: FlowTask<Int>?
    let task = context.task.next { _ in try #require(itself) }
    itself = task
    #expect(context.trySetResult(1))
    #expect(task.error?.kind == .stalled)
    #expect(task.error?.message == "stalled: [task] waits for itself")
    #expect(loop.unobservedFailures.isEmpty)
    itself = nil
  }

  @Test("A cycle of tasks fails", arguments: [2, 3, 10])
  func aCycleOfTasksFails(_ count: Int) {
    let contexts = (0..<count).map { _ in FlowPromise<Int>(on: loop, keepsLoop: false) }
    var tasks: [FlowTask<Int>] = []
    for (index, context) in contexts.enumerated() {
      tasks.append(context.task.next { _ in tasks[(index + 1) % count] })
    }
    for context in contexts {
      #expect(tasks.allSatisfy { $0.state == .pending })
      #expect(context.trySetResult(1))
    }
    loop.runUntilIdle()
    #expect(tasks.allSatisfy { $0.error?.kind == .stalled })
    tasks = []
  }

  @Test("A task that follows its own continuation fails")
  func aTaskThatFollowsWhatComesAfterItFails() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var last: FlowTask<[Int]>?
    let task = context.task.next { _ in try #require(last).next { $0.result?.first ?? 0 } }
    let ended = task.finally { _ in }
    last = FlowTask.whenAllSucceed([ended, .resolved(2, on: loop)], on: loop)
    #expect(context.trySetResult(1))
    loop.runUntilIdle()
    #expect(task.error?.kind == .stalled)
    #expect(last?.error?.kind == .stalled)
    last = nil
  }

  @Test("A task with other continuations can be followed")
  func whatOthersWaitForAsWellCanBeFollowed() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    let shared = context.task.nextOnSuccess { $0 + 1 }
    let source = FlowTask.resolved(0, on: loop)
    let tasks = (0..<3).map { _ in source.next { _ in shared } }
    let around = source.next { _ in tasks[0] }
    #expect(context.trySetResult(1))
    #expect((tasks + [around]).map(\.result) == [2, 2, 2, 2])
  }

  private func twice(_ list: [String]) -> [String] { list + list }
}
