internal import FlowEngine

/// Asks what is pending, the youngest first, to fail as stalled: one task at a time, as the end of one may
/// let all others continue.
///
/// It sorts the tasks once, not for each question, so that the end of many stalled tasks takes a time in
/// proportion to their number.
struct StallPass {
  /// How often one task is asked at most.
  let times: Int
  /// How often each was asked.
  private var asked: [UInt64: Int] = [:]
  /// Tasks that are still to be asked, the youngest last.
  private var open: [AnyFlowTask] = []
  /// The youngest task of the loop when `open` was filled.
  private var newest: UInt64 = 0

  init(times: Int) { self.times = times }

  /// Asks the youngest pending run or task to fail as stalled.
  ///
  /// - Parameters:
  ///   - loop: The loop of the tasks, the same each time. Nothing of it can make progress now.
  ///   - owned: Those that may be asked; by default all of the loop.
  /// - Returns: Whether one was asked.
  mutating func failNext(on loop: EventLoop, among owned: OwnedTasks? = nil) -> Bool {
    func pending(_ id: UInt64) -> AnyFlowTask? {
      if let owned { return owned.task(id) }
      return loop.pendingTask(id)
    }
    // What has begun since the last question comes first.
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
