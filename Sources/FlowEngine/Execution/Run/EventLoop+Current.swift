extension EventLoop {
  /// The event loop of the calling thread: the default wherever a loop is a parameter.
  ///
  /// Within an op, a callback or other code that a loop executes it is that loop, and on a `LoopThread` the loop
  /// of the thread. Elsewhere it is the loop that ran last on the thread, or the first one made there. A thread
  /// without a loop gets one, which lives until the thread ends; its owner turns it, such as by `run.wait()` or
  /// `runUntilIdle()`.
  ///
  /// Code of a Swift task that isn't on a loop or the main thread has none, because it may continue on another
  /// thread after each `await`: there it ends the process with a sentence. Use `LoopThread.perform`. Several
  /// loops of one thread are best passed explicitly, as are those of tests.
  public static var current: EventLoop { current(orMake: { EventLoop() }) }
}
