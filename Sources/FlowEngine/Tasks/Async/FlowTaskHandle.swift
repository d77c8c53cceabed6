/// A Sendable handle of a task: other threads can wait for the task and cancel it.
public final class FlowTaskHandle<Success: Sendable>: Sendable {
  private let task: Sent<FlowTask<Success>>
  private let identity: EventLoop.Identity
  private let mailbox: Mailbox

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
  public func value(cancelsTask: Bool) async throws -> Success {
    let task = task
    return try await mailbox.run { (_: EventLoop) async throws -> Success in
      guard let task = task.content else { throw CancellationError() }
      return try await task.value(cancelsTask: cancelsTask)
    }
  }

  /// Stops the task, soon; callable on any thread.
  ///
  /// - Parameter reason: The reason, for its error.
  public func cancel(reason: String? = nil) {
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
