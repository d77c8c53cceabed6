@_spi(Scripting) import FlowEngine
import Testing

@Suite("Cancellation of deep and large flows")
struct CancellationDepthTests {
  @Test("Nested flows of any depth are cancelled without recursion", .smallStack)
  func nestedFlowsOfAnyDepthAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var flow = Flow("f").add(waitingOp("SlowOp", 9))
    for _ in 0..<Scale.nesting {
      flow = Flow("f").add(flow.with(timeout: .seconds(100))).addFinally(quick("CloseOp"))
    }
    let run = flow.start(on: loop)
    loop.schedule(at: 1) { run.cancel() }
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(
      run.events.reduce(0) { $0 + ($1.op == "CloseOp" && $1.kind == .finish ? 1 : 0) }
        == Scale.nesting)
  }

  @Test("Nested groups of any depth are cancelled without recursion", .smallStack)
  func nestedGroupsOfAnyDepthAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var flow = Flow("f").add(waitingOp("SlowOp", 9))
    for _ in 0..<Scale.nesting { flow = Flow("f").addParallel(flow) }
    let run = flow.start(on: loop)
    loop.schedule(at: 1) { run.cancel() }
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(run.duration == .seconds(1e-9))
  }

  @Test("Ten thousand members are cancelled at once", .smallStack)
  func tenThousandMembersAreCancelledAtOnce() throws {
    let loop = makeLoop()
    let count = Scale.depth
    var begun = 0
    let op = Op(name: "ItemOp", primaryInput: "i", body: HoldingBody { _ in begun += 1 })
    let items = ContiguousArray(repeating: FlowValue.integer(1), count: count)
    let run = Flow("f")
      .addGrouped(op, GroupDispatcher(input: "items", maxConcurrent: count))
      .start(on: loop, data: InitialData([("items", .opaque(ListValue(items)))]))
    while begun < count, loop.turn(mayBlock: false) == .worked {}
    run.cancel(reason: "enough")
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    let finished = run.events.reduce(0) { $1.kind == .finish ? $0 + 1 : $0 }
    #expect(finished == count)
    #expect(loop.pendingRuns.isEmpty)
  }

  @Test("Runs nested in one another are cancelled without recursion", .smallStack)
  func runsNestedInOneAnotherAreCancelledWithoutRecursion() throws {
    let loop = makeLoop()
    var depth = 0
    var deepest: Run?
    var op: Op?
    let nesting = Op(
      name: "NestOp",
      body: HoldingBody { context in
        depth += 1
        guard depth < Scale.nesting else { return }
        // Not from within: starting is recursion of the op's own.
        loop.enqueue { if let op { deepest = context.start(op) } }
      })
    op = nesting
    let run = nesting.start(on: loop)
    loop.runUntilIdle()
    #expect(depth == Scale.nesting)
    #expect(loop.pendingRuns.count == Scale.nesting)
    run.cancel(reason: "enough")
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(deepest?.error?.message == "cancelled: enough")
    #expect(loop.pendingRuns.isEmpty)
    // The bodies of the runs hold these.
    op = nil
    deepest = nil
  }

  @Test("Runs nested in one another end without recursion", .smallStack)
  func runsNestedInOneAnotherEndWithoutRecursionToo() throws {
    let loop = makeLoop()
    var depth = 0
    var op: Op?
    let nesting = Op(
      name: "NestOp",
      body: HoldingBody { context in
        depth += 1
        let isDeepest = depth == Scale.nesting
        loop.enqueue {
          if !isDeepest, let op { _ = context.start(op) }
          context.end()
        }
      })
    op = nesting
    let run = nesting.start(on: loop)
    try run.wait()
    #expect(depth == Scale.nesting || run.isConcluded)
    loop.runUntilIdle()
    #expect(loop.pendingRuns.isEmpty)
    op = nil
  }
}
