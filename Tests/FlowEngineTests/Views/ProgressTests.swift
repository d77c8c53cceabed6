import FlowEngine
import Testing

@Suite("Progress")
struct ProgressTests {
  /// Notes what it is shown.
  final class Recorder: ProgressMonitor {
    var seen: [Progress?] = []
    var rests = 0
    var rest: Int64?

    func progressChanged(_ source: any ProgressSource) { seen.append(source.progress) }

    func loopRests() -> Int64? {
      rests += 1
      return rest
    }
  }

  private func items(_ done: Double, _ running: Int, failed: Int = 0) -> Progress {
    Progress(
      run: "f", op: "ItemOp", done: done, total: 3,
      items: Progress.Items(running: running, failed: failed))
  }

  @Test("A group shows how many items have ended")
  func aGroupTellsHowManyItemsHaveEnded() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let recorder = Recorder()
    loop.progressMonitor = recorder
    let op = Op("ItemOp", needs: ["item": "integer"]) { context in
      if context.index == 2 { throw FlowError(.error, "no") }
    }
    let run = Flow("f").data("items", [1, 2, 3])
      .addGrouped(op, GroupDispatcher(input: "items", allowFailure: true)).start(on: loop)
    try run.wait()
    #expect(recorder.seen.first == items(0, 0))
    #expect(recorder.seen.contains(items(1, 0)))
    #expect(recorder.seen.contains(items(2, 0, failed: 1)))
    #expect(recorder.seen.last == .some(nil))
  }

  @Test("Waiting items count as running")
  func itemsThatWaitAreRunning() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let recorder = Recorder()
    loop.progressMonitor = recorder
    let op = Op(name: "ItemOp", primaryInput: "item", body: CountingBody())
    let run = Flow("f").data("items", [1, 2, 3])
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: 2)).start(on: loop)
    try run.wait()
    #expect(recorder.seen.contains(items(1, 1)))
    #expect(recorder.seen.last == .some(nil))
  }

  @Test("The progress of a cancelled or empty group ends too")
  func aGroupThatIsCancelledOrEmptyEndsToo() throws {
    for list in [[1, 2, 3], []] {
      let loop = makeLoop()
      defer { loop.shutdown() }
      let recorder = Recorder()
      loop.progressMonitor = recorder
      let op = Op(name: "ItemOp", primaryInput: "item", body: CountingBody())
      let run = Flow("f").data("items", list)
        .addGrouped(op, GroupDispatcher(input: "items")).start(on: loop)
      run.cancel()
      try? run.wait()
      #expect(recorder.seen.last ?? nil == nil)
    }
  }

  @Test("An op shows its own progress")
  func anOpTellsOfItsOwn() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let recorder = Recorder()
    loop.progressMonitor = recorder
    let op = Op("CountOp", retry: RetryPolicy(attempts: 2)) { context in
      context.progress(1, of: 4)
      context.progress(2)
      if context.attempt == 1 { throw FlowError(.error, "no") }
    }
    try Flow("f").add(op).start(on: loop).wait()
    let first = Progress(run: "f", op: "CountOp", done: 1, total: 4)
    let second = Progress(run: "f", op: "CountOp", done: 2, total: nil)
    #expect(recorder.seen == [first, second, nil, first, second, nil])
  }

  @Test("Progress shows no secrets")
  func secretsAreNotShown() throws {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let recorder = Recorder()
    loop.progressMonitor = recorder
    let op = Op("hunter2Op") { context in context.progress(1) }
    try Flow("f").data("password", Value.secret(.bytes("hunter2"))).add(op).start(on: loop).wait()
    #expect(recorder.seen.first??.op == "<redacted>Op")
  }

  /// A wish to be asked again is no work: a stall is still found, and no virtual time passes.
  @Test("A rest between updates needs no timer")
  func restsAreNoTimers() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let recorder = Recorder()
    recorder.rest = 1_000_000
    loop.progressMonitor = recorder
    let op = Op(name: "NeverOp", body: HoldingBody { keepReachable($0) })
    let run = Flow("f").add(op).start(on: loop)
    #expect(loop.run { false } == false)
    #expect(run.state == .pending)
    #expect(loop.now() == 0)
  }

  /// While something outside is awaited the monitor is asked again and again.
  @Test("A rest between updates ends in time")
  func restsEndInTime() {
    let loop = EventLoop()
    let recorder = Recorder()
    recorder.rest = 100_000
    loop.progressMonitor = recorder
    let outside = loop.mailbox.begin()
    #expect(loop.run { recorder.rests > 2 })
    outside.end()
  }
}
