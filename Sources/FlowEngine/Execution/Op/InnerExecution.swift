// How an op executes another one in its own place, as decorators do.

extension OpContext {
  /// Executes another op, flow or machine over the data of this op, and runs it until its first wait.
  ///
  /// The other op has its own policy, log lines and cleanups. In a group it has the index of this
  /// op's item. It shares the time that this op has left. It ends with this op: when this op
  /// returns, an inner op that is still running is cancelled, and its end awaited. Its failure is
  /// the task's, and doesn't by itself fail this op.
  ///
  /// ```swift
  /// let outer = Op("PublishOp") { context async throws in
  ///   try await context.execute(op).value
  /// }
  /// ```
  ///
  /// - Parameter op: The op to execute. It may be executed any number of times, also concurrently.
  /// - Returns: A task that settles when the op ends. Outside of the body, or after this op has
  ///   settled or while it cleans up, the task fails with an error of kind `usage`.
  @discardableResult
  public func execute(_ op: some OpConvertible) -> FlowTask<Void> {
    execute(op.makeOp(), within: nil)
  }

  /// Executes an op over data of its own, of which the log says nothing, or for code of a task, whose limits the op
  /// doesn't take again; nil for neither.
  package func execute(
    _ op: Op, in bucket: DataBucket? = nil, within tasks: OwnedTasks?
  ) -> FlowTask<Void> {
    guard let execution, isOpen, !execution.opCursor.isCleaningUp else {
      return .failed(
        FlowError.usage("'\(op.name)' was to be executed by an op that has finished"), on: loop
      )
    }
    execution.loop.checkThread()
    let task = InnerTask(op, of: self, in: execution, data: bucket, within: tasks)
    addInner(task)
    task.begin()
    return task
  }

  /// Registers an op that this one executes; see `execute`.
  func addInner(_ task: InnerTask) {
    let resources = makeResources()
    let inner = resources.inner ?? OwnedTasks(of: self)
    resources.inner = inner
    inner.add(task)
  }
}

/// An op that another op executes over its own data. It ends when the op has ended.
package final class InnerTask: FlowTask<Void> {
  private let execution: InnerExecution
  private weak var standIn: InnerStandIn?

  init(
    _ op: Op, of context: OpContext, in parent: Execution, data: DataBucket?,
    within tasks: OwnedTasks? = nil
  ) {
    execution = InnerExecution(op, of: context, in: parent, data: data, within: tasks)
    super.init(on: parent.loop)
    // Its error is raised where the outer op waits, and is in the log.
    markObserved()
    execution.task = self
  }

  package override var title: ByteString { execution.op.name }

  /// The execution of the op; nil at the end.
  var member: Execution? { execution.member }

  func begin() { execution.begin() }

  /// Releases the observers that wait for it, for a loop that is shut down.
  func abandon() { giveUpObservers() }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    execution.cancel(error)
    return nil
  }

  override func conclude() {
    super.conclude()
    standIn?.end(with: ())
  }

  /// Makes the task that the code of another task owns which executes the op.
  fileprivate func makeStandIn() -> AnyFlowTask {
    let made = InnerStandIn(of: self)
    standIn = made
    return made
  }
}

extension ContinuationTask {
  /// Makes this task stop an op that its code executes, and wait for the op's end, as it does with tasks that its code
  /// has started. The op itself belongs to the op around it.
  package final func adopt(executed task: FlowTask<Void>) {
    guard let inner = task as? InnerTask, !inner.isConcluded else { return }
    adopt(inner.makeStandIn())
  }
}

/// Stands for an op that code of a task executes among the tasks that this code has started. The op's task can't: it
/// belongs to the op around it.
private final class InnerStandIn: FlowTask<Void> {
  private let inner: InnerTask

  init(of inner: InnerTask) {
    self.inner = inner
    super.init(on: inner.loop)
  }

  override var title: ByteString { inner.title }
  override var endsWithOwner: Bool { true }
  override func requestStop(_ error: FlowError) -> AnyFlowTask? { inner }
}

/// The execution of an inner op, as a group of one.
final class InnerExecution: MemberGroup {
  let op: Op
  private(set) var member: Execution?
  // Safe: the task holds this.
  unowned(unsafe) var task: InnerTask?
  private let index: Int
  private let logs: Bool
  private let tasks: OwnedTasks?

  init(
    _ op: Op, of context: OpContext, in parent: Execution, data: DataBucket?,
    within tasks: OwnedTasks?
  ) {
    self.op = op
    self.tasks = tasks
    index = context.index
    logs = parent.logsSets && data == nil
    super.init(parent: parent)
    let scope = parent.log.addScope(
      LogScope(
        parent: context.scope, position: context.position,
        attempt: UInt32(truncatingIfNeeded: context.attempt),
        number: context.nextInnerNumber(), kind: .inner, name: op.name,
        queued: parent.engine.takeStamp()))
    let member = Execution(run: parent.run, data: data ?? parent.bucket, group: self)
    member.prepare(
      op, policy: op.policy, scope: scope, position: UInt32(truncatingIfNeeded: index),
      index: index)
    member.limit(to: tasks?.codeDeadline ?? .max)
    self.member = member
  }

  override var logsSets: Bool { logs }
  override var tasksAround: OwnedTasks? { tasks }
  override var members: [Execution] { member.map { [$0] } ?? [] }

  func begin() {
    if let member { loop.engine.drive(member) }
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    self.member = nil
    guard let task else { return }
    if let error { task.end(error: error) } else { task.end(with: ()) }
  }

  override func list(_ ops: ContiguousArray<UndoableOp>) {
    parent.context.makeResources().undos += ops
  }

  override func cancel(_ error: FlowError) { member?.cancel(error) }

  override func abandon() { member = nil }
}
