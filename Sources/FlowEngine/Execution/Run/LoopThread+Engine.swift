extension LoopThread {
  /// Starts a thread with a loop for runs and tasks, and returns when its loop exists.
  ///
  /// - Parameters:
  ///   - name: The name of the thread, in errors and for the system.
  ///   - clock: The source of the time; for tests a `VirtualClock`.
  /// - Throws: A `SystemError` if the system gives no thread, or no descriptor to wake the loop.
  public convenience init(
    name: String = "flow", clock: any TimeSource = SystemClock()
  ) throws(SystemError) {
    try self.init(name: name) { EventLoop(clock: clock) }
  }

  /// Runs code on the thread and returns its result; for any Swift task.
  ///
  /// Cancelling the calling task cancels the code. Called on the thread itself, the code runs as another
  /// task of it.
  ///
  /// - Parameter operation: The code; it always runs on the thread, whatever it awaits in between.
  /// - Returns: Its result.
  /// - Throws: The error of the code, unchanged; a `FlowError` of kind `cancelled` when the thread shuts down
  ///   before the code ends, or has done so; `CancellationError` when the calling task is cancelled.
  public func perform<Success: Sendable>(
    _ operation: @escaping LoopOperation<Success>
  ) async throws -> Success {
    if isShuttingDown { throw shutdownError }
    do {
      return try await mailbox.run(operation)
    } catch is CancellationError where isShuttingDown && !Task.isCancelled {
      throw shutdownError
    }
  }

  private var shutdownError: FlowError { .cancelled(reason: core.endError.messageBytes) }
}
