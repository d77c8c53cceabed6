import FlowEngine
import Testing

private struct CountTo: AsyncTypedOp {
  let rows = WriteStream<Int>("rows")
  let wanted = Output<Int>("wanted")
  let last: Int

  func run(_ data: OpData<CountTo>) async throws {
    var count = 0
    for row in 1...last {
      guard try await data.emit(\.rows, row) else { break }
      count = row
    }
    data.wanted = count
  }
}

private struct Sum: AsyncTypedOp {
  let rows = ReadStream<Int>("rows")
  let sum = Output<Int>("sum")
  var most = Int.max
  var seconds = 0.0

  func run(_ data: OpData<Sum>) async throws {
    var (sum, count) = (0, 0)
    for try await row in try data.rows {
      sum += row
      count += 1
      if count == most { break }
      try await data.sleep(for: .seconds(seconds))
    }
    data.sum = sum
  }
}

@Suite("Streams of typed ops")
struct TypedStreamTests {
  private func graph(_ last: Int, _ reader: Sum, buffer: Int? = nil) -> Graph {
    Graph("g").add(reader.makeOp()).add(CountTo(last: last).makeOp(), buffer: buffer)
  }

  @Test("Items pass while both ops execute", arguments: [1, 10, 1000])
  func itemsPass(last: Int) throws {
    let loop = makeLoop()
    let run = graph(last, Sum()).start(on: loop)
    try run.wait()
    #expect(run.data.value("sum", as: Int.self) == last * (last + 1) / 2)
    #expect(run.data.value("wanted", as: Int.self) == last)
    #expect(run.data["rows"] == nil)
  }

  @Test("A slow reader holds the writer back, and the end of all readers ends it")
  func readers() throws {
    let loop = makeLoop()
    let run = graph(1000, Sum(most: 5, seconds: 1), buffer: 2).start(on: loop)
    try run.wait()
    #expect(run.data.value("sum", as: Int.self) == 15)
    #expect((5...8).contains(try #require(run.data.value("wanted", as: Int.self))))
    #expect(run.duration == .seconds(4))
  }

  @Test("A list is read as a stream")
  func list() throws {
    let loop = makeLoop()
    let run = Sum().makeOp().start(on: loop, data: ["rows": [1, 2, 3]])
    try run.wait()
    #expect(run.data.value("sum", as: Int.self) == 6)
  }

  @Test("A writer that fails, is stopped, or writes an item of another type ends the graph")
  func failures() throws {
    let loop = makeLoop()
    let bad = Op("BadOp", gives: ["rows": "stream<integer>"]) { context in
      try await context.emit("rows", 1)
      try await context.emit("rows", "two")
    }
    let run = Graph("g").add(Sum().makeOp()).add(bad).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.kind == .mismatchedOutput)
    #expect(run.error?.message.description.contains("<rows[2]>") == true)
    run.markObserved()
    let stopped = graph(1_000_000, Sum(seconds: 1)).start(on: loop)
    loop.schedule(after: .seconds(5)) { stopped.cancel(reason: "enough") }
    try stopped.waitUntilEnd()
    #expect(stopped.state == .cancelled)
    #expect(loop.pendingTasks.isEmpty)
  }

  @Test("In a flow, an op that writes a stream fails with a sentence that names graphs")
  func flow() throws {
    let loop = makeLoop()
    let run = Flow("f").add(CountTo(last: 1).makeOp()).start(on: loop)
    try run.waitUntilEnd()
    #expect(run.error?.message.description.contains("flow.graph") == true)
    run.markObserved()
  }
}
