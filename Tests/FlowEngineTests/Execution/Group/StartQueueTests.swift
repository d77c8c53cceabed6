@testable import FlowEngine
import Testing

@Suite("The queue of a group's starts")
struct StartQueueTests {
  private let second: Int64 = 1_000_000_000

  @Test("Without a limit, anything that remains starts")
  func withoutLimit() {
    var queue = StartQueue(nil)
    #expect(!queue.isLimited && !queue.hasDue && queue.available(at: 0) == .max)
    #expect(queue.nextAction(at: 0, hasNew: true) == .start)
    #expect(queue.nextAction(at: 0, hasNew: false) == .none)
    queue.starts(1_000_000, at: 0)
    #expect(queue.nextAction(at: 0, hasNew: true) == .start)
  }

  @Test("With a limit, a start waits for its time, and what is due counts as much as new items")
  func withLimit() {
    let members = Members(1)
    var queue = StartQueue(RateLimit(2, per: .seconds(3)))
    #expect(queue.isLimited && queue.available(at: 0) == 2)
    queue.starts(at: 0)
    #expect(queue.nextAction(at: second, hasNew: true) == .start)
    queue.starts(at: second)
    #expect(queue.nextAction(at: second, hasNew: true) == .wait(until: 3 * second))
    #expect(queue.nextAction(at: second, hasNew: false) == .none)
    queue.add(members.all[0])
    #expect(queue.nextAction(at: second, hasNew: false) == .wait(until: 3 * second))
    #expect(queue.nextAction(at: 3 * second, hasNew: false) == .start)
  }

  @Test("Attempts that are due keep their order, also when some are stopped")
  func order() {
    let members = Members(300)
    var queue = StartQueue(nil)
    var expected: [Int] = []
    var actual: [Int] = []
    for member in members.all {
      queue.add(member)
      if member.index % 3 == 0, let due = queue.popDue() {
        actual.append(due.takeUnretainedValue().index)
      }
      expected.append(member.index)
    }
    for member in members.all.suffix(50) { queue.remove(member) }
    queue.remove(members.all[0])
    while let due = queue.popDue() { actual.append(due.takeUnretainedValue().index) }
    #expect(actual == expected.dropLast(50))
    #expect(!queue.hasDue)
    queue.add(members.all[7])
    queue.removeAll()
    #expect(queue.popDue() == nil && queue.nextAction(at: 0, hasNew: false) == .none)
  }

  /// Executions with the indices from 1 on, which nothing starts.
  private final class Members {
    let all: [Execution]
    private let run: Run

    init(_ count: Int) {
      let run = quick("QuickOp").start(on: makeLoop())
      self.run = run
      all = (1...count).map { index in
        let member = Execution(run: run, data: run.data, group: nil)
        member.prepare(run.op, policy: nil, scope: 0, position: 0, index: index)
        return member
      }
    }
  }
}
