import Glibc

/// A few threads for calls that would block a loop, shared by all loops of the process.
///
/// They are started when first needed, block all signals, and then stay: starting a thread costs
/// more than keeping it.
// The mutex guards all properties that change.
final class HelperThreads: @unchecked Sendable {
  /// Four: enough to keep a disk busy, few enough for any machine.
  static let shared = HelperThreads(limit: 4)

  private let limit: Int
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var waiting: [@Sendable () -> Void] = []
  private var next = 0
  private var count = 0
  private var idle = 0

  private init(limit: Int) {
    self.limit = limit
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    pthread_cond_init(condition, nil)
  }

  /// Runs `work` on a thread, in the order of the calls.
  func run(_ work: @escaping @Sendable () -> Void) {
    pthread_mutex_lock(mutex)
    waiting.append(work)
    let needsThread = idle < waiting.count - next && count < limit
    if needsThread { count += 1 }
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
    if needsThread, !startThread() {
      pthread_mutex_lock(mutex)
      count -= 1
      let hasNone = count == 0
      pthread_mutex_unlock(mutex)
      // Without any thread the work runs here, slowly rather than never.
      if hasNone, let work = nextWork(waits: false) { work() }
    }
  }

  private func startThread() -> Bool {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    // A new thread has the signal mask of its creator. Signals are for the threads of the program.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var thread = pthread_t()
    return pthread_create(&thread, &attributes, { _ in HelperThreads.shared.work() }, nil) == 0
  }

  private func work() -> UnsafeMutableRawPointer? {
    while let work = nextWork(waits: true) { work() }
    return nil
  }

  private func nextWork(waits: Bool) -> (@Sendable () -> Void)? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while next == waiting.count {
      if !waits { return nil }
      idle += 1
      pthread_cond_wait(condition, mutex)
      idle -= 1
    }
    let work = waiting[next]
    next += 1
    if next == waiting.count {
      waiting = []
      next = 0
    }
    return work
  }
}

extension EventLoop {
  /// Runs `work` on another thread, and then `done` with its result on the loop, as a job.
  ///
  /// Until then the loop isn't stalled, and a virtual clock doesn't advance.
  package func offload<Result: Sendable>(
    _ work: @escaping @Sendable () -> Result, then done: @escaping (Result) -> Void
  ) {
    checkThread()
    lastOffload += 1
    // Only the number crosses threads: the objects of `done` belong to the loop's thread.
    let number = lastOffload
    offloaded[number] = OffloadCompletion(done)
    let external = mailbox.begin()
    HelperThreads.shared.run { [mailbox] in
      let result = work()
      mailbox.post { loop in
        let completion = loop.offloaded.removeValue(forKey: number)
        (completion as? OffloadCompletion<Result>)?.done(result)
      }
      external.end()
    }
  }
}

/// The code that gets the result of work off the loop.
private final class OffloadCompletion<Result> {
  let done: (Result) -> Void

  init(_ done: @escaping (Result) -> Void) {
    self.done = done
  }
}
