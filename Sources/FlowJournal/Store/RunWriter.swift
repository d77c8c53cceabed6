internal import FlowEngine
internal import Glibc

/// The thread that writes about one run, and its queue. It takes whatever has been queued as one transaction.
///
/// The thread starts with the first command, blocks all signals, and ends after `stop` when the queue is
/// empty. In between it gives a sign of life now and then.
// The mutex guards all properties that change.
final class RunWriter: @unchecked Sendable {
  /// The number by which the loop finds what waits for the writes.
  let completions: UInt64
  private let target: RunTarget
  private let mailbox: Mailbox
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private let condition: UnsafeMutablePointer<pthread_cond_t>
  private var queue: [RunCommand] = []
  /// Keeps the loop waiting, and a virtual clock still, while there is something to write.
  private var pending: [ExternalWork] = []
  private var isStopping = false
  private var firstFailure: FlowError?
  private var committed = 0
  private var thread: pthread_t?

  init(
    folder: ByteString, key: [UInt8], run: ByteString, number: Int64, epoch: Int64,
    mailbox: Mailbox, completions: UInt64
  ) {
    target = RunTarget(folder: folder, key: key, run: run, number: number, epoch: epoch)
    self.mailbox = mailbox
    self.completions = completions
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    condition = .allocate(capacity: 1)
    condition.initialize(to: pthread_cond_t())
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    condition.deallocate()
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// The first error of a write.
  var failure: FlowError? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return firstFailure
  }

  /// How many transactions are on the disk.
  var transactions: Int {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return committed
  }

  /// Queues commands. On the loop's thread.
  func submit(_ commands: [RunCommand]) {
    let work = mailbox.begin()
    pthread_mutex_lock(mutex)
    queue.append(contentsOf: commands)
    pending.append(work)
    let needsThread = thread == nil
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
    if needsThread { start() }
  }

  /// Has the thread end after what is queued, without waiting for it.
  func stop() {
    if let thread = requestStop() { pthread_detach(thread) }
  }

  /// Has the thread end after what is queued, and waits for it.
  func stopAndWait() {
    if let thread = requestStop() { pthread_join(thread, nil) }
  }

  /// Returns the thread to the first caller.
  private func requestStop() -> pthread_t? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    let stopped = isStopping ? nil : thread
    isStopping = true
    pthread_cond_signal(condition)
    return stopped
  }

  private func start() {
    // A new thread has the signal mask of its creator. Signals are for the threads of the program.
    var all = sigset_t()
    var before = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_BLOCK, &all, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var made = pthread_t()
    // The thread releases it.
    let context = Unmanaged.passRetained(self)
    let result = pthread_create(
      &made, nil,
      { context in
        guard let context else { return nil }
        Unmanaged<RunWriter>.fromOpaque(context).takeRetainedValue().work()
        return nil
      }, context.toOpaque())
    if result == 0 {
      thread = made
      return
    }
    context.release()
    let error = StoreProblem.other.error(
      "can't start the thread that writes the store '\(target.folder)': \(systemMessage(result))")
    pthread_mutex_lock(mutex)
    let (count, works) = (queue.count, pending)
    queue = []
    pending = []
    if firstFailure == nil { firstFailure = error }
    pthread_mutex_unlock(mutex)
    report(count, error, works)
  }

  private func work() {
    let session = RunSession(target)
    while let (commands, works) = next() {
      if commands.isEmpty {
        session.beat()
        continue
      }
      let error = session.write(commands)
      pthread_mutex_lock(mutex)
      if error == nil { committed += 1 } else if firstFailure == nil { firstFailure = error }
      pthread_mutex_unlock(mutex)
      report(commands.count, error, works)
    }
  }

  /// Waits for commands; without any for a while it returns none, nil at the end.
  private func next() -> ([RunCommand], [ExternalWork])? {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    if queue.isEmpty, !isStopping {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      time.tv_sec += Int(RunLease.interval)
      while queue.isEmpty, !isStopping {
        if pthread_cond_timedwait(condition, mutex, &time) == ETIMEDOUT { break }
      }
    }
    if queue.isEmpty, isStopping { return nil }
    let taken = (queue, pending)
    queue = []
    pending = []
    return taken
  }

  private func report(_ count: Int, _ error: FlowError?, _ works: [ExternalWork]) {
    mailbox.post { [completions] loop in
      RunCompletions.of(loop).complete(count, of: completions, with: error)
    }
    for work in works { work.end() }
  }
}
