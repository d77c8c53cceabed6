/// An actor whose code runs on a `LoopThread`, where it may use the loop and everything on it.
///
/// ```swift
/// actor Uploads: FlowActor {
///   nonisolated let thread: LoopThread
///   private var count = 0
///
///   init(on thread: LoopThread) { self.thread = thread }
///
///   func upload(_ path: String) async throws -> String? {
///     count += 1
///     return try await makeFlow(path).start(on: loop).value.string("url")
///   }
/// }
/// ```
///
/// Several actors may share a thread: calls between them don't change it, and one piece of their code
/// runs at a time. Ops of the loop run on the same thread too: they use such an actor without `await`, by
/// `assumeIsolated`. The code of an actor waits by `await`, not by `run.wait()`, during which the other code
/// on the thread would run.
public protocol FlowActor: Actor {
  /// The thread of the actor: a constant.
  nonisolated var thread: LoopThread { get }
}

extension FlowActor {
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    thread.executor.asUnownedSerialExecutor()
  }

  /// The loop of the thread, for code of the actor.
  ///
  /// Throws a `SystemError` when the thread was shut down.
  public var loop: EventLoop {
    get throws { try thread.core.currentLoop() }
  }
}
