import FlowEngine
import Testing

@Suite("The limit of a run's log")
struct LogLimitTests {
  @Test("Events can be read while old ones are dropped")
  func reading() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let log = Op("LogOp") { context in
      context.run.logLimit = 100
      var events = context.run.events.makeIterator()
      for number in 1...1000 {
        context.log("line \(number) of a thousand lines")
        if number % 7 == 0 { _ = events.next() }
      }
      while let event = events.next() { #expect(event.path.description.contains("LogOp")) }
    }
    let run = log.start(on: loop)
    try run.wait()
    let messages = run.events.compactMap { $0.kind == .log ? $0.message?.description : nil }
    #expect(run.state == .succeeded)
    #expect(messages.count <= 100)
    #expect(messages == (1...1000).suffix(messages.count).map { "line \($0) of a thousand lines" })
    #expect(messages.count + run.droppedEvents == 1000)
    #expect(run.events.filter { $0.kind == .start || $0.kind == .finish }.count == 2)
  }

  @Test("Texts of every length stay the same while old events are dropped", arguments: [10, 100])
  func texts(limit: Int) throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    func text(_ number: Int) -> String {
      "\(number)" + String(repeating: "-", count: number % 50 == 0 ? 2000 : number % 45)
    }
    let log = Op("LogOp") { context in
      context.run.logLimit = limit
      for number in 1...2000 { context.log(text(number)) }
    }
    let run = log.start(on: loop)
    try run.wait()
    let messages = run.events.compactMap { $0.kind == .log ? $0.message?.description : nil }
    #expect(messages.count + run.droppedEvents == 2000)
    #expect(messages == (1...2000).suffix(messages.count).map(text))
  }

  @Test(
    "Of many ops the oldest are dropped, whole; what was retried stays", arguments: [false, true])
  func manyOps(_ hasRetry: Bool) throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    var isFirst = true
    let again = Op("AgainOp") { context in
      context.run.logLimit = 300
      if hasRetry, isFirst {
        isFirst = false
        context.fail(FlowError(.error, "once more"))
      }
    }.with(retry: RetryPolicy(attempts: 2))
    let steps = Flow("steps").add(again)
    for number in 1...1000 { steps.add(Op("Step\(number)Op") { _ in }) }
    let run = steps.start(on: loop)
    try run.wait()
    let starts = run.events.filter { $0.kind == .start }.map(\.op)
    let finishes = run.events.filter { $0.kind == .finish }.map(\.op)
    let kept = starts.filter { $0.hasPrefix("Step") }
    // An op that was executing while others were dropped may be left alone.
    let last = (1...1000).suffix(225).map { "Step\($0)Op" as ByteString }
    #expect(Array(kept.suffix(225)) == last && kept.count <= 300)
    #expect(finishes.filter { $0.hasPrefix("Step") } == kept)
    #expect(starts.contains("AgainOp") == hasRetry)
    let counted = 2 * (1000 - kept.count) + (hasRetry ? 0 : 2)
    #expect(run.droppedEvents == counted)
  }

  @Test("Flows that enclose many ops begin before what is left of these, and end after it")
  func nestedFlows() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let all = Flow("all").add(Op("FirstOp") { context in context.run.logLimit = 400 })
    for number in 1...30 {
      let part = Flow("part\(number)")
      for step in 1...(20 + number) { part.add(Op("Step\(number)x\(step)Op") { _ in }) }
      all.add(part)
    }
    let run = all.start(on: loop)
    try run.wait()
    var open: [RunEvent] = []
    var ops: [String] = []
    var parts = 0
    for event in run.events {
      switch event.kind {
      case .start: open.append(event)
      case .finish:
        let last = open.popLast()
        let start = try #require(last)
        #expect(start.path == event.path && start.time <= event.time)
        if event.op.hasPrefix("part") { parts += 1 }
        if event.op.hasPrefix("Step") {
          ops.append(event.op.description)
          #expect(open.last.map { event.path.hasPrefix($0.path) } == true)
        }
      default: break
      }
    }
    #expect(open.isEmpty)
    let newest = (1...30).flatMap { number in
      (1...(20 + number)).map { "Step\(number)x\($0)Op" }
    }
    #expect(ops.count > 200 && ops.count < 400 && ops == newest.suffix(ops.count))
    // A flow of which nothing is left is dropped as its ops are.
    #expect(parts >= 9 && run.droppedEvents == 2 * (1 + newest.count - ops.count + 30 - parts))
  }

  @Test("Failures stay in the log, even if they exceed its limit")
  func failures() throws {
    let loop = FlowEventLoop(clock: VirtualClock())
    defer { loop.shutdown() }
    let fail = Op("FailOp", needs: ["number": "any"]) { context in
      context.log("a line")
      context.fail(FlowError(.error, "refused"))
    }
    let run = Flow("failing").data("numbers", Array(1...50))
      .add(Op("FirstOp") { context in context.run.logLimit = 10 })
      .addGrouped(fail, GroupDispatcher(input: "numbers", allowFailure: true))
      .start(on: loop)
    try run.waitUntilEnd()
    let failures = run.events.filter { (event: RunEvent) in
      event.kind == .finish && event.message == "withError: refused"
    }
    #expect(failures.count == 50)
    #expect(run.state == .succeeded)
  }
}
