import FlowEngine
import Glibc
import Testing

/// The producer's side of a task: it is settled exactly once, from any thread.
@Suite("Contexts that settle tasks")
struct FlowContextTests {
  /// The ways to settle, with the outcome of each.
  static let outcomes = ["1", "bad", "cancelled"]

  static func trySettle(_ context: FlowPromise<Int>, _ way: Int) -> Bool {
    switch way {
    case 0: context.trySetResult(1)
    case 1: context.trySetError(FlowError(.error, "bad"))
    default: context.tryCancel()
    }
  }

  static func settle(_ context: FlowPromise<Int>, _ way: Int) throws(FlowError) {
    switch way {
    case 0: try context.setResult(1)
    case 1: try context.setError(FlowError(.error, "bad"))
    default: try context.cancel()
    }
  }

  @Test(
    "The first caller settles the context, and later callers learn that they didn't",
    arguments: 0..<3, 0..<3)
  func theFirstToSettleWinsAndTheOtherIsTold(_ first: Int, _ second: Int) throws {
    let loop = makeLoop()
    let tried = FlowPromise<Int>(on: loop)
    #expect(tried.task.state == .pending)
    #expect(Self.trySettle(tried, first))
    #expect(text(tried.task) == Self.outcomes[first])
    #expect(!Self.trySettle(tried, second))
    #expect(text(tried.task) == Self.outcomes[first])
    let error = #expect(throws: FlowError.self) { try Self.settle(tried, second) }
    #expect(error?.kind == .usage)
    #expect(error?.message == "can't set the result of a settled task")
    let set = FlowPromise<Int>(on: loop)
    try Self.settle(set, first)
    #expect(text(set.task) == Self.outcomes[first])
    #expect(!Self.trySettle(set, second))
    #expect(throws: FlowError.self) { try Self.settle(set, second) }
    #expect(text(set.task) == Self.outcomes[first])
  }

  @Test("An error of kind cancelled cancels the task")
  func anErrorOfThatKindCancels() throws {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop)
    try context.setError(CancellationError())
    #expect(context.task.state == .cancelled)
    #expect(loop.unobservedFailures.isEmpty)
  }

  @Test("Continuations run inside the settling call on the loop's thread")
  func continuationsRunWithinTheCallOnTheLoopsThread() throws {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop)
    var seen: [Int] = []
    context.task.nextOnSuccess { seen.append($0) }
    context.task.next { task in
      // It has settled already, so what is done here comes too late.
      #expect(!context.trySetResult(2))
      #expect(!task.cancel())
    }
    try context.setResult(1)
    #expect(seen == [1])
  }

  @Test("A cancelled task can't be settled any more", arguments: 0..<3)
  func aTaskThatWasCancelledCannotBeSettledAnyMore(_ way: Int) {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop)
    let task = context.task
    #expect(task.cancel(reason: "enough"))
    #expect(!Self.trySettle(context, way))
    #expect(throws: FlowError.self) { try Self.settle(context, way) }
    #expect(task.error?.message == "cancelled: enough")
  }

  // MARK: The loop

  @Test("The loop isn't idle while a context is open")
  func theLoopIsNotIdleWhileAContextIsOpen() {
    let loop = makeLoop()
    var context: FlowPromise<Int>? = FlowPromise(on: loop)
    #expect(loop.turn(mayBlock: false) == .waiting)
    let task = context?.task
    context = nil
    #expect(loop.turn(mayBlock: false) == .idle)
    #expect(task?.state == .pending)
    let bare = FlowPromise<Int>(on: loop, keepsLoop: false)
    #expect(loop.turn(mayBlock: false) == .idle)
    #expect(bare.trySetResult(1))
  }

  @Test("A held context doesn't keep the loop busy after its task has settled", arguments: 0..<3)
  func theLoopIsIdleOnceTheTaskHasSettledThoughTheContextIsHeld(_ way: Int) {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop)
    #expect(Self.trySettle(context, way))
    #expect(loop.turn(mayBlock: false) == .idle)
    #expect(context.task.isConcluded)
  }

  @Test("A held context doesn't keep the loop busy after its task was cancelled")
  func theLoopIsIdleOnceTheTaskWasCancelledThoughTheContextIsHeld() {
    let loop = makeLoop()
    let context = FlowPromise<Int>(on: loop)
    #expect(context.task.cancel())
    #expect(loop.turn(mayBlock: false) == .idle)
    #expect(!context.tryCancel())
  }

  @Test("A virtual clock stands still while a context is open")
  func aVirtualClockStandsStillWhileAContextIsOpen() {
    let loop = makeLoop()
    let begun = loop.now()
    let context = FlowPromise<Int>(on: loop)
    var ends: [Int64] = []
    context.task.finally { _ in ends.append(loop.now() - begun) }
    FlowTask.withDelay(.seconds(1), on: loop).finally { _ in ends.append(loop.now() - begun) }
    let thread = JoinableThread {
      usleep(1000)
      _ = context.trySetResult(1)
    }
    loop.runUntilIdle()
    #expect(ends == [0, 1_000_000_000])
    // An object that the thread releases last is destroyed on the loop's thread.
    thread.join()
    loop.runUntilIdle()
  }

  // MARK: Other threads

  @Test("A task settled on another thread ends on its loop", arguments: 0..<3)
  func aTaskThatIsSettledElsewhereEndsOnItsLoop(_ way: Int) async {
    let isHome = await onLoopThread { loop in
      let home = pthread_self()
      let context = FlowPromise<Int>(on: loop)
      let task = context.task
      var isHome = false
      task.finally(.immediate) { _ in isHome = pthread_self() == home }
      startThread { _ = Self.trySettle(context, way) }
      loop.runUntilIdle()
      return isHome && text(task) == Self.outcomes[way]
    }
    #expect(isHome)
  }

  @Test("Tasks settled on another thread end in the order of the calls")
  func whatIsSettledElsewhereEndsInTheOrderOfTheCalls() async {
    let order = await onLoopThread { loop in
      let contexts = (0..<100).map { _ in FlowPromise<Int>(on: loop) }
      var order: [Int] = []
      for context in contexts { context.task.nextOnSuccess { order.append($0) } }
      startThread {
        for (index, context) in contexts.enumerated().reversed() {
          _ = context.trySetResult(index)
        }
      }
      loop.runUntilIdle()
      return order
    }
    #expect(order == (0..<100).reversed())
  }

  @Test("Exactly one of many threads settles the context")
  func exactlyOneOfManyThreadsWins() async {
    for round in 0..<50 {
      let isRight = await onLoopThread { loop in
        let context = FlowPromise<Int>(on: loop)
        let wins = Locked<[Int]>([])
        let gate = Gate(4)
        for number in 0..<3 {
          let external = loop.mailbox.begin()
          startThread {
            gate.wait()
            if context.trySetResult(number) { wins.withLock { $0.append(number) } }
            external.end()
          }
        }
        var calls = 0
        context.task.finally { _ in calls += 1 }
        gate.wait()
        let isOwn: Bool
        switch round % 3 {
        case 0: isOwn = context.task.cancel() && context.task.state == .cancelled
        case 1: isOwn = context.trySetResult(3)
        default: isOwn = context.trySetError(FlowError(.error, "bad"))
        }
        loop.runUntilIdle()
        let elsewhere = wins.withLock { $0 }
        if elsewhere.isEmpty { return isOwn && calls == 1 }
        return !isOwn && calls == 1 && elsewhere.count == 1
          && context.task.result == elsewhere.first
      }
      #expect(isRight)
    }
  }

  @Test("A context released on another thread releases its task and lets the loop be idle")
  func aContextThatIsTokenElsewhereLetsTheLoopBeIdleAndItsTaskGo() async {
    let isGone = await onLoopThread { loop in
      weak var gone: Token?
      do {
        var context: FlowPromise<Int>? = FlowPromise(on: loop)
        let token = Token()
        gone = token
        // The task holds its continuation, that the token.
        context?.task.next { _ in token.touch() }
        let sent = Locked(context)
        context = nil
        startThread { sent.withLock { $0 = nil } }
      }
      loop.runUntilIdle()
      return gone == nil
    }
    #expect(isGone)
  }

  @Test("A context outlives its loop")
  func aContextOutlivesItsLoop() {
    weak var gone: FlowEventLoop?
    do {
      let loop = makeLoop()
      gone = loop
      let context = FlowPromise<Int>(on: loop)
      let other = FlowPromise<Int>(on: loop)
      loop.shutdown()
      #expect(context.trySetResult(1))
      #expect(context.task.result == 1)
      // Nobody comes to it any more.
      finishThread {
        #expect(other.trySetResult(1))
        #expect(!other.tryCancel())
      }
      #expect(other.task.state == .pending)
    }
    #expect(gone == nil)
  }
}

/// Something that is released.
final class Token: Sendable {
  func touch() {}
}
