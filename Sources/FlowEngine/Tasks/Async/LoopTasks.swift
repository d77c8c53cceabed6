/// The Swift tasks of a loop, and their executor; made when the first one starts.
final class LoopTasks {
  let executor: LoopExecutor
  /// Tasks that have started and not ended, unless they end at their start.
  private var suspended: [UInt64: LoopTask] = [:]
  private var lastNumber: UInt64 = 0

  init(_ loop: EventLoop) {
    executor = LoopExecutor(loop)
  }

  /// Returns a number for a task, never used before.
  func reserveNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  /// Keeps a task that hasn't ended yet.
  func add(_ task: LoopTask, number: UInt64) { suspended[number] = task }

  /// The task of a number; nil once it was removed.
  func task(_ number: UInt64) -> LoopTask? { suspended[number] }

  func remove(_ number: UInt64) { suspended[number] = nil }

  /// Stops all tasks that nothing else on the loop stops.
  func stopAll(reason: ByteString) {
    for task in suspended.values { task.stopWithLoop(reason: reason) }
  }

  /// Cancels all tasks of a loop that is shut down, and runs their reactions to the cancellation
  /// without waiting for anything else.
  func shutDown() {
    let tasks = suspended
    suspended = [:]
    for task in tasks.values { task.cancel() }
    executor.drain()
    for task in tasks.values { task.abandon() }
  }
}

extension EventLoop {
  /// The loop's Swift tasks.
  var taskSupport: LoopTasks {
    if let tasks = registry.swiftTasks { return tasks }
    let made = LoopTasks(self)
    registry.swiftTasks = made
    return made
  }
}
