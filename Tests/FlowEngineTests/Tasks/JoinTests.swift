import FlowEngine
import Testing

/// Tasks that wait for several others.
@Suite("Joins of tasks")
struct JoinTests {
  private let loop = makeLoop()
  private static let bad = FlowError(.error, "bad")

  private func makeContexts(_ count: Int) -> [FlowPromise<Int>] {
    (0..<count).map { _ in FlowPromise(on: loop, keepsLoop: false) }
  }

  // MARK: All results

  @Test("All results come in the order of the list")
  func allResultsComeInTheOrderOfTheList() {
    let contexts = makeContexts(3)
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    for index in [1, 2, 0] {
      #expect(all.state == .pending)
      #expect(contexts[index].trySetResult(index * 10))
    }
    #expect(all.result == [0, 10, 20])
    #expect(all.firstIndex(is: 1))
  }

  @Test("A list of settled tasks is joined at once")
  func aListOfSettledTasksIsJoinedAtOnce() throws {
    let tasks = (0..<3).map { FlowTask.resolved($0, on: loop) }
    #expect(FlowTask.whenAllSucceed(tasks, on: loop).result == [0, 1, 2])
    #expect(FlowTask.whenAllFinish(tasks, on: loop).result?.map { try? $0.get() } == [0, 1, 2])
    let any = try FlowTask.whenAnyFinish(tasks, on: loop)
    #expect(any.result == 0)
    #expect(any.firstIndex == 0)
  }

  @Test("An empty list succeeds at once but has no first")
  func anEmptyListSucceedsAtOnceButHasNoFirst() throws {
    #expect(FlowTask<Int>.whenAllSucceed([], on: loop).result == [])
    #expect(FlowTask<Int>.whenAllFinish([], on: loop).result?.isEmpty == true)
    let error = #expect(throws: FlowError.self) {
      try FlowTask<Int>.whenAnyFinish([], on: loop)
    }
    #expect(error?.kind == .usage)
  }

  @Test("The first task that fails ends the join at once")
  func theFirstTaskThatFailsEndsTheJoinAtOnce() {
    let contexts = makeContexts(3)
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    #expect(contexts[0].trySetResult(1))
    #expect(contexts[2].trySetError(Self.bad))
    #expect(all.error === Self.bad)
    #expect(contexts[1].task.state == .pending)
    #expect(contexts[1].trySetError(FlowError(.error, "later")))
    // Nobody lost the later one: the join has taken note of all its inputs.
    #expect(loop.unobservedFailures.map(\.id) == [all.id])
  }

  @Test("A task that is cancelled cancels the join")
  func aTaskThatIsCancelledCancelsTheJoin() {
    let contexts = makeContexts(3)
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    #expect(contexts[1].task.cancel(reason: "rain"))
    #expect(text(all) == "cancelled: rain")
    #expect(contexts[0].trySetResult(1))
    #expect(contexts[2].trySetError(Self.bad))
    #expect(text(all) == "cancelled: rain")
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("An input that has failed before ends the join at once")
  func anInputThatHasFailedBeforeEndsTheJoinAtOnce() {
    let context = makeContexts(1)[0]
    let failed = FlowTask<Int>.failed(Self.bad, on: loop)
    let all = FlowTask.whenAllSucceed([context.task, failed, context.task], on: loop)
    #expect(all.error === Self.bad)
    // The one that is left isn't waited for any more: cancelling what is stops it.
    #expect(context.task.next { _ in 0 }.cancel())
    #expect(context.task.state == .cancelled)
  }

  @Test("A task may stand in the list more than once")
  func aTaskMayStandInTheListMoreThanOnce() throws {
    let context = makeContexts(1)[0]
    let list = [context.task, context.task]
    let all = FlowTask.whenAllSucceed(list, on: loop)
    let finished = FlowTask.whenAllFinish(list, on: loop)
    let any = try FlowTask.whenAnyFinish(list, on: loop)
    #expect(context.trySetResult(3))
    #expect(all.result == [3, 3])
    #expect(finished.result?.count == 2)
    #expect(any.firstIndex == 0)
  }

  // MARK: All ends

  @Test("All outcomes come in the order of the list")
  func allOutcomesComeInTheOrderOfTheList() throws {
    let contexts = makeContexts(4)
    let all = FlowTask.whenAllFinish(contexts.map(\.task), on: loop)
    #expect(contexts[3].trySetError(Self.bad))
    #expect(contexts[0].trySetResult(1))
    #expect(contexts[2].tryCancel())
    #expect(all.state == .pending)
    #expect(contexts[1].trySetResult(2))
    let outcomes = try #require(all.result)
    #expect(try outcomes[0].get() == 1)
    #expect(try outcomes[1].get() == 2)
    #expect(throws: FlowError.self) { try outcomes[2].get() }
    guard case .failure(let error) = outcomes[3] else {
      Issue.record("it has failed")
      return
    }
    #expect(error === Self.bad)
    #expect(loop.unobservedFailures.isEmpty)
  }

  // MARK: The first end

  @Test("The first task that ends gives the outcome", arguments: 0..<3)
  func theFirstToEndIsTheOutcome(_ way: Int) throws {
    let contexts = makeContexts(3)
    let any = try FlowTask.whenAnyFinish(contexts.map(\.task), on: loop)
    #expect(any.firstIndex == nil)
    #expect(FlowContextTests.trySettle(contexts[1], way))
    #expect(text(any) == FlowContextTests.outcomes[way])
    #expect(any.firstIndex == 1)
    #expect(contexts[0].trySetResult(7))
    #expect(any.firstIndex == 1)
    #expect(text(any) == FlowContextTests.outcomes[way])
    #expect(contexts[2].task.state == .pending)
  }

  @Test("The shortest of several delays ends the join, and the others continue")
  func theFirstOfDelaysIsTheShortestAndTheOthersGoOn() throws {
    let delays = [3.0, 1, 2].map { FlowTask.withDelay(.seconds($0), $0, on: loop) }
    let any = try FlowTask.whenAnyFinish(delays, on: loop)
    loop.runUntilIdle()
    #expect(any.result == 1)
    #expect(any.firstIndex == 1)
    #expect(delays.allSatisfy { $0.state == .succeeded })
  }

  @Test("A join with a delay is a time limit")
  func aTimeLimitIsAJoinWithADelay() throws {
    let context = makeContexts(1)[0]
    let limit = FlowTask.withDelay(.seconds(5), 0, on: loop)
    let any = try FlowTask.whenAnyFinish([context.task, limit], on: loop)
    loop.runUntilIdle()
    #expect(any.firstIndex == 1)
    #expect(context.task.state == .pending)
  }

  // MARK: Cancelling, giving up

  @Test("Cancelling a join stops none of its inputs")
  func cancellingAJoinStopsNoneOfItsInputs() throws {
    let contexts = makeContexts(2)
    let tasks = contexts.map(\.task)
    let joins: [AnyFlowTask] = [
      FlowTask.whenAllSucceed(tasks, on: loop), FlowTask.whenAllFinish(tasks, on: loop),
      try FlowTask.whenAnyFinish(tasks, on: loop),
      FlowTask.whenAllSucceed(tasks, on: loop).next { _ in 0 },
    ]
    for join in joins {
      #expect(join.cancel(reason: "enough"))
      #expect(join.state == .cancelled)
      #expect(join.error?.message == "cancelled: enough")
    }
    #expect(tasks.allSatisfy { $0.state == .pending })
    for context in contexts { #expect(context.trySetResult(1)) }
    #expect(joins.allSatisfy { $0.state == .cancelled })
  }

  @Test("A join is released with all its inputs")
  func aJoinGoesWithAllItsInputs() {
    weak var gone: FlowTask<[Int]>?
    var contexts = makeContexts(2)
    gone = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    contexts.removeLast()
    // It can't succeed any more, but fail.
    #expect(gone?.state == .pending)
    contexts = []
    #expect(gone == nil)
  }

  @Test("A join that can no longer succeed fails")
  func aJoinThatCannotSucceedAnyMoreCanFail() {
    var contexts = makeContexts(2)
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    contexts.removeFirst()
    #expect(contexts[0].trySetError(Self.bad))
    #expect(all.error === Self.bad)
  }

  @Test("An ended join holds no inputs, and they don't hold it")
  func aJoinThatHasEndedHoldsNeitherInputsNorIsHeld() throws {
    weak var input: FlowTask<Int>?
    weak var join: JoinTask<Int>?
    let pending = makeContexts(1)[0]
    do {
      let contexts = makeContexts(1)
      input = contexts[0].task
      join = try FlowTask.whenAnyFinish([contexts[0].task, pending.task], on: loop)
      #expect(contexts[0].trySetResult(1))
    }
    #expect(input == nil)
    #expect(join == nil)
  }

  @Test("A continuation cancels the join that it waits for but not the inputs")
  func aContinuationCancelsTheJoinThatItWaitsForButNotTheInputs() {
    let contexts = makeContexts(2)
    let all = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    let task = all.next { _ in 0 }
    #expect(task.cancel(reason: "enough"))
    #expect(text(all) == "cancelled: enough")
    #expect(contexts.allSatisfy { $0.task.state == .pending })
  }

  @Test("A continuation of one input may cancel the join")
  func aContinuationOfOneInputMayCancelTheJoin() {
    let contexts = makeContexts(2)
    var all: FlowTask<[Int]>?
    contexts[0].task.next { _ in all?.cancel(reason: "by an input") }
    let join = FlowTask.whenAllSucceed(contexts.map(\.task), on: loop)
    all = join
    #expect(contexts[0].trySetResult(1))
    #expect(text(join) == "cancelled: by an input")
    #expect(contexts[1].trySetResult(1))
    all = nil
  }

  @Test("Runs and programs can be joined")
  func runsAndProgramsCanBeJoined() throws {
    let runs = (1...3).map { waitingOp("WaitOp", Double($0)).start(on: loop) }
    let first = try FlowTask.whenAnyFinish(runs, on: loop)
    let all = FlowTask.whenAllSucceed(runs, on: loop)
    let programs = FlowTask.whenAllFinish(
      ["true", "false"].map { ProcessTask(ProcessRequest([ByteString($0)]), on: loop) }, on: loop)
    loop.runUntilIdle()
    #expect(first.firstIndex == 0)
    #expect(all.result?.count == 3)
    let outcomes = try #require(programs.result)
    #expect(try outcomes[0].get().status == 0)
    #expect(throws: FlowError.self) { try outcomes[1].get() }
    #expect(loop.unobservedFailures.isEmpty)
  }
}

extension FlowTask {
  fileprivate func firstIndex<Element>(is index: Int) -> Bool where Success == [Element] {
    (self as? JoinTask<[Element]>)?.firstIndex == index
  }
}
