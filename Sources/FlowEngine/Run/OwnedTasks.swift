/// The tasks that an op or a run has started and that haven't ended: they end with it at the latest.
final class OwnedTasks {
  private var tasks: [UInt64: FlowTask] = [:]
  /// Goes on when the last task has ended.
  private var waiter: Strand?

  var isEmpty: Bool { tasks.isEmpty }

  func add(_ task: FlowTask) {
    guard !task.isConcluded else { return }
    task.owner = self
    tasks[task.id] = task
  }

  /// Called by a task that has ended.
  func remove(_ task: FlowTask) {
    tasks[task.id] = nil
    if tasks.isEmpty, let waiter {
      self.waiter = nil
      waiter.wake(.owned)
    }
  }

  /// Takes over what another one holds.
  func takeAll(from other: OwnedTasks) {
    let taken = other.tasks
    other.tasks = [:]
    for task in taken.values { add(task) }
  }

  /// Asks all to stop, the youngest first.
  func cancelAll(_ error: FlowError) {
    for task in tasks.values.sorted(by: { $0.id > $1.id }) { task.stop(error) }
  }

  /// Has `strand` go on when all have ended, of which there is at least one.
  func wait(_ strand: Strand) { waiter = strand }

  /// Lets everything go, for a loop that is shut down.
  func abandon() {
    waiter = nil
    for task in tasks.values { task.owner = nil }
    tasks = [:]
  }
}
