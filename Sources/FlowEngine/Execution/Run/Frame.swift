/// A flow that an execution is in.
struct Frame {
  let flow: Flow
  let blueprint: Blueprint
  var cursor: FlowCursor
  var attempt: Attempt
  /// The scope of the flow's own steps.
  var scope: UInt32
  /// The position of the flow itself, for its own lines.
  let outerScope: UInt32
  let position: UInt32
  let began: Int64
  /// The ops that have succeeded in this attempt and can be undone, the last one last.
  var undos: ContiguousArray<UndoableOp> = []
  /// The ops that are kept as finished within a flow that has an undo.
  var kept: [UndoneKeeping] = []

  init(
    flow: Flow, blueprint: Blueprint, policy: OpPolicy?, scope: UInt32, outerScope: UInt32,
    position: UInt32, began: Int64
  ) {
    self.flow = flow
    self.blueprint = blueprint
    cursor = FlowCursor(
      .init(
        willStart: blueprint.willStart.count, steps: blueprint.steps.count,
        finally: blueprint.finally.count, didFinish: blueprint.didFinish.count))
    attempt = Attempt(policy)
    self.scope = scope
    self.outerScope = outerScope
    self.position = position
    self.began = began
  }
}
