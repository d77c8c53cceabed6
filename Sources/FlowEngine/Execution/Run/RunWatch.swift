/// Adds a sink to runs that are executed for long, so that the others cost nothing more.
///
/// Confined to the thread of its loop, of which it watches all runs.
protocol RunWatch: DropObserver {
  /// Called while ops execute without waiting, at least every millisecond at the start of an op, and when an
  /// op reports what it has done. It must not wait.
  func look(at time: Int64)
  /// A run that an op has started ends; `scope` is its scope in the log of that op's run, where its end
  /// follows.
  func innerRunEnds(_ run: Run, in log: EventLog, scope: UInt32, at time: Int64)
  /// A run has concluded, and is no longer pending.
  func runConcluded(_ run: Run)
}

extension Run {
  /// The groups of the run that are executing.
  var executingGroups: [GroupExecution] {
    var groups: [GroupExecution] = []
    var open = execution.map { [$0] } ?? []
    while let next = open.popLast() {
      if let group = next.child as? GroupExecution { groups.append(group) }
      // The run of a machine's step is another one.
      open += next.members.filter { $0.run === self }
    }
    return groups
  }
}
