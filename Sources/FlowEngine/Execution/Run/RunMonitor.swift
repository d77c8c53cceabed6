/// Is notified of the runs of a loop that the program itself has started: the flows of a script,
/// but not runs that ops of these flows start.
///
/// Monitors don't wait for a run: unlike an observer, a monitor doesn't change which tasks are
/// cancelled together. They are called on the loop's thread, and must neither wait nor start runs.
public protocol RunMonitor: AnyObject {
  /// A run starts: it has its data, and nothing of it has been executed.
  ///
  /// - Parameter run: The run.
  /// - Returns: Whether to execute it. A run that isn't executed succeeds with the data that it has, see
  ///   `Run.isSkipped`; callbacks of its flow aren't called.
  func runBegins(_ run: Run) -> Bool

  /// A run has concluded, and nothing that waits for it has continued.
  func runEnded(_ run: Run)
}
