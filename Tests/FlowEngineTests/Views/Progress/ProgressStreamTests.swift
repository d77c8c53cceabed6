import FlowEngine
import Synchronization
import Testing

@Suite("Progress streams")
struct ProgressStreamTests {
  /// The texts of the elements; the loop stays on the calling thread.
  private func lines(_ stream: some AsyncSequence<RunProgress, Never>) async -> [String] {
    var lines: [String] = []
    for await progress in stream { lines.append(progress.line) }
    return lines
  }

  /// The stream of a run that has ended.
  private func stream(
    _ op: Op, afterSeconds delay: Double = 0, ends: Bool = true
  ) throws -> some AsyncSequence<RunProgress, Never> & Sendable {
    let loop = makeLoop()
    let run = op.start(on: loop)
    if delay > 0 { pass(delay, on: loop) }
    let stream = run.progressStream()
    if ends { try run.waitUntilEnd() } else { loop.shutdown() }
    run.markObserved()
    return stream
  }

  private func pass(_ seconds: Double, on loop: FlowEventLoop) {
    var isOver = false
    loop.schedule(after: .seconds(seconds)) { isOver = true }
    _ = loop.turn { isOver }
  }

  private let copy = Op("CopyOp") { context in
    for done in 1...4 {
      try await context.sleep(for: .seconds(1))
      context.progress(Double(done), of: 4)
    }
  }

  @Test("A reader that keeps up gets each report of an op")
  func aReaderThatKeepsUpGetsEachReport() async throws {
    let all = try await Reader().read { copyOp(for: $0) }
    #expect(
      all == [
        "0.25 CopyOp 1.0/4.0", "0.5 CopyOp 2.0/4.0", "0.75 CopyOp 3.0/4.0", "1.0 CopyOp 4.0/4.0",
        "1.0 CopyOp",
      ])
  }

  @Test("A flow counts its steps, and what is in progress in part")
  func aFlowCountsItsStepsAndWhatIsInProgressInPart() async throws {
    let all = try await Reader().read {
      Flow("publish").add(SleepOp(.seconds(1))).add(copyOp(for: $0, in: "publish/", from: 0.5))
    }
    #expect(all.first == "0.0 publish/SleepOp")
    #expect(all.contains("0.625 publish/CopyOp 1.0/4.0"))
    #expect(all.last == "1.0 publish")
    let late = Flow("publish").add(SleepOp(.seconds(1))).add(copy)
    #expect(
      await lines(try stream(late, afterSeconds: 2.5, ends: false))
        == ["0.625 publish/CopyOp 1.0/4.0"])
  }

  @Test("A group counts its items")
  func aGroupCountsItsItems() async throws {
    let all = try await Reader().read { reader in
      Flow("publish").data("naps", [0.0, 1, 2, 3])
        .addGrouped(
          Op("NapOp", primaryInput: "nap") { context in
            let done = try context.value("nap", as: Double.self)
            await reader.wait(for: "\(done / 4) publish/NapOp \(done)/4.0")
          }, GroupDispatcher(input: "naps", maxConcurrent: 1))
    }
    for done in 0..<4 {
      #expect(all.contains("\(Double(done) / 4) publish/NapOp \(Double(done))/4.0"), "\(all)")
    }
    #expect(all.last == "1.0 publish")
  }

  @Test("A change that comes before the reader wants it is its next element")
  func aChangeBeforeTheReaderWantsItIsItsNextElement() async throws {
    let all = try await Reader().read(pausesAfterFirst: true) { reader in
      Op("CopyOp") { context in
        await reader.wait(for: "? CopyOp")
        for done in 1...3 { context.progress(Double(done), of: 4) }
        // Nothing else happens until the reader has it.
        reader.allow()
        await reader.wait(for: "0.75 CopyOp 3.0/4.0")
      }
    }
    #expect(all == ["? CopyOp", "0.75 CopyOp 3.0/4.0", "1.0 CopyOp"])
  }

  @Test("Progress that nobody waits for isn't computed")
  func progressThatNobodyWaitsForIsNotComputed() throws {
    func readings(_ body: (Run) -> Any?) throws -> Int {
      let clock = CountingClock()
      let op = Op("CopyOp") { (context: OpContext) in
        for done in 1...1000 { context.progress(Double(done), of: 1000) }
      }
      let run = Flow("publish").add(SleepOp(.seconds(1))).add(op).start(
        on: FlowEventLoop(clock: clock))
      let held = body(run)
      let before = clock.readings
      try run.wait()
      return withExtendedLifetime(held) { clock.readings - before }
    }
    #expect(try readings { $0.progressStream() } == readings { _ in nil })
  }

  @Test("A reader that is slow gets the newest progress")
  func aReaderThatIsSlowGetsTheNewestProgress() async throws {
    #expect(await lines(try stream(copy)) == ["1.0 CopyOp"])
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
  func aStreamThatIsReleased() {
    let run = copy.start(on: makeLoop())
    _ = run.progressStream()
    #expect(throws: Never.self) { try run.wait() }
  }
}

extension RunProgress {
  fileprivate var line: String {
    var text = "\(fraction.map { "\($0)" } ?? "?") \(op)"
    if let done { text += " \(done)/\(total.map { "\($0)" } ?? "?")" }
    if let message { text += " \(message)" }
    return text
  }
}

/// A reader of a stream on another thread, for which ops can wait.
private final class Reader: Sendable {
  private let lines = Locked<[String]>([])
  private let isAllowed = Atomic<Bool>(false)

  /// Reads the stream of a run of the op until it ends. Both the run and the reader have a loop with a thread of its own:
  /// tests that block may hold all threads of Swift's executor.
  func read(
    pausesAfterFirst: Bool = false, _ makeOp: @escaping @Sendable (Reader) -> Op
  ) async throws -> [String] {
    let thread = try LoopThread()
    let isRead = Flag()
    await onLoopThread { [self] _ in
      let loop = makeLoop()
      defer { loop.shutdown() }
      let run = makeOp(self).start(on: loop)
      let stream = run.progressStream()
      thread.post { [self] loop in
        Op("ReadOp") { [self] _ in
          for await progress in stream {
            lines.withLock { $0.append(progress.line) }
            while pausesAfterFirst, !isAllowed.load(ordering: .acquiring) { await Task.yield() }
          }
          isRead.raise()
        }.start(on: loop)
      }
      _ = try? run.wait()
    }
    await isRead.wait()
    await thread.shutdown()
    return lines.withLock { $0 }
  }

  /// Lets a reader that pauses continue.
  func allow() { isAllowed.store(true, ordering: .releasing) }

  /// Returns when an element has been read. One that doesn't come is among the lines, as such.
  func wait(for line: String) async {
    let end = ContinuousClock.now + .seconds(30)
    while !lines.withLock({ $0.contains(line) }) {
      guard ContinuousClock.now < end else { return lines.withLock { $0.append("no \(line)") } }
      await Task.yield()
    }
  }
}

/// Reports its progress four times, and waits for the reader each time. Its shares are those of the last step of a flow
/// of which `first` is done before.
private func copyOp(
  for reader: Reader, in prefix: String = "", from first: Double = 0
) -> Op {
  Op("CopyOp") { context in
    for done in 1...4 {
      context.progress(Double(done), of: 4)
      let share = first + (1 - first) * Double(done) / 4
      await reader.wait(for: "\(share) \(prefix)CopyOp \(Double(done))/4.0")
    }
  }
}

/// A virtual clock that counts how often it is read.
private final class CountingClock: TimeSource {
  private let clock = VirtualClock()
  private let count = Atomic<Int>(0)

  var readings: Int { count.load(ordering: .relaxed) }
  func now() -> Int64 {
    count.add(1, ordering: .relaxed)
    return clock.now()
  }
  var wallBase: Int64 { clock.wallBase }
  var isVirtual: Bool { true }
  func advance(to time: Int64) { clock.advance(to: time) }
}

/// Waits until the op is stopped.
private final class WaitingBody: OpBody {
  func start(_ context: OpContext) -> CallState { .suspended }
}
