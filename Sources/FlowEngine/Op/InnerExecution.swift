// How an op executes another one in its own place: what decorators consist of.

extension OpContext {
  /// Executes another op, flow or machine over the data of this op, and runs it until its first wait.
  ///
  /// It has its own policy, log lines and cleanups, in a group the index of this op's item, and the
  /// time that is left to this op. It ends with this op: what still runs when that has returned is
  /// cancelled and waited for. Its failure is the task's, and no failure of this op by itself.
  ///
  /// - Parameter op: What to execute. It may be executed any number of times, also at once.
  /// - Returns: Its end. Outside of the body, once this op has settled or cleans up, that is an error
  ///   of kind `usage`.
  @discardableResult
  public func execute(_ op: Op) -> FlowTask<Void> {
    guard let strand, isOpen, !strand.isCleaningUp else {
      return .failed(
        FlowError.usage("'\(op.name)' was to be executed by an op that has finished"), on: loop)
    }
    strand.loop.checkThread()
    let task = InnerTask(op, of: self, in: strand)
    addInner(task)
    task.begin()
    return task
  }
}

/// An op that another op executes over its own data. It ends when the op has ended.
package final class InnerTask: FlowTask<Void> {
  private let execution: InnerExecution

  init(_ op: Op, of context: OpContext, in parent: Strand) {
    execution = InnerExecution(op, of: context, in: parent)
    super.init(on: parent.loop)
    // It is raised where the outer op waits, and stands in the log.
    markObserved()
    execution.task = self
  }

  public override var title: ByteString { execution.op.name }

  /// What executes; nil at the end.
  var member: Strand? { execution.member }

  func begin() { execution.begin() }

  /// Releases the observers that wait for it, for a loop that is shut down.
  func abandon() { giveUpObservers() }

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    execution.cancel(error)
    return nil
  }
}

/// The strand of such an op, as a group of one.
private final class InnerExecution: MemberGroup {
  let op: Op
  private(set) var member: Strand?
  // Safe: the task holds this.
  unowned(unsafe) var task: InnerTask?
  private let index: Int
  private let logs: Bool

  init(_ op: Op, of context: OpContext, in parent: Strand) {
    self.op = op
    index = context.index
    logs = parent.logsSets
    super.init(parent: parent)
    let scope = parent.log.addScope(
      LogScope(
        parent: context.scope, position: context.position,
        attempt: UInt32(truncatingIfNeeded: context.attempt), kind: .inner, op: op, blueprint: nil))
    let member = Strand(run: parent.run, bucket: parent.bucket, group: self)
    member.prepare(
      op, policy: op.policy, scope: scope, position: UInt32(truncatingIfNeeded: index),
      index: index)
    member.limit(to: parent.leafDeadline)
    self.member = member
  }

  override var logsSets: Bool { logs }
  override var members: [Strand] { member.map { [$0] } ?? [] }

  func begin() {
    if let member { loop.drive(member) }
  }

  override func memberEnded(_ member: Strand, _ error: FlowError?) {
    self.member = nil
    guard let task else { return }
    if let error { task.end(error: error) } else { task.end(with: ()) }
  }

  override func cancel(_ error: FlowError) { member?.cancel(error) }

  override func abandon() { member = nil }
}
