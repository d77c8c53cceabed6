extension EventLoop {
  /// Runs that haven't concluded, in the order in which they were started.
  public var pendingRuns: [Run] { engine.pending.values.sorted { $0.id < $1.id } }

  /// All tasks that run by themselves and haven't concluded, in the order of their start: runs, and
  /// tasks whose code waits.
  package var pendingTasks: [AnyFlowTask] {
    (Array(engine.pending.values) + Array(engine.continuations.values)).sorted { $0.id < $1.id }
  }

  /// The pending task with this id, if there is one.
  package func pendingTask(_ id: UInt64) -> AnyFlowTask? {
    engine.pending[id] ?? engine.continuations[id]
  }

  /// The number of pending tasks.
  package var pendingTaskCount: Int { engine.pending.count + engine.continuations.count }

  /// The id of the task that was made last.
  package var newestTask: UInt64 { engine.lastTaskID }
}
