/// The assignment of tasks to workers: the pool's decisions, without threads and time.
///
/// A *task* is one execution of an op, a call, or the share of a group that one worker executes. A
/// worker is *free* if it has no task, or if all its tasks wait for something. Tasks without a free
/// worker wait, the oldest first.
///
/// An *exclusive* task has its worker for itself: it waits for one without tasks, which gets no other
/// task until its end.
package struct PoolState {
  /// An action of the pool; they are performed in order.
  package enum Action: Equatable {
    /// Start the thread of a worker.
    case start(worker: Int)
    /// Pass a task to a worker.
    case assign(task: UInt64, worker: Int)
  }

  private struct Worker {
    var isAlive = true
    var isAsleep = false
    var tasks: Set<UInt64> = []
    /// Whether its task is exclusive.
    var isExclusive = false
  }

  private struct Waiting {
    let task: UInt64
    /// A worker has at most one task of a group.
    let group: UInt64?
    let isExclusive: Bool
  }

  /// The maximum number of living workers.
  package let size: Int
  private var workers: [Worker] = []
  private var waiting: [Waiting] = []
  private var groups: [UInt64: UInt64] = [:]
  /// The worker that gets no task because an older one, which is exclusive, waits until it has none. Without
  /// it the exclusive one could wait forever while others come and go.
  private var reserved: Int?

  package init(size: Int) {
    self.size = max(1, size)
  }

  /// The number of living workers.
  package var count: Int { workers.count { $0.isAlive } }
  /// How many workers have tasks that don't wait for something.
  package var busyWorkers: Int {
    workers.count { $0.isAlive && !$0.tasks.isEmpty && !$0.isAsleep }
  }
  /// Whether any task waits or is being executed.
  package var isIdle: Bool { waiting.isEmpty && workers.allSatisfy { $0.tasks.isEmpty } }

  /// The worker of a task; nil while the task waits, and after its end.
  package func worker(of task: UInt64) -> Int? { workers.firstIndex { $0.tasks.contains(task) } }

  /// The tasks of a worker, the oldest first.
  package func tasks(of worker: Int) -> [UInt64] { workers[worker].tasks.sorted() }

  package func isAsleep(_ worker: Int) -> Bool { workers[worker].isAsleep }

  /// Takes a new task; `group` is nil unless it is a group's.
  package mutating func submit(
    _ task: UInt64, group: UInt64? = nil, isExclusive: Bool = false
  ) -> [Action] {
    waiting.append(Waiting(task: task, group: group, isExclusive: isExclusive))
    return assign()
  }

  /// Drops a waiting task; nil if it isn't waiting. Others may have waited for an exclusive one.
  package mutating func withdraw(_ task: UInt64) -> [Action]? {
    guard let place = waiting.firstIndex(where: { $0.task == task }) else { return nil }
    return waiting.remove(at: place).isExclusive ? assign() : []
  }

  /// A task has ended.
  package mutating func ended(_ task: UInt64) -> [Action] {
    if let worker = worker(of: task) {
      workers[worker].tasks.remove(task)
      workers[worker].isExclusive = false
    }
    groups[task] = nil
    return assign()
  }

  /// All tasks of a worker wait for something.
  package mutating func fellAsleep(_ worker: Int) -> [Action] {
    guard workers[worker].isAlive else { return [] }
    workers[worker].isAsleep = true
    return assign()
  }

  /// A worker got a task, or continues one.
  package mutating func wokeUp(_ worker: Int) { workers[worker].isAsleep = false }

  /// A worker that has been executing items of a group is between two of them. One waiting task may
  /// run first, so that a long group doesn't delay others too much.
  package mutating func passedBoundary(_ worker: Int) -> [Action] {
    guard workers[worker].isAlive, !workers[worker].isExclusive,
      let place = waiting.firstIndex(where: { $0.group == nil && !$0.isExclusive })
    else { return [] }
    return [give(waiting.remove(at: place), to: worker)]
  }

  /// A worker is abandoned, or couldn't be started; returns its tasks. Another one replaces it.
  package mutating func lost(_ worker: Int) -> (tasks: [UInt64], actions: [Action]) {
    guard workers[worker].isAlive else { return ([], []) }
    let tasks = tasks(of: worker)
    workers[worker].isAlive = false
    workers[worker].tasks = []
    workers[worker].isExclusive = false
    for task in tasks { groups[task] = nil }
    return (tasks, assign())
  }

  private mutating func assign() -> [Action] {
    var actions: [Action] = []
    var place = 0
    reserved = nil
    while place < waiting.count {
      guard let (worker, isNew) = freeWorker(for: waiting[place]) else {
        // A task of a group may wait for a certain worker, and an exclusive one for one without tasks;
        // other tasks needn't.
        if waiting[place].isExclusive {
          reserved = reserved ?? emptiestWorker
        } else if waiting[place].group == nil {
          break
        }
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
    workers[worker].isExclusive = next.isExclusive
    if let group = next.group { groups[next.task] = group }
    return .assign(task: next.task, worker: worker)
  }

  /// The worker that can begin a task: one without tasks, else a new one, else the one whose
  /// waiting tasks are fewest.
  private mutating func freeWorker(for next: Waiting) -> (Int, isNew: Bool)? {
    let open = workers.indices.filter { worker in
      guard workers[worker].isAlive, !workers[worker].isExclusive, worker != reserved else {
        return false
      }
      if next.isExclusive { return workers[worker].tasks.isEmpty }
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

  /// The worker that will probably have no tasks first; nil if exclusive tasks have all.
  private var emptiestWorker: Int? {
    workers.indices.filter { workers[$0].isAlive && !workers[$0].isExclusive }
      .min { workers[$0].tasks.count < workers[$1].tasks.count }
  }
}
