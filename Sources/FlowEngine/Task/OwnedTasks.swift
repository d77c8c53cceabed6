/// The tasks that an op or a run has started and that haven't ended: they end with it at the latest.
package final class OwnedTasks {
  private var tasks: [UInt64: AnyFlowTask] = [:]
  /// Called when the last task has ended.
  private var whenEmpty: (() -> Void)?
  /// The op that has started them, while it goes on. Unowned: it holds this, and hands its tasks on or
  /// waits for them.
  private unowned(unsafe) var op: OpContext?
  /// The run that has them. Unowned: it holds this until it is concluded, and waits for them.
  private unowned(unsafe) var run: Run?
  /// Of tasks that a task has started: those of the op or run in which that has been. Of those of an op
  /// that has succeeded: the run's.
  private var outermost: OwnedTasks?
  /// How many were ever added.
  package private(set) var additions = 0

  /// What an op has started.
  init(of op: OpContext) {
    self.op = op
  }

  /// What the callbacks of a run have started, and its ops have left.
  init(of run: Run) {
    self.run = run
  }

  /// What a task has started that itself belongs to `owner`, or nothing does that has a limit.
  package init(within owner: OwnedTasks? = nil) {
    outermost = owner?.outermost ?? owner
  }

  /// When the op, or the run, times out whose time is that of the tasks; `.max` for never.
  var deadline: Int64 {
    // Runs can have started each other in a row of any length.
    var (deadline, around) = (Int64.max, Optional(self))
    while let owned = around.map({ $0.outermost ?? $0 }) {
      let strand = owned.op?.strand ?? owned.run?.strand
      if let strand { deadline = min(deadline, strand.ownDeadline(leftovers: owned.run != nil)) }
      around = strand.flatMap { $0.isShielded ? nil : $0.run.owner }
    }
    return deadline
  }

  /// Why what has started them is to stop; nil when nothing stops it.
  package var stopError: FlowError? {
    var around = Optional(self)
    while let owned = around.map({ $0.outermost ?? $0 }) {
      let strand = owned.op?.strand ?? owned.run?.strand
      if let error = strand?.leafStop ?? strand?.stop?.inner { return error.asReason }
      around = strand.flatMap { $0.isShielded ? nil : $0.run.owner }
    }
    return nil
  }

  /// Called at `deadline` for a task that was busy; answers why it ends.
  func expire() -> FlowError {
    if let outermost { return outermost.expire() }
    return op?.expireTask() ?? run?.strand?.expireLeftover() ?? .cancelled()
  }

  package var isEmpty: Bool { tasks.isEmpty }

  /// Those that haven't ended, the oldest first.
  package var all: [AnyFlowTask] { tasks.values.sorted { $0.id < $1.id } }

  /// The one of this id; nil when it isn't there, or has ended.
  package func task(_ id: UInt64) -> AnyFlowTask? { tasks[id] }

  /// Takes a task over, from whoever has it, unless it has ended.
  package func add(_ task: AnyFlowTask) {
    guard !task.isConcluded else { return }
    if let owner = task.owner { owner.tasks[task.id] = nil }
    task.owner = self
    tasks[task.id] = task
    additions += 1
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
    other.outermost = outermost ?? self
    for task in taken.values { add(task) }
  }

  /// Asks all to stop, the youngest first.
  package func cancelAll(_ error: FlowError) {
    for task in all.reversed() { task.stop(error) }
  }

  /// Whether `task` is all there is.
  func isOnly(_ task: AnyFlowTask) -> Bool { tasks.count == 1 && tasks[task.id] != nil }

  /// Calls `body` when all have ended, of which there is at least one.
  package func whenEmpty(_ body: @escaping () -> Void) { whenEmpty = body }

  /// Lets everything go, for a loop that is shut down.
  package func abandon() {
    whenEmpty = nil
    op = nil
    run = nil
    for task in tasks.values { task.owner = nil }
    tasks = [:]
  }
}
