import FlowEngine
import Glibc
import Testing

@Suite("Threads with a loop")
struct LoopThreadTests {
  private struct Refusal: Error, Equatable { let number: Int }

  @Test("Code is performed on the thread, and gives results and errors")
  func codeIsPerformedOnTheThreadAndGivesResultsAndErrors() async throws {
    let thread = try LoopThread(name: "performer")
    let url = try await thread.perform { loop in
      guard thread.isCurrent else { return "elsewhere" }
      return try await slowOp(0.001).start(on: loop).value.string("url") ?? "none"
    }
    #expect(url == "u")
    #expect(!thread.isCurrent)
    await #expect(throws: Refusal(number: 7)) {
      try await thread.perform { _ in
        await Task.yield()
        throw Refusal(number: 7)
      }
    }
    await thread.shutdown()
  }

  @Test("Work that is handed over runs in order")
  func workThatIsHandedOverRunsInOrder() async throws {
    let thread = try LoopThread()
    let seen = Locked<[Int]>([])
    for number in 0..<100 {
      let isTaken = thread.post { _ in seen.withLock { $0.append(number) } }
      #expect(isTaken)
    }
    try await thread.perform { _ in }
    #expect(seen.withLock { $0 } == Array(0..<100))
    await thread.shutdown()
  }

  @Test("The system knows the name of the thread, up to 15 bytes")
  func theSystemKnowsTheNameOfTheThread() async throws {
    let thread = try LoopThread(name: "a-thread-with-a-long-name")
    let name = try await thread.perform { _ in ownThreadName() }
    #expect(name == "a-thread-with-a")
    #expect(thread.name == "a-thread-with-a-long-name")
    await thread.shutdown()
  }

  @Test("A virtual clock needs no real time")
  func aVirtualClockNeedsNoRealTime() async throws {
    let thread = try LoopThread(clock: VirtualClock())
    let slept = try await thread.perform { loop in
      let begin = loop.now()
      try await loop.sleep(for: .seconds(3600))
      return loop.now() - begin
    }
    #expect(slept == 3_600_000_000_000)
    await thread.shutdown()
  }

  @Test("Code that has waited is released with its result")
  func codeThatHasWaitedIsReleasedWithItsResult() async throws {
    final class Token: Sendable {}
    struct WeakToken: Sendable {
      weak let token: Token?
    }
    let thread = try LoopThread(clock: VirtualClock())
    func waits() async throws -> WeakToken {
      let token = Token()
      return try await thread.perform { loop in
        try await loop.sleep(for: .seconds(1))
        return WeakToken(token: token)
      }
    }
    let released = try await waits()
    await thread.shutdown()
    #expect(released.token == nil)
  }

  @Test("Cancelling the caller cancels the code")
  func cancellingTheCallerCancelsTheCode() async throws {
    let thread = try LoopThread()
    let hasBegun = Flag()
    let waiting = Task {
      try await thread.perform { loop in
        hasBegun.raise()
        try await loop.sleep(for: .seconds(3600))
      }
    }
    await hasBegun.wait()
    waiting.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    await thread.shutdown()
  }

  // MARK: Shutdown

  @Test("A shutdown waits for what runs, and refuses new work")
  func aShutdownWaitsForWhatRunsAndRefusesNewWork() async throws {
    let thread = try LoopThread(name: "served")
    let (hasBegun, mayEnd) = (Flag(), Flag())
    let running = Task {
      try await thread.perform { _ in
        hasBegun.raise()
        await mayEnd.wait()
        return 5
      }
    }
    await hasBegun.wait()
    async let ended: Void = thread.shutdown(grace: .seconds(3600))
    while !thread.isShuttingDown { await Task.yield() }
    #expect(!thread.post { _ in Issue.record("new work runs") })
    let error = await #expect(throws: FlowError.self) { try await thread.perform { _ in } }
    #expect(error?.message == "cancelled: the thread 'served' is shut down")
    mayEnd.raise()
    await ended
    #expect(try await running.value == 5)
  }

  @Test("After the grace a shutdown cancels what runs, and cleanups still run")
  func afterTheGraceAShutdownCancelsWhatRuns() async throws {
    let thread = try LoopThread(name: "stopped")
    let (hasBegun, isCleaned) = (Flag(), Flag())
    let running = Task {
      try await thread.perform { loop in
        let op = Op("WaitOp") { (context) async throws in
          defer { isCleaned.raise() }
          hasBegun.raise()
          try await context.sleep(for: .seconds(3600))
        }
        return try await op.start(on: loop).value.count
      }
    }
    await hasBegun.wait()
    await thread.shutdown(grace: .zero)
    let error = await #expect(throws: FlowError.self) { try await running.value }
    #expect(error?.kind == .cancelled)
    #expect(error?.message == "cancelled: the thread 'stopped' is shut down")
    #expect(isCleaned.isRaised)
  }

  @Test("What nothing can continue any more needs no grace")
  func whatNothingCanContinueNeedsNoGrace() async throws {
    let thread = try LoopThread()
    let running = Task {
      try await thread.perform { loop in
        try await Op("StuckOp") { (context) async throws in
          try await FlowPromise<Int>(on: context.loop, keepsLoop: false).task.wait()
        }.start(on: loop).value.count
      }
    }
    try await thread.perform { loop in while loop.pendingRuns.isEmpty { await Task.yield() } }
    await thread.shutdown(grace: .seconds(3600))
    await #expect(throws: FlowError.self) { try await running.value }
  }

  @Test("What ignores its cancellation is abandoned")
  func whatIgnoresItsCancellationIsAbandoned() async throws {
    let thread = try LoopThread()
    let hasBegun = Flag()
    let running = Task {
      try await thread.perform { _ in
        hasBegun.raise()
        await Self.neverRaised.wait()
      }
    }
    await hasBegun.wait()
    await thread.shutdown(grace: .milliseconds(1))
    await #expect(throws: FlowError.self) { try await running.value }
  }

  /// Keeps the task that waits for it: without a reference that task would be a leak.
  private static let neverRaised = Flag()

  @Test("Several tasks shut a thread down, and the shortest grace holds")
  func severalTasksShutAThreadDown() async throws {
    let thread = try LoopThread()
    let hasBegun = Flag()
    thread.post { loop in
      _ = slowOp(3600).start(on: loop)
      hasBegun.raise()
    }
    await hasBegun.wait()
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<4 { group.addTask { await thread.shutdown(grace: .seconds(3600)) } }
      group.addTask {
        while !thread.isShuttingDown { await Task.yield() }
        await thread.shutdown(grace: .zero)
      }
    }
    await thread.shutdown()
  }

  @Test("Calls for the end run on the thread, the last one first")
  func callsForTheEndRunOnTheThread() async throws {
    let thread = try LoopThread()
    let seen = Locked<[Int]>([])
    for number in 0..<3 {
      thread.atEnd { _ in seen.withLock { $0.append(thread.isCurrent ? number : -1) } }
    }
    thread.atEnd { _ in thread.atEnd { _ in seen.withLock { $0.append(3) } } }
    await thread.shutdown()
    #expect(seen.withLock { $0 } == [2, 1, 0, 3])
    #expect(!thread.atEnd { _ in Issue.record("called after the end") })
  }

  @Test("Code on the thread begins its shutdown without waiting for it")
  func codeOnTheThreadBeginsItsShutdown() async throws {
    let thread = try LoopThread()
    let number = try await thread.perform { _ in
      await thread.shutdown()
      return 3
    }
    #expect(number == 3)
    await thread.shutdown()
  }

  @Test("Synchronous code shuts a thread down")
  func synchronousCodeShutsAThreadDown() throws {
    let thread = try LoopThread()
    let count = Locked(0)
    thread.post { _ in count.withLock { $0 += 1 } }
    thread.shutdownAndWait()
    thread.shutdownAndWait()
    #expect(count.withLock { $0 } == 1)
  }

  @Test("A thread whose last reference is released shuts down by itself")
  func aThreadThatIsReleasedShutsDown() async throws {
    let hasEnded = Flag()
    do {
      let thread = try LoopThread()
      thread.atEnd { _ in hasEnded.raise() }
    }
    await hasEnded.wait()
    #expect(hasEnded.isRaised)
  }

  @Test("Many threads come and go")
  func manyThreadsComeAndGo() async throws {
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<50 {
        group.addTask {
          let thread = try LoopThread()
          let result = try await thread.perform { _ in number }
          await thread.shutdown()
          return result
        }
      }
      return try await group.reduce(0, +)
    }
    #expect(sum == 1225)
  }
}

private func slowOp(_ seconds: Double) -> Op {
  Op("SlowOp") { (context) async throws in
    try await context.sleep(for: .seconds(seconds))
    context.set("url", "u")
  }
}

/// Outside of async code, because `/proc/thread-self` is about the calling thread.
private func ownThreadName() -> String {
  guard let file = fopen("/proc/thread-self/comm", "r") else { return "" }
  defer { fclose(file) }
  var bytes = [CChar](repeating: 0, count: 64)
  guard fgets(&bytes, 64, file) != nil else { return "" }
  return String(decoding: bytes.prefix { $0 > 10 }.map { UInt8($0) }, as: UTF8.self)
}
