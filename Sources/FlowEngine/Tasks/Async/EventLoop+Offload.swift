internal import FlowLoop

extension EventLoop {
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
