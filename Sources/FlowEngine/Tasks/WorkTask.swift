/// A task with the outcome of a closure that a `WorkQueue` runs.
///
/// A stop drops work that hasn't begun. Work that runs can't be stopped: the task ends, as stopped, when it
/// has returned.
final class WorkTask<Success>: ExternalTask<Success> {
  fileprivate var queue = WorkQueue.background
  fileprivate let claim = Claim()
  private var stopError: FlowError?

  override var kindName: String { "work on queue '\(queue.name)'" }

  fileprivate func finish(_ result: Result<Success, FlowError>?) {
    switch (stopError, result) {
    case (let error?, _): end(error: error)
    case (nil, .success(let value)): end(with: value)
    case (nil, .failure(let error)): end(error: error)
    case (nil, nil): break
    }
  }

  override func stopWork(_ error: FlowError) {
    guard state == .pending, stopError == nil else { return }
    if claim.isFirst() { end(error: error) } else { stopError = error }
  }
}

extension WorkTask where Success: Sendable {
  /// Hands work over to a queue; on the loop's thread.
  static func start(
    _ queue: WorkQueue, on loop: FlowEventLoop, _ work: @escaping @Sendable () throws -> Success
  ) -> WorkTask {
    let task = WorkTask(on: loop)
    task.queue = queue
    let claim = task.claim
    // The loop holds the completion, and with it the task, until the work has ended.
    loop.offload(to: queue) { () -> Result<Success, FlowError>? in
      guard claim.isFirst() else { return nil }
      return Result(catching: work).mapError { .from($0) }
    } then: { result in
      task.finish(result)
    }
    return task
  }
}
