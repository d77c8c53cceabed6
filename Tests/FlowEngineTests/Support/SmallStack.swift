import Glibc
import Testing

/// Runs a test on threads with a stack of 512 KiB, which recursion overflows at depths that are built in milliseconds.
struct SmallStack: TestTrait, TestScoping {
  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(SmallStackExecutor()) { try await function() }
  }
}

extension Trait where Self == SmallStack {
  static var smallStack: Self { Self() }
}

/// A thread for each job.
private final class SmallStackExecutor: TaskExecutor {
  private final class Start {
    let job: UnownedJob
    let executor: SmallStackExecutor

    init(_ job: UnownedJob, on executor: SmallStackExecutor) {
      (self.job, self.executor) = (job, executor)
    }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setstacksize(&attributes, 512 << 10)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let start = Unmanaged.passRetained(Start(UnownedJob(job), on: self)).toOpaque()
    var thread = pthread_t()
    let status = pthread_create(
      &thread, &attributes,
      { start in
        guard let start else { return nil }
        let begun = Unmanaged<Start>.fromOpaque(start).takeRetainedValue()
        begun.job.runSynchronously(on: begun.executor.asUnownedTaskExecutor())
        return nil
      }, start)
    precondition(status == 0, "no thread for a test")
    pthread_attr_destroy(&attributes)
  }
}
