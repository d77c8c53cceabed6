import FlowEngine
import Testing

/// When and where continuations run.
@Suite("Threads of continuations")
struct ContinuationThreadTests {
  private let loop = makeLoop()

  @Test("Continuations run in the order in which they were added")
  func continuationsRunInTheOrderInWhichTheyWereAdded() {
    for thread in [ContinuationThread.automatic, .immediate, .main] {
      let context = FlowPromise<Int>(on: loop, keepsLoop: false)
      var order: [Int] = []
      for number in 0..<100 { context.task.next(thread) { _ in order.append(number) } }
      #expect(context.trySetResult(1))
      loop.runUntilIdle()
      #expect(order == Array(0..<100))
    }
  }

  @Test("A continuation of a settled task runs at once unless it is posted")
  func aContinuationOfASettledTaskRunsAtOnceUnlessItIsPosted() {
    let task = FlowTask.resolved(1, on: loop)
    #expect(task.next { _ in 2 }.result == 2)
    #expect(task.next(.immediate) { _ in 2 }.result == 2)
    let posted = task.next(.main) { _ in 2 }
    #expect(posted.state == .pending)
    loop.runUntilIdle()
    #expect(posted.result == 2)
  }

  @Test("A posted continuation runs after all ready jobs")
  func whatIsPostedComesBehindAllThatIsReady() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var order: [String] = []
    context.task.nextOnSuccess(.main) { _ in order.append("main") }
    context.task.nextOnSuccess { _ in order.append("automatic") }
    context.task.nextOnSuccess(.immediate) { _ in order.append("immediate") }
    loop.enqueue { order.append("ready") }
    #expect(context.trySetResult(1))
    #expect(order == ["automatic", "immediate"])
    loop.enqueue { order.append("later") }
    loop.runUntilIdle()
    #expect(order == ["automatic", "immediate", "ready", "main", "later"])
  }

  @Test("An automatic continuation is immediate up to a depth of twenty and posted below it")
  func automaticIsImmediateUntilTwentyDeepThenPosted() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var task = context.task
    var ran = 0
    for _ in 0..<50 {
      task = task.nextOnSuccess { value in
        ran += 1
        return value + 1
      }
    }
    #expect(context.trySetResult(0))
    #expect(ran == 20)
    // The posted continuation runs after the ready ones, and again has as many inside it.
    #expect(loop.turn(mayBlock: false) == .worked)
    #expect(ran == 41)
    #expect(loop.turn(mayBlock: false) == .worked)
    #expect(ran == 50)
    #expect(task.result == 50)
    #expect(loop.turn(mayBlock: false) == .idle)
  }

  @Test("An immediate chain of any length runs before anything else")
  func immediateIsDoneBeforeAnythingElseHoweverLongTheChain() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var task = context.task
    for _ in 0..<1000 { task = task.nextOnSuccess(.immediate) { $0 + 1 } }
    loop.enqueue { #expect(task.result == 1000) }
    #expect(context.trySetResult(0))
    #expect(task.result == 1000)
    loop.runUntilIdle()
  }

  @Test("Deep immediate continuations of one task keep their order")
  func immediateContinuationsOfOneTaskKeepTheirOrderWhereTheyAreDeep() {
    var order: [Int] = []
    var settle: () -> Void = {}
    for depth in (0..<30).reversed() {
      let context = FlowPromise<Int>(on: loop, keepsLoop: false)
      let inner = settle
      for number in 0..<3 {
        context.task.next(.immediate) { _ in
          order.append(depth * 10 + number)
          if number == 2 { inner() }
        }
      }
      settle = { #expect(context.trySetResult(1)) }
    }
    settle()
    #expect(order == (0..<30).flatMap { depth in (0..<3).map { depth * 10 + $0 } })
    #expect(loop.turn(mayBlock: false) == .idle)
  }

  @Test("Continuations added by a continuation run after the existing ones")
  func whatAContinuationAddsComesAfterThoseThatWereThere() {
    let context = FlowPromise<Int>(on: loop, keepsLoop: false)
    var order: [String] = []
    context.task.next { task in
      order.append("first")
      // It has settled, so this one runs at once.
      task.next { _ in order.append("added") }
      task.next(.main) { _ in order.append("posted") }
    }
    context.task.next { _ in order.append("second") }
    #expect(context.trySetResult(1))
    loop.runUntilIdle()
    #expect(order == ["first", "added", "second", "posted"])
  }

  @Test("The depth counts one stack, not the whole loop")
  func theDepthIsThatOfOneStackNotOfTheLoop() {
    // Each of a hundred, one after the other, is as immediate as the first.
    let task = FlowTask.resolved(1, on: loop)
    for _ in 0..<100 { #expect(task.next { _ in 1 }.isConcluded) }
  }

  @Test("Continuations of a loop that is shut down don't run")
  func continuationsOfALoopThatIsShutDownDoNotRun() {
    var calls = 0
    let settled = FlowTask.resolved(1, on: loop)
    let context = FlowPromise<Int>(on: loop)
    context.task.next { _ in calls += 1 }
    loop.shutdown()
    settled.next { _ in calls += 1 }
    #expect(context.trySetResult(1))
    loop.runUntilIdle()
    #expect(calls == 0)
  }
}
