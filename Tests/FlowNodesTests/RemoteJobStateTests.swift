import FlowEngine
import Testing

@testable import FlowNodes
@testable import FlowScripting

@Suite("Where a job on other nodes is")
struct RemoteJobStateTests {
  typealias State = RemoteJobState

  /// Actions by their names, with what matters of them.
  private static func names(_ actions: [State.Action]) -> [String] {
    actions.map { action in
      switch action {
      case .prepare: "prepare"
      case .putAgain: "put again"
      case .withdraw: "withdraw"
      case .requestStop(.max, .stopped): "request stop"
      case .requestStop(let delivery, let reason): "request stop of \(delivery): \(reason)"
      case .noteHandout: "note handout"
      case .begin(let lane): "begin \(lane)"
      case .loseNode(let name): "lose \(name)"
      case .noteTime(let time): "time \(time)"
      case .fetch: "fetch"
      case .removeFiles: "remove files"
      case .pass(.log(let text), _): "pass \(text)"
      case .pass: "pass"
      case .look(let hashes): "look for \(hashes.count)"
      case .end(.reported(.ended(let error, _, _), _)): error == nil ? "success" : "failure"
      case .end(let end): "end: \(end)"
      }
    }
  }

  private static let now: Int64 = 1_000_000_000_000

  private static let success = RemoteReport.News.event(
    .ended(nil, result: .null, WireBatch()), age: 0)
  private static let log = RemoteReport.News.event(.log("line"), age: 0)

  /// A report about a hand-out of a round, from a worker of `m1` or another lane.
  private static func report(
    round: UInt64 = 1, delivery: UInt64 = 1, lane: ByteString = "m1/1", place: UInt64 = 0,
    took: Int64 = 0, _ news: RemoteReport.News...
  ) -> RemoteReport {
    RemoteReport(
      number: 7, delivery: round << 8 | delivery, lane: lane, took: took, news: news, place: place)
  }

  /// A job in the queue, and what reports about it have led to.
  private static func queued(_ reports: RemoteReport...) -> State {
    var state = State(hasFiles: true, at: now)
    state.put()
    for report in reports { _ = state.take(report, at: now) }
    return state
  }

  private static func took(_ report: RemoteReport, _ state: inout State) -> [String] {
    names(state.take(report, at: now))
  }

  @Test("A short job is handed out, begins and ends in one report")
  func short() {
    var state = Self.queued()
    #expect(
      Self.took(Self.report(took: 5, Self.log, Self.success), &state) == [
        "note handout", "begin m1/1", "time 5", "pass line", "success",
      ])
    #expect(state.hasEnded)
    #expect(Self.took(Self.report(place: 1, Self.success), &state) == ["remove files"])
    #expect(Self.names(state.stop(at: Self.now)) == [])
    #expect(Self.names(state.look(State.World(now: .max, hasNode: false))) == [])
  }

  @Test("The first report says that a node has it, the next one that a worker has begun it")
  func beginning() {
    var state = Self.queued()
    #expect(Self.took(Self.report(lane: "m1"), &state) == ["note handout"])
    #expect(state.lanes == ["m1"])
    #expect(Self.took(Self.report(), &state) == ["begin m1/1"])
    #expect(state.lanes == ["m1/1"] && state.node == "m1")
  }

  @Test("Reports count in the order in which they were sent, each once")
  func order() {
    var state = Self.queued(Self.report())
    #expect(Self.took(Self.report(place: 1, Self.success), &state) == [])
    #expect(Self.took(Self.report(place: 0, Self.log), &state) == ["pass line", "success"])
  }

  @Test("A report about an earlier hand-out stops it there, unless it was the last one")
  func late() {
    var state = Self.queued(Self.report(delivery: 2))
    #expect(
      Self.took(Self.report(delivery: 1, Self.log), &state) == [
        "remove files", "request stop of 257: executesElsewhere",
      ])
    #expect(Self.took(Self.report(delivery: 1, place: 1, Self.success), &state) == ["remove files"])
    #expect(!state.hasEnded)
  }

  @Test("A later hand-out replaces one that had begun, whose node is lost")
  func replaced() {
    var state = Self.queued(Self.report(Self.log))
    #expect(
      Self.took(Self.report(delivery: 2, lane: "m2/3"), &state) == [
        "lose m1", "note handout", "begin m2/3",
      ])
    #expect(state.lanes == ["m1/1", "m2/3"])
  }

  @Test("Of an earlier round only a success counts")
  func earlierRound() {
    var state = Self.queued()
    state.put()
    #expect(
      Self.took(Self.report(round: 1, Self.log), &state) == [
        "remove files", "request stop of 257: executesElsewhere",
      ])
    let failure = RemoteReport.News.event(
      .ended(
        WireError(plain: FlowError(.error, "broken"), values: WireBatch(), fields: [], cause: nil),
        result: .null, WireBatch()), age: 0)
    #expect(Self.took(Self.report(round: 1, failure), &state) == ["remove files"])
    #expect(Self.took(Self.report(round: 1, place: 1, Self.success), &state) == ["remove files"])
    #expect(Self.took(Self.report(round: 1, Self.success), &state) == ["begin m1/1", "success"])
  }

  @Test("What a node gives back is put into the queue again")
  func returned() {
    var state = Self.queued(Self.report(lane: "m1"))
    #expect(Self.took(Self.report(lane: "m1", .returned("busy")), &state) == ["put again"])
    // The node isn't lost.
    #expect(state.lanes == [])
    state = Self.queued(Self.report())
    #expect(Self.took(Self.report(.returned("it leaves")), &state) == ["lose m1", "put again"])
    #expect(state.lanes == ["m1/1"])
  }

  @Test("Files that no node has are sent again, three times")
  func missing() {
    var state = Self.queued()
    for round in 1...4 as ClosedRange<UInt64> {
      let report = Self.report(round: round, lane: "m1", .missing(["hash"]))
      #expect(Self.took(report, &state) == ["look for 1"])
      let actions = Self.names(state.missed(isNew: [false]))
      if round == 4 {
        #expect(actions == ["end: filesDeleted"])
      } else {
        #expect(actions == ["withdraw", "prepare"])
        #expect(!state.hasFiles && !state.mayBePut)
        #expect(Self.names(state.filesAreSent(at: Self.now)) == ["prepare"])
        state.put()
      }
    }
    state = Self.queued()
    for _ in 1...10 { #expect(Self.names(state.missed(isNew: [true])) == ["withdraw", "prepare"]) }
  }

  @Test("What it gives counts once its files have come")
  func files() throws {
    let value = RemoteReport.News.files(
      "photo", .null, WireBatch(),
      [
        RemoteGivenFile(path: "a", object: "o", digest: "d")
      ])
    var state = Self.queued(Self.report())
    let report = Self.report(value, Self.success)
    #expect(Self.took(report, &state) == ["fetch"])
    #expect(state.isDelivering && !state.mayBePut && !state.isWanted(round: 1))
    // It comes again meanwhile, as does one of another node.
    #expect(Self.took(report, &state) == [])
    #expect(Self.took(Self.report(delivery: 2, Self.success), &state) == ["remove files"])
    #expect(Self.names(state.putAgain()) == [])
    #expect(Self.names(state.delivered([Self.success], at: Self.now)) == ["success"])
    // While they come, it waits for no node: its patience begins after them.
    var delivering = Self.queued(Self.report(value, Self.success))
    var world = State.World(now: Self.now + 61_000_000_000, hasNode: false)
    #expect(Self.names(delivering.look(world)) == [])
    _ = delivering.delivered([], at: Self.now)
    world.now += 50_000_000_000
    #expect(Self.names(delivering.look(world)) == [])
    world.now += 20_000_000_000
    #expect(Self.names(delivering.look(world)) == ["end: unreachable"])
    // A stop doesn't wait for them.
    delivering = Self.queued(Self.report(value, Self.success))
    #expect(
      Self.names(delivering.stop(at: Self.now)) == ["withdraw", "request stop", "end: stopped"])
  }

  @Test(
    "A job to stop that a node has isn't put into the queue again, nor executed by another one")
  func stopped() {
    var state = Self.queued(Self.report())
    _ = state.stop(at: Self.now)
    #expect(!state.hasEnded && !state.mayBePut && !state.isWanted(round: 1))
    #expect(Self.names(state.putAgain()) == [])
    #expect(Self.names(state.reconnected(at: Self.now, absence: 21_000_000_000)) == [])
    #expect(Self.names(state.missed(isNew: [true])) == ["end: stopped"])
    state = Self.queued(Self.report())
    _ = state.missed(isNew: [true])
    _ = state.stop(at: Self.now)
    #expect(!state.hasEnded && Self.names(state.filesAreSent(at: Self.now)) == [])
  }

  @Test("A stop ends a job that no node has; another one ends by its report")
  func stop() {
    var state = Self.queued()
    #expect(
      Self.names(state.stop(at: Self.now)) == ["withdraw", "request stop", "end: stopped"])
    state = State(hasFiles: false, at: Self.now)
    #expect(Self.names(state.stop(at: Self.now)) == ["withdraw", "end: stopped"])
    #expect(Self.names(state.filesAreSent(at: Self.now)) == [])
    state = Self.queued(Self.report())
    #expect(Self.names(state.stop(at: Self.now)) == ["withdraw", "request stop"])
    #expect(Self.names(state.stop(at: Self.now)) == [])
    #expect(Self.took(Self.report(Self.success), &state) == ["success"])
  }

  @Test("A node that has it without having said so gets the stop when it does")
  func stopAtHandout() {
    var state = Self.queued(Self.report(lane: "m1"))
    _ = state.stop(at: Self.now)
    #expect(
      Self.took(Self.report(delivery: 2, lane: "m2"), &state) == ["note handout", "request stop"])
    #expect(
      Self.took(Self.report(delivery: 2, lane: "m2", .returned("")), &state) == ["end: stopped"])
    #expect(Self.names(state.putAgain()) == [])
  }

  @Test("A job to stop ends without its node after a second, with it after its patience")
  func stopThatLasts() {
    var state = Self.queued(Self.report())
    _ = state.stop(at: Self.now)
    var world = State.World(now: Self.now + 900_000_000, hasItsNode: false)
    #expect(Self.names(state.look(world)) == [])
    world.now = Self.now + 1_100_000_000
    var alone = state
    #expect(Self.names(alone.look(world)) == ["end: stopped"])
    world.hasItsNode = true
    #expect(Self.names(state.look(world)) == [])
    world.isConnected = false
    #expect(Self.names(state.look(world)) == [])
    world.endsEverything = true
    #expect(Self.names(state.look(world)) == ["end: stopped"])
    state = Self.queued(Self.report())
    _ = state.stop(at: Self.now)
    #expect(
      Self.names(state.look(State.World(now: Self.now + 62_000_000_001))) == ["end: stopped"])
  }

  @Test("A job that no node could execute for too long ends; others wait")
  func unreachable() {
    var state = Self.queued()
    var world = State.World(now: Self.now + 61_000_000_000, hasNode: false)
    world.isConnected = false
    #expect(Self.names(state.look(world)) == [])
    world.isConnected = true
    #expect(Self.names(state.look(world)) == ["end: unreachable"])
    // Its patience begins when the last node has gone.
    state = Self.queued()
    #expect(Self.names(state.look(State.World(now: world.now))) == [])
    #expect(Self.names(state.look(world)) == [])
    // So do files that are sent.
    state = State(hasFiles: false, at: Self.now)
    #expect(Self.names(state.look(world)) == [])
    _ = state.filesAreSent(at: world.now)
    #expect(Self.names(state.look(world)) == [])
    world.now += 61_000_000_000
    #expect(Self.names(state.look(world)) == ["end: unreachable"])
  }

  @Test("A job whose last hand-out was to a node that is gone is lost")
  func lastHandout() {
    var state = Self.queued(Self.report(delivery: 3))
    var world = State.World(now: Self.now, hasItsNode: false)
    world.knowsNodes = false
    #expect(Self.names(state.look(world)) == [])
    world.knowsNodes = true
    var earlier = Self.queued(Self.report(delivery: 2))
    #expect(Self.names(earlier.look(world)) == [])
    #expect(Self.names(state.look(world)) == ["withdraw", "end: lost"])
  }

  @Test(
    "A node that is lost counts once for each hand-out; before the last time it executes alone")
  func losses() {
    var state = Self.queued(Self.report(delivery: 1))
    #expect(state.loseNode() == .executesAgain)
    #expect(state.loseNode() == .executesAgain)
    _ = state.take(Self.report(delivery: 2), at: Self.now)
    #expect(state.loseNode() == .executesAgainAlone)
    _ = state.take(Self.report(delivery: 3), at: Self.now)
    #expect(state.loseNode() == .isTooOften)
    #expect(Self.names(state.giveUp()) == ["withdraw", "end: lost"])
    #expect(Self.names(state.giveUp()) == [])
  }

  @Test("After an absence jobs are put again which nodes have dropped meanwhile")
  func absence() {
    var state = Self.queued()
    #expect(Self.names(state.reconnected(at: Self.now, absence: 1_000_000_000)) == [])
    #expect(Self.names(state.reconnected(at: Self.now, absence: 3_000_000_000)) == ["put again"])
    state = Self.queued(Self.report())
    #expect(Self.names(state.reconnected(at: Self.now, absence: 3_000_000_000)) == [])
    #expect(Self.names(state.reconnected(at: Self.now, absence: 21_000_000_000)) == ["put again"])
    // Nothing of it was in the queue.
    state = State(hasFiles: true, at: Self.now)
    #expect(Self.names(state.reconnected(at: Self.now, absence: 21_000_000_000)) == [])
  }

  @Test("A node that asks is to execute it only if it is of the latest round, and open")
  func wanted() {
    var state = Self.queued()
    #expect(state.isWanted(round: 1) && !state.isWanted(round: 2))
    #expect(!state.isAlone)
    #expect(Self.names(state.putAgain(isAlone: true)) == ["put again"])
    #expect(state.isAlone)
    state.put()
    #expect(!state.isWanted(round: 1) && state.isWanted(round: 2))
    _ = state.stop(at: Self.now)
    #expect(!state.isWanted(round: 2))
  }
}
