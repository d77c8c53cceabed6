/// A sink that is also notified of the start and the end of each run whose events it gets, on the loop's
/// thread.
///
/// ```swift
/// final class Count: RunSink {
///   private(set) var running = 0
///   func runBegan(_ run: Run) { running += 1 }
///   func runEnded(_ run: Run) { running -= 1 }
///   func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {}
/// }
/// loop.eventSinks.append(Count())
/// ```
public protocol RunSink: EventSink {
  /// A run starts: it has its data, and no event yet.
  func runBegan(_ run: Run)
  /// A run has concluded: it has no further events.
  func runEnded(_ run: Run)
}

extension Run {
  func notifySinksOfStart() {
    for sink in log.sinks { (sink as? any RunSink)?.runBegan(self) }
  }

  func notifySinksOfEnd() {
    for sink in log.sinks { (sink as? any RunSink)?.runEnded(self) }
  }
}

/// Is notified of the runs of a loop that the program itself has started: the flows of a script,
/// but not runs that ops of these flows start.
///
/// Monitors don't wait for a run: unlike an observer, a monitor doesn't change which tasks are
/// cancelled together. They are called on the loop's thread, and must neither wait nor start runs.
package protocol RunMonitor: AnyObject {
  /// A run starts: it has its data, and nothing of it has been executed.
  ///
  /// - Parameter run: The run.
  /// - Returns: Whether to execute it. A run that isn't executed succeeds with the data that it has, see
  ///   `Run.isSkipped`; callbacks of its flow aren't called.
  func runBegins(_ run: Run) -> Bool

  /// A run has concluded, and nothing that waits for it has continued.
  func runEnded(_ run: Run)
}

/// Adds a sink to runs that are executed for long, so that the others cost nothing more.
///
/// Confined to the thread of its loop, of which it watches all runs.
protocol RunWatch: DropObserver {
  /// Called while ops execute without waiting, at least every millisecond at the start of an op, and when an
  /// op reports its work. It must not wait.
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
