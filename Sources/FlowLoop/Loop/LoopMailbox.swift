internal import FlowSystem
import Synchronization

/// The way for other threads to pass work to an event loop.
///
/// All its methods may be called from any thread.
///
/// ```swift
/// let mailbox = loop.mailbox
/// Thread.detachNewThread {
///   mailbox.post { loop in print(loop.pendingRuns.count, "runs") }
/// }
/// ```
// The mutex guards the queue; the other properties are atomic or never change.
public final class LoopMailbox: @unchecked Sendable {
  // A pthread mutex rather than `Mutex`, because the thread sanitizer knows it; it must not move, so
  // it has memory of its own, from init to deinit.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  private var queue: [@Sendable (FlowEventLoop) -> Void] = []
  /// Readable after the loop has been woken. An eventfd: a signal handler may also wake the loop,
  /// by writing eight bytes that aren't all zero. It is -1 while the process has no descriptor
  /// left; the loop then checks for work every millisecond, and opens one as soon as it can. See
  /// `open`.
  public var descriptor: Int32 { opened.load(ordering: .sequentiallyConsistent) }
  /// Set once, on the loop's thread.
  private let opened: Atomic<Int32>
  /// How long a loop without a descriptor sleeps at a time, in nanoseconds.
  private static let blindSleep: Int64 = 1_000_000
  /// Whether the queue may contain something: saves the loop a lock in each turn.
  private let isFilled = Atomic<Bool>(false)
  private let pendingWork = Atomic<Int>(0)
  /// Whether the loop is shut down or released.
  private var isClosed = false

  init() {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    opened = Atomic(flowsystem_eventfd())
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  /// Makes sure that the loop has its descriptor. On the loop's thread.
  ///
  /// - Throws: A `SystemError` when none could be opened when the loop was made, and none can be
  ///   now.
  public func open() throws(SystemError) {
    guard descriptor < 0 else { return }
    let made = flowsystem_eventfd()
    guard made >= 0 else {
      let number = errno
      throw SystemError(
        "an event loop has no descriptor to be woken by: \(systemMessage(number))", code: number)
    }
    opened.store(made, ordering: .sequentiallyConsistent)
  }

  /// Has the loop run `work` on its thread, soon, in the order of posting; wakes it when it sleeps.
  public func post(_ work: @escaping @Sendable (FlowEventLoop) -> Void) {
    pthread_mutex_lock(mutex)
    append(work)
  }

  /// Posts `work` unless the loop will never run it; returns whether it was posted.
  package func postIfOpen(_ work: @escaping @Sendable (FlowEventLoop) -> Void) -> Bool {
    pthread_mutex_lock(mutex)
    if isClosed {
      pthread_mutex_unlock(mutex)
      return false
    }
    append(work)
    return true
  }

  /// Called with the lock held, and releases the lock.
  private func append(_ work: @escaping @Sendable (FlowEventLoop) -> Void) {
    queue.append(work)
    let wasFilled = isFilled.exchange(true, ordering: .acquiringAndReleasing)
    pthread_mutex_unlock(mutex)
    if !wasFilled { wake() }
  }

  /// Drops the posted work of a loop that is shut down or released.
  func closeDown() {
    pthread_mutex_lock(mutex)
    isClosed = true
    let dropped = queue
    queue = []
    pthread_mutex_unlock(mutex)
    // Released without the lock: its deinitializers may post.
    _ = consume dropped
  }

  /// Records that work is in progress off the loop, so that the loop isn't stalled until that ends.
  public func begin() -> ExternalWork {
    pendingWork.add(1, ordering: .relaxed)
    return ExternalWork(self)
  }

  /// How much work is in progress off the loop.
  package var externalWork: Int { pendingWork.load(ordering: .acquiring) }

  fileprivate func endOne(wakes: Bool) {
    pendingWork.subtract(1, ordering: .acquiringAndReleasing)
    // A sleeping loop has to notice that nothing can come any more.
    if wakes { wake() }
  }

  var mayHaveWork: Bool { isFilled.load(ordering: .acquiring) }

  func takeAll() -> [@Sendable (FlowEventLoop) -> Void] {
    pthread_mutex_lock(mutex)
    let taken = queue
    queue = []
    isFilled.store(false, ordering: .releasing)
    pthread_mutex_unlock(mutex)
    return taken
  }

  /// Sleeps until something is posted, another descriptor (if not negative) is readable, or `timeout`
  /// nanoseconds have passed (negative: no limit).
  func wait(timeout: Int64, or other: Int32 = -1) {
    guard descriptor >= 0 else {
      waitBlindly(timeout: timeout, or: other)
      return
    }
    if flowsystem_wait_readable_any(descriptor, other, timeout) == 1 { drain() }
  }

  /// Sleeps for a moment without a descriptor. After one has been opened, the loop has to check for
  /// work first: threads that posted before couldn't wake it.
  private func waitBlindly(timeout: Int64, or other: Int32) {
    do throws(SystemError) { try open() } catch {
      let moment = timeout < 0 ? Self.blindSleep : min(timeout, Self.blindSleep)
      _ = flowsystem_wait_readable_any(-1, other, moment)
    }
  }

  /// Sleeps until something is posted.
  package func waitForMail() {
    if !mayHaveWork { wait(timeout: -1) }
  }

  /// Handles having been woken.
  func drain() {
    guard descriptor >= 0 else { return }
    var count: UInt64 = 0
    read(descriptor, &count, MemoryLayout<UInt64>.size)
  }

  private func wake() {
    let descriptor = descriptor
    guard descriptor >= 0 else { return }
    var one: UInt64 = 1
    write(descriptor, &one, MemoryLayout<UInt64>.size)
  }
}

/// Work in progress off a loop, which will post to the loop; ends once, at the latest when
/// released.
///
/// ```swift
/// let work = mailbox.begin()
/// Thread.detachNewThread {
///   mailbox.post { _ in print("copied") }
///   work.end()
/// }
/// ```
public final class ExternalWork: Sendable {
  private let mailbox: LoopMailbox
  private let hasEnded = Atomic<Bool>(false)

  fileprivate init(_ mailbox: LoopMailbox) {
    self.mailbox = mailbox
  }

  deinit { end() }

  /// Whether it has ended.
  package var isOver: Bool { hasEnded.load(ordering: .acquiring) }

  /// Post first, then end: the loop sees the posted work before the end.
  public func end() { end(wakes: true) }

  /// As `end`, from a job of the loop: it isn't asleep, and needs no second wake after that for the job.
  package func endOnLoop() { end(wakes: false) }

  private func end(wakes: Bool) {
    if !hasEnded.exchange(true, ordering: .acquiringAndReleasing) { mailbox.endOne(wakes: wakes) }
  }
}
