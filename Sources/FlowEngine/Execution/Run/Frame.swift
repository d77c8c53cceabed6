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

/// An op or flow that waits for its limits before it begins.
final class QueuedOp {
  let op: Op
  let policy: OpPolicy
  let scope: UInt32
  let position: UInt32
  let index: Int
  let hold: LimitHold

  init(
    _ op: Op, _ policy: OpPolicy, scope: UInt32, position: UInt32, index: Int, _ hold: LimitHold
  ) {
    self.op = op
    self.policy = policy
    self.scope = scope
    self.position = position
    self.index = index
    self.hold = hold
  }

  /// As lines show it.
  func name(in log: EventLog) -> ByteString {
    log.displayName(op.name, index: index, scope: scope, position: position)
  }
}

/// The limits that an op or flow holds at a level of its execution.
struct LevelHold {
  let level: Int
  let hold: LimitHold
}
