internal import CFlowSystem

/// The jobs of the main actor, for a loop on the main thread: a loop that blocks that thread has to
/// run them.
final class MainQueue {
  /// Readable when there are jobs.
  let descriptor: Int32

  /// nil on another thread than the main one.
  init?() {
    guard flowsystem_is_main_thread() else { return nil }
    descriptor = flowsystem_main_queue_descriptor()
    if descriptor < 0 { return nil }
  }

  /// Whether a loop is running the jobs, so that Dispatch runs no further one until it returns.
  // Unsafe: only the main thread has a queue.
  nonisolated(unsafe) private static var isDraining = false

  /// Whether `drain` would run jobs.
  var isUsable: Bool { !Self.isDraining }

  /// Runs the jobs; returns whether there were any.
  func drain() -> Bool {
    let outer = Self.isDraining
    Self.isDraining = true
    defer { Self.isDraining = outer }
    return flowsystem_drain_main_queue(descriptor)
  }
}
