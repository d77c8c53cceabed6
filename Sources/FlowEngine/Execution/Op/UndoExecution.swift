/// The execution of an op's undo, as a group of one. It reports its end to a completion.
final class UndoExecution: MemberGroup {
  /// The error that the flow or op is ending with.
  let endingError: FlowError?
  /// The number of the attempt at the op.
  let attempt: Int
  private let logs: Bool
  /// The lineages of the op's execution and of its place.
  let lineage: UInt64
  private let place: UInt64
  private let undone: ContiguousArray<UndoneKeeping>
  /// How many of these haven't called back.
  private var unkept = 0
  private var member: Execution?
  private let completion: CallbackCompletion
  private var error: FlowError?

  init(
    _ undo: UndoableOp, after error: FlowError?, parent: Execution, _ completion: CallbackCompletion
  ) {
    endingError = error
    attempt = undo.attempt
    logs = undo.logsSets
    lineage = undo.lineage
    place = undo.place
    undone = undo.undone
    self.completion = completion
    super.init(parent: parent)
    var (scope, position) = (undo.scope, undo.position)
    if undo.isOutside {
      // The log of a step's run isn't this one.
      scope = parent.log.addScope(
        LogScope(
          parent: scope, position: position, attempt: 1, kind: .inner, name: undo.op.name,
          queued: engine.takeStamp()))
      position = UInt32(truncatingIfNeeded: undo.index)
    }
    let member = Execution(run: parent.run, data: undo.bucket, group: self)
    member.prepare(
      undo.op, policy: undo.policy, scope: scope, position: position, index: undo.index)
    member.prepareUndo()
    self.member = member
  }

  override var isApart: Bool { true }
  override var logsSets: Bool { logs }
  override var members: [Execution] { member.map { [$0] } ?? [] }

  var displayName: ByteString { member?.context.displayName ?? "" }

  /// The code that executes, when the undo provides it.
  var code: (any ExecutingCode)? { member?.context.state as? any ExecutingCode }

  /// Whether it executes without waiting.
  var isBusy: Bool {
    member?.context.phase == .inBody || code.map { $0.whereItWaits == nil } == true
  }

  func begin() {
    if let member { engine.drive(member) }
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    self.member = nil
    self.error = error
    if error == nil { keepUndone() } else { engine.push(self) }
  }

  /// Continues when the disk has that the op isn't finished any more: what follows relies on it.
  private func keepUndone() {
    parent.run.noteUndone(at: place)
    unkept = undone.count
    var isInCall = true
    for keep in undone {
      keep { [self] problem in
        if let problem, error == nil { error = problem.final }
        unkept -= 1
        if unkept == 0, !isInCall { loop.enqueue(self) }
      }
    }
    isInCall = false
    // As a work, because the parent releases this.
    if unkept == 0 { engine.push(self) }
  }

  override func proceed() {
    parent.child = nil
    completion.finish(error)
  }

  /// An undo isn't undone.
  override func list(_ ops: ContiguousArray<UndoableOp>) {}

  override func cancel(_ error: FlowError) { member?.cancel(error) }

  override func abandon() { member = nil }
}
