internal import FlowSystem

extension FlowEventLoop {
  /// Calls `body`, during which this is the thread's current loop.
  package func asCurrent(_ body: () -> Void) { ThreadLoop.execute(for: self, body) }

  /// The loop whose code the calling thread executes; outside of all loops the one that did last, or the first
  /// one made. A thread without a loop gets one from `make`, and keeps it until the thread ends.
  ///
  /// Threads that run code of many tasks get none: those of Swift's cooperative pool, because a task may
  /// continue on another one after each `await`, and those of a `WorkQueue`. There it ends the process with a
  /// sentence.
  package static func current(orMake make: () -> FlowEventLoop) -> FlowEventLoop {
    if let loop = ThreadLoop.current as? FlowEventLoop { return loop }
    if HelperThreads.current != nil || flowsystem_blocked_place() == FLOWSYSTEM_POOL_THREAD {
      misuse(
        "this thread runs code of many tasks, and has no event loop: use LoopThread.perform, or make a loop "
          + "with FlowEventLoop()")
    }
    let loop = make()
    ThreadLoop.keep { loop.shutdown() }
    return loop
  }
}
