import FlowEngine
import Testing

@Suite("Event streams")
struct EventStreamTests {
  /// The rest of a run of an op that waits and then logs `count` lines: the streams that were made
  /// before it waited, and its events. The loop stays on the calling thread.
  private func run(
    _ count: Int, ends: Bool = true, _ makeStreams: (Run) -> [EventStream]
  ) throws -> (streams: [EventStream], events: [RunEvent]) {
    let loop = makeLoop()
    let run = Flow("lines").add(Op(name: "LineOp", body: WaitingLines(count))).start(on: loop)
    var streams = makeStreams(run)
    if ends { try run.waitUntilEnd() } else { loop.shutdown() }
    streams.append(run.eventStream())
    return (streams, Array(run.events))
  }

  private func lines(_ events: [RunEvent]) -> [String] {
    events.map { "\($0.kind) \($0.op) \($0.message?.description ?? "")" }
  }

  private func lines(_ stream: EventStream) async -> [String] {
    var events: [RunEvent] = []
    for await event in stream { events.append(event) }
    return lines(events)
  }

  @Test("A stream has the events before and after it was made, and ends with the run")
  func aStreamHasAllEventsAndEnds() async throws {
    let (streams, events) = try run(2) { [$0.eventStream(), $0.eventStream()] }
    let expected = lines(events)
    #expect(expected.count == 4)
    #expect(streams.count == 3)
    for stream in streams {
      #expect(await lines(stream) == expected)
      #expect(stream.droppedCount == 0)
    }
  }

  @Test("A stream that isn't read drops its oldest events, counts them, and stops no run")
  func aStreamThatIsNotReadDropsItsOldestEvents() async throws {
    let (streams, _) = try run(1000) { [$0.eventStream(bufferingNewest: 3)] }
    #expect(streams[0].droppedCount == 1002 - 3)
    #expect(
      await lines(streams[0]) == [
        "log LineOp 998", "log LineOp 999", "finish LineOp successfully",
      ])
  }

  @Test("A stream can be read by a task on another thread while the run executes")
  func aStreamCanBeReadWhileTheRunExecutes() async throws {
    var reader: Task<Int, Never>?
    _ = try run(100) { run in
      let stream = run.eventStream()
      reader = Task.detached {
        var count = 0
        for await _ in stream { count += 1 }
        return count
      }
      return []
    }
    #expect(await reader?.value == 102)
  }

  @Test("A stream that is released without being read stops no run")
  func aStreamThatIsReleased() throws {
    let (_, events) = try run(5) { run in
      _ = run.eventStream()
      return []
    }
    #expect(events.count == 7)
  }

  @Test("A stream of a loop that was shut down ends")
  func aStreamAfterTheShutdown() async throws {
    let loop = makeLoop()
    let run = Op(name: "LineOp", body: WaitingLines(5)).start(on: loop)
    loop.shutdown()
    #expect(await lines(run.eventStream()) == ["start LineOp "])
    var progress: [RunProgress] = []
    for await element in run.progressStream() { progress.append(element) }
    #expect(progress.map(\.op) == ["LineOp"])
  }

  @Test("A stream ends when the loop is shut down")
  func aStreamEndsWithTheLoop() async throws {
    let (streams, _) = try run(5, ends: false) { [$0.eventStream()] }
    #expect(await lines(streams[0]) == ["start LineOp "])
  }
}

/// Waits, and then logs a number of lines.
private final class WaitingLines: OpBody {
  private let count: Int

  init(_ count: Int) { self.count = count }

  func start(_ context: OpContext) -> CallState {
    _ = context.loop.schedule(at: context.loop.now() + 100_000_000) { [count] in
      for number in 0..<count { context.log("\(number)") }
      context.end()
    }
    return .suspended
  }
}
