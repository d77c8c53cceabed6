/// Different ops that execute at the same time, over the data of the flow they belong to.
final class ParallelExecution: MemberGroup {
  private let steps: ContiguousArray<Step>
  private let scope: UInt32
  private let position: UInt32
  private let logs: Bool
  private var strands: [Strand] = []
  private var next: Int
  /// Why nothing more starts.
  private var stop: FlowError?
  /// Why what executes has to be asked to stop.
  private var reason: FlowError?
  /// Whether `proceed` is going on, or to come.
  private var isScheduled = true

  /// Makes the execution of a step that stands at `position`; its ops follow it.
  init(
    _ steps: ArraySlice<Step>, parent: Strand, scope: UInt32, position: UInt32
  ) {
    self.steps = ContiguousArray(steps)
    self.scope = scope
    self.position = position
    logs = parent.logsSets
    next = 0
    super.init(parent: parent)
  }

  override var logsSets: Bool { logs }
  override var members: [Strand] { strands }

  override func proceed() {
    isScheduled = true
    while true {
      if let reason {
        self.reason = nil
        for member in strands { member.cancel(reason) }
      }
      guard stop == nil, next < steps.count else { break }
      if loop.isTurnOver {
        loop.enqueue(self)
        return
      }
      let step = steps[next]
      next += 1
      let member = Strand(run: parent.run, bucket: parent.bucket, group: self)
      strands.append(member)
      member.prepare(
        step.op, policy: step.policy, scope: scope,
        position: position + UInt32(truncatingIfNeeded: next), index: 0)
      let depth = loop.works.count
      member.proceed()
      if loop.works.count > depth {
        // The member has pushed work, which comes before the next one.
        loop.works.insert(self, at: depth)
        return
      }
    }
    isScheduled = false
    if strands.isEmpty {
      isScheduled = true
      parent.groupEnded(stop)
    }
  }

  override func memberFailed(_ error: FlowError) {
    guard stop == nil else { return }
    stop = error
    reason = .cancelled(reason: "group failed")
    parent.log.append(
      .groupStopped, time: loop.stampedNow(), scope: scope, position: position)
    schedule()
  }

  override func memberEnded(_ member: Strand, _ error: FlowError?) {
    strands.removeAll { $0 === member }
    if let error { memberFailed(error) }
    if !isScheduled {
      isScheduled = true
      loop.push(self)
    }
  }

  override func cancel(_ error: FlowError) {
    if stop == nil { stop = error }
    reason = error
    schedule()
  }

  override func abandon() {
    strands = []
    isScheduled = true
  }

  /// Goes on as a job of its own: what calls this may be in the middle of a body.
  private func schedule() {
    guard !isScheduled else { return }
    isScheduled = true
    loop.enqueue(self)
  }
}
