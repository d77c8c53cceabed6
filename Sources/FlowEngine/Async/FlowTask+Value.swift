// How Swift tasks on the loop's thread wait for tasks of the loop.

extension AnyFlowTask {
  /// Suspends the calling Swift task until this task is concluded. On the loop's thread, where the
  /// calling task goes on, too.
  ///
  /// - Parameter cancelsTask: Whether cancelling the caller asks this task to stop; the caller then
  ///   still waits for its end. Otherwise this task goes on.
  /// - Throws: `CancellationError` when the caller was cancelled and this task goes on, or when the
  ///   loop was shut down; a `FlowError` of kind `stalled` when this task itself waits for the one that
  ///   the caller is.
  public nonisolated(nonsending) func finish(cancelsTask: Bool = false) async throws {
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
      observe($0)
      waiting?.beginAwaiting(self)
    }
    job?.waitingTask = nil
    waiting?.endAwaiting(self)
    if isDone { return }
    if let job { unobserve(job) }
    // Of a loop that is shut down no end comes any more.
    guard cancelsTask, !loop.isShutDown else { throw CancellationError() }
    cancel()
    while !isConcluded { await LoopWait.waitShielded(on: loop) { observe($0) } }
  }
}

extension FlowTask {
  /// The result once the task has succeeded; of a run that is its data.
  ///
  /// Suspends the calling Swift task, which has to be on the loop's thread: an `async` body, what
  /// `Mailbox.run` was given, or the main actor for a loop of the main thread; elsewhere use `handle`.
  /// It throws the task's error, and `CancellationError` when the calling task is cancelled; the task
  /// goes on then.
  public nonisolated(nonsending) var value: Success {
    get async throws { try await value(cancelsTask: false) }
  }

  /// The result once the task has succeeded; see `value`.
  ///
  /// - Parameter cancelsTask: Whether cancelling the calling task asks this one to stop; its end is
  ///   waited for then, and its error is thrown.
  /// - Returns: The result.
  /// - Throws: The task's error, or `CancellationError`.
  public nonisolated(nonsending) func value(cancelsTask: Bool) async throws -> Success {
    try await finish(cancelsTask: cancelsTask)
    markObserved()
    if let error { throw error }
    guard let result else { throw CancellationError() }
    return result
  }
}
