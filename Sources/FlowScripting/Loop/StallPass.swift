internal import FlowEngine

/// Makes pending tasks fail as stalled, the youngest first: one task at a time, because the end of
/// one may let all others continue.
///
/// It sorts the tasks once, not at each call, so that the time to end many stalled tasks is
/// proportional to their number.
struct StallPass {
  /// The maximum number of attempts per task.
  let times: Int
  /// The number of attempts for each task.
  private var asked: [UInt64: Int] = [:]
  /// Tasks that haven't been tried yet, the youngest last.
  private var open: [AnyFlowTask] = []
  /// The youngest task of the loop when `open` was filled.
  private var newest: UInt64 = 0

  init(times: Int) { self.times = times }

  /// Makes the youngest pending run or task fail as stalled.
  ///
  /// - Parameters:
  ///   - loop: The loop of the tasks, the same each time. Nothing in it can make progress now.
  ///   - owned: The tasks that may fail; by default all of the loop.
  /// - Returns: Whether there was such a task.
  mutating func failNext(on loop: EventLoop, among owned: OwnedTasks? = nil) -> Bool {
    func pending(_ id: UInt64) -> AnyFlowTask? {
      if let owned { return owned.task(id) }
      return loop.pendingTask(id)
    }
    // Tasks started since the last call come first.
    if !open.isEmpty, newest < loop.newestTask {
      for id in newest + 1...loop.newestTask { if let task = pending(id) { open.append(task) } }
    }
    newest = loop.newestTask
    while true {
      while let task = open.last {
        let count = asked[task.id, default: 0]
        guard count < times, pending(task.id) != nil else {
          open.removeLast()
          continue
        }
        asked[task.id] = count + 1
        task.stopStalled()
        return true
      }
      // The code of an old task may have begun late, such as that of a continuation.
      open = (owned?.all ?? loop.pendingTasks).filter { asked[$0.id, default: 0] < times }
      if open.isEmpty { return false }
    }
  }
}
