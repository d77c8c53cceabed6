extension EventLoop {
  /// Runs `work` on another thread, and then `done` with its result on the loop, as a job.
  ///
  /// Until then the loop isn't stalled, and a virtual clock doesn't advance. Without a queue the work may block,
  /// such as in a call of the system.
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
