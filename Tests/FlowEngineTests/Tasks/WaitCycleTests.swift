import FlowEngine
import Testing

/// A task that waits for itself fails, however far around; nothing else does.
@Suite("Cycles of waits")
struct WaitCycleTests {
  /// A task that others can be made to follow later.
  private func follower(_ loop: FlowEventLoop, of next: @escaping () -> FlowTask<Int>?) -> FlowTask<
    Int
  > {
    FlowTask.withDelay(.seconds(1), on: loop).next { _ in next() ?? .resolved(0, on: loop) }
  }

  @Test("A cycle of followers is found", arguments: [1, 2, 3, 100, 10_000])
  func aCycleOfFollowersIsFound(_ count: Int) {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var tasks: [FlowTask<Int>] = []
    for index in 0..<count { tasks.append(follower(loop) { tasks[(index + 1) % count] }) }
    let clock = FlowTask.withDelay(.seconds(10), on: loop)
    loop.runUntilIdle()
    #expect(clock.isConcluded)
    #expect(tasks.allSatisfy { $0.error?.message == "stalled: [task] waits for itself" })
    tasks = []
  }

  @Test("A cycle after a long chain of waits is found")
  func aCycleBehindManyThatWaitIsFound() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var around: FlowTask<Int>?
    let first = follower(loop) { around }
    let crowd = (0..<500).map { _ in first.next { _ in 1 } }
    around = follower(loop) { .resolved(1, on: loop) }.next { _ in crowd[321] }
    loop.runUntilIdle()
    #expect(around?.result == nil)
    #expect(first.error?.kind == .stalled)
    around = nil
  }

  @Test("A wait for the first of several tasks ends with any that can end")
  func whatWaitsForTheFirstOfSeveralEndsWithOneThatCan() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var other: FlowTask<Int>?
    let race = follower(loop) {
      try? other.map { try .whenAnyFinish([$0, .withDelay(.seconds(5), 7, on: loop)], on: loop) }
    }
    other = race.next { _ in 8 }
    loop.runUntilIdle()
    #expect(race.result == 7)
    #expect(other?.result == 8)
    // With none that can, it never would.
    let stuck = follower(loop) { try? other.map { try .whenAnyFinish([$0, $0], on: loop) } }
    other = stuck.next { _ in 8 }
    loop.runUntilIdle()
    #expect(stuck.error?.kind == .stalled)
    other = nil
  }

  @Test("Async code can't wait for itself")
  func asyncCodeCantWaitForItself() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    var tasks: [FlowTask<Int>] = []
    for index in 0..<3 {
      tasks.append(
        loop.task { () async throws -> Int in
          try await loop.sleep(for: .seconds(1))
          return try await tasks[(index + 1) % 3].value
        })
    }
    var alone: FlowTask<Int>?
    alone = loop.task { () async throws -> Int in
      try await loop.sleep(for: .seconds(1))
      return try await alone?.value ?? 0
    }
    let clock = FlowTask.withDelay(.seconds(10), on: loop)
    loop.runUntilIdle()
    #expect(clock.isConcluded)
    #expect((tasks + [alone]).allSatisfy { $0?.error?.kind == .stalled })
    tasks = []
    alone = nil
  }

  @Test("An async op can't wait for its own run")
  func anAsyncOpCantWaitForItsRun() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let run = Op("AOp") { context in
      try await context.sleep(for: .seconds(1))
      try await context.run.wait()
    }.start(on: loop)
    let clock = FlowTask.withDelay(.seconds(10), on: loop)
    loop.runUntilIdle()
    #expect(clock.isConcluded)
    #expect(run.error?.message == "stalled: [AOp] waits for itself")
  }
}
