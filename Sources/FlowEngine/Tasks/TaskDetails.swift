/// Properties that few tasks need. An object of its own, because there can be very many tasks.
class TaskDetails {
  // Unchecked exclusivity: see HotPath.swift.

  /// Why the task failed or was cancelled.
  @exclusivity(unchecked) final var error: FlowError?
  /// The observers after the first, in order.
  @exclusivity(unchecked) final var furtherObservers: ContiguousArray<any TaskObserver> = []
  /// See `AnyFlowTask.attachment`.
  @exclusivity(unchecked) final var attachment: AnyObject?

  // For continuations: see `ContinuationTask`.

  /// The task that the code has returned, after it has ended.
  @exclusivity(unchecked) final var followed: AnyFlowTask?
  /// The error that the task ends with whatever its code does; set when it is stopped.
  @exclusivity(unchecked) final var stopReason: FlowError?
  /// The tasks that the code has started and that haven't ended.
  @exclusivity(unchecked) final var owned: OwnedTasks?

  init() {}

  /// Takes over the properties of another object.
  init(replacing other: TaskDetails?) {
    guard let other else { return }
    error = other.error
    furtherObservers = other.furtherObservers
    attachment = other.attachment
    followed = other.followed
    stopReason = other.stopReason
    owned = other.owned
  }
}

/// The result of a task, when it isn't a value of the engine.
final class ResultBox<Success>: TaskDetails {
  let result: Success

  init(_ result: Success, replacing other: TaskDetails?) {
    self.result = result
    super.init(replacing: other)
  }
}
