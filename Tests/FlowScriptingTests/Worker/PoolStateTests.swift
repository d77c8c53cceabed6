import FlowScripting
import Testing

@Suite("The state of the worker pool")
struct PoolStateTests {
  @Test("Workers are started one by one, while none is free, up to the limit")
  func starts() {
    var state = PoolState(size: 2)
    #expect(state.submit(1) == [.start(worker: 0), .assign(task: 1, worker: 0)])
    #expect(state.submit(2) == [.start(worker: 1), .assign(task: 2, worker: 1)])
    #expect(state.submit(3) == [])
    #expect(state.submit(4) == [])
    #expect(state.count == 2)
    #expect(state.ended(2) == [.assign(task: 3, worker: 1)])
    #expect(state.ended(1) == [.assign(task: 4, worker: 0)])
    #expect(state.ended(3) == [])
    // One that is idle comes first.
    #expect(state.submit(5) == [.assign(task: 5, worker: 1)])
    #expect(!state.isIdle)
    #expect(state.ended(5) == [] && state.ended(4) == [])
    #expect(state.isIdle)
  }

  @Test("A worker whose tasks all wait takes another")
  func asleep() {
    var state = PoolState(size: 1)
    _ = state.submit(1)
    #expect(state.submit(2) == [])
    #expect(state.fellAsleep(0) == [.assign(task: 2, worker: 0)])
    #expect(!state.isAsleep(0))
    #expect(state.submit(3) == [])
    state.wokeUp(0)
    #expect(state.submit(4) == [])
    #expect(state.fellAsleep(0) == [.assign(task: 3, worker: 0)])
    #expect(state.tasks(of: 0) == [1, 2, 3])
    #expect(state.withdraw(4) == [] && state.withdraw(4) == nil && state.withdraw(1) == nil)
  }

  @Test("A group gets at most one share in each worker, and doesn't keep others from theirs")
  func groups() {
    var state = PoolState(size: 2)
    _ = state.submit(1)
    #expect(
      state.submit(10, group: 9) == [.start(worker: 1), .assign(task: 10, worker: 1)])
    #expect(state.submit(11, group: 9) == [])
    // The second share can't go where the first one is, but another task can.
    #expect(state.fellAsleep(1) == [])
    #expect(state.submit(2) == [.assign(task: 2, worker: 1)])
    #expect(state.ended(1) == [.assign(task: 11, worker: 0)])
    #expect(state.submit(3) == [])
    #expect(state.passedBoundary(0) == [.assign(task: 3, worker: 0)])
    #expect(state.passedBoundary(0) == [])
  }

  @Test("A new worker replaces a lost one, whose tasks are reported")
  func lost() {
    var state = PoolState(size: 1)
    _ = state.submit(1)
    _ = state.submit(2)
    let (tasks, actions) = state.lost(0)
    #expect(tasks == [1])
    #expect(actions == [.start(worker: 1), .assign(task: 2, worker: 1)])
    #expect(state.lost(0).tasks.isEmpty)
    #expect(state.count == 1)
    #expect(state.fellAsleep(0) == [] && state.passedBoundary(0) == [])
  }

  @Test("An exclusive task has its worker for itself, also while it waits for something")
  func exclusive() {
    var state = PoolState(size: 2)
    #expect(
      state.submit(1, isExclusive: true) == [.start(worker: 0), .assign(task: 1, worker: 0)])
    #expect(state.fellAsleep(0) == [])
    #expect(state.submit(2) == [.start(worker: 1), .assign(task: 2, worker: 1)])
    #expect(state.submit(3) == [] && state.submit(10, group: 9) == [])
    #expect(state.passedBoundary(0) == [])
    #expect(state.fellAsleep(1) == [.assign(task: 3, worker: 1)])
    #expect(state.ended(1) == [.assign(task: 10, worker: 0)])
    // Its worker is like any other afterwards.
    #expect(state.submit(4) == [])
    #expect(state.fellAsleep(0) == [.assign(task: 4, worker: 0)])
  }

  @Test("An exclusive task waits for a worker without tasks, and younger ones leave it one")
  func reserved() {
    var state = PoolState(size: 2)
    _ = state.submit(1)
    _ = state.submit(2)
    #expect(state.submit(3, isExclusive: true) == [])
    #expect(state.fellAsleep(0) == [])
    #expect(state.submit(4) == [])
    #expect(state.fellAsleep(1) == [.assign(task: 4, worker: 1)])
    #expect(state.ended(1) == [.assign(task: 3, worker: 0)])
    #expect(state.ended(3) == [] && state.isIdle == false)
  }

  @Test("An exclusive task doesn't run between the items of a group, but others do")
  func exclusiveBesideAGroup() {
    var state = PoolState(size: 1)
    _ = state.submit(10, group: 9)
    #expect(state.submit(1, isExclusive: true) == [])
    #expect(state.passedBoundary(0) == [])
    #expect(state.submit(2) == [])
    #expect(state.passedBoundary(0) == [.assign(task: 2, worker: 0)])
    #expect(state.ended(2) == [])
    #expect(state.ended(10) == [.assign(task: 1, worker: 0)])
  }

  @Test("An exclusive task that is withdrawn, or whose worker is lost, keeps nobody waiting")
  func exclusiveWithdrawn() {
    var state = PoolState(size: 1)
    _ = state.submit(1)
    _ = state.fellAsleep(0)
    #expect(state.submit(2, isExclusive: true) == [] && state.submit(3) == [])
    #expect(state.withdraw(2) == [.assign(task: 3, worker: 0)])
    _ = state.ended(1)
    _ = state.ended(3)
    #expect(state.submit(4, isExclusive: true) == [.assign(task: 4, worker: 0)])
    #expect(state.submit(5) == [])
    #expect(state.lost(0).actions == [.start(worker: 1), .assign(task: 5, worker: 1)])
  }

  @Test("In any order of events no task is lost or executed twice, and no limit is exceeded")
  func model() {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<100 {
      var state = PoolState(size: Int.random(in: 1...4, using: &random))
      var waiting: Set<UInt64> = []
      var running: [UInt64: Int] = [:]
      var group: [UInt64: UInt64] = [:]
      var exclusive: Set<UInt64> = []
      var next: UInt64 = 0
      func take(_ actions: [PoolState.Action]) {
        for case .assign(let task, let worker) in actions {
          if waiting.remove(task) == nil { Issue.record("\(task) was done twice") }
          if running.contains(where: {
            $0.value == worker && (exclusive.contains(task) || exclusive.contains($0.key))
          }) {
            Issue.record("an exclusive task has no worker for itself")
          }
          if let mine = group[task] {
            if running.contains(where: { $0.value == worker && group[$0.key] == mine }) {
              Issue.record("a worker has two shares of group \(mine)")
            }
          }
          running[task] = worker
        }
      }
      for _ in 0..<100 {
        switch Int.random(in: 0..<9, using: &random) {
        case 0...2:
          next += 1
          let number = next
          if Bool.random(using: &random) {
            group[number] = UInt64.random(in: 1...3, using: &random)
          } else if Int.random(in: 0..<3, using: &random) == 0 {
            exclusive.insert(number)
          }
          waiting.insert(number)
          take(
            state.submit(
              number, group: group[number], isExclusive: exclusive.contains(number)))
        case 3...4:
          guard let task = running.keys.randomElement(using: &random) else { continue }
          running[task] = nil
          take(state.ended(task))
        case 5:
          if let worker = running.values.randomElement(using: &random) {
            take(state.fellAsleep(worker))
          }
        case 6:
          if let worker = running.values.randomElement(using: &random) {
            take(state.passedBoundary(worker))
          }
        case 7:
          guard let task = waiting.randomElement(using: &random) else { continue }
          waiting.remove(task)
          guard let actions = state.withdraw(task) else {
            Issue.record("\(task) didn't wait")
            continue
          }
          take(actions)
        default:
          guard let worker = running.values.randomElement(using: &random) else { continue }
          let (tasks, actions) = state.lost(worker)
          #expect(Set(tasks) == Set(running.filter { $0.value == worker }.keys))
          for task in tasks { running[task] = nil }
          take(actions)
        }
        if state.count > state.size
          || running.contains(where: { state.worker(of: $0.key) != $0.value })
        {
          Issue.record("the state isn't what it said: \(state), \(running)")
        }
      }
      while let task = running.keys.min() {
        running[task] = nil
        take(state.ended(task))
      }
      #expect(waiting.isEmpty && state.isIdle)
    }
  }
}
