/// The tasks that an op or a run has started and that haven't ended: they end with it at the latest.
package final class OwnedTasks {
  private var tasks: [UInt64: AnyFlowTask] = [:]
  /// Called when the last task has ended.
  private var whenEmpty: (() -> Void)?
  /// The op that has started them, while it goes on. Unowned: it holds this, and hands its tasks on or
  /// waits for them.
  private unowned(unsafe) var op: OpContext?
  /// Of tasks that a task has started: those of the op in which that has been.
  private let outermost: OwnedTasks?

  /// What an op has started.
  init(of op: OpContext) {
    self.op = op
    outermost = nil
  }

  /// What a run has, or a task has started that itself belongs to `owner`.
  init(within owner: OwnedTasks? = nil) {
    outermost = owner?.outermost ?? owner
  }

  /// The op whose time is that of the tasks.
  private var limit: OpContext? {
    if let outermost { return outermost.op }
    return op
  }

  /// When that op times out; `.max` for never.
  var deadline: Int64 { limit?.deadline ?? .max }

  /// Called at `deadline` for a task that was busy; answers why it ends.
  func expire() -> FlowError { limit?.expireTask() ?? .cancelled() }

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
    other.op = nil
    for task in taken.values { add(task) }
  }

  /// Asks all to stop, the youngest first.
  package func cancelAll(_ error: FlowError) {
    for task in tasks.values.sorted(by: { $0.id > $1.id }) { task.stop(error) }
  }

  /// Whether `task` is all there is.
  func isOnly(_ task: AnyFlowTask) -> Bool { tasks.count == 1 && tasks[task.id] != nil }

  /// Calls `body` when all have ended, of which there is at least one.
  package func whenEmpty(_ body: @escaping () -> Void) { whenEmpty = body }

  /// Lets everything go, for a loop that is shut down.
  package func abandon() {
    whenEmpty = nil
    op = nil
    for task in tasks.values { task.owner = nil }
    tasks = [:]
  }
}
