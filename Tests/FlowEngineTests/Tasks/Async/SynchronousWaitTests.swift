import FlowEngine
import Testing

/// Waits for runs that block threads of Swift's cooperative pool, as tests and child tasks do. The pool has
/// one thread for each core; there are more waits than that.
@Suite("Synchronous waits within Swift tasks")
struct SynchronousWaitTests {
  @Test("Child tasks wait for concurrent ops at the same time")
  func childTasksWaitForConcurrentOpsAtTheSameTime() async throws {
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for number in 0..<16 { group.addTask { try double(number) } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 240)
  }

  @Test("Parallel tests wait for async code", arguments: 0..<16)
  func parallelTestsWaitForAsyncCode(_ number: Int) throws {
    let loop = FlowEventLoop()
    defer { loop.shutdown() }
    let run = Op("ElsewhereOp") { (context) async throws in
      try await Task.sleep(for: .milliseconds(1))
      async let first = Counter().next(after: number)
      let second = await withTaskGroup(of: Int.self) { group in
        for each in 0..<4 { group.addTask { each } }
        return await group.reduce(0, +)
      }
      context.set("sum", Int64(await first + second))
    }.start(on: loop)
    try run.wait()
    #expect(run.data.integer("sum") == Int64(number + 7))
  }

  @Test("Concurrent ops wait for runs of their own")
  func concurrentOpsWaitForRunsOfTheirOwn() throws {
    #expect(try depthBelow(17) == 16)
  }
}

private actor Counter {
  func next(after number: Int) -> Int { number + 1 }
}

private struct DoubleOp: ConcurrentTypedOp {
  let number = Input<Int>("number")
  let double = Output<Int>("double")

  @concurrent func run(_ data: inout ConcurrentOpData<DoubleOp>) async throws {
    await Task.yield()
    data.double = data.number * 2
  }
}

/// Waits on a loop of its own for an op of its kind, until none is left.
private struct NestedOp: ConcurrentTypedOp {
  let level = Input<Int>("level")
  let depth = Output<Int>("depth")

  @concurrent func run(_ data: inout ConcurrentOpData<NestedOp>) async throws {
    data.depth = data.level == 0 ? 0 : 1 + (try depthBelow(data.level))
  }
}

private func double(_ number: Int) throws -> Int {
  let loop = FlowEventLoop()
  defer { loop.shutdown() }
  let run = DoubleOp().makeOp().start(
    on: loop, data: InitialData([("number", .integer(Int64(number)))]))
  try run.wait()
  return Int(run.data.integer("double") ?? 0)
}

private func depthBelow(_ level: Int) throws -> Int {
  let loop = FlowEventLoop()
  defer { loop.shutdown() }
  let run = NestedOp().makeOp().start(
    on: loop, data: InitialData([("level", .integer(Int64(level - 1)))]))
  try run.wait()
  return Int(run.data.integer("depth") ?? 0)
}
