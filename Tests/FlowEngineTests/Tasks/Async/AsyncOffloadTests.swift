import FlowEngine
import Glibc
import Testing

/// Computes, on whatever thread, until the flag is raised; false when that takes too long.
@concurrent private func compute(until flag: Flag, away home: UInt) async -> Bool {
  let clock = ContinuousClock()
  let end = clock.now + .seconds(5)
  while !flag.isRaised, clock.now < end { sched_yield() }
  return flag.isRaised && currentThread() != home
}

private func currentThread() -> UInt { UInt(bitPattern: Int(pthread_self())) }

@Suite("Async code off the loop")
struct AsyncOffloadTests {
  private struct Failure: Error {}

  @Test("Awaited concurrent code doesn't hold the loop's thread")
  func awaitedConcurrentCodeDoesNotHoldTheLoop() async {
    let isFree = await onLoopThread { loop in
      let (flag, home) = (Flag(), currentThread())
      let op = Op("ScaleOp") { context in
        let wasAway = try await context.loop.offload { await compute(until: flag, away: home) }
        context.set("ok", wasAway && currentThread() == home)
      }
      let run = op.start(on: loop)
      // The code ends only if the loop runs this meanwhile.
      loop.enqueue { flag.raise() }
      return (try? run.wait()) != nil && run.data.boolean("ok") == true
    }
    #expect(isFree)
  }

  @Test("A cancel reaches code off the loop, and its error the caller")
  func aCancelReachesCodeOffTheLoop() async {
    let texts = await onLoopThread { loop in
      let failed = loop.task {
        try await loop.offload { () async throws -> Int in throw Failure() }
      }
      let stopped = loop.task {
        try await loop.offload { () async -> Bool in
          while !Task.isCancelled { sched_yield() }
          return true
        }
      }
      stopped.cancel()
      loop.runUntilIdle()
      failed.markObserved()
      return ["\(failed.state)", "\(stopped.state)"]
    }
    #expect(texts == ["failed", "cancelled"])
  }

  @Test("Code off the loop sleeps on the loop's clock, also on a virtual one")
  func codeOffTheLoopSleepsOnItsClock() async {
    let seconds = await onLoopThread { _ in
      let loop = makeLoop()
      let clock = loop.clock
      let start = clock.now
      let op = Op("NapOp") { context in
        try await context.loop.offload { try await clock.sleep(for: .seconds(1)) }
      }
      let hasEnded = (try? op.start(on: loop).wait()) != nil
      defer { loop.shutdown() }
      return hasEnded ? start.duration(to: clock.now) : .zero
    }
    #expect(seconds == .seconds(1))
  }

  @Test("Virtual time doesn't advance while code runs off the loop")
  func virtualTimeWaitsForCodeOffTheLoop() async {
    let order = await onLoopThread { _ in
      let loop = makeLoop()
      var order: [String] = []
      let timer = FlowTask<Void>.withDelay(.seconds(0.001), on: loop)
      timer.finally { _ in order.append("timer") }
      loop.task { try await loop.offload { 1 } }.finally { _ in order.append("work") }
      loop.runUntilIdle()
      loop.shutdown()
      return order
    }
    #expect(order == ["work", "timer"])
  }
}
