// Continuations written in Swift that run on a queue off the loop. Their closures are Sendable, as are the
// values that they get and return.

extension FlowTask where Success: Sendable {
  /// Continues on a queue off the loop after this task has ended, whatever the outcome.
  ///
  /// A stop drops a body that hasn't begun; one that runs can't be stopped, and the new task ends after it.
  ///
  /// - Parameters:
  ///   - queue: Where `body` runs: `.background`, or a serial queue.
  ///   - body: The code; gets the outcome of this task. An error it throws fails the new task.
  /// - Returns: A task with the value that `body` returns.
  @discardableResult
  public func next<New: Sendable>(
    _ queue: WorkQueue, _ body: @escaping @Sendable (Result<Success, FlowError>) throws -> New
  ) -> FlowTask<New> {
    continuing(.next, .automatic) { task in
      guard let outcome = task.outcome else { return .nothing }
      return .task(WorkTask.start(queue, on: task.loop) { try body(outcome) })
    }
  }

  /// Continues on a queue off the loop after this task has succeeded; a failure or cancel passes through.
  ///
  /// - Parameters:
  ///   - queue: Where `body` runs: `.background`, or a serial queue.
  ///   - body: The code; gets the result. An error it throws fails the new task.
  /// - Returns: A task with the value that `body` returns.
  @discardableResult
  public func nextOnSuccess<New: Sendable>(
    _ queue: WorkQueue, _ body: @escaping @Sendable (Success) throws -> New
  ) -> FlowTask<New> {
    continuing(.nextOnSuccess, .automatic) { task in
      guard let result = task.result else { return .nothing }
      return .task(WorkTask.start(queue, on: task.loop) { try body(result) })
    }
  }

  /// Continues on a queue off the loop after this task has failed; a result or cancel passes through.
  ///
  /// - Parameters:
  ///   - queue: Where `body` runs: `.background`, or a serial queue.
  ///   - body: The code; gets the error. An error it throws fails the new task.
  /// - Returns: A task with the value that `body` returns, or the outcome of this one.
  @discardableResult
  public func nextOnError(
    _ queue: WorkQueue, _ body: @escaping @Sendable (FlowError) throws -> Success
  ) -> FlowTask<Success> {
    continuing(.nextOnError, .automatic) { task in
      guard let error = task.error else { return .nothing }
      return .task(WorkTask.start(queue, on: task.loop) { try body(error) })
    }
  }

  /// Ends a chain: calls `body` on a queue off the loop after this task has ended, whatever the outcome.
  ///
  /// - Parameters:
  ///   - queue: Where `body` runs: `.background`, or a serial queue.
  ///   - body: The code; gets the outcome of this task. An error it throws fails the new task.
  /// - Returns: A task with the outcome of this one, after `body` is done.
  @discardableResult
  public func finally(
    _ queue: WorkQueue, _ body: @escaping @Sendable (Result<Success, FlowError>) throws -> Void
  ) -> FlowTask<Success> {
    continuing(.finally, .automatic) { task in
      guard let outcome = task.outcome else { return .nothing }
      return .wait(WorkTask.start(queue, on: task.loop) { try body(outcome) })
    }
  }

  /// Ends a chain: calls `body` on a queue off the loop after this task has succeeded.
  ///
  /// - Parameters:
  ///   - queue: Where `body` runs: `.background`, or a serial queue.
  ///   - body: The code; gets the result. An error it throws fails the new task.
  /// - Returns: A task with the outcome of this one, after `body` is done.
  @discardableResult
  public func finallyOnSuccess(
    _ queue: WorkQueue, _ body: @escaping @Sendable (Success) throws -> Void
  ) -> FlowTask<Success> {
    continuing(.finallyOnSuccess, .automatic) { task in
      guard let result = task.result else { return .nothing }
      return .wait(WorkTask.start(queue, on: task.loop) { try body(result) })
    }
  }
}
