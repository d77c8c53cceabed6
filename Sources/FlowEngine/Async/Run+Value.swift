// How Swift tasks on the loop's thread wait for what the loop runs.

extension FlowTask {
  /// Suspends the calling Swift task until this task is concluded. On the loop's thread, where the
  /// calling task goes on, too.
  ///
  /// - Parameter cancelsTask: Whether cancelling the caller asks this task to stop; the caller then
  ///   still waits for its end. Otherwise this task goes on.
  /// - Throws: `CancellationError` when the caller was cancelled and this task goes on.
  public nonisolated(nonsending) func finish(cancelsTask: Bool = false) async throws {
    loop.checkThread()
    if isConcluded { return }
    var job: LoopWait?
    let isDone = await LoopWait.wait(on: loop) {
      job = $0
      observe($0)
    }
    if isDone { return }
    if let job { unobserve(job) }
    guard cancelsTask else { throw CancellationError() }
    cancel()
    while !isConcluded { await LoopWait.waitShielded(on: loop) { observe($0) } }
  }
}

extension Run {
  /// The run's data once it has succeeded.
  ///
  /// Suspends the calling Swift task, which has to be on the loop's thread: an `async` body, what
  /// `Mailbox.run` was given, or the main actor for a loop of the main thread. It throws the run's
  /// error, and `CancellationError` when the calling task is cancelled; the run goes on then.
  public nonisolated(nonsending) var value: DataBucket {
    get async throws { try await value(cancelsRun: false) }
  }

  /// The run's data once it has succeeded; see `value`.
  ///
  /// - Parameter cancelsRun: Whether cancelling the calling task asks the run to stop; the end of the
  ///   run is waited for then, and its error is thrown.
  /// - Returns: The run's data.
  /// - Throws: The run's error, or `CancellationError`.
  public nonisolated(nonsending) func value(cancelsRun: Bool) async throws -> DataBucket {
    try await finish(cancelsTask: cancelsRun)
    guard let error else { return data }
    markObserved()
    throw error
  }
}
