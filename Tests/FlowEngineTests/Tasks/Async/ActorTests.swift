import FlowEngine
import Testing

/// Actors that wait for tasks of a loop on their thread. For the main actor see `EngineOnlyTests`: it has
/// a program whose main thread runs the loop.
@Suite("Actors on the loop's thread")
struct ActorTests {
  @Test("An actor on a loop's thread awaits tasks and sleeps")
  func anActorOnALoopsThreadAwaitsTasksAndSleeps() async throws {
    let uploads = Uploads(on: try LoopThread())
    #expect(try await uploads.upload() == "u")
    #expect(await uploads.count == 1)
    await uploads.thread.shutdown()
  }

  @Test("A cancelled actor throws, and its task continues")
  func aCancelledActorThrowsAndItsTaskContinues() async throws {
    let uploads = Uploads(on: try LoopThread())
    let waiting = Task { try await uploads.cancelledSleep() }
    #expect(try await waiting.value)
    await uploads.thread.shutdown(grace: .zero)
  }

  @Test("Ops of the loop use an actor on its thread without await")
  func opsOfTheLoopUseAnActorOnItsThread() async throws {
    let uploads = Uploads(on: try LoopThread())
    let run = try await uploads.thread.perform { loop in
      let op = Op("CountOp") { _ in uploads.assumeIsolated { $0.count += 1 } }
      return try await Flow().add(op).add(op).start(on: loop).value.count
    }
    #expect(run == 0)
    #expect(await uploads.count == 2)
    await uploads.thread.shutdown()
  }

  @Test("Actors on one thread call each other, from many tasks")
  func actorsOnOneThreadCallEachOther() async throws {
    let thread = try LoopThread()
    let (first, second) = (Uploads(on: thread), Uploads(on: thread))
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<200 { group.addTask { await first.count(with: second) } }
    }
    #expect(await first.count == 200)
    #expect(await second.count == 200)
    await thread.shutdown()
  }

  @Test("An actor outlives its thread: its code runs elsewhere, without the loop")
  func anActorOutlivesItsThread() async throws {
    let uploads = Uploads(on: try LoopThread())
    await uploads.thread.shutdown()
    #expect(await uploads.increment() == 1)
    let error = await #expect(throws: SystemError.self) { try await uploads.upload() }
    #expect(error?.message == "the thread 'flow' is shut down")
    #expect(error?.isCancellation == true)
  }

  @Test("Nobody waits for ever for an actor whose thread is shutting down")
  func nobodyWaitsForEverForAnActorWhoseThreadIsShuttingDown() async throws {
    for _ in 0..<20 {
      let uploads = Uploads(on: try LoopThread())
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<20 { group.addTask { _ = await uploads.increment() } }
        group.addTask { await uploads.thread.shutdown(grace: .zero) }
      }
      #expect(await uploads.count == 20)
    }
  }
}

private func slowOp() -> Op {
  Op("SlowOp") { (context) async throws in
    try await context.sleep(for: .seconds(0.001))
    context.set("url", "u")
  }
}

private actor Uploads: FlowActor {
  nonisolated let thread: LoopThread
  var count = 0

  init(on thread: LoopThread) { self.thread = thread }

  func increment() -> Int {
    count += 1
    return count
  }

  func count(with other: Uploads) async {
    _ = await other.increment()
    assertIsolated()
    count += 1
  }

  func upload() async throws -> String? {
    count += 1
    try await loop.sleep(for: .milliseconds(1))
    assertIsolated()
    let url = try await slowOp().start(on: loop).value.string("url")
    assertIsolated()
    return url
  }

  func cancelledSleep() async throws -> Bool {
    let run = slowOp().start(on: try loop)
    withUnsafeCurrentTask { $0?.cancel() }
    do {
      try await loop.sleep(for: .seconds(100))
    } catch is CancellationError {
      assertIsolated()
      return run.state == .pending
    }
    return false
  }
}
