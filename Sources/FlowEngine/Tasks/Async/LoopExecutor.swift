/// Runs Swift tasks on the thread of an event loop, as jobs of the loop, in the order in which they
/// become ready.
// The queue and `loop` are touched on the loop's thread only, which `enqueue` makes sure of; the
// other properties never change and are Sendable.
final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  private let identity: EventLoop.Identity
  private let mailbox: Mailbox
  private let queue: TaskQueue
  // Safe: the loop clears it in its deinit.
  private unowned(unsafe) var loop: EventLoop?

  init(_ loop: EventLoop) {
    identity = loop.identity
    mailbox = loop.mailbox
    queue = TaskQueue()
    self.loop = loop
    queue.executor = asUnownedTaskExecutor()
  }

  /// Called by the runtime, on any thread, when a task can continue.
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    if identity.isCurrentThread {
      queue.append(job)
      loop?.enqueue(queue)
    } else {
      mailbox.post { loop in
        job.runSynchronously(on: loop.taskSupport.executor.asUnownedTaskExecutor())
      }
    }
  }

  /// Runs the tasks that are ready, and those that become ready meanwhile, for a loop that is shut
  /// down.
  func drain() {
    while !queue.isEmpty { queue.run() }
  }

  /// Clears the reference to the loop, which is being released.
  func detach() { loop = nil }
}

/// The tasks of a loop that can continue. It is in the loop's queue once for each of them, so that
/// they take turns with all other jobs and none of them needs an object of its own.
private final class TaskQueue: LoopJob {
  var executor: UnownedTaskExecutor?
  private var ring = ContiguousArray<UnownedJob?>(repeating: nil, count: 16)
  private var head = 0
  private var count = 0

  var isEmpty: Bool { count == 0 }

  func append(_ job: UnownedJob) {
    if count == ring.count { grow() }
    ring[(head + count) & (ring.count - 1)] = job
    count += 1
  }

  func run() {
    guard count > 0, let executor, let job = ring[head] else { return }
    ring[head] = nil
    head = (head + 1) & (ring.count - 1)
    count -= 1
    job.runSynchronously(on: executor)
  }

  private func grow() {
    var larger = ContiguousArray<UnownedJob?>(repeating: nil, count: ring.count * 2)
    for offset in 0..<count { larger[offset] = ring[(head + offset) & (ring.count - 1)] }
    ring = larger
    head = 0
  }
}
