// How an execution rehearses a run, whose keeper then decides about each op whether it is executed.
//
// The keeper takes what it knows of an op for its end, and refuses what it doesn't know. An op that isn't kept, such as
// a final step, isn't executed; nor are callbacks, retries and undos. What doesn't need an op that was refused is
// rehearsed as well: the other items of its group, and what is executed at the same time. Functions that decide, such
// as conditions of cases and transitions of machines, are called.
//
// An op that the keeper has executed all the same is executed with all that belongs to it.
extension Execution {
  /// Whether it rehearses: its run is a rehearsal, and no op that is executed encloses it.
  var isRehearsing: Bool {
    guard run.isRehearsal else { return false }
    var execution = self
    while let group = execution.group {
      // Only an op that is executed executes others in its own place.
      if group is InnerExecution { return false }
      execution = group.parent
    }
    return true
  }

  /// Whether a rehearsal does nothing for an op that isn't kept. The steps of a machine are kept.
  func isLeftOut(_ op: Op) -> Bool {
    guard isRehearsing, !(op is MachineOp) else { return false }
    lastError = nil
    return true
  }
}

extension OpContext {
  /// Whether the op is rehearsed, and not executed.
  var isRehearsed: Bool { keeping == nil && execution?.isRehearsing == true }
}
