@_spi(Scripting) import FlowEngine
import Testing

@Suite("The executor of items in a worker")
struct ItemExecutorTests {
  /// Records the messages of an executor and receives results when they are due.
  private final class Owner: ItemExecutorOwner {
    weak var executor: ItemExecutor?
    var ended: [Int] = []
    var outputs: [Int: FlowValue] = [:]
    var errors: [Int: FlowError] = [:]
    /// The messages received at once.
    var special: [Int] = []
    var refuses = false
    var onEnd: (() -> Void)?

    func problem(with output: any OpaqueValue) -> FlowError? {
      refuses ? FlowError(.error, "it can't travel") : nil
    }

    func itemEnded(at place: Int, of ends: borrowing ItemEnds) {
      special.append(Int(ends.indices[place]))
    }

    func endsAreDue(at time: Int64) {
      take()
      onEnd?()
    }

    func take() {
      guard let ends = executor?.takeEnds() else { return }
      for (place, index) in ends.indices.enumerated() {
        ended.append(Int(index))
        outputs[Int(index)] = ends.outputs[place]
      }
      for failure in ends.failures { errors[Int(ends.indices[failure.place])] = failure.error }
    }
  }

  private func executor(
    _ op: Op, _ owner: Owner, on loop: FlowEventLoop, limit: Int = 1, stopsAtFailure: Bool = false
  ) -> ItemExecutor {
    let executor = ItemExecutor(
      op, on: loop, data: [("base", .integer(100))], itemKey: "n", collectKey: "m", limit: limit,
      stopsAtFailure: stopsAtFailure, owner: owner)
    owner.executor = executor
    return executor
  }

  private let addOp = Op("AddOp", needs: ["n": "integer"], gives: ["m": "integer"]) { context in
    let n: Int = try context.value("n")
    let base: Int = try context.value("base")
    context.log("\(n)")
    context.set("m", n + base)
  }

  @Test("Items are executed in order over shared data")
  func itemsAreExecutedInOrderOverSharedData() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let owner = Owner()
    let executor = executor(addOp, owner, on: loop)
    executor.add(first: 4, [.integer(1), .integer(2)])
    executor.add(first: 9, [.integer(3)])
    loop.runUntilIdle()
    #expect(owner.ended == [4, 5, 9])
    #expect(owner.outputs[9]?.plainCopy() == PlainValue(.integer(103)))
    #expect(executor.count == 0)
    executor.end()
  }

  @Test("Items never execute beyond the limit")
  func noMoreThanTheLimitExecuteAtATime() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    for limit in [1, 2, 5] {
      let owner = Owner()
      var now = 0
      var most = 0
      let sleep = Op(
        name: "WaitOp",
        body: WaitingBody(
          began: {
            now += 1
            most = max(most, now)
          }, ended: { now -= 1 }))
      let executor = ItemExecutor(
        sleep, on: loop, data: [], itemKey: "n", collectKey: nil, limit: limit,
        stopsAtFailure: false, owner: owner)
      owner.executor = executor
      executor.add(first: 0, ContiguousArray((0..<20).map { .integer($0) }))
      loop.runUntilIdle()
      #expect(owner.ended.count == 20)
      #expect(most == limit)
      executor.end()
    }
  }

  @Test("No item begins between a failure and the cancellation of the group")
  func afterAFailureNothingBeginsUntilTheGroupCancels() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let owner = Owner()
    let executor = executor(addOp, owner, on: loop, stopsAtFailure: true)
    executor.add(first: 0, [.integer(1), .boolean(true), .integer(3)])
    loop.runUntilIdle()
    #expect(owner.ended == [0, 1])
    #expect(owner.errors[1]?.kind == .mismatchedInput)
    executor.cancel(.cancelled(reason: "group failed"))
    loop.runUntilIdle()
    #expect(owner.ended == [0, 1, 2])
    #expect(owner.errors[2]?.message == "cancelled: group failed")
    executor.end()
  }

  @Test("An output that can't be transferred fails its item")
  func anOutputThatCantTravelFailsItsItem() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let owner = Owner()
    owner.refuses = true
    let listOp = Op("ListOp") { $0.set($0.bucket.key("m"), .opaque(ListValue([.integer(1)]))) }
    let executor = executor(listOp, owner, on: loop)
    executor.add(first: 0, [.integer(1)])
    loop.runUntilIdle()
    #expect(owner.errors[0]?.message == "it can't travel")
    executor.end()
  }

  @Test("Results are kept until they are due")
  func endsAreKeptUntilTheyAreDue() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let owner = Owner()
    let executor = executor(addOp, owner, on: loop)
    executor.dueTime = .max
    executor.add(first: 0, [.integer(1), .boolean(true), .integer(3)])
    loop.runUntilIdle()
    #expect(owner.ended.isEmpty)
    #expect(owner.special == [1])
    #expect(executor.hasNews)
    owner.take()
    #expect(owner.ended == [0, 1, 2])
    #expect(owner.errors.keys.sorted() == [1])
    #expect(owner.outputs[2]?.plainCopy() == PlainValue(.integer(103)))
    executor.end()
  }

  @Test("The owner may cancel while it receives a result")
  func theOwnerMayCancelFromWithinAnEnd() {
    let loop = makeLoop()
    defer { loop.shutdown() }
    let owner = Owner()
    let executor = executor(addOp, owner, on: loop)
    owner.onEnd = { [unowned owner] in
      if owner.ended == [0] { executor.cancel(.cancelled()) }
    }
    executor.add(first: 0, [.integer(1), .integer(2)])
    loop.runUntilIdle()
    #expect(owner.ended == [0, 1])
    #expect(owner.errors[1]?.kind == .cancelled)
    executor.end()
  }

  /// The whole way: a group on one loop, whose items another one executes.
  @Test("The group's log has all events in order")
  func whatHappensStandsInTheGroupsLogInOrder() throws {
    for slices in [1, 2, 7] {
      let loop = makeLoop()
      defer { loop.shutdown() }
      let runner = ExecutingRunner(addOp, slices: slices)
      defer { runner.other.shutdown() }
      loop.makeItemRunner = { _ in
        runner.loop = loop
        return runner
      }
      let sink = LineSink()
      let run = Flow().data("ns", [1, 2, 3]).addGrouped(
        addOp, GroupDispatcher(input: "ns", output: "ms", maxConcurrent: 2)
      ).start(on: loop, sinks: slices == 7 ? [sink] : [])
      try run.wait()
      #expect(run.data.value("ms", as: [Int].self) == [101, 102, 103])
      let lines = body(run)
      #expect(
        lines.dropFirst().prefix(9).elementsEqual(
          (1...3).flatMap {
            [
              "[AddOp #\($0)] WillStart", "[AddOp #\($0)] \($0)",
              "[AddOp #\($0)] DidFinish: successfully",
            ]
          }))
      if slices == 7 {
        #expect(
          sink.kinds.dropFirst().prefix(9)
            == [.start, .log, .finish, .start, .log, .finish, .start, .log, .finish])
      }
      #expect(
        lines.contains("[FlowArrayGroupDispatcher] all finished. output size: 3"))
    }
  }
}

/// Has an executor on a loop of its own do the items at once, and hands over what happened in slices.
private final class ExecutingRunner: ItemRunner, ItemExecutorOwner {
  weak var loop: FlowEventLoop?
  private let op: Op
  private let slices: Int
  let other = makeLoop()
  private var executor: ItemExecutor?
  private weak var group: (any ExecutedItemGroup)?

  init(_ op: Op, slices: Int) {
    self.op = op
    self.slices = slices
  }

  var capacity: Int { 100 }
  var queues: Bool { true }

  func attach(to group: any ItemGroup) { self.group = group as? any ExecutedItemGroup }

  func start(_ batch: ItemBatch) {
    let executor = ItemExecutor(
      op, on: other, data: [("base", .integer(100))], itemKey: "n", collectKey: "m", limit: 1,
      stopsAtFailure: false, owner: self)
    self.executor = executor
    for index in batch.first..<batch.first + batch.count {
      executor.add(first: index, [group?.item(at: index) ?? .null])
      other.runUntilIdle()
      if slices > 1 { hand() }
    }
    hand()
    executor.end()
  }

  private func hand() {
    guard let executor else { return }
    group?.itemsExecuted(executor.takeSlice(), lane: 1, executor.takeEnds())
  }

  func cancel(_ error: FlowError) { executor?.cancel(error) }

  func problem(with output: any OpaqueValue) -> FlowError? { nil }
  func itemEnded(at place: Int, of ends: borrowing ItemEnds) {}
  func endsAreDue(at time: Int64) {}
}

private final class LineSink: EventSink {
  var kinds: [RunEvent.Kind] = []
  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) { kinds.append(event.kind) }
}

/// Waits a moment of the loop's clock.
private final class WaitingBody: OpBody {
  private let began: () -> Void
  private let ended: () -> Void

  init(began: @escaping () -> Void, ended: @escaping () -> Void) {
    self.began = began
    self.ended = ended
  }

  func start(_ context: OpContext) -> CallState {
    began()
    context.loop.schedule(after: .seconds(0.001)) { [ended] in
      ended()
      context.end()
    }
    return .suspended
  }
}
