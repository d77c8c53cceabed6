internal import FlowLoop

/// Runs Swift tasks on the thread of an event loop, as jobs of the loop, in the order in which they
/// become ready.
// The queue and `loop` are touched on the loop's thread only, which `enqueue` makes sure of; the
// other properties never change and are Sendable.
final class LoopExecutor: TaskExecutor, @unchecked Sendable {
  private let identity: FlowEventLoop.Identity
  private let mailbox: LoopMailbox
  private let queue: TaskQueue
  // Safe: the loop clears it in its deinit.
  private unowned(unsafe) var loop: FlowEventLoop?

  init(_ loop: FlowEventLoop) {
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

/// Runs Swift tasks on threads of this package, one for each core.
///
/// The threads of Swift's cooperative pool aren't used: a program or test that waits for a run there
/// (`run.wait()`) blocks them, and the run would wait for a thread that never becomes free. If all threads
/// of this executor wait for loops of their own, others take their places.
final class ComputingExecutor: TaskExecutor {
  static let shared = ComputingExecutor()

  private init() {}

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    HelperThreads.computing.run { [self] in
      job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }
}

extension FlowEventLoop {
  /// Runs async code on other threads, one for each core, and returns its result; meanwhile the loop runs
  /// everything else.
  ///
  /// Called on the loop's thread, where the caller also continues. The code of a loop's task stays on its thread,
  /// and so does a `@concurrent` function that it awaits. Awaited within this, such a function doesn't hold the
  /// thread:
  ///
  /// ```swift
  /// // `shrink` is declared as `@concurrent func`.
  /// let small = try await loop.offload { await shrink(image) }
  /// ```
  ///
  /// Until then the loop isn't stalled, and a virtual clock doesn't advance. Cancelling the calling task cancels
  /// the code, which has to check `Task.isCancelled`.
  ///
  /// - Parameter work: The code.
  /// - Returns: Its result.
  /// - Throws: Its error.
  public nonisolated(nonsending) func offload<Success: Sendable>(
    _ work: @escaping @Sendable @concurrent () async throws -> Success
  ) async throws -> Success {
    checkThread()
    // A task of the loop counts by itself, except while `work` waits for the loop.
    let external = LoopTask.current?.loop(of: mailbox) == nil ? mailbox.begin() : nil
    defer { external?.end() }
    let task = Task(executorPreference: ComputingExecutor.shared) { try await work() }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }
}
