/// Different ops that execute at the same time, over the data of their flow.
final class ParallelExecution: MemberGroup {
  private let steps: ContiguousArray<Step>
  private let scope: UInt32
  private let position: UInt32
  private let logs: Bool
  /// The executions of the steps that have started, each at its `memberSlot`; nil where one has ended.
  private var executions: ContiguousArray<Execution?> = []
  /// How many of them haven't ended.
  private var running = 0
  private var next: Int
  private let isRehearsed: Bool
  /// The first error of a rehearsal, which stops nothing.
  private var firstError: FlowError?
  /// The keys that members have set in a kept run: which member was the first, and the value before.
  private var changes: [DataKey: (slot: Int, before: FlowValue?)] = [:]
  /// The member that was started last, which may end before it has returned.
  private var starting: Execution?

  /// Makes the execution of a step at `position`; its ops follow it.
  init(
    _ steps: ArraySlice<Step>, parent: Execution, scope: UInt32, position: UInt32
  ) {
    self.steps = ContiguousArray(steps)
    self.scope = scope
    self.position = position
    logs = parent.logsSets
    next = 0
    isRehearsed = parent.isRehearsing
    super.init(parent: parent)
  }

  override var logsSets: Bool { logs }
  override var members: [Execution] { executions.compactMap { $0 } }

  override func proceed() {
    let waits = startMembers {
      next < steps.count
    } _: {
      let step = steps[next]
      next += 1
      let member = Execution(run: parent.run, data: parent.bucket, group: self)
      member.memberSlot = executions.count
      executions.append(member)
      running += 1
      starting = member
      member.prepare(
        step.op, policy: step.policy, scope: scope,
        position: position + UInt32(truncatingIfNeeded: next), index: 0)
      return .passUnretained(member)
    }
    guard waits else { return }
    starting = nil
    guard running == 0 else { return }
    isScheduled = true
    parent.groupEnded(stop ?? firstError)
  }

  override func cancelMembers(_ error: FlowError) {
    for member in members { member.cancel(error) }
  }

  override func noteSet(_ key: DataKey, by member: Execution) {
    guard changes[key] == nil else { return }
    changes[key] = (member.memberSlot, parent.bucket.get(key))
  }

  override func changes(beside member: Execution) -> [DataKey: FlowValue?] {
    changes.filter { $0.value.slot != member.memberSlot }.mapValues { $0.before }
  }

  override func memberFailed(_ error: FlowError) {
    guard stop == nil else { return }
    if isRehearsed {
      firstError = firstError ?? error
      return
    }
    stop = error
    stopReason = .cancelled(reason: "group failed")
    parent.log.append(
      .groupStopped, time: engine.stampedNow(), scope: scope, position: position)
    schedule()
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    executions[member.memberSlot] = nil
    running -= 1
    if let error { memberFailed(error) }
    continueAsWork()
  }

  override func abandon() {
    executions = []
    starting = nil
    isScheduled = true
  }
}
