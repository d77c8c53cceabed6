import FlowEngine
import Synchronization
import Testing

/// The loop that code uses without naming one.
@Suite("The current loop of a thread")
struct CurrentLoopTests {
  @Test("A thread without a loop gets one, and keeps it")
  func aThreadWithoutALoopGetsOneAndKeepsIt() async {
    let isKept = await onAnotherThread {
      let first = FlowEventLoop.current
      let run = Flow().add(PrintOp("hello world")).add(PrintOp("good bye")).start()
      return run.loop === first && run.state == .succeeded && FlowEventLoop.current === first
    }
    #expect(isKept)
  }

  @Test("Tasks and runs without a loop wait for each other")
  func tasksAndRunsWithoutALoopWaitForEachOther() async {
    let isDone = await onAnotherThread {
      let tasks = (1...3).map { number in
        FlowTask.withDelay(.seconds(0.001)).next { _ in FlowTask.resolved(number) }
      }
      let all = FlowTask.whenAllSucceed(tasks)
      let run = Op("WaitOp") { (context) async throws in
        try await context.sleep(for: .milliseconds(1))
      }.start()
      return all.finalResult() == [1, 2, 3] && (try? run.wait()) != nil
    }
    #expect(isDone)
  }

  @Test("A loop that a thread has made is its current one until the loop ends")
  func aLoopThatAThreadHasMadeIsItsCurrentOne() async {
    let isCurrent = await onAnotherThread {
      var loop: FlowEventLoop? = FlowEventLoop()
      let isFirst = FlowEventLoop.current === loop
      let second = FlowEventLoop()
      let staysFirst = FlowEventLoop.current === loop
      loop?.shutdown()
      loop = nil
      // The other one is current once it has run something.
      second.runUntilIdle()
      let isSecond = FlowEventLoop.current === second
      second.shutdown()
      return isFirst && staysFirst && isSecond && FlowEventLoop.current !== second
    }
    #expect(isCurrent)
  }

  @Test("Within code of a loop that loop is the current one, and the outer one afterwards")
  func withinCodeOfALoopThatLoopIsTheCurrentOne() async {
    let isCurrent = await onAnotherThread {
      let outer = FlowEventLoop()
      let inner = FlowEventLoop()
      let seen = Seen()
      let askOp = Op("AskOp") { seen.add(FlowEventLoop.current === $0.loop) }
      // Executed within `start`, and as a job.
      askOp.start(on: inner)
      inner.enqueue { seen.add(FlowEventLoop.current === inner) }
      outer.enqueue {
        inner.runUntilIdle()
        seen.add(FlowEventLoop.current === outer)
      }
      outer.runUntilIdle()
      seen.add(FlowEventLoop.current === outer)
      return seen.all == [true, true, true, true]
    }
    #expect(isCurrent)
  }

  @Test("On a loop thread the loop of the thread is the current one")
  func onALoopThreadItsLoopIsTheCurrentOne() async throws {
    let thread = try LoopThread(name: "current")
    let isCurrent = try await thread.perform { loop in
      let before = FlowEventLoop.current === loop
      try await loop.sleep(for: .milliseconds(1))
      return before && FlowEventLoop.current === loop
    }
    #expect(isCurrent)
    await thread.shutdown()
  }

  @Test("A loop that is released on another thread is not the current one of its own")
  func aLoopReleasedElsewhereIsNotCurrent() async {
    let isNew = await onAnotherThread {
      let box = LoopBox(FlowEventLoop())
      finishThread { box.loop = nil }
      let made = FlowEventLoop.current
      return made.now() > 0 && FlowEventLoop.current === made
    }
    #expect(isNew)
  }

  @Test("The loop of a thread ends with the thread")
  func theLoopOfAThreadEndsWithTheThread() async {
    let released = Flag()
    finishThread {
      let guardian = Guardian(released)
      FlowEventLoop.current.schedule(at: .max) { _ = guardian }
    }
    #expect(released.isRaised)
  }

  @Test("Continuations and builders may be ignored without a warning")
  func continuationsAndBuildersMayBeIgnored() async {
    let isDone = await onAnotherThread {
      let context = FlowPromise<Int>()
      context.task.next { $0 }
      context.task.finally { _ in }
      context.trySetResult(1)
      context.trySetResult(2)
      let flow = Flow()
      flow.add(PrintOp("a"))
      flow.start()
      flow.start(data: ["n": 1])
      return context.task.result == 1
    }
    #expect(isDone)
  }
}

/// The replies in order; on one thread.
private final class Seen {
  private(set) var all: [Bool] = []

  func add(_ answer: Bool) { all.append(answer) }
}

// One thread hands it to another and waits for that.
private final class LoopBox: @unchecked Sendable {
  var loop: FlowEventLoop?

  init(_ loop: FlowEventLoop) {
    self.loop = loop
  }
}

private final class Guardian {
  private let flag: Flag

  init(_ flag: Flag) {
    self.flag = flag
  }

  deinit { flag.raise() }
}
