internal import CFlowSystem

/// The jobs of the main actor, for a loop on the main thread: who blocks that thread has to do them.
final class MainQueue {
  /// Readable when there is something to do.
  let descriptor: Int32

  /// nil on another thread than the main one.
  init?() {
    guard flowsystem_is_main_thread() else { return nil }
    descriptor = flowsystem_main_queue_descriptor()
    if descriptor < 0 { return nil }
  }

  /// Does what there is to do; answers whether there was anything.
  func drain() -> Bool { flowsystem_drain_main_queue(descriptor) }
}
