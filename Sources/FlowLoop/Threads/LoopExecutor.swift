/// Runs the code of actors on the thread of an event loop, between the jobs of the loop and in the order in
/// which it becomes ready.
///
/// `FlowEventLoop.executor` is the one of a loop. After the loop was shut down, the code runs on another
/// thread instead, one piece at a time, so that nobody waits for an actor for ever; the loop can't be used then.
// The monitor guards the jobs and the flags; the loop is touched on its own thread only.
package final class LoopExecutor: SerialExecutor, @unchecked Sendable {
  private let identity: FlowEventLoop.Identity
  private let mailbox: LoopMailbox
  private let monitor = Monitor()
  private var jobs: [UnownedJob] = []
  /// Whether something will run the jobs.
  private var isScheduled = false
  private var isRunning = false
  private var isDetached = false
  // Safe: the loop detaches it in its deinit.
  private unowned(unsafe) var loop: FlowEventLoop?

  fileprivate init(_ loop: FlowEventLoop) {
    identity = loop.identity
    mailbox = loop.mailbox
    self.loop = loop
  }

  /// Called by the runtime, on any thread, when code of an actor can run.
  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isFirst = monitor.locked {
      jobs.append(job)
      defer { isScheduled = true }
      return !isScheduled
    }
    if isFirst { schedule() }
  }

  /// Whether the calling code is on the loop's thread, where it may use the actors of this executor by
  /// `assumeIsolated`.
  package func isIsolatingCurrentContext() -> Bool? { identity.isCurrentThread }

  package func checkIsolated() {
    if !identity.isCurrentThread {
      misuse("code of an actor on a loop's thread was expected, but this is another thread")
    }
  }

  private func schedule() {
    if !monitor.locked({ isDetached }) {
      if identity.isCurrentThread, let loop {
        loop.enqueue { self.runJobs() }
        return
      }
      if mailbox.postIfOpen({ _ in self.runJobs() }) { return }
    }
    HelperThreads.shared.run { self.runJobs() }
  }

  /// Runs the jobs, unless another call does: while the loop shuts down, they may be scheduled twice.
  private func runJobs() {
    let ready: [UnownedJob]? = monitor.locked {
      guard isScheduled, !isRunning else { return nil }
      isRunning = true
      defer { jobs = [] }
      return jobs
    }
    guard let ready else { return }
    for job in ready { job.runSynchronously(on: asUnownedSerialExecutor()) }
    let hasMore = monitor.locked {
      isRunning = false
      isScheduled = !jobs.isEmpty
      return isScheduled
    }
    if hasMore { schedule() }
  }
}

extension LoopExecutor: LoopExtension {
  package func loopIsShutDown() {
    loop = nil
    // The executor that was to run the jobs on the loop is dropped with it.
    let isLeft = monitor.locked {
      isDetached = true
      return isScheduled && !isRunning
    }
    if isLeft { HelperThreads.shared.run { self.runJobs() } }
  }
}

extension FlowEventLoop {
  /// The executor for actors whose code runs on this loop's thread; called on that thread.
  ///
  /// The code runs while the loop turns. It doesn't keep the loop from being idle.
  public var executor: any SerialExecutor { loopExecutor }

  package var loopExecutor: LoopExecutor {
    checkThread()
    let id = ObjectIdentifier(LoopExecutor.self)
    if let made = extensions[id] as? LoopExecutor { return made }
    let made = LoopExecutor(self)
    if isShutDown { made.loopIsShutDown() } else { extensions[id] = made }
    return made
  }
}

extension FlowEventLoop {
  /// Runs `work` on another thread, and then `done` with its result on the loop, as a job.
  ///
  /// Until then the loop isn't stalled, and a virtual clock doesn't advance. Without a queue the work may block,
  /// for example in a call of the system.
  package func offload<Result: Sendable>(
    to queue: WorkQueue? = nil, _ work: @escaping @Sendable () -> Result,
    then done: @escaping (Result) -> Void
  ) {
    checkThread()
    lastOffload += 1
    // Only the number crosses threads: the objects of `done` belong to the loop's thread.
    let number = lastOffload
    offloaded[number] = OffloadCompletion(done)
    let external = mailbox.begin()
    let job: @Sendable () -> Void = { [mailbox] in
      let result = work()
      mailbox.post { loop in
        let completion = loop.offloaded.removeValue(forKey: number)
        (completion as? OffloadCompletion<Result>)?.done(result)
      }
      external.end()
    }
    if let queue { queue.run(job) } else { HelperThreads.shared.run(job) }
  }
}

/// The code that gets the result of work off the loop.
private final class OffloadCompletion<Result> {
  let done: (Result) -> Void

  init(_ done: @escaping (Result) -> Void) {
    self.done = done
  }
}

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
///     return try await makeFlow(path).start(on: loop).value.value("url")
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
  public var loop: FlowEventLoop {
    get throws { try thread.core.currentLoop() }
  }
}
