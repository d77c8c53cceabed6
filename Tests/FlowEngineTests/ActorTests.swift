import FlowEngine
import Glibc
import Testing

/// Actors that wait for tasks of a loop on their thread.
@Suite struct ActorTests {
  @Test @MainActor func theMainActorAwaitsTasksAndSleeps() async throws {
    let loop = makeLoop()
    let begun = loop.now()
    let op = Op("SlowOp") { (context) async throws in
      try await context.sleep(for: 5)
      context.set("url", "u")
    }
    let code = Task.immediate { () async throws -> ByteString? in
      MainActor.assertIsolated()
      try await loop.sleep(for: .seconds(2))
      MainActor.assertIsolated()
      let url = try await op.start(on: loop).value.string("url")
      MainActor.assertIsolated()
      return url
    }
    loop.runUntilIdle()
    print(getpid(), pthread_self(), begun)
    #expect(try await code.value == "u")
  }
}
