/// A flow that a strand is in.
struct Frame {
  enum Phase: UInt8 {
    case willStart, steps, finish, didFinish
  }

  let flow: Flow
  let blueprint: Blueprint
  /// The scope of the flow's own steps.
  let scope: UInt32
  /// Where the flow itself stands, for its own lines.
  let outerScope: UInt32
  let position: UInt32
  let began: Int64
  var phase: Phase = .willStart
  /// The next step.
  var next = 0
  /// The next callback of the phase.
  var callback = 0
  var error: FlowError?
}
