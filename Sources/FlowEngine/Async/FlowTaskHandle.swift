/// A task for other threads: they can wait for it and cancel it. Sendable, as the task isn't.
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
    // The task is released on its own thread.
    guard !identity.isCurrentThread else { return }
    let last = task
    mailbox.post { _ in last.take() }
  }

  /// The result once the task has succeeded; for Swift tasks anywhere.
  ///
  /// Throws the task's error, and `CancellationError` when the calling task is cancelled, in which case
  /// this one goes on, or when the loop is shut down or gone.
  public var value: Success {
    get async throws { try await value(cancelsTask: false) }
  }

  /// The result once the task has succeeded; see `value`.
  ///
  /// - Parameter cancelsTask: Whether cancelling the calling task asks this one to stop; its end is
  ///   waited for then, and its error is thrown.
  /// - Returns: The result.
  /// - Throws: The task's error, or `CancellationError`.
  public func value(cancelsTask: Bool) async throws -> Success {
    let task = task
    return try await mailbox.run { (_: EventLoop) async throws -> Success in
      guard let task = task.content else { throw CancellationError() }
      return try await task.value(cancelsTask: cancelsTask)
    }
  }

  /// Asks the task to stop, soon; on any thread.
  ///
  /// - Parameter reason: Why, for its error.
  public func cancel(reason: ByteString? = nil) {
    mailbox.post { [self] _ in task.content?.cancel(reason: reason) }
  }
}

extension FlowTask where Success: Sendable {
  /// The task for other threads; called on the loop's thread.
  public var handle: FlowTaskHandle<Success> {
    loop.checkThread()
    return FlowTaskHandle(self)
  }
}
