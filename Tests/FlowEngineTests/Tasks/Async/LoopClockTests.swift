import FlowEngine
import Testing

@Suite("A loop's clock")
struct LoopClockTests {
  @Test("Swift's own sleeps on the clock of an op take no real time")
  func sleepsOnTheClockOfAnOpTakeNoRealTime() throws {
    let loop = makeLoop()
    let run = Op("NapOp") { context in
      let clock = context.clock
      try await Task.sleep(for: .seconds(3600), clock: clock)
      try await Task.sleep(until: clock.now.advanced(by: .seconds(60)), clock: clock)
      let took = try await clock.measure { try await clock.sleep(for: .seconds(1)) }
      #expect(took == .seconds(1))
    }.start(on: loop)
    try run.wait()
    #expect(run.duration == .seconds(3661))
    #expect(loop.loopClock.isVirtual)
  }

  @Test("Child tasks of an op sleep at the same time")
  func childTasksOfAnOpSleepAtTheSameTime() throws {
    let loop = makeLoop()
    let run = Op("RaceOp") { context in
      let clock = context.clock
      let winner = try await withThrowingTaskGroup(of: Int.self) { group in
        for seconds in [30, 10, 20] {
          group.addTask {
            try await clock.sleep(for: .seconds(seconds))
            return seconds
          }
        }
        defer { group.cancelAll() }
        return try await group.next()
      }
      context.set("winner", Int64(winner ?? 0))
    }.start(on: loop)
    #expect(try run.wait().integer("winner") == 10)
    #expect(run.duration == .seconds(10))
  }

  private struct NapOp: ConcurrentTypedOp {
    let done = Output<Bool>("done")

    func run(_ data: inout ConcurrentOpData<NapOp>) async throws {
      try await data.sleep(for: .seconds(3600))
      try await data.sleep(for: .seconds(-1))
      data.done = true
    }
  }

  @Test("Work of an op on another thread sleeps on the loop's clock")
  func workOfAnOpOnAnotherThreadSleepsOnTheLoopsClock() throws {
    let loop = makeLoop()
    let run = NapOp().start(on: loop)
    #expect(try run.wait().boolean("done") == true)
    #expect(run.duration == .seconds(3600))
    let cancelled = NapOp().start(on: loop)
    loop.schedule(at: loop.now() + 1_000_000_000) { cancelled.cancel() }
    try cancelled.waitUntilEnd()
    #expect(cancelled.state == .cancelled)
    #expect(cancelled.duration == .seconds(1))
  }

  private actor Sleeper {
    func sleep(on clock: some Clock<Duration>) async throws {
      try await clock.sleep(for: .seconds(60))
    }
  }

  @Test("An actor that an op awaits sleeps on the loop's clock")
  func anActorThatAnOpAwaitsSleepsOnTheLoopsClock() throws {
    let loop = makeLoop()
    let sleeper = Sleeper()
    let run = Op("AwaitOp") { context in try await sleeper.sleep(on: context.clock) }.start(
      on: loop)
    try run.wait()
    #expect(run.duration == .seconds(60))
  }

  @Test("A stop of an op ends its sleep")
  func aStopOfAnOpEndsItsSleep() throws {
    let loop = makeLoop()
    let run = Op("NapOp") { context in
      do {
        try await context.clock.sleep(for: .seconds(60))
      } catch {
        #expect(error is CancellationError)
        throw error
      }
    }.with(timeout: .seconds(5)).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.kind == .timeout)
    #expect(run.duration == .seconds(5))
  }

  @Test("Any thread reads the clock and sleeps on it")
  func anyThreadReadsTheClockAndSleepsOnIt() async throws {
    let time = VirtualClock()
    let thread = try LoopThread(clock: time)
    let clock = try await thread.perform { $0.loopClock }
    let begin = clock.now
    try await clock.sleep(for: .seconds(60))
    #expect(begin.duration(to: clock.now) == .seconds(60))
    time.advance(to: clock.now.nanoseconds + 1)
    #expect(begin.duration(to: clock.now) == .seconds(60) + .nanoseconds(1))
    await thread.shutdown()
    await #expect(throws: CancellationError.self) { try await clock.sleep(for: .seconds(1)) }
  }

  @Test("A cancelled task doesn't sleep")
  func aCancelledTaskDoesNotSleep() async throws {
    let thread = try LoopThread()
    let clock = try await thread.perform { $0.loopClock }
    #expect(!clock.isVirtual)
    let sleep = Task { try await clock.sleep(for: .seconds(3600)) }
    sleep.cancel()
    await #expect(throws: CancellationError.self) { try await sleep.value }
    await thread.shutdown()
  }

  @Test("A shutdown of the loop ends sleeps of other threads")
  func aShutdownOfTheLoopEndsSleepsOfOtherThreads() async throws {
    let thread = try LoopThread()
    let clock = try await thread.perform { $0.loopClock }
    let hasBegun = Flag()
    let sleep = Task {
      hasBegun.raise()
      try await clock.sleep(for: .seconds(3600))
    }
    await hasBegun.wait()
    await thread.shutdown(grace: .zero)
    await #expect(throws: CancellationError.self) { try await sleep.value }
  }

  @Test("Times that are too far are the clock's first and last")
  func timesThatAreTooFarAreTheClocksFirstAndLast() {
    let start = LoopClock.Instant(nanoseconds: 10)
    #expect(start.advanced(by: .nanoseconds(-4)).nanoseconds == 6)
    #expect(start.advanced(by: .seconds(Int64.max)).nanoseconds == .max)
    #expect(start.advanced(by: .seconds(Int64.min)).nanoseconds == .min + 10)
    let (first, last) = (
      LoopClock.Instant(nanoseconds: .min), LoopClock.Instant(nanoseconds: .max)
    )
    #expect(first < last)
    #expect(first.duration(to: last) == .nanoseconds(Int64.max) - .nanoseconds(Int64.min))
    #expect(last.advanced(by: .seconds(1)) == last)
  }
}
