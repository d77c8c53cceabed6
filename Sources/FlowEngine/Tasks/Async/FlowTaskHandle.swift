/// A Sendable handle of a task: other threads can wait for the task and cancel it.
///
/// ```swift
/// let handle = fetchImage().handle
/// Task.detached { save(try await handle.value) }
/// ```
public final class FlowTaskHandle<Success: Sendable>: Sendable {
  private let task: Sent<FlowTask<Success>>
  private let identity: FlowEventLoop.Identity
  private let mailbox: LoopMailbox

  fileprivate init(_ task: FlowTask<Success>) {
    self.task = Sent(task)
    identity = task.loop.identity
    mailbox = task.loop.mailbox
  }

  deinit {
    // The handle releases the task on the task's own thread.
    guard !identity.isCurrentThread else { return }
    task.sendHome(mailbox)
  }

  /// The result, after the task has succeeded; for any Swift task.
  ///
  /// Throws the task's error, and `CancellationError` when the calling task is cancelled, in which
  /// case this one continues, or when the loop is shut down or released.
  public var value: Success {
    get async throws { try await value(cancelsTask: false) }
  }

  /// The result, after the task has succeeded; see `value`.
  ///
  /// - Parameter cancelsTask: Whether cancelling the calling task stops this one; the call then
  ///   waits for its end and throws its error.
  /// - Returns: The result.
  /// - Throws: The task's error, or `CancellationError`.
  package func value(cancelsTask: Bool) async throws -> Success {
    let task = task
    return try await mailbox.perform { (_: FlowEventLoop) async throws -> Success in
      guard let task = task.content else { throw CancellationError() }
      return try await task.value(cancelsTask: cancelsTask)
    }
  }

  /// Stops the task, soon; callable on any thread.
  ///
  /// - Parameter reason: The reason, for its error.
  public func cancel(reason: (any FlowText)? = nil) {
    mailbox.post { [self] _ in task.content?.cancel(reason: reason) }
  }
}

extension FlowTask where Success: Sendable {
  /// A handle of the task for other threads; called on the loop's thread.
  public var handle: FlowTaskHandle<Success> {
    loop.checkThread()
    return FlowTaskHandle(self)
  }
}

// Waits of Swift tasks on the loop's thread for tasks of the loop.

extension AnyFlowTask {
  /// Suspends the calling Swift task until this task has concluded. Called on the loop's thread,
  /// where the calling task also continues.
  ///
  /// - Parameter cancelsTask: Whether cancelling the caller stops this task; the caller then still
  ///   waits for its end. Otherwise this task continues.
  /// - Throws: `CancellationError` when the caller was cancelled and this task continues, or when
  ///   the loop was shut down; a `FlowError` of kind `stalled` when this task itself waits for the
  ///   caller's task.
  public nonisolated(nonsending) func wait(cancelsTask: Bool = false) async throws {
    loop.checkThread()
    if isConcluded { return }
    let waiting = LoopTask.current?.waitingTask
    if let waiting, WaitCycle.isClosed(by: waiting, awaiting: self) {
      throw FlowError.waitsForItself(waiting)
    }
    var job: LoopWait?
    let isDone = await LoopWait.wait(on: loop) {
      job = $0
      $0.waitingTask = waiting
      observe(waiting: $0)
      waiting?.beginAwaiting(self)
    }
    job?.waitingTask = nil
    waiting?.endAwaiting(self)
    if isDone { return }
    if let job { unobserve(job) }
    // No task of a loop that is shut down ends any more.
    guard cancelsTask, !loop.isShutDown else { throw CancellationError() }
    cancel()
    while !isConcluded { await LoopWait.waitShielded(on: loop) { observe(waiting: $0) } }
  }
}

extension FlowTask {
  /// The result, after the task has succeeded; for a run, its data.
  ///
  /// Suspends the calling Swift task, which has to be on the loop's thread: an `async` body, the
  /// operation of `LoopMailbox.perform`, or the main actor for a loop of the main thread; elsewhere use
  /// `handle`. It throws the task's error, and `CancellationError` when the calling task is
  /// cancelled, in which case this task continues.
  public nonisolated(nonsending) var value: Success {
    get async throws { try await value(cancelsTask: false) }
  }

  /// The result, after the task has succeeded; see `value`.
  ///
  /// - Parameter cancelsTask: Whether cancelling the calling task stops this one; the call then
  ///   waits for its end and throws its error.
  /// - Returns: The result.
  /// - Throws: The task's error, or `CancellationError`.
  public nonisolated(nonsending) func value(cancelsTask: Bool) async throws -> Success {
    try await wait(cancelsTask: cancelsTask)
    markObserved()
    if let error { throw error }
    guard let result else { throw CancellationError() }
    return result
  }
}
