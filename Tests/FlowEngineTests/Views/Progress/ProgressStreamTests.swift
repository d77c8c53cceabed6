import FlowEngine
import Testing

@Suite("Progress streams")
struct ProgressStreamTests {
  /// What the elements say; the loop stays on the calling thread.
  private func lines(_ stream: ProgressStream) async -> [String] {
    var lines: [String] = []
    for await progress in stream { lines.append(text(progress)) }
    return lines
  }

  private func text(_ progress: RunProgress) -> String {
    var text = "\(progress.fraction.map { "\($0)" } ?? "?") \(progress.op)"
    if let done = progress.done { text += " \(done)/\(progress.total.map { "\($0)" } ?? "?")" }
    if let message = progress.message { text += " \(message)" }
    return text
  }

  /// The stream of a run that has ended.
  private func stream(
    _ op: Op, limit: Int = 100, afterSeconds delay: Double = 0, ends: Bool = true
  ) throws -> ProgressStream {
    let loop = makeLoop()
    let run = op.start(on: loop)
    if delay > 0 {
      var isOver = false
      loop.schedule(after: .seconds(delay)) { isOver = true }
      _ = loop.run { isOver }
    }
    let stream = run.progressStream(bufferingNewest: limit)
    if ends { try run.waitUntilEnd() } else { loop.shutdown() }
    run.markObserved()
    return stream
  }

  private let copy = Op("CopyOp") { context in
    for done in 1...4 {
      try await context.sleep(for: .seconds(1))
      context.progress(Double(done), of: 4)
    }
  }

  @Test("The reports of an op are its progress")
  func theReportsOfAnOpAreItsProgress() async throws {
    #expect(
      await lines(try stream(copy)) == [
        "? CopyOp", "0.25 CopyOp 1.0/4.0", "0.5 CopyOp 2.0/4.0", "0.75 CopyOp 3.0/4.0",
        "1.0 CopyOp 4.0/4.0", "1.0 CopyOp",
      ])
  }

  @Test("A flow counts its steps, and what is in progress in part")
  func aFlowCountsItsStepsAndWhatIsInProgressInPart() async throws {
    let flow = Flow("publish").add(SleepOp(.seconds(1))).add(copy)
    let all = await lines(try stream(flow))
    #expect(all.first == "0.0 publish/SleepOp")
    #expect(all.contains("0.625 publish/CopyOp 1.0/4.0"))
    #expect(all.last == "1.0 publish")
    #expect(
      await lines(try stream(flow, afterSeconds: 2.5)).first == "0.625 publish/CopyOp 1.0/4.0")
  }

  @Test("A group counts its items")
  func aGroupCountsItsItems() async throws {
    let flow = Flow("publish").data("naps", [1.0, 2, 3, 4])
      .addGrouped(
        Op("NapOp", primaryInput: "nap") { context in
          try await context.sleep(for: .seconds(context.value("nap", as: Double.self)))
        }, GroupDispatcher(input: "naps", maxConcurrent: 1))
    let all = await lines(try stream(flow))
    for done in 0..<4 {
      #expect(all.contains("\(Double(done) / 4) publish/NapOp \(Double(done))/4.0"), "\(all)")
    }
    #expect(all.last == "1.0 publish")
  }

  @Test("A reader that is slow gets the newest progress")
  func aReaderThatIsSlowGetsTheNewestProgress() async throws {
    #expect(await lines(try stream(copy, limit: 1)) == ["1.0 CopyOp"])
  }

  @Test("The stream of a failed run ends without being complete")
  func theStreamOfAFailedRunEndsWithoutBeingComplete() async throws {
    let fail = Op("FailOp") { context in
      context.progress(1, of: 2)
      try await context.sleep(for: .seconds(1))
      throw FlowError(.error, "no")
    }
    #expect(await lines(try stream(fail)) == ["0.5 FailOp 1.0/2.0"])
  }

  @Test("The stream of a run that has ended says only that")
  func theStreamOfARunThatHasEnded() async throws {
    #expect(await lines(try stream(Op("QuickOp") { _ in })) == ["1.0 QuickOp"])
  }

  @Test("A stream ends when the loop is shut down")
  func aStreamEndsWithTheLoop() async throws {
    let waiting = Op(name: "WaitOp", body: WaitingBody())
    #expect(await lines(try stream(waiting, ends: false)) == ["? WaitOp"])
  }

  @Test("A stream that is released without being read stops no run")
  func aStreamThatIsReleased() throws {
    let run = copy.start(on: makeLoop())
    _ = run.progressStream()
    try run.wait()
  }
}

/// Waits until the op is stopped.
private final class WaitingBody: OpBody {
  func start(_ context: OpContext) -> CallState { .suspended }
}
