/// The task-local values of a Swift task, for code that runs later, on another thread, or after that task: what is called
/// within `run` has them, and Swift tasks that it makes have them, too.
///
/// Confined to one thread at a time, as the task or run that keeps it.
// Swift copies task-local values into new tasks only. So this is a task that stands still: each `run` continues it on the
// calling thread, and returns when it stands still again.
package final class TaskContext: @unchecked Sendable {
  private let gate = Gate()
  private var isRunning = false

  /// The values of the calling task.
  package init() {
    let gate = gate
    Task(executorPreference: gate) {
      // Those of the loop that the caller belongs to aren't passed on.
      await LoopTask.$current.withValue(nil) {
        await OutsideWork.$current.withValue(nil) { await gate.serve() }
      }
    }
  }

  /// The values of the calling task; nil if no task runs the calling code.
  package static func current() -> TaskContext? {
    withUnsafeCurrentTask { $0 == nil } ? nil : TaskContext()
  }

  // The task ends without work.
  deinit { gate.step() }

  /// Calls `work` with the values.
  package func run<Result>(_ work: () -> Result) -> Result {
    // Code that it calls has them already.
    if isRunning { return work() }
    isRunning = true
    defer { isRunning = false }
    var result: Result?
    withoutActuallyEscaping(work) { work in
      gate.work = { result = work() }
      gate.step()
    }
    return result ?? work()
  }

  /// Keeps the task while it stands still.
  // Only the thread of the context touches it: the task runs nowhere but in `step`.
  private final class Gate: TaskExecutor, @unchecked Sendable {
    var work: (() -> Void)?
    private var job: UnownedJob?
    private var continuation: UnsafeContinuation<Void, Never>?

    func enqueue(_ job: consuming ExecutorJob) { self.job = UnownedJob(job) }

    /// Runs the task until it stands still, or ends.
    func step() {
      // This enqueues the job.
      continuation.take()?.resume()
      job.take()?.runSynchronously(on: asUnownedTaskExecutor())
    }

    nonisolated func serve() async {
      while doWork() { await withUnsafeContinuation { continuation = $0 } }
    }

    // Apart, so that nothing keeps the work while the task stands still.
    private func doWork() -> Bool {
      guard let work = work.take() else { return false }
      work()
      return true
    }
  }
}
