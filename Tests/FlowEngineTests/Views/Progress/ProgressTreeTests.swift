import FlowEngine
import Testing

@Suite("The tree of what is in progress")
struct ProgressTreeTests {
  /// A loop with a tree, and what the tree has reported.
  final class Watched {
    let loop: FlowEventLoop
    let tree: ProgressTree
    var notices: [String] = []

    /// If `delay` isn't nil, the tree follows runs that are in progress for so many nanoseconds.
    init(_ loop: FlowEventLoop = makeLoop(), late delay: Int64? = nil) {
      self.loop = loop
      tree = ProgressTree(of: loop)
      if let delay { tree.followLate(after: delay) } else { loop.eventSinks.append(tree) }
      tree.onNotice = { [unowned self] in notices.append(Self.text($0)) }
    }

    deinit { loop.shutdown() }

    static func text(_ notice: ProgressNotice) -> String {
      switch notice {
      case .failure(let failure):
        let last = failure.isLastOfItsKind ? " (last)" : ""
        return "\(failure.path): \(failure.message), \(failure.attempts)\(last)"
      case .groupEnd(let end):
        let stopped = end.isStopped ? " stopped" : ""
        return "\(end.path) \(end.done)/\(end.total) \(end.failed) \(end.seconds)\(stopped)"
      }
    }

    func run(to seconds: Double) {
      var isOver = false
      loop.schedule(at: Int64(seconds * 1e9)) { isOver = true }
      _ = loop.turn { isOver }
    }

    func finish(_ run: Run) throws {
      try? run.waitUntilEnd()
      run.markObserved()
      #expect(tree.isEmpty)
      #expect(tree.rows(atMost: 9).rows.isEmpty && tree.rows(atMost: 9).hidden == 0)
      #expect(tree.mainRow() == nil)
    }

    func rows(_ limit: Int = 12) -> [String] {
      let shown = tree.rows(atMost: limit)
      return shown.rows.map { Self.text($0) } + (shown.hidden > 0 ? ["\(shown.hidden) more"] : [])
    }

    static func text(_ row: ProgressRow) -> String {
      var text = String(repeating: "  ", count: row.depth)
      if row.kind == .endedStep { text += row.failed > 0 ? "- " : "+ " }
      text += "\(row.name) \(row.seconds)s"
      if let done = row.done { text += " \(done)/\(row.total.map { "\($0)" } ?? "?")" }
      if let running = row.running { text += " running \(running) failed \(row.failed)" }
      if row.attempt > 1 { text += " attempt \(row.attempt)" }
      if let delay = row.retryDelay { text += " in \(delay)" }
      if let transition = row.transition { text += " \(transition)" }
      return text
    }
  }

  @Test("A flow shows the steps that have ended and the one that is executed")
  func steps() throws {
    let watched = Watched()
    let inner = Flow("inner").add(waitingOp("InOp", 1)).add(waitingOp("LastOp", 1))
    let run = Flow("f").add(waitingOp("FirstOp", 2)).add(quick("QuickOp")).add(inner)
      .addParallel(waitingOp("AOp", 1), waitingOp("BOp", 2)).start(on: watched.loop)
    #expect(watched.rows() == ["f 0.0s 0.0/5.0", "  FirstOp 0.0s"])
    watched.run(to: 3.5)
    #expect(
      watched.rows() == [
        "f 3.5s 2.0/5.0", "  + FirstOp 2.0s", "  + QuickOp 0.0s", "  inner 1.5s 1.0/2.0",
        "    + InOp 1.0s", "    LastOp 0.5s",
      ])
    watched.run(to: 5.5)
    #expect(
      watched.rows() == [
        "f 5.5s 4.0/5.0", "  + FirstOp 2.0s", "  + QuickOp 0.0s", "  + inner 2.0s", "  + AOp 1.0s",
        "  BOp 1.5s",
      ])
    try watched.finish(run)
    #expect(watched.notices.isEmpty)
  }

  @Test("A group shows its numbers and what takes longest, and is reported when it has ended")
  func groups() throws {
    let watched = Watched()
    let item = Op(
      name: "ItemOp",
      body: SleepingBody(each: { Double($0.index) }) { context in
        if context.index == 3 { context.fail(FlowError(.error, "three")) }
      })
    let run = Flow("f").data("list", (1...8).map { Int64($0) }.flowValue)
      .addGrouped(
        item,
        GroupDispatcher(
          input: "list", maxConcurrent: 6, allowFailure: true, as: "x",
          label: { "no. \($0.logText)" })
      ).add(waitingOp("EndOp")).start(on: watched.loop)
    watched.run(to: 0.9)
    #expect(
      watched.rows() == ["f 0.9s 0.0/2.0", "  ItemOp 0.9s 0.0/8.0 running 6 failed 0"])
    watched.run(to: 3.5)
    #expect(watched.notices == ["f/ItemOp #3 no. 3: three, 1"])
    #expect(
      watched.rows() == [
        "f 3.5s 0.0/2.0", "  ItemOp 3.5s 3.0/8.0 running 5 failed 1",
        "    ItemOp #4 no. 4 3.5s", "    ItemOp #5 no. 5 3.5s", "    ItemOp #6 no. 6 3.5s",
      ])
    let main = try #require(watched.tree.mainRow())
    #expect(main.row.name == "f/ItemOp" && main.others == 0)
    watched.run(to: 10.5)
    // The line of the group stays elsewhere.
    #expect(watched.rows() == ["f 10.5s 1.0/2.0", "  EndOp 0.5s"])
    try watched.finish(run)
    #expect(watched.notices == ["f/ItemOp #3 no. 3: three, 1", "f/ItemOp 8/8 1 10.0"])
  }

  @Test("A group that a failure stops is reported, and the failure once")
  func stoppedGroups() throws {
    let watched = Watched()
    let item = waitingOp("ItemOp", 1) { context in
      if context.index == 2 { context.fail(FlowError(.error, "two")) }
    }
    let run = Flow("f").data("list", (1...9).map { Int64($0) }.flowValue)
      .addGrouped(item, GroupDispatcher(input: "list", maxConcurrent: 3, as: "x"))
      .start(on: watched.loop)
    watched.run(to: 0.5)
    #expect(watched.rows().count == 2)
    try watched.finish(run)
    #expect(watched.notices == ["f/ItemOp #2: two, 1", "f/ItemOp 3/9 1 1.0 stopped"])
  }

  @Test("An op shows its attempts, the delay before the next one, and what it reports")
  func attempts() throws {
    let watched = Watched()
    let op = Op(
      name: "TryOp",
      body: SleepingBody(1) { context in
        context.progress(Double(context.attempt), of: 4)
        context.fail(FlowError(.error, "no"))
      }
    ).with(retry: RetryPolicy(attempts: 3, delay: .seconds(2)))
    let run = Flow("f").add(op).start(on: watched.loop)
    watched.run(to: 1.5)
    #expect(watched.rows() == ["f 1.5s 0.0/1.0", "  TryOp 1.5s attempt 2 in 1.5"])
    watched.run(to: 3.5)
    #expect(watched.rows() == ["f 3.5s 0.0/1.0", "  TryOp 3.5s attempt 2"])
    try watched.finish(run)
    #expect(watched.notices == ["f/TryOp: no, 3"])
  }

  @Test("The estimate of another attempt counts only the time of that one")
  func estimateOfAnAttempt() throws {
    let watched = Watched()
    var latest: OpContext?
    let op = Op(
      name: "TryOp",
      body: SleepingBody(each: { context in
        latest = context
        return context.attempt == 1 ? 40 : 10
      }) { context in
        if context.attempt == 1 { context.fail(FlowError(.error, "no")) }
      }
    ).with(retry: RetryPolicy(attempts: 2, delay: .seconds(2)))
    let run = Flow("f").add(op).start(on: watched.loop)
    for second in 1...8 {
      watched.run(to: 42 + Double(second))
      latest?.progress(Double(second), of: 10)
      let left = watched.tree.rows(atMost: 9).rows.last?.remaining
      if second > 1 { #expect(abs((left ?? 99) - Double(10 - second)) < 2, "\(second)") }
    }
    try watched.finish(run)
  }

  @Test("A flow that is retried starts again")
  func retriedFlows() throws {
    let watched = Watched()
    let run = Flow("f").add(waitingOp("AOp")).add(failing("FailOp", "no", after: 1))
      .with(retry: RetryPolicy(attempts: 2, delay: .seconds(1))).start(on: watched.loop)
    watched.run(to: 2.5)
    #expect(watched.rows() == ["f 2.5s 0.0/2.0 attempt 2 in 0.5"])
    watched.run(to: 3.5)
    #expect(watched.rows() == ["f 3.5s 0.0/2.0 attempt 2", "  AOp 0.5s"])
    try watched.finish(run)
    #expect(watched.notices == ["f/FailOp: no, 1", "f/FailOp: no, 1"])
  }

  @Test("The runs that ops start are shown within them, with their own failures")
  func childRuns() throws {
    let watched = Watched()
    let child = Flow("child").add(waitingOp("AOp")).add(failing("FailOp", "no", after: 1))
    let run = Flow("f").add(Op(name: "StartOp", body: ChildBody(child))).start(on: watched.loop)
    watched.run(to: 1.5)
    #expect(
      watched.rows() == [
        "f 1.5s 0.0/1.0", "  StartOp 1.5s", "    child 1.5s 1.0/2.0", "      + AOp 1.0s",
        "      FailOp 0.5s",
      ])
    #expect(watched.tree.mainRow()?.row.name == "f/StartOp/child/FailOp")
    try watched.finish(run)
    #expect(watched.notices == ["f/StartOp/child/FailOp: no, 1"])
  }

  @Test("A run that outlives the op that has started it remains")
  func outlivingRuns() throws {
    let watched = Watched()
    let start = Op("StartOp") { context in _ = context.start(waitingOp("LongOp", 0.75)) }
    let run = Flow("f").add(start).add(waitingOp("NextOp", 1)).start(on: watched.loop)
    watched.run(to: 0.5)
    #expect(
      watched.rows() == ["f 0.5s 1.0/2.0", "  + StartOp 0.0s", "  LongOp 0.5s", "  NextOp 0.5s"])
    watched.run(to: 0.875)
    // It was executed within the flow, but isn't one of its steps.
    #expect(watched.rows() == ["f 0.875s 1.0/2.0", "  + StartOp 0.0s", "  NextOp 0.875s"])
    try watched.finish(run)
  }

  @Test("A run that outlives the item of a group that has started it isn't counted as an item")
  func outlivingRunsOfItems() throws {
    let watched = Watched()
    let item = waitingOp("ItemOp", 1) { _ = $0.start(waitingOp("LongOp", 0.5)) }
    let run = Flow("f").data("list", [1, 2, 3])
      .addGrouped(item, GroupDispatcher(input: "list", maxConcurrent: 1, as: "x"))
      .add(waitingOp("EndOp", 2)).start(on: watched.loop)
    watched.run(to: 2.75)
    #expect(
      watched.rows().prefix(2) == ["f 2.75s 0.0/2.0", "  ItemOp 2.75s 2.0/3.0 running 1 failed 0"])
    try watched.finish(run)
    #expect(watched.notices == ["f/ItemOp 3/3 0 3.0"])
  }

  @Test("Only items that have ended by themselves are done")
  func stoppedItems() throws {
    let watched = Watched()
    let run = Flow("f").data("list", (1...8).map { Int64($0) }.flowValue)
      .addGrouped(waitingOp("ItemOp"), GroupDispatcher(input: "list", maxConcurrent: 3, as: "x"))
      .start(on: watched.loop)
    watched.run(to: 1.5)
    _ = watched.rows()
    run.cancel()
    try watched.finish(run)
    #expect(watched.notices == ["f/ItemOp 3/8 0 1.5 stopped"])
  }

  @Test("What lacks a row is counted, and failures have precedence")
  func hidden() throws {
    let watched = Watched()
    var runs: [Run] = []
    for number in 1...20 {
      let op = waitingOp("ItemOp", 10)
      let flow = Flow("f\(number)").data("list", [1, 2])
      if number == 17 {
        flow.addGrouped(
          waitingOp("FailOp", 1) { if $0.index == 1 { $0.fail(FlowError(.error, "no")) } },
          GroupDispatcher(input: "list", maxConcurrent: 1, allowFailure: true, as: "x"))
      } else {
        flow.addGrouped(op, GroupDispatcher(input: "list", as: "x"))
      }
      runs.append(flow.start(on: watched.loop))
    }
    watched.run(to: 1.5)
    // 20 flows and 20 groups; the leaves don't count.
    #expect(
      watched.rows(4) == [
        "f1 1.5s 0.0/1.0", "f2 1.5s 0.0/1.0", "f17 1.5s 0.0/1.0", "37 more",
      ])
    #expect(watched.tree.mainRow()?.row.name == "f17/FailOp")
    #expect(watched.tree.mainRow()?.others == 38)
    #expect(watched.rows(23).count == 23)
    #expect(watched.rows(0) == ["40 more"])
    for run in runs { run.cancel() }
    for run in runs { try? run.waitUntilEnd() }
    #expect(watched.tree.isEmpty)
  }

  @Test("A group reports only the first failures with a message")
  func manyFailures() throws {
    let watched = Watched()
    let item = Op("ItemOp") { context in throw FlowError(.error, "no") }
    let run = Flow("f").data("list", (1...1000).map { Int64($0) }.flowValue)
      .addGrouped(item, GroupDispatcher(input: "list", allowFailure: true, as: "x"))
      .start(on: watched.loop)
    try watched.finish(run)
    #expect(watched.notices.count == ProgressTree.failureLimit)
    #expect(watched.notices.last == "f/ItemOp #10: no, 1 (last)")
  }

  @Test("Cancelled executions aren't failures")
  func cancelled() throws {
    let watched = Watched()
    let run = Flow("f").data("list", [1, 2, 3])
      .addGrouped(waitingOp("ItemOp"), GroupDispatcher(input: "list", as: "x"))
      .start(on: watched.loop)
    watched.run(to: 0.5)
    _ = watched.rows()
    run.cancel()
    try watched.finish(run)
    #expect(watched.notices == ["f/ItemOp 0/3 0 0.5 stopped"])
  }

  @Test("No text has secrets")
  func secrets() throws {
    let watched = Watched()
    let run = Flow("f-hunter2").data("password", FlowValue.secret(.bytes("hunter2")))
      .add(failing("hunter2Op", "hunter2 failed", after: 1)).start(on: watched.loop)
    watched.run(to: 0.5)
    #expect(watched.rows() == ["f-<redacted> 0.5s 0.0/1.0", "  <redacted>Op 0.5s"])
    try watched.finish(run)
    #expect(watched.notices == ["f-<redacted>/<redacted>Op: <redacted> failed, 1"])
  }

  @Test("A machine shows its last transition")
  func machines() throws {
    let watched = Watched()
    var script = MachineScript("m", start: "one")
    script.step("one", waitingOp("OneOp"), .next(.forward(to: "two")))
    script.step("two", waitingOp("TwoOp"))
    let run = try script.make().start(on: watched.loop)
    watched.run(to: 1.5)
    #expect(watched.rows() == ["m 1.5s one -> two", "  TwoOp 0.5s"])
    try watched.finish(run)
  }

  @Test("Flows that only execute one another share a row, at any depth", .smallStack)
  func depth() throws {
    let watched = Watched()
    var flow = Flow("f0").add(waitingOp("DeepOp"))
    for level in 1...2_000 { flow = Flow("f\(level)").add(flow) }
    let run = flow.start(on: watched.loop)
    watched.run(to: 0.5)
    #expect(
      watched.rows() == ["f2000/f1999/f1998/f1997/…/f3/f2/f1/f0 0.5s 0.0/1.0", "  DeepOp 0.5s"])
    #expect(watched.tree.mainRow()?.others == 0)
    try watched.finish(run)
  }

  @Test("Many items at the same time cost no rows")
  func manyItems() throws {
    let watched = Watched()
    let count = 2_000
    let run = Flow("f").data("list", (0..<count).map { Int64($0) }.flowValue)
      .addGrouped(
        waitingOp("ItemOp", 5), GroupDispatcher(input: "list", maxConcurrent: count, as: "x")
      ).start(on: watched.loop)
    watched.run(to: 2)
    #expect(watched.rows().count == 5)
    #expect(
      watched.rows(2) == [
        "f 2.0s 0.0/1.0", "  ItemOp 2.0s 0.0/\(count).0 running \(count) failed 0",
      ])
    try watched.finish(run)
  }

  @Test("The observer is notified of changes from the time on that it has chosen")
  func observer() throws {
    final class Observer: ProgressTree.Observer {
      var times: [Int64] = []
      var ends = 0
      func progressChanged(at time: Int64) -> Int64 {
        times.append(time)
        return time + 2_000_000_000
      }
      func progressNoticed(_ notice: ProgressNotice) {}
      func progressEnded() { ends += 1 }
    }
    let watched = Watched()
    let observer = Observer()
    watched.tree.observer = observer
    let flow = Flow("f")
    for _ in 1...5 { flow.add(waitingOp("AOp")) }
    try watched.finish(flow.start(on: watched.loop))
    #expect(observer.times == [0, 2_000_000_000, 4_000_000_000])
    #expect(observer.ends == 1)
  }

  @Test("Any run leaves nothing in the tree, and each row is within the one that encloses it")
  func randomRuns() throws {
    for seed in RandomFlows.firstSeed..<RandomFlows.firstSeed + RandomFlows.count(150) {
      let watched = Watched()
      var maker = SpanFlowMaker(seed)
      let run = maker.flow(depth: 3).start(on: watched.loop)
      let limit = Int(maker.random.next() % 13)
      for step in 1...12 where run.state == .pending {
        watched.run(to: Double(step) / 8)
        let shown = watched.tree.rows(atMost: limit)
        #expect(
          shown.rows.count + (shown.hidden > 0 ? 1 : 0) <= max(limit, 1) + (limit == 1 ? 1 : 0))
        var depth = -1
        for row in shown.rows {
          #expect(row.depth <= depth + 1 && row.seconds >= 0, "seed \(seed)")
          depth = row.depth
        }
        if limit > 0, run.state == .pending {
          let name = shown.rows.first?.name.description ?? ""
          #expect(name == "\(run.name)" || name.hasPrefix("\(run.name)/"), "seed \(seed)")
        }
      }
      if maker.random.next() % 3 == 0 { run.cancel() }
      try watched.finish(run)
      _ = watched.loop.unobservedFailures
    }
  }
}
