import Glibc

/// A few threads for calls that would block a loop, shared by all loops of the process.
///
/// They are started when first needed, block all signals, and then stay: starting a thread costs
/// more than keeping it. Work that waits for another program, such as the writer of a pipe, stands aside:
/// a further thread takes its place until then.
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
  /// The threads that stand aside.
  private var aside = 0

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
    let needsThread = takesThread()
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
    if needsThread { startCountedThread() }
  }

  /// Performs a wait that may last for ever, as a part of work on a thread. Meanwhile the thread doesn't
  /// count, so other work doesn't wait for its end.
  func standAside(_ wait: () -> Void) {
    pthread_mutex_lock(mutex)
    aside += 1
    let needsThread = takesThread()
    pthread_mutex_unlock(mutex)
    if needsThread { startCountedThread() }
    wait()
    pthread_mutex_lock(mutex)
    aside -= 1
    pthread_mutex_unlock(mutex)
  }

  /// Counts a further thread if the work needs one, which the caller has to start. Called with the lock
  /// held.
  private func takesThread() -> Bool {
    guard idle < waiting.count - next, count - aside < limit else { return false }
    count += 1
    return true
  }

  /// Starts a thread that is counted already. Where the system gives none, and no other one takes work,
  /// the work runs here, slowly rather than never.
  private func startCountedThread() {
    if startThread() { return }
    pthread_mutex_lock(mutex)
    count -= 1
    let isTaken = count - aside > 0
    pthread_mutex_unlock(mutex)
    if isTaken { return }
    while let work = nextWork(waits: false) { work() }
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
      // It took the place of one that stood aside.
      if count - aside > limit {
        count -= 1
        return nil
      }
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
