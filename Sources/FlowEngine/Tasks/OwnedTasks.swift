/// An op or a run: the tasks that it starts end with it at the latest.
protocol TaskOwner: AnyObject {
  /// When it times out; `.max` for never.
  var taskDeadline: Int64 { get }
  /// Why its tasks are to stop; nil when nothing stops them.
  var taskStopError: FlowError? { get }
  /// The tasks that include the owner itself, unless stops of those don't reach it.
  var enclosingTasks: OwnedTasks? { get }
  /// The place in the log of programs and requests that its tasks start; nil for none.
  var workPlace: WorkPlace? { get }
  /// Called at `taskDeadline` for a task that was busy; returns the error that the task ends with,
  /// if the owner is executing.
  func expireTask() -> FlowError?
  /// Fails the owner and all that encloses it, whatever policies say about failures.
  func failOwner(_ error: FlowError)
  /// Whether it, or what encloses it within the same run, holds a limit.
  func holds(_ limit: Limit) -> Bool
  /// The tasks that include the owner itself, also where stops of those don't reach it.
  var tasksAround: OwnedTasks? { get }
  /// The time limits of the policies of the owner, and of what encloses it within the same run.
  var attemptLimits: [any PausableLimit] { get }
  /// The run that it is, or is a part of; nil for what only limits tasks.
  var owningRun: AnyFlowTask? { get }
  /// Whether it is code of a task within the op or run, with a limit of its own.
  var isCode: Bool { get }
}

extension TaskOwner {
  var isCode: Bool { false }
  func holds(_ limit: Limit) -> Bool { false }
  var tasksAround: OwnedTasks? { enclosingTasks }
  var attemptLimits: [any PausableLimit] { [] }
  var owningRun: AnyFlowTask? { nil }
}

/// The tasks that an op or a run has started and that haven't ended: they end with it at the
/// latest.
package final class OwnedTasks {
  private var tasks: [UInt64: AnyFlowTask] = [:]
  /// Called when the last task has ended.
  private var whenEmpty: (() -> Void)?
  /// The op that has started the tasks, while it executes, or the run that owns them. Unowned: the
  /// owner holds this until its own end, and passes its tasks on or waits for them.
  private unowned(unsafe) var owner: (any TaskOwner)?
  /// For tasks that a task has started: the tasks of the enclosing op or run. For tasks of an op
  /// that has succeeded: the run's tasks.
  private var outermost: OwnedTasks?
  /// How many tasks were ever added.
  package private(set) var additions = 0

  /// The tasks that an op has started; or those that the callbacks of a run have started and its
  /// ops have left.
  init(of owner: any TaskOwner) {
    self.owner = owner
  }

  /// The tasks that a task has started, which itself belongs to `owner`; nil for an owner without a
  /// limit.
  package init(within owner: OwnedTasks? = nil) {
    outermost = owner?.outermost ?? owner
  }

  /// When the op or run that limits the tasks times out; `.max` for never.
  var deadline: Int64 {
    // A loop, because runs can have started each other in a row of any length.
    var (deadline, around) = (Int64.max, Optional(self))
    while let owned = around.map({ $0.outermost ?? $0 }) {
      if let owner = owned.owner { deadline = min(deadline, owner.taskDeadline) }
      around = owned.owner?.enclosingTasks
    }
    return deadline
  }

  /// When the time of code that limits the tasks is over, without the op or run around that code; `.max` for never.
  var codeDeadline: Int64 {
    var (deadline, around) = (Int64.max, Optional(self))
    while let owner = around.flatMap({ ($0.outermost ?? $0).owner }), owner.isCode {
      deadline = min(deadline, owner.taskDeadline)
      around = owner.enclosingTasks
    }
    return deadline
  }

  /// Fails the owner of the tasks and all that encloses it, whatever policies say about failures.
  func failOwner(_ error: FlowError) { (outermost ?? self).owner?.failOwner(error) }

  /// Whether anything around the tasks holds a limit.
  package func hold(_ limit: Limit) -> Bool {
    // A loop, because runs can have started each other in a row of any length.
    var around = Optional(self)
    while let owned = around.map({ $0.outermost ?? $0 }) {
      if owned.owner?.holds(limit) == true { return true }
      around = owned.owner?.tasksAround
    }
    return false
  }

  /// Calls a function with each owner around the tasks, the innermost first.
  private func forEachOwner(_ body: (any TaskOwner) -> Void) {
    // A loop, because runs can have started each other in a row of any length.
    var around = Optional(self)
    while let owned = around.map({ $0.outermost ?? $0 }) {
      if let owner = owned.owner { body(owner) }
      around = owned.owner?.tasksAround
    }
  }

  /// The time limits of all policies around the tasks.
  var attemptLimits: [any PausableLimit] {
    var limits: [any PausableLimit] = []
    forEachOwner { limits += $0.attemptLimits }
    return limits
  }

  /// The run around the tasks that nothing of another run has started; nil if no run owns them.
  package var outermostRun: AnyFlowTask? {
    var outermost: AnyFlowTask?
    forEachOwner { outermost = $0.owningRun ?? outermost }
    return outermost
  }

  /// The runs around the tasks, the outermost first.
  package var runs: [AnyFlowTask] {
    var runs: [AnyFlowTask] = []
    forEachOwner { if let run = $0.owningRun { runs.append(run) } }
    return runs.reversed()
  }

  /// Why the owner of the tasks is to stop; nil when nothing stops it.
  package var stopError: FlowError? {
    var around = Optional(self)
    while let owned = around.map({ $0.outermost ?? $0 }) {
      if let error = owned.owner?.taskStopError { return error.asReason }
      around = owned.owner?.enclosingTasks
    }
    return nil
  }

  /// The place in the log of programs and requests that the tasks start; nil when no op or run limits them.
  package var workPlace: WorkPlace? { (outermost ?? self).owner?.workPlace }

  /// Called at `deadline` for a task that was busy; returns the error that the task ends with.
  func expire() -> FlowError {
    if let outermost { return outermost.expire() }
    return owner?.expireTask() ?? .cancelled()
  }

  package var isEmpty: Bool { tasks.isEmpty }

  /// The tasks that haven't ended, the oldest first.
  package var all: [AnyFlowTask] { tasks.values.sorted { $0.id < $1.id } }

  /// The task with this id; nil when there is none, or it has ended.
  package func task(_ id: UInt64) -> AnyFlowTask? { tasks[id] }

  /// Adds a task, which leaves its earlier owner, unless it has ended.
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

  /// Releases what doesn't outlast an owner that has succeeded, as other tasks do.
  package func releaseOwn() {
    for task in tasks.values where task.endsWithOwner { task.stop(.cancelled()) }
  }

  /// Moves all tasks of another owner here.
  package func takeAll(from other: OwnedTasks) {
    let taken = other.tasks
    other.tasks = [:]
    other.owner = nil
    other.outermost = outermost ?? self
    for task in taken.values { add(task) }
  }

  /// Stops all tasks, the youngest first.
  package func cancelAll(_ error: FlowError) {
    for task in all.reversed() { task.stop(error) }
  }

  /// Whether `task` is the only one.
  func isOnly(_ task: AnyFlowTask) -> Bool { tasks.count == 1 && tasks[task.id] != nil }

  /// Calls `body` when all tasks have ended. There must be at least one.
  package func whenEmpty(_ body: @escaping () -> Void) { whenEmpty = body }

  /// Releases everything, for a loop that is shut down.
  package func abandon() {
    whenEmpty = nil
    owner = nil
    for task in tasks.values { task.owner = nil }
    tasks = [:]
  }
}

/// Something that is released when its owner ends, at the latest: a temporary folder, a watch.
///
/// It is a task that the owner adopts; it settles when the resource is released, so the owner waits
/// for that. It neither keeps the loop from being idle nor a script from ending.
package final class OwnedResource: FlowTask<Void> {
  private var release: ((_ done: @escaping () -> Void) -> Void)?
  package override var endsWithOwner: Bool { isForOwnerOnly }
  private let isForOwnerOnly: Bool

  /// Makes a pending task; `release` is called once, and calls `done` when the resource is released. Unless it is
  /// `onlyForOwner`, it passes to the run when its op has succeeded.
  package init(
    on loop: FlowEventLoop, onlyForOwner: Bool = false,
    release: @escaping (_ done: @escaping () -> Void) -> Void
  ) {
    self.release = release
    isForOwnerOnly = onlyForOwner
    super.init(on: loop)
  }

  package override var title: ByteString { title(of: "resource") }

  /// Records that the resource was released otherwise.
  package func noteReleased() {
    release = nil
    end(with: ())
  }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    guard let release else { return nil }
    self.release = nil
    release { [self] in end(with: ()) }
    return nil
  }
}
