import FlowEngine
import Glibc
import Testing

/// Continuations off the loop's thread.
@Suite("Continuations on queues")
struct ContinuationQueueTests {
  private struct Failure: Error {}

  /// Whether the calling thread isn't `thread`.
  private static func isElsewhere(_ thread: UInt) -> Bool {
    UInt(bitPattern: Int(pthread_self())) != thread
  }

  private static var thread: UInt { UInt(bitPattern: Int(pthread_self())) }

  @Test("A continuation on the background queue runs on another thread and returns to the loop")
  func aBackgroundContinuationRunsOnAnotherThread() async {
    let isDone = await onLoopThread { loop in
      let own = Self.thread
      let task = FlowTask.resolved(20, on: loop)
        .nextOnSuccess(.background) { number in
          Self.isElsewhere(own) ? number * 2 : 0
        }
        .nextOnSuccess { number in
          Self.isElsewhere(own) ? 0 : number + 2
        }
      return task.finalResult() == 42
    }
    #expect(isDone)
  }

  @Test("A continuation on a queue gets any outcome, an error, or the result")
  func aContinuationOnAQueueGetsTheOutcome() async {
    let outcomes = await onLoopThread { loop in
      let failed = FlowTask<Int>.failed(Failure(), on: loop)
      let ended = failed.next(.background) { outcome in
        if case .failure = outcome { "failed" } else { "succeeded" }
      }
      let mended = failed.nextOnError(.background) { error in error.code == 0 ? 7 : 8 }
      let passed = failed.nextOnSuccess(.background) { $0 }
      let finished = FlowTask.resolved(5, on: loop).finally(.background) { outcome in
        if case .failure = outcome { throw Failure() }
      }
      let spoiled = FlowTask.resolved(5, on: loop).finallyOnSuccess(.background) { _ in
        throw Failure()
      }
      loop.runUntilIdle()
      for task in [passed, spoiled] { task.markObserved() }
      return [
        ended.result ?? "", "\(mended.state)", "\(passed.state)", "\(finished.result ?? 0)",
        "\(spoiled.state)",
      ]
    }
    #expect(outcomes == ["failed", "succeeded", "failed", "5", "failed"])
  }

  @Test("A serial queue runs its work in order, one piece at a time")
  func aSerialQueueRunsItsWorkInOrder() async {
    let queue = WorkQueue("images")
    let state = Locked<(order: [Int], running: Int, most: Int)>(([], 0, 0))
    let results = await onLoopThread { loop in
      let tasks = (0..<50).map { number in
        FlowTask.resolved(number, on: loop).nextOnSuccess(queue) { number in
          state.withLock {
            $0.order.append(number)
            $0.running += 1
            $0.most = max($0.most, $0.running)
          }
          sched_yield()
          state.withLock { $0.running -= 1 }
          return number
        }
      }
      return FlowTask.whenAllSucceed(tasks).finalResult() ?? []
    }
    #expect(queue.name == "images")
    #expect(results == Array(0..<50))
    #expect(state.withLock { $0.order } == Array(0..<50))
    #expect(state.withLock { $0.most } == 1)
  }

  @Test("A stop drops work of a queue that hasn't begun")
  func aStopDropsWorkThatHasNotBegun() async {
    let queue = WorkQueue("held")
    let (gate, ran) = (Gate(2), Flag())
    let states = await onLoopThread { loop in
      let first = FlowTask.resolved(1, on: loop).nextOnSuccess(queue) { _ in gate.wait() }
      let second = FlowTask.resolved(2, on: loop).nextOnSuccess(queue) { _ in ran.raise() }
      second.cancel()
      let dropped = second.state
      gate.wait()
      loop.runUntilIdle()
      return [dropped, first.state, second.state]
    }
    #expect(states == [.cancelled, .succeeded, .cancelled])
    #expect(!ran.isRaised)
  }

  @Test("A task whose work runs ends as stopped after the work has returned")
  func aStopWaitsForWorkThatRuns() async {
    let (begun, gate) = (Gate(2), Gate(2))
    let states = await onLoopThread { loop in
      let task = FlowTask.resolved(1, on: loop).nextOnSuccess(.background) { number in
        begun.wait()
        gate.wait()
        return number
      }
      begun.wait()
      task.cancel()
      loop.runReady()
      let during = task.isConcluded
      gate.wait()
      loop.runUntilIdle()
      return ["\(during)", "\(task.state)"]
    }
    #expect(states == ["false", "cancelled"])
  }

  @Test("Virtual time doesn't advance while work of a queue runs")
  func virtualTimeWaitsForWorkOfAQueue() async {
    let order = await onLoopThread { _ in
      let loop = makeLoop()
      var order: [String] = []
      let timer = FlowTask<Void>.withDelay(.seconds(0.001), on: loop)
      timer.finally { _ in order.append("timer") }
      FlowTask.resolved(1, on: loop).nextOnSuccess(.background) { $0 }
        .finally { _ in order.append("work") }
      loop.runUntilIdle()
      loop.shutdown()
      return order
    }
    #expect(order == ["work", "timer"])
  }
}

extension FlowEventLoop {
  /// Runs what is ready, without waiting.
  fileprivate func runReady() {
    while turn(mayBlock: false) == .worked {}
  }
}
