/// What has started tasks, which end with it at the latest: its time is theirs.
package protocol TaskOwner: AnyObject {
  /// When it times out; `.max` for never.
  var deadline: Int64 { get }

  /// Called at `deadline` for a task of it that was busy; answers why that ends.
  func expireTask() -> FlowError
}

/// The tasks that an op or a run has started and that haven't ended: they end with it at the latest.
package final class OwnedTasks {
  private var tasks: [UInt64: AnyFlowTask] = [:]
  /// Called when the last task has ended.
  private var whenEmpty: (() -> Void)?
  // Unowned: it holds this, and hands its tasks on or waits for them.
  package private(set) unowned(unsafe) var holder: (any TaskOwner)?

  package init(_ holder: (any TaskOwner)? = nil) {
    self.holder = holder
  }

  package var isEmpty: Bool { tasks.isEmpty }

  /// Takes a task over, from whoever has it, unless it has ended.
  package func add(_ task: AnyFlowTask) {
    guard !task.isConcluded else { return }
    if let owner = task.owner { owner.tasks[task.id] = nil }
    task.owner = self
    tasks[task.id] = task
  }

  /// Called by a task that has ended.
  func remove(_ task: AnyFlowTask) {
    tasks[task.id] = nil
    if tasks.isEmpty, let whenEmpty {
      self.whenEmpty = nil
      whenEmpty()
    }
  }

  /// Takes over what another one holds.
  package func takeAll(from other: OwnedTasks) {
    let taken = other.tasks
    other.tasks = [:]
    other.holder = nil
    for task in taken.values { add(task) }
  }

  /// Asks all to stop, the youngest first.
  package func cancelAll(_ error: FlowError) {
    for task in tasks.values.sorted(by: { $0.id > $1.id }) { task.stop(error) }
  }

  /// Calls `body` when all have ended, of which there is at least one.
  package func whenEmpty(_ body: @escaping () -> Void) { whenEmpty = body }

  /// Lets everything go, for a loop that is shut down.
  package func abandon() {
    whenEmpty = nil
    holder = nil
    for task in tasks.values { task.owner = nil }
    tasks = [:]
  }
}
