@testable import FlowEngine
import Testing

@Suite("What stops an execution")
struct StopStateTests {
  private let enclosing = Deadline(source: .enclosing, time: .max)

  private func stop(_ level: Int, _ message: ByteString = "no") -> Stop {
    .one(level, FlowError(.error, message))
  }

  // MARK: Stops

  @Test("The first stop counts, unless a later one reaches further out")
  func stops() {
    var state = StopState()
    #expect(state.request(stop(2)) == .stopWait)
    #expect(state.request(stop(2, "again")) == .none)
    #expect(state.request(stop(3)) == .none)
    #expect(state.stop?.level == 2)
    #expect(state.request(stop(1)) == .stopWait)
    #expect(state.stop?.level == 1)
    #expect(state.request(.everything(.cancelled())) == .stopWait)
    #expect(state.stop?.level == Stop.everything)
  }

  @Test("A stop ends with the level that it reaches")
  func endOfALevel() {
    var state = StopState()
    _ = state.request(stop(1))
    state.endStop(of: 2)
    #expect(state.stop != nil)
    state.endStop(of: 1)
    #expect(state.stop == nil)
  }

  @Test("Code at the level of a stop ends with its error, and inner code with the reason")
  func errors() {
    let timeout = FlowError.timeout(after: .seconds(1))
    let stop = Stop.one(1, timeout)
    #expect(stop.error(at: 0) == nil)
    #expect(stop.error(at: 1)?.message == timeout.message)
    #expect(stop.error(at: 2)?.message == timeout.asReason.message)
  }

  // MARK: Shields

  @Test("A shield holds stops of its level and of enclosing ones, and its end returns them")
  func shield() {
    var state = StopState()
    let begins = state.beginShield(1, isStopped: false, limit: .max)
    #expect(!begins)
    #expect(state.request(stop(1)) == .beginGrace(shield: 0))
    #expect(state.stop == nil)
    #expect(state.request(stop(2)) == .stopWait)
    #expect(state.stop?.level == 2)
    // A stop that reaches further out replaces the held one.
    #expect(state.request(stop(0)) == .beginGrace(shield: 0))
    #expect(state.request(stop(1)) == .none)
    #expect(state.endShield().held?.level == 0)
    #expect(state.shields.isEmpty)
  }

  @Test("A stop that is there when the shield begins is held, and begins the grace")
  func shieldAfterStop() {
    var state = StopState()
    _ = state.request(stop(1))
    let begins = state.beginShield(1, isStopped: false, limit: .max)
    #expect(begins)
    #expect(state.stop == nil)
    #expect(state.shields[0].held?.level == 1)
    // One of an inner level isn't.
    var other = StopState()
    _ = other.request(stop(2))
    let beginsInside = other.beginShield(1, isStopped: false, limit: .max)
    #expect(!beginsInside)
    #expect(other.stop?.level == 2)
    // Nor is one that was there before.
    var earlier = StopState()
    let beginsLater = earlier.beginShield(1, isStopped: true, limit: .max)
    #expect(beginsLater)
  }

  @Test("A stop is held by the outermost shield that holds its level")
  func nestedShields() {
    var state = StopState()
    _ = state.beginShield(0, isStopped: false, limit: .max)
    _ = state.beginShield(2, isStopped: false, limit: .max)
    #expect(state.request(.everything(.cancelled())) == .beginGrace(shield: 0))
    #expect(state.request(stop(2)) == .beginGrace(shield: 1))
    #expect(state.endShield().held?.level == 2)
    #expect(state.endShield().held?.level == Stop.everything)
    #expect(state.endShield().held == nil)
  }

  // MARK: Grace

  @Test("A grace begins once: with a timer, at once over, or without an end")
  func grace() {
    var state = StopState()
    _ = state.beginShield(0, isStopped: false, limit: .max)
    #expect(state.beginGrace(0, end: 30, now: 10) == .setTimer(30))
    #expect(state.beginGrace(0, end: 40, now: 20) == .none)
    #expect(state.shields[0].graceEnd == 30)
    #expect(state.earliest(enclosing: enclosing) == Deadline(source: .grace(level: 0), time: 30))
    var (over, endless) = (StopState(), StopState())
    _ = over.beginShield(0, isStopped: false, limit: .max)
    #expect(over.beginGrace(0, end: 10, now: 10) == .cut)
    _ = endless.beginShield(0, isStopped: false, limit: .max)
    #expect(endless.beginGrace(0, end: .max, now: 10) == .none)
  }

  @Test("After the grace, busy code has until the new limit")
  func afterTheGrace() {
    var state = StopState()
    _ = state.beginShield(0, isStopped: false, limit: 50)
    _ = state.endGrace(0, limit: 70)
    #expect(state.shields[0].isOver)
    #expect(state.earliest(enclosing: enclosing).time == 70)
    // The grace has ended before it has begun.
    #expect(state.beginGrace(0, end: 90, now: 60) == .none)
  }

  // MARK: Deadlines

  @Test("The earliest deadline counts; of two at the same time, the outer one")
  func deadlines() {
    var state = StopState()
    let outside = Deadline(source: .enclosing, time: 20)
    #expect(state.earliest(enclosing: outside) == outside)
    state.setDeadline(.attempt(level: 0), 30)
    #expect(state.earliest(enclosing: outside) == outside)
    state.setDeadline(.attempt(level: 1), 10)
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 1))
    state.setDeadline(.attempt(level: 2), 10)
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 1))
    state.removeDeadline(.attempt(level: 1))
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 2))
    state.setDeadline(.attempt(level: 2), 40)
    #expect(state.earliest(enclosing: outside) == outside)
    #expect(state.deadline(of: .attempt(level: 2)) == 40)
    #expect(state.deadline(of: .attempt(level: 1)) == .max)
  }

  @Test(
    "Within a shield, its limit and the deadlines of inner code count, and around it the others")
  func deadlinesOfShields() {
    var state = StopState()
    let outside = Deadline(source: .enclosing, time: 20)
    state.setDeadline(.attempt(level: 0), 10)
    _ = state.beginShield(0, isStopped: false, limit: 100)
    #expect(state.earliest(enclosing: outside) == Deadline(source: .grace(level: 0), time: 100))
    #expect(state.earliest(around: 0, enclosing: outside).source == .attempt(level: 0))
    state.setDeadline(.attempt(level: 1), 50)
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 1))
    _ = state.beginShield(1, isStopped: false, limit: 200)
    #expect(state.earliest(enclosing: outside) == Deadline(source: .grace(level: 1), time: 200))
    #expect(state.earliest(around: 1, enclosing: outside).source == .attempt(level: 1))
    #expect(state.earliest(around: 0, enclosing: outside).source == .attempt(level: 0))
    _ = state.endShield()
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 1))
    _ = state.endShield()
    #expect(state.earliest(enclosing: outside).source == .attempt(level: 0))
  }
}
