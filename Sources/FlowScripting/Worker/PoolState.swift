/// Which worker does what: the pool's decisions, without threads and time.
///
/// What is to be done is a *task*: one execution of an op, a call, or the share of a group that one
/// worker executes. A worker is *free* when it has no task, or when all its tasks wait for
/// something. Tasks that find none free wait, the oldest first.
package struct PoolState {
  /// What the pool has to do, in order.
  package enum Action: Equatable {
    /// Start the thread of a worker.
    case start(worker: Int)
    /// Give a task to a worker.
    case assign(task: UInt64, worker: Int)
  }

  private struct Worker {
    var isAlive = true
    var isAsleep = false
    var tasks: Set<UInt64> = []
  }

  private struct Waiting {
    let task: UInt64
    /// A worker has one task of a group only.
    let group: UInt64?
  }

  /// The most workers that live.
  package let size: Int
  private var workers: [Worker] = []
  private var waiting: [Waiting] = []
  private var groups: [UInt64: UInt64] = [:]

  package init(size: Int) {
    self.size = max(1, size)
  }

  /// How many workers live.
  package var count: Int { workers.count { $0.isAlive } }
  /// Whether there is anything to do, or being done.
  package var isIdle: Bool { waiting.isEmpty && workers.allSatisfy { $0.tasks.isEmpty } }

  /// Which worker has a task; nil while it waits, and after its end.
  package func worker(of task: UInt64) -> Int? { workers.firstIndex { $0.tasks.contains(task) } }

  /// The tasks of a worker, the oldest first.
  package func tasks(of worker: Int) -> [UInt64] { workers[worker].tasks.sorted() }

  package func isAsleep(_ worker: Int) -> Bool { workers[worker].isAsleep }

  /// Takes a new task; `group` is nil unless it is a group's.
  package mutating func submit(_ task: UInt64, group: UInt64? = nil) -> [Action] {
    waiting.append(Waiting(task: task, group: group))
    return assign()
  }

  /// Drops a task that waits; false when it doesn't.
  package mutating func withdraw(_ task: UInt64) -> Bool {
    guard let place = waiting.firstIndex(where: { $0.task == task }) else { return false }
    waiting.remove(at: place)
    return true
  }

  /// A task has ended.
  package mutating func ended(_ task: UInt64) -> [Action] {
    if let worker = worker(of: task) { workers[worker].tasks.remove(task) }
    groups[task] = nil
    return assign()
  }

  /// All that a worker does waits for something.
  package mutating func fellAsleep(_ worker: Int) -> [Action] {
    guard workers[worker].isAlive else { return [] }
    workers[worker].isAsleep = true
    return assign()
  }

  /// A worker got something to do, or goes on with what it does.
  package mutating func wokeUp(_ worker: Int) { workers[worker].isAsleep = false }

  /// A worker that has been executing items of a group is between two of them: so that a long group
  /// doesn't keep others from their turn, one task that waits may come in between.
  package mutating func passedBoundary(_ worker: Int) -> [Action] {
    guard workers[worker].isAlive,
      let place = waiting.firstIndex(where: { $0.group == nil })
    else { return [] }
    return [give(waiting.remove(at: place), to: worker)]
  }

  /// A worker is given up, or couldn't be started; answers what it had to do. Another one takes its
  /// place.
  package mutating func lost(_ worker: Int) -> (tasks: [UInt64], actions: [Action]) {
    guard workers[worker].isAlive else { return ([], []) }
    let tasks = tasks(of: worker)
    workers[worker].isAlive = false
    workers[worker].tasks = []
    for task in tasks { groups[task] = nil }
    return (tasks, assign())
  }

  private mutating func assign() -> [Action] {
    var actions: [Action] = []
    var place = 0
    while place < waiting.count {
      guard let (worker, isNew) = freeWorker(for: waiting[place]) else {
        // One of a group may wait for a certain worker; others needn't.
        if waiting[place].group == nil { break }
        place += 1
        continue
      }
      if isNew { actions.append(.start(worker: worker)) }
      actions.append(give(waiting.remove(at: place), to: worker))
    }
    return actions
  }

  private mutating func give(_ next: Waiting, to worker: Int) -> Action {
    workers[worker].tasks.insert(next.task)
    workers[worker].isAsleep = false
    if let group = next.group { groups[next.task] = group }
    return .assign(task: next.task, worker: worker)
  }

  /// The worker that can begin with a task: one with nothing to do, else a new one, else the one
  /// that waits for the fewest.
  private mutating func freeWorker(for next: Waiting) -> (Int, isNew: Bool)? {
    let open = workers.indices.filter { worker in
      guard workers[worker].isAlive else { return false }
      guard let group = next.group else { return true }
      return !workers[worker].tasks.contains { groups[$0] == group }
    }
    if let idle = open.first(where: { workers[$0].tasks.isEmpty }) { return (idle, false) }
    if count < size {
      workers.append(Worker())
      return (workers.count - 1, true)
    }
    let asleep = open.filter { workers[$0].isAsleep }
    return asleep.min { workers[$0].tasks.count < workers[$1].tasks.count }.map { ($0, false) }
  }
}
