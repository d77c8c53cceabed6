/// What few tasks have. An object of its own, as there can be very many tasks.
class TaskExtras {
  // Unchecked exclusivity, as in `AnyFlowTask`.

  /// Why the task failed or was cancelled.
  @exclusivity(unchecked) final var error: FlowError?
  /// The observers but the first, in their order.
  @exclusivity(unchecked) final var furtherObservers: ContiguousArray<any TaskObserver> = []
  /// See `AnyFlowTask.attachment`.
  @exclusivity(unchecked) final var attachment: AnyObject?

  // Of continuations: see `ContinuationTask`.

  /// The task that the code has handed over, once that has ended.
  @exclusivity(unchecked) final var followed: AnyFlowTask?
  /// What the task ends with whatever its code does; set when it was asked to stop.
  @exclusivity(unchecked) final var stopReason: FlowError?
  /// What the code has started and what hasn't ended.
  @exclusivity(unchecked) final var owned: OwnedTasks?

  init() {}

  /// Takes the place of another one.
  init(replacing other: TaskExtras?) {
    guard let other else { return }
    error = other.error
    furtherObservers = other.furtherObservers
    attachment = other.attachment
    followed = other.followed
    stopReason = other.stopReason
    owned = other.owned
  }
}

/// What a task gives that isn't a value of the engine's.
final class ResultBox<Success>: TaskExtras {
  let result: Success

  init(_ result: Success, replacing other: TaskExtras?) {
    self.result = result
    super.init(replacing: other)
  }
}
