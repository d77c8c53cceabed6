internal import FlowLoop

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
