import FlowEngine
import Testing

@Suite("The tree of runs that are followed late")
struct LateFollowingTests {
  private typealias Watched = ProgressTreeTests.Watched

  private static let second: Int64 = 1_000_000_000

  /// A tree that follows runs from the start, and one of the same loop that does so after some seconds.
  private struct Trees {
    let early: Watched
    let late: Watched

    init(after seconds: Int64 = 1) {
      early = Watched()
      late = Watched(early.loop, late: seconds * LateFollowingTests.second)
    }

    var loop: FlowEventLoop { early.loop }

    /// Runs the loop, and compares the trees.
    func run(to seconds: Double, _ comment: Comment? = nil) {
      early.run(to: seconds)
      _ = late.tree.followIfDue(at: loop.now())
      let (shown, expected) = (late.rows(), early.rows())
      if late.tree.isEmpty { return }
      #expect(shown == expected, comment)
      #expect(late.rows(3) == early.rows(3), comment)
      // Those of several logs at the same time may have another order.
      #expect(late.notices.sorted() == early.notices.sorted(), comment)
    }

    func finish(_ runs: Run...) throws {
      for run in runs { try? run.waitUntilEnd() }
      for run in runs { try early.finish(run) }
      #expect(late.tree.isEmpty && late.rows().isEmpty)
      #expect(late.notices == early.notices)
    }
  }

  @Test(
    "A run isn't followed before its time has come, and then as if it had been followed from the start"
  )
  func delay() throws {
    let trees = Trees()
    let run = Flow("f").add(waitingOp("AOp", 0.75)).add(quick("BOp")).add(waitingOp("COp", 2))
      .start(on: trees.loop)
    #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == Self.second)
    trees.run(to: 0.875)
    #expect(trees.late.tree.isEmpty)
    #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == Self.second / 8)
    trees.run(to: 1)
    #expect(
      trees.late.rows() == ["f 1.0s 2.0/3.0", "  + AOp 0.75s", "  + BOp 0.0s", "  COp 0.25s"])
    #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == nil)
    trees.run(to: 2)
    try trees.finish(run)
    #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == nil)
  }

  @Test("Short runs one after another are never followed, those that overlap are")
  func pauses() throws {
    let trees = Trees()
    for step in 1...3 {
      let run = waitingOp("AOp", 0.75).start(on: trees.loop)
      trees.early.run(to: Double(step) * 0.75 - 0.125)
      #expect(trees.late.tree.followIfDue(at: trees.loop.now()) != nil)
      try run.wait()
      #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == nil)
    }
    let first = waitingOp("AOp", 0.75).start(on: trees.loop)
    trees.early.run(to: 2.75)
    #expect(trees.late.tree.followIfDue(at: trees.loop.now()) == Self.second / 2)
    let second = waitingOp("BOp", 1).start(on: trees.loop)
    trees.run(to: 3.375)
    #expect(trees.late.rows() == ["BOp 0.625s"])
    try trees.finish(first, second)
    // The next one again has the whole time.
    let third = waitingOp("AOp", 0.75).start(on: trees.loop)
    trees.early.run(to: 4)
    #expect(trees.late.tree.isEmpty)
    try third.wait()
  }

  @Test("Failures before are reported once: those of ended runs, and of runs within ended runs")
  func failures() throws {
    let trees = Trees()
    let child = Flow("child").add(failing("FailOp", "no", after: 0.3125))
    let start = Op(name: "StartOp", body: ChildBody(Op(name: "InnerOp", body: ChildBody(child))))
    let runs = [
      Flow("long").addGrouped(
        waitingOp("ItemOp", 0.125) { if $0.index < 4 { $0.fail(FlowError(.error, "item")) } },
        GroupDispatcher(input: "list", maxConcurrent: 2, allowFailure: true, as: "x")
      ).data("list", (1...100).map { Int64($0) }.flowValue).add(waitingOp("EndOp", 5)),
      Flow("short").add(start).add(failing("OtherOp", "other")),
      Flow("quick").add(quick("AOp")),
    ].map { $0.start(on: trees.loop) }
    let last = failing("LastOp", "last", after: 0.5625).start(on: trees.loop)
    trees.early.run(to: 0.875)
    #expect(trees.late.notices.isEmpty && trees.late.tree.isEmpty)
    trees.run(to: 1)
    #expect(trees.late.notices.count == 6)
    #expect(trees.late.notices.contains("short/StartOp/InnerOp/child/FailOp: no, 1"))
    #expect(trees.late.notices.contains("LastOp: last, 1"))
    #expect(trees.late.rows().count == 2)
    trees.run(to: 7)
    try trees.finish(runs[0], runs[1], runs[2], last)
  }

  @Test("Failures of runs that end before aren't reported, nor later with those of others")
  func shortFailures() throws {
    let trees = Trees()
    try trees.early.finish(failing("FailOp", "no", after: 0.5).start(on: trees.loop))
    trees.early.notices = []
    let run = waitingOp("AOp", 3).start(on: trees.loop)
    trees.run(to: 2)
    #expect(trees.late.rows() == ["AOp 1.5s"])
    try trees.finish(run)
  }

  @Test("Runs are followed before their log drops events, and when many ended ones have failures")
  func limits() throws {
    let trees = Trees(after: 1000)
    let run = Flow("f").data("list", (1...200).map { Int64($0) }.flowValue)
      .addGrouped(
        waitingOp("ItemOp") { if $0.index == 2 { $0.fail(FlowError(.error, "no")) } },
        GroupDispatcher(input: "list", maxConcurrent: 1, allowFailure: true, as: "x")
      ).start(on: trees.loop)
    run.logLimit = 64
    trees.early.run(to: 2.5)
    #expect(trees.late.tree.isEmpty)
    trees.run(to: 150.5)
    #expect(run.droppedEvents > 0)
    #expect(
      trees.late.rows().prefix(2) == [
        "f 150.5s 0.0/1.0", "  ItemOp 150.5s 150.0/200.0 running 1 failed 1",
      ])
    try trees.finish(run)

    trees.early.notices = []
    trees.late.notices = []
    let open = waitingOp("AOp", 1).start(on: trees.loop)
    for _ in 1...1000 { failing("FailOp").start(on: trees.loop).markObserved() }
    #expect(trees.late.notices.count == 1000)
    trees.run(to: 201)
    try trees.finish(open)
  }

  @Test("Runs are followed while an op is busy, if it reports what it has done")
  func busyOps() throws {
    let loop = FlowEventLoop()
    defer { loop.shutdown() }
    let watched = Watched(loop, late: 1_000_000)
    var rows: [[String]] = []
    let op = Op("AOp") { context in
      let start = loop.now()
      context.progress(1, of: 4)
      rows.append(watched.rows())
      while loop.now() < start + 2_000_000 {}
      context.progress(2, of: 4)
      rows.append(watched.rows())
    }
    try watched.finish(Flow("f").add(op).start(on: loop))
    #expect(rows.last?.count == 2 && rows.last?.last?.hasSuffix("2.0/4.0") == true)

    // At the start of an op as well.
    let busy = quickBusy(2_000_000, loop)
    var shown = 0
    let last = Op("LastOp") { _ in shown = watched.rows().count }
    try watched.finish(Flow("f").add(busy).add(last).start(on: loop))
    #expect(shown == 3)
  }

  private func quickBusy(_ time: Int64, _ loop: FlowEventLoop) -> Op {
    Op("BusyOp") { _ in
      let start = loop.now()
      while loop.now() < start + time {}
    }
  }

  @Test("A machine and the runs of its steps are followed late")
  func machines() throws {
    let trees = Trees()
    var script = MachineScript("m", start: "one")
    script.step("one", waitingOp("OneOp", 0.75), .next(.forward(to: "two")))
    script.step("two", waitingOp("TwoOp", 0.75))
    let run = try script.make().start(on: trees.loop)
    trees.run(to: 1)
    #expect(trees.late.rows() == ["m 1.0s one -> two", "  TwoOp 0.25s"])
    try trees.finish(run)
  }

  @Test("Any runs show the same tree when they are followed late")
  func randomRuns() throws {
    for seed in RandomFlows.firstSeed..<RandomFlows.firstSeed + RandomFlows.count(150) {
      var maker = SpanFlowMaker(seed)
      let trees = Trees(after: 0)
      var runs: [Run] = []
      let starts = Int(maker.random.next() % 3)
      let first = Int(maker.random.next() % 8)
      for step in 0...12 {
        // Failures of runs that have ended before aren't reported.
        if trees.early.tree.isEmpty { (trees.early.notices, trees.late.notices) = ([], []) }
        if step % 2 == 0, runs.count <= starts {
          runs.append(maker.flow(depth: 3).start(on: trees.loop))
        }
        // No two of them do anything at the same time.
        let time = Double(step) / 8 + Double(runs.count) / 1024
        if step < first { trees.early.run(to: time) } else { trees.run(to: time, "seed \(seed)") }
      }
      if maker.random.next() % 3 == 0 { for run in runs { run.cancel() } }
      for run in runs { try? run.waitUntilEnd() }
      for run in runs { run.markObserved() }
      #expect(trees.late.tree.isEmpty && trees.early.tree.isEmpty, "seed \(seed)")
      _ = trees.loop.unobservedFailures
    }
  }
}
