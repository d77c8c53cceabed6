/// Knows the runs of a loop that nobody but the program itself has started: what a script's flows are,
/// where ops that these flows execute may start further runs.
///
/// Monitors don't wait for a run: unlike an observer, one changes nothing about what is cancelled with
/// whom. They are called on the loop's thread, and must neither wait nor start runs.
public protocol RunMonitor: AnyObject {
  /// A run begins: it has its data, and nothing of it has been executed.
  ///
  /// - Parameter run: The run.
  /// - Returns: Whether to execute it. A run that isn't executed succeeds with the data that it has, see
  ///   `Run.isSkipped`; callbacks of its flow aren't called.
  func runBegins(_ run: Run) -> Bool

  /// All of a run is done, and nothing that waits for it has gone on.
  func runEnded(_ run: Run)
}
