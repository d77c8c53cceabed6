/// Whether a wait would never end, because the awaited task itself waits for the waiting one:
/// directly, or through others.
///
/// A task that waits for all of several tasks is in such a cycle when one of them is; a task that
/// waits for the first of several is, when all of them are.
package enum WaitCycle {
  /// Whether `waiting` can't continue any more if it waits for the end of `awaited`.
  ///
  /// The search starts at both ends, and continues at the end that has cost less: it is short,
  /// unless very many tasks wait for the one and the other waits for very many.
  package static func isClosed(by waiting: AnyFlowTask, awaiting awaited: AnyFlowTask) -> Bool {
    if waiting === awaited { return true }
    guard waiting.observerCount > 0, awaited.awaitedCount > 0 else { return false }
    var behind = Search(from: waiting, to: awaited)
    var ahead = Search(from: awaited, to: waiting)
    while let next = behind.next, let other = ahead.next {
      let found =
        behind.cost + next.observerCount <= ahead.cost + other.awaitedCount
        ? behind.advance { next.addWaiting(to: &$0) } : ahead.advance { other.addAwaited(to: &$0) }
      if found { return !canEnd(awaited, without: waiting) }
    }
    return false
  }

  /// A search from one end, which visits one task at a time.
  private struct Search {
    private var open: ContiguousArray<AnyFlowTask>
    private var seen: Set<ObjectIdentifier> = []
    private let wanted: AnyFlowTask
    private var place = 0
    /// How many waits it has checked.
    private(set) var cost = 0

    init(from first: AnyFlowTask, to wanted: AnyFlowTask) {
      open = [first]
      self.wanted = wanted
    }

    /// The next task to visit; nil at the end.
    var next: AnyFlowTask? { place < open.count ? open[place] : nil }

    /// Adds the neighbours of the present task, if they are new; returns whether the searched task
    /// is among them.
    mutating func advance(_ addNext: (inout ContiguousArray<AnyFlowTask>) -> Void) -> Bool {
      place += 1
      var count = open.count
      let known = count
      addNext(&open)
      cost += open.count - known
      for index in known..<open.count {
        let task = open[index]
        if task === wanted { return true }
        guard seen.insert(ObjectIdentifier(task)).inserted else { continue }
        open[count] = task
        count += 1
      }
      open.removeLast(open.count - count)
      return false
    }
  }

  /// Whether a task can end even if `stuck` doesn't.
  private static func canEnd(_ task: AnyFlowTask, without stuck: AnyFlowTask) -> Bool {
    var tasks: ContiguousArray<AnyFlowTask> = [task]
    var places = [ObjectIdentifier(task): 0]
    // By their places: how many ends a task waits for, and which tasks wait for its own.
    var missing: [Int] = []
    var waiting: [[Int]] = [[]]
    var ended: [Int] = []
    while missing.count < tasks.count {
      let place = missing.count
      let next = tasks[place]
      var awaited: ContiguousArray<AnyFlowTask> = []
      if next !== stuck { next.addAwaited(to: &awaited) }
      missing.append(next === stuck || next.awaitsAny ? 1 : awaited.count)
      if next !== stuck, awaited.isEmpty { ended.append(place) }
      for each in awaited {
        let known = places[ObjectIdentifier(each)]
        if known == nil {
          places[ObjectIdentifier(each)] = tasks.count
          tasks.append(each)
          waiting.append([])
        }
        waiting[known ?? tasks.count - 1].append(place)
      }
    }
    while let place = ended.popLast() {
      if place == 0 { return true }
      for other in waiting[place] {
        missing[other] -= 1
        if missing[other] == 0 { ended.append(other) }
      }
    }
    return false
  }
}

/// The tasks that the code of a task waits for: several for code that consists of several ops.
struct AwaitedTasks {
  private var waits: [UInt64: (task: AnyFlowTask, count: Int)] = [:]

  var count: Int { waits.count }

  mutating func begin(_ task: AnyFlowTask) { waits[task.id, default: (task, 0)].count += 1 }

  mutating func end(_ task: AnyFlowTask) {
    guard let count = waits[task.id]?.count else { return }
    waits[task.id] = count == 1 ? nil : (task, count - 1)
  }

  mutating func removeAll() { waits = [:] }

  func add(to tasks: inout ContiguousArray<AnyFlowTask>) {
    for wait in waits.values { tasks.append(wait.task) }
  }
}

extension FlowError {
  /// The error of a task that can't end because it waits for itself, perhaps through others.
  package static func waitsForItself(_ task: AnyFlowTask) -> FlowError {
    FlowError(.stalled, "stalled: [\(task.title)] waits for itself")
  }
}
