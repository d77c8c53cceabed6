import FlowEngine
import Testing

/// Counts how many elements were asked for.
private struct Numbers: AsyncSequence, AsyncIteratorProtocol {
  let last: Int
  let fails: Bool
  let asked: (Int) -> Void
  var next = 0

  func makeAsyncIterator() -> Numbers { self }

  mutating func next() async throws -> Int? {
    asked(next)
    if next == last {
      if fails { throw FlowError(.error, "the disk is gone") }
      return nil
    }
    next += 1
    return next
  }
}

@Suite("Items of sequences")
struct ItemFeedTests {
  private func group(_ limit: Int, _ body: @escaping (OpContext) -> Void) throws -> Flow {
    let need = Declaration("n", try FlowValueType.parse("integer"))
    let give = Declaration("m", try FlowValueType.parse("integer"))
    return Flow("g").addGrouped(
      waitingOp("ItemOp", needs: [need], gives: [give], body: body),
      GroupDispatcher(input: "ns", output: "ms", maxConcurrent: limit))
  }

  @Test("A group takes the elements of an async sequence one by one")
  func aGroupTakesElementsOneByOne() throws {
    let loop = makeLoop()
    var (asked, ended, most) = (0, 0, 0)
    let flow = try group(2) { context in
      ended += 1
      context.set("m", context.index * 10)
    }
    let numbers = Numbers(last: 5, fails: false) { number in
      asked = number
      most = max(most, number - ended)
    }
    let run = flow.start(on: loop, data: ["ns": FlowValue.items(of: numbers)])
    try run.wait()
    #expect(run.data["ms"]?.logText == "{10, 20, 30, 40, 50}")
    #expect(run.duration == .seconds(3))
    #expect(asked == 5)
    #expect(most <= 3)
  }

  @Test("An error of the sequence fails the group, with the number of the item")
  func anErrorFailsTheGroup() throws {
    let loop = makeLoop()
    let flow = try group(1) { $0.set("m", 1) }
    let run = flow.start(
      on: loop, data: ["ns": FlowValue.items(of: Numbers(last: 3, fails: true) { _ in })])
    try run.waitUntilEnd()
    #expect(run.error?.message == "<ns> failed at item #4: the disk is gone")
    run.markObserved()
  }

  @Test("A group that is stopped stops the sequence")
  func aStoppedGroupStopsTheSequence() throws {
    let loop = makeLoop()
    var asked = 0
    let flow = try group(1) { $0.set("m", 1) }
    let run = flow.start(
      on: loop, data: ["ns": FlowValue.items(of: Numbers(last: .max, fails: false) { asked = $0 })])
    loop.schedule(after: .seconds(2.5)) { run.cancel(reason: "enough") }
    try run.waitUntilEnd()
    #expect(run.state == .cancelled)
    #expect(asked <= 4)
    #expect(loop.pendingTasks.isEmpty)
  }

  @Test("A group ends early when its results suffice")
  func aGroupEndsEarly() throws {
    let loop = makeLoop()
    let need = Declaration("n", try FlowValueType.parse("integer"))
    let give = Declaration("m", try FlowValueType.parse("integer"))
    let flow = Flow("g").addGrouped(
      waitingOp("ItemOp", needs: [need], gives: [give]) { $0.set("m", $0.index) },
      GroupDispatcher(
        input: "ns", output: "ms", maxConcurrent: 2,
        stopWhen: { outputs, ended in
          #expect(outputs.count == ended)
          return ended == 3
        }))
    let run = flow.start(
      on: loop, data: ["ns": FlowValue.items(of: Numbers(last: .max, fails: false) { _ in })])
    try run.wait()
    #expect(["{1, 2, 3, 4}", "{1, 2, 3}"].contains(run.data["ms"]?.logText))
  }
}
