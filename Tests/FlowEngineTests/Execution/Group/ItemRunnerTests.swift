import FlowEngine
import Testing

@Suite("Runners of items")
struct ItemRunnerTests {
  let op = Op("SquareOp", primaryInput: "item", primaryOutput: "square") { _ in
    Issue.record("an item of another runner was executed on the loop")
  }

  func start(
    _ runner: FakeRunner, items: Int, on loop: FlowEventLoop, limit: Int = 100,
    allowFailure: Bool = false
  ) -> Run {
    loop.makeItemRunner = { work in
      #expect(work.count == items && work.maxConcurrent == limit)
      #expect(work.collectKey == work.data.key("square"))
      runner.loop = work.run.loop
      return runner
    }
    return Flow().data("items", Array(0..<items))
      .addGrouped(
        op,
        GroupDispatcher(
          input: "items", output: "squares", maxConcurrent: limit, allowFailure: allowFailure)
      ).start(on: loop)
  }

  @Test("Outputs keep their places in any order of the results")
  func outputsKeepTheirPlacesWhateverTheOrderOfTheResults() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 4)
    let run = start(runner, items: 3, on: loop)
    #expect(runner.batches == ["0+3@1"])
    runner.succeed(2)
    runner.succeed(0)
    runner.succeed(1)
    try run.wait()
    #expect(run.data.value("squares", as: [Int].self) == [0, 1, 4])
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 3", "[SquareOp #3] WillStart",
        "[SquareOp #3] DidFinish: successfully", "[SquareOp #1] WillStart",
        "[SquareOp #1] DidFinish: successfully", "[SquareOp #2] WillStart",
        "[SquareOp #2] DidFinish: successfully",
        "[FlowArrayGroupDispatcher] all finished. output size: 3",
        "[DataBucket] add for squares: {0, 1, 4}",
      ])
  }

  @Test("A rate limits what is handed out, lost items included")
  func rate() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 4)
    loop.makeItemRunner = { work in
      #expect(work.hasRate)
      runner.loop = work.run.loop
      return runner
    }
    let run = Flow().data("items", Array(0..<6))
      .addGrouped(
        op,
        GroupDispatcher(
          input: "items", output: "squares", maxConcurrent: 9, rate: RateLimit(3, per: .seconds(10))
        )
      ).start(on: loop)
    #expect(runner.batches == ["0+3@1"])
    runner.lose(1)
    runner.succeed(0)
    loop.schedule(at: 9_000_000_000) { #expect(runner.batches.count == 1) }
    loop.schedule(at: 10_000_000_001) {
      #expect(runner.batches == ["0+3@1", "1+1@2", "3+2@1"])
      runner.answersAtOnce = true
      for index in 1...4 { runner.succeed(index) }
    }
    try run.waitUntilEnd()
    #expect(run.error == nil && run.duration == .seconds(20))
    #expect(runner.batches.last == "5+1@1")
  }

  @Test("Neither capacity nor limit is exceeded")
  func neitherCapacityNorLimitIsExceeded() throws {
    for (capacity, limit) in [(1, 1), (2, 7), (7, 2), (3, 3), (100, 100), (Int.max, 5)] {
      let loop = makeLoop()
      let runner = FakeRunner(capacity: capacity)
      runner.answersLater = true
      let run = start(runner, items: 20, on: loop, limit: limit)
      try run.wait()
      #expect(run.data.value("squares", as: [Int].self) == (0..<20).map { $0 * $0 })
      #expect(runner.most == min(capacity, limit, 20))
    }
  }

  @Test("A runner may deliver results during start")
  func resultsMayComeFromWithinStart() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 2)
    runner.answersAtOnce = true
    let run = start(runner, items: 10_001, on: loop)
    #expect(run.state == .succeeded)
    #expect(run.data.value("squares", as: [Int].self)?.last == 100_000_000)
  }

  @Test("An op may provide the runner")
  func theOpMayMakeTheRunner() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 9)
    runner.loop = loop
    loop.makeItemRunner = { _ in
      Issue.record("the op comes first")
      return nil
    }
    let distributed = Op(name: "FarOp", primaryInput: "item", body: DistributedBody(runner))
    let run = Flow().data("items", [5]).addGrouped(distributed, GroupDispatcher(input: "items"))
      .start(on: loop)
    runner.succeed(0)
    try run.wait()
    #expect(run.state == .succeeded)
  }

  @Test("A full runner is asked again after its notification")
  func aRunnerThatIsFullIsAskedAgainWhenItSaysSo() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 0)
    let run = start(runner, items: 2, on: loop)
    #expect(runner.batches.isEmpty)
    runner.capacity = 2
    runner.group?.capacityChanged()
    loop.runUntilIdle()
    #expect(runner.batches == ["0+2@1"])
    runner.succeed(0)
    runner.succeed(1)
    try run.wait()
    #expect(run.state == .succeeded)
  }

  @Test("A lost item is started again with the next attempt")
  func aLostItemIsStartedAgainWithTheNextAttempt() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 1)
    let run = start(runner, items: 2, on: loop)
    runner.group?.itemStarted(0, attempt: 1, time: nil)
    runner.group?.itemLogged(0, attempt: 1, "working")
    runner.lose(0)
    loop.runUntilIdle()
    #expect(runner.batches == ["0+1@1", "0+1@2"])
    // The first execution wasn't lost after all, but doesn't count any more.
    runner.group?.itemLogged(0, attempt: 1, "late")
    runner.group?.itemEnded(0, attempt: 1, output: .integer(-1), error: nil, time: nil)
    runner.group?.itemStarted(0, attempt: 2, time: nil)
    runner.succeed(0)
    // Nor does what comes twice.
    runner.group?.itemEnded(0, attempt: 2, output: .integer(-2), error: nil, time: nil)
    runner.group?.itemLost(0, attempt: 2)
    loop.runUntilIdle()
    runner.succeed(1)
    try run.wait()
    #expect(run.data.value("squares", as: [Int].self) == [0, 1])
    #expect(runner.batches == ["0+1@1", "0+1@2", "1+1@1"])
    #expect(
      body(run).prefix(5) == [
        "[FlowArrayGroupDispatcher] group created: 2", "[SquareOp #1] WillStart",
        "[SquareOp #1] working", "[SquareOp #1] Retry 2/3 in 0s: lost with what executed it",
        "[SquareOp #1] DidFinish: successfully",
      ])
  }

  @Test("An item that is lost too often fails by name")
  func anItemThatIsLostTooOftenFailsByName() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 5)
    let run = start(runner, items: 2, on: loop, allowFailure: true)
    for _ in 0..<5 {
      runner.lose(1)
      loop.runUntilIdle()
    }
    runner.succeed(0)
    try run.waitUntilEnd()
    #expect(runner.batches == ["0+2@1", "1+1@2", "1+1@3"])
    #expect(
      body(run)[2]
        == "[SquareOp #2] DidFinish: withError: [SquareOp #2] was lost 3 times with what executed "
        + "it")
    #expect(run.data.value("squares", as: [Int].self) == [0])
  }

  @Test("The first failure cancels all started items")
  func theFirstFailureCancelsWhatIsOut() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 3)
    let run = start(runner, items: 9, on: loop, limit: 3)
    for index in 0..<2 { runner.group?.itemStarted(index, attempt: 1, time: nil) }
    runner.end(1, FlowError(.error, "no"))
    #expect(run.state == .pending)
    try run.waitUntilEnd()
    #expect(runner.cancellations.map(\.message) == ["cancelled: group failed"])
    #expect(run.error?.message == "no")
    #expect(run.error?.op == "SquareOp #2")
    // The third was only queued, and leaves no line.
    #expect(
      body(run) == [
        "[FlowArrayGroupDispatcher] group created: 9", "[SquareOp #1] WillStart",
        "[SquareOp #2] WillStart", "[SquareOp #2] DidFinish: withError: no",
        "[Group] not allow failure in group. stop immediately.",
        "[SquareOp #1] DidFinish: cancelled: group failed",
      ])
  }

  @Test("An item without its output fails")
  func anItemWithoutItsOutputFails() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 3)
    let run = start(runner, items: 1, on: loop)
    runner.group?.itemEnded(0, attempt: 1, output: .null, error: nil, time: nil)
    try run.waitUntilEnd()
    #expect(run.error?.kind == .missingOutput)
  }

  @Test("A runner that never delivers stalls its items")
  func aRunnerThatNeverAnswersStallsItsItems() {
    for (capacity, name) in [(1, "SquareOp #1"), (0, "SquareOp")] {
      let loop = makeLoop()
      let runner = FakeRunner(capacity: capacity)
      runner.endsWhenAsked = false
      let run = start(runner, items: 2, on: loop)
      #expect(throws: FlowError.self) { try run.waitUntilEnd() }
      #expect(run.error?.message == ByteString("stalled: [\(name)] never finished"))
    }
  }

  @Test("Times of items are those of the runner, within reason")
  func timesAreThoseOfTheRunnerWithinReason() throws {
    let loop = makeLoop()
    let runner = FakeRunner(capacity: 1)
    let run = start(runner, items: 1, on: loop)
    loop.schedule(at: 5_000_000_000) {
      runner.group?.itemStarted(0, attempt: 1, time: 2_000_000_000)
      runner.group?.itemEnded(
        0, attempt: 1, output: .integer(0), error: nil, time: 900_000_000_000)
    }
    try run.wait()
    #expect(
      run.events.filter { $0.op == "SquareOp" && $0.index == 1 }.map(\.time) == [
        .seconds(2), .seconds(5),
      ])
  }

  @Test("The runner is released with its group")
  func theRunnerIsReleasedWithItsGroup() throws {
    let loop = makeLoop()
    weak var released: FakeRunner?
    do {
      let runner = FakeRunner(capacity: 1)
      released = runner
      let run = start(runner, items: 1, on: loop)
      let group = try #require(runner.group)
      runner.succeed(0)
      try run.wait()
      runner.group = nil
      loop.makeItemRunner = nil
      // Code that still has the group talks to nobody.
      group.itemEnded(0, attempt: 1, output: .integer(7), error: nil, time: nil)
      group.capacityChanged()
      loop.runUntilIdle()
    }
    #expect(released == nil)
  }
}

/// Executes nothing: the test says what becomes of the items.
final class FakeRunner: ItemRunner {
  var capacity: Int
  weak var loop: FlowEventLoop?
  weak var group: (any ItemGroup)?
  /// Items succeed within `start`, or one by one as jobs, the last one first.
  var answersAtOnce = false
  var answersLater = false
  var endsWhenAsked = true
  private(set) var batches: [String] = []
  private(set) var cancellations: [FlowError] = []
  private(set) var most = 0
  private var attempts: [Int: UInt32] = [:]

  init(capacity: Int) {
    self.capacity = capacity
  }

  func attach(to group: any ItemGroup) { self.group = group }

  func start(_ batch: ItemBatch) {
    batches.append("\(batch.first)+\(batch.count)@\(batch.attempt)")
    #expect(batch.count > 0 && batch.count <= capacity)
    capacity -= batch.count
    let items = batch.first..<batch.first + batch.count
    for index in items { attempts[index] = batch.attempt }
    most = max(most, attempts.count)
    for index in items.reversed() {
      if answersAtOnce { succeed(index) }
      if answersLater { loop?.enqueue { self.succeed(index) } }
    }
  }

  func cancel(_ error: FlowError) {
    cancellations.append(error)
    if endsWhenAsked { for index in attempts.keys.sorted() { end(index, error) } }
  }

  func succeed(_ index: Int) {
    guard case .integer(let item) = group?.item(at: index) else { return }
    end(index, nil, .integer(item * item))
  }

  func end(_ index: Int, _ error: FlowError?, _ output: FlowValue = .null) {
    guard let attempt = attempts.removeValue(forKey: index) else { return }
    capacity += 1
    group?.itemEnded(index, attempt: attempt, output: output, error: error, time: nil)
  }

  func lose(_ index: Int) {
    guard let attempt = attempts.removeValue(forKey: index) else { return }
    capacity += 1
    group?.itemLost(index, attempt: attempt)
  }
}

/// The body of an op whose groups run elsewhere.
final class DistributedBody: ItemRunnerProvider {
  private let runner: FakeRunner

  init(_ runner: FakeRunner) {
    self.runner = runner
  }

  func start(_ context: OpContext) -> CallState { .finished }

  func itemRunner(for work: ItemWork) -> (any ItemRunner)? { runner }
}
