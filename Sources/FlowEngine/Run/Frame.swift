/// A flow that a strand is in.
struct Frame {
  enum Phase: UInt8 {
    /// The callbacks before the first step.
    case willStart
    case steps
    /// The steps that are executed whatever happened.
    case finally
    /// The end of an attempt: succeeded, to be tried again, or failed.
    case attemptEnd
    /// Decides whether there is another attempt.
    case deciding
    /// Waits before the next attempt.
    case delay
    /// Waits for the tasks that the ops of the run have left.
    case leftovers
    case finish
    /// The callbacks after the end.
    case didFinish
  }

  let flow: Flow
  let blueprint: Blueprint
  /// The policy at its place.
  let policy: OpPolicy?
  /// The scope of the flow's own steps.
  var scope: UInt32
  /// Where the flow itself stands, for its own lines.
  let outerScope: UInt32
  let position: UInt32
  let began: Int64
  var phase: Phase = .willStart
  /// 1-based.
  var attempt = 1
  /// When this attempt times out, and what sees to it.
  var deadline: Int64 = .max
  var timer: Timer?
  /// What the strand's `outerDeadline` was before.
  var deadlineAround: Int64 = .max
  /// The next step, and where the steps of the present branch, or all, end.
  var next = 0
  var end: Int
  /// The cases that are being decided, and the next branch to look at.
  var block = -1
  var branch = 0
  /// Where the present branch leads to; -1 outside of one.
  var joint = -1
  /// The next callback of the phase.
  var callback = 0
  var error: FlowError?
  /// Whether a stop has ended the present attempt.
  var isStopped = false
  /// The end of the grace of the final steps and the callbacks after the end; nil until it has begun.
  var graceEnd: Int64?
  /// Whether no case matched.
  var isFinishedEarly = false

  init(
    flow: Flow, blueprint: Blueprint, policy: OpPolicy?, scope: UInt32, outerScope: UInt32,
    position: UInt32, began: Int64
  ) {
    self.flow = flow
    self.blueprint = blueprint
    self.policy = policy
    self.scope = scope
    self.outerScope = outerScope
    self.position = position
    self.began = began
    end = blueprint.steps.count
  }

  /// Goes back to the first step.
  mutating func rewind() {
    next = 0
    end = blueprint.steps.count
    block = -1
    joint = -1
    error = nil
    isStopped = false
    graceEnd = nil
    isFinishedEarly = false
  }
}
