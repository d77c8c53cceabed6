import FlowEngine
import Glibc
import Synchronization
import Testing

/// Waits of loops that block threads on which the awaited code may have to run. Each test is a process of its own,
/// because the report comes once for each.
@Suite("Reports of blocking waits")
struct BlockingWaitTests {
  @Test(
    "A loop that blocks the main actor for long while it waits for async code is reported, once")
  func mainActor() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      BlockingWait.patience.store(5_000_000, ordering: .relaxed)
      for _ in 0..<2 { await waitOnMainActor() }
      exit(0)
    }
    let lines = reports(in: result.standardErrorContent)
    #expect(lines.count == 1)
    #expect(lines.first?.contains("while loops block the thread of the main actor") == true)
    #expect(lines.first?.hasSuffix("or use a LoopThread") == true)
  }

  @Test(
    "Loops that block all threads of the pool while they wait for async code are reported, once")
  func pool() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      BlockingWait.patience.store(5_000_000, ordering: .relaxed)
      await waitInPool(4 * sysconf(Int32(_SC_NPROCESSORS_ONLN)))
      exit(0)
    }
    let lines = reports(in: result.standardErrorContent)
    #expect(lines.count == 1)
    #expect(lines.first?.contains("block all threads of Swift's cooperative pool") == true)
  }

  @Test("Timers of the loop, such as timeouts of ops, don't hide that it blocks such a thread")
  func timers() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      BlockingWait.patience.store(5_000_000, ordering: .relaxed)
      await MainActor.run {
        let loop = FlowEventLoop()
        defer { loop.shutdown() }
        let run = start(on: loop)
        for index in 1...30 { loop.schedule(after: .milliseconds(index)) {} }
        _ = try? run.wait()
      }
      exit(0)
    }
    #expect(reports(in: result.standardErrorContent).count == 1)
  }

  @Test("Loops whose waits end soon, or on threads of their own, aren't reported")
  func others() async throws {
    let result = try await #require(
      processExitsWith: .success, observing: [\.standardErrorContent]
    ) {
      // The default: ten seconds.
      await waitOnMainActor()
      BlockingWait.patience.store(5_000_000, ordering: .relaxed)
      _ = await onAnotherThread {
        let loop = FlowEventLoop()
        defer { loop.shutdown() }
        return (try? start(on: loop).wait()) != nil
      }
      let thread = try LoopThread(name: "own")
      try await thread.perform { loop in _ = try await start(on: loop).value }
      await thread.shutdown()
      exit(0)
    }
    #expect(reports(in: result.standardErrorContent).isEmpty)
  }
}

private func reports(in output: [UInt8]) -> [String] {
  String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    .filter { $0.hasPrefix("FlowLoop: ") }
}

/// Starts an op that awaits code of a thread of its own for some milliseconds.
private func start(on loop: FlowEventLoop) -> Run {
  Op("ElsewhereOp") { (_) async throws in
    await withCheckedContinuation { continuation in
      startThread {
        usleep(20_000)
        continuation.resume()
      }
    }
  }.start(on: loop)
}

/// Waits synchronously on the main actor.
@MainActor
private func waitOnMainActor() {
  let loop = FlowEventLoop()
  defer { loop.shutdown() }
  _ = try? start(on: loop).wait()
}

/// Waits synchronously in as many tasks at a time.
private func waitInPool(_ count: Int) async {
  await withTaskGroup { group in
    for _ in 0..<count {
      group.addTask {
        let loop = FlowEventLoop()
        defer { loop.shutdown() }
        _ = try? start(on: loop).wait()
      }
    }
  }
}
