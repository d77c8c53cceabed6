import FlowEngine
import Testing

/// Actors that wait for tasks of a loop on their thread. For the main actor see `EngineOnlyTests`: it has
/// a program whose main thread runs the loop.
@Suite("Actors on the loop's thread")
struct ActorTests {
  @Test("Another actor on the loop's thread awaits tasks and sleeps")
  func anotherActorOnTheLoopsThreadAwaitsTasksAndSleeps() async throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let actor = LoopActor(try thread.mailbox())
    #expect(try await actor.upload() == "u")
  }

  @Test("A cancelled actor throws, and its task continues")
  func anActorThatIsCancelledThrowsAndItsTaskGoesOn() async throws {
    let thread = LoopThread()
    defer { thread.stop() }
    let actor = LoopActor(try thread.mailbox())
    #expect(try await actor.cancelledSleep())
  }
}

private func slowOp() -> Op {
  Op("SlowOp") { (context) async throws in
    try await context.sleep(for: 0.001)
    context.set("url", "u")
  }
}

/// An actor whose code runs on the thread of a loop.
private actor LoopActor {
  private nonisolated let executor: Executor

  init(_ mailbox: Mailbox) { executor = Executor(mailbox) }

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  func upload() async throws -> String? {
    guard let loop = executor.loop else { return nil }
    try await loop.sleep(for: .milliseconds(1))
    assertIsolated()
    let url = try await slowOp().start(on: loop).value.string("url")
    assertIsolated()
    return url
  }

  func cancelledSleep() async throws -> Bool {
    guard let loop = executor.loop else { return false }
    let run = slowOp().start(on: loop)
    withUnsafeCurrentTask { $0?.cancel() }
    do {
      try await loop.sleep(for: .seconds(100))
    } catch is CancellationError {
      assertIsolated()
      return run.state == .pending
    }
    return false
  }

  // Unchecked: jobs alone set and read the loop, on its thread.
  final class Executor: SerialExecutor, @unchecked Sendable {
    private let mailbox: Mailbox
    private(set) var loop: EventLoop?

    init(_ mailbox: Mailbox) { self.mailbox = mailbox }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      mailbox.post { loop in
        self.loop = loop
        job.runSynchronously(on: self.asUnownedSerialExecutor())
        self.loop = nil
      }
    }
  }
}
