import FlowEngine
import Testing

/// An op that holds limits for some seconds, and tells when it begins and ends.
private func holding(
  _ name: ByteString, _ limits: [Limit], _ seconds: Double = 1, needs: [Declaration] = [],
  fails: Bool = false, retry: RetryPolicy? = nil, timeout: Duration? = nil,
  changed: @escaping (_ by: Int) -> Void = { _ in }
) -> Op {
  Op(name: name, needs: needs, body: LimitedBody(seconds, fails: fails, changed)).with(
    retry: retry, timeout: timeout, limits: limits)
}

private final class LimitedBody: OpBody {
  let seconds: Double
  let fails: Bool
  let changed: (Int) -> Void

  init(_ seconds: Double, fails: Bool, _ changed: @escaping (Int) -> Void) {
    self.seconds = seconds
    self.fails = fails
    self.changed = changed
  }

  func start(_ context: OpContext) -> CallState {
    changed(1)
    context.state = context.loop.schedule(after: .seconds(seconds)) { [self] in
      changed(-1)
      context.end(fails ? FlowError(.error, "fails") : nil)
    }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? LoopTimer)?.cancel()
    changed(-1)
    context.end(error)
  }
}

@Suite("Limits")
struct LimitTests {
  @Test("A limit lets so many execute, the first ones first")
  func aLimitLetsSoManyExecute() throws {
    let loop = makeLoop()
    let limit = Limit("db", maxConcurrent: 2)
    var order: [ByteString] = []
    let names: [ByteString] = ["a", "b", "c", "d", "e"]
    let runs = names.map { name in
      holding(name, [limit]) { if $0 > 0 { order.append(name) } }.start(on: loop)
    }
    #expect(limit.running == 2)
    #expect(limit.waiting == 3)
    for run in runs { try run.wait() }
    #expect(order == names)
    #expect(runs.map(\.duration) == [1, 1, 2, 2, 3].map { .seconds($0) })
    #expect(limit.running == 0)
  }

  @Test("Items of groups and steps of flows share it with ops")
  func itemsAndStepsShareIt() throws {
    let loop = makeLoop()
    let limit = Limit("db", maxConcurrent: 1)
    let flow = Flow("f").add(holding("StepOp", []).with(limits: [limit]))
    let need = Declaration("n", try FlowValueType.parse("integer"))
    let group = Flow("g").addGrouped(
      holding("ItemOp", [], needs: [need]),
      GroupDispatcher(input: "ns", maxConcurrent: 3, limits: [limit]))
    let first = flow.start(on: loop)
    let second = group.start(on: loop, data: ["ns": [1, 2]])
    #expect(limit.waiting == 2)
    try first.wait()
    try second.wait()
    #expect(second.duration == .seconds(3))
  }

  @Test("A loop that is shut down leaves no holder and no waiter")
  func aLoopThatIsShutDownLeavesNone() {
    let limit = Limit("db", maxConcurrent: 1)
    let loop = makeLoop()
    _ = holding("a", [limit]).start(on: loop)
    _ = holding("b", [limit]).start(on: loop)
    _ = Flow("f").add(holding("c", [limit])).start(on: loop)
    #expect(limit.waiting == 2)
    loop.shutdown()
    #expect(limit.running == 0)
    #expect(limit.waiting == 0)
  }

  @Test("Whatever happens, limits hold and are given back", arguments: 0..<500 as Range<UInt64>)
  func limitsHold(seed: UInt64) {
    let loop = makeLoop()
    var random = SeededGenerator(state: seed)
    let limits = (1...3).map {
      Limit("l\($0)", maxConcurrent: Int.random(in: 1...3, using: &random))
    }
    var running = [0, 0, 0]
    var runs: [Run] = []
    for number in 0..<Int.random(in: 1...12, using: &random) {
      let wanted = limits.indices.filter { _ in Bool.random(using: &random) }
      let op = holding(
        "op\(number)", wanted.shuffled(using: &random).map { limits[$0] },
        Double(Int.random(in: 0...3, using: &random)),
        fails: Int.random(in: 0...2, using: &random) == 0,
        retry: Bool.random(using: &random) ? RetryPolicy(attempts: 2, delay: .seconds(1)) : nil,
        timeout: Bool.random(using: &random) ? .seconds(2) : nil
      ) { change in
        for index in wanted {
          running[index] += change
          #expect(running[index] <= limits[index].maxConcurrent)
          #expect(limits[index].running >= running[index])
        }
      }
      runs.append((Bool.random(using: &random) ? op : Flow("f").add(op)).start(on: loop))
      if Int.random(in: 0...3, using: &random) == 0, let run = runs.randomElement(using: &random) {
        loop.schedule(after: .seconds(Int.random(in: 0...4, using: &random))) {
          run.cancel(reason: "random")
        }
      }
    }
    loop.runUntilIdle()
    #expect(runs.allSatisfy { $0.isConcluded && $0.error?.kind != .stalled })
    #expect(limits.allSatisfy { $0.running == 0 && $0.waiting == 0 })
    for run in runs { run.markObserved() }
  }
}
