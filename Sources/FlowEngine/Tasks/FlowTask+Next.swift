// Continuations written in Swift.

extension FlowTask {
  /// Continues with another task after this one has ended, whatever the outcome.
  ///
  /// - Parameters:
  ///   - thread: Where `body` runs.
  ///   - body: The code; gets this task. An error it throws fails the new task.
  /// - Returns: A task with the outcome of the task that `body` returns.
  @discardableResult
  public func next<New>(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (FlowTask<Success>) throws -> FlowTask<New>
  ) -> FlowTask<New> {
    continuing(.next, thread) { .task(try body($0)) }
  }

  /// Continues with a `body` that returns a value.
  @discardableResult @_disfavoredOverload
  public func next<New>(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (FlowTask<Success>) throws -> New
  ) -> FlowTask<New> {
    continuing(.next, thread) { .value(try body($0)) }
  }

  /// Continues with another task after this one has succeeded; a failure or cancel passes through.
  ///
  /// - Parameters:
  ///   - thread: Where `body` runs.
  ///   - body: The code; gets the result. An error it throws fails the new task.
  /// - Returns: A task with the outcome of the task that `body` returns.
  @discardableResult
  public func nextOnSuccess<New>(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (Success) throws -> FlowTask<New>
  ) -> FlowTask<New> {
    continuing(.nextOnSuccess, thread) { task in
      guard let result = task.result else { return .nothing }
      return .task(try body(result))
    }
  }

  /// Continues after success with a `body` that returns a value.
  @discardableResult @_disfavoredOverload
  public func nextOnSuccess<New>(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (Success) throws -> New
  ) -> FlowTask<New> {
    continuing(.nextOnSuccess, thread) { task in
      guard let result = task.result else { return .nothing }
      return .value(try body(result))
    }
  }

  /// Continues with another task after this one has failed; a result or cancel passes through.
  ///
  /// - Parameters:
  ///   - thread: Where `body` runs.
  ///   - body: The code; gets the error. An error it throws fails the new task.
  /// - Returns: A task with the outcome of the task that `body` returns, or of this one.
  @discardableResult
  public func nextOnError(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (FlowError) throws -> FlowTask<Success>
  ) -> FlowTask<Success> {
    continuing(.nextOnError, thread) { task in
      guard let error = task.error else { return .nothing }
      return .task(try body(error))
    }
  }

  /// Continues after a failure with a `body` that returns a value.
  @discardableResult @_disfavoredOverload
  public func nextOnError(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (FlowError) throws -> Success
  ) -> FlowTask<Success> {
    continuing(.nextOnError, thread) { task in
      guard let error = task.error else { return .nothing }
      return .value(try body(error))
    }
  }

  /// Ends a chain: calls `body` after this task has ended, whatever the outcome.
  ///
  /// - Parameters:
  ///   - thread: Where `body` runs.
  ///   - body: The code; gets this task. An error it throws fails the new task.
  /// - Returns: A task with the outcome of this one, after `body` is done.
  @discardableResult
  public func finally(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (FlowTask<Success>) throws -> Void
  ) -> FlowTask<Success> {
    continuing(.finally, thread) { task in
      try body(task)
      return .nothing
    }
  }

  /// Ends a chain: calls `body` after this task has succeeded.
  ///
  /// - Parameters:
  ///   - thread: Where `body` runs.
  ///   - body: The code; gets the result. An error it throws fails the new task.
  /// - Returns: A task with the outcome of this one, after `body` is done.
  @discardableResult
  public func finallyOnSuccess(
    _ thread: ContinuationThread = .automatic,
    _ body: @escaping (Success) throws -> Void
  ) -> FlowTask<Success> {
    continuing(.finallyOnSuccess, thread) { task in
      if let result = task.result { try body(result) }
      return .nothing
    }
  }

  func continuing<New>(
    _ kind: ContinuationKind, _ thread: ContinuationThread,
    _ code: @escaping (FlowTask<Success>) throws -> ClosureEnd<New>
  ) -> FlowTask<New> {
    let task = ClosureTask<Success, New>(on: loop, kind, thread, code)
    task.begin(after: self)
    return task
  }
}

/// The end of a continuation's closure.
enum ClosureEnd<Success> {
  case value(Success)
  case task(FlowTask<Success>)
  /// The outcome of the source stays, after a further task has ended.
  case wait(AnyFlowTask)
  /// The outcome of the source stays.
  case nothing
}

/// A continuation that is a Swift closure.
private final class ClosureTask<Source, Success>: ContinuationTask<Success> {
  private var code: ((FlowTask<Source>) throws -> ClosureEnd<Success>)?
  private var kept: Success?

  init(
    on loop: FlowEventLoop, _ kind: ContinuationKind, _ thread: ContinuationThread,
    _ code: @escaping (FlowTask<Source>) throws -> ClosureEnd<Success>
  ) {
    self.code = code
    super.init(on: loop, kind, thread)
  }

  override func runCode(after source: AnyFlowTask?) {
    guard let code, let source = source as? FlowTask<Source> else { return }
    self.code = nil
    do {
      switch try code(source) {
      case .value(let value):
        kept = value
        returned()
      case .task(let next): follow(next)
      case .wait(let next): follow(next)
      case .nothing: returned(after: source)
      }
    } catch {
      failed(.from(error))
    }
  }

  override func dropCode() { code = nil }

  override func keepResult(of task: AnyFlowTask) throws {
    kept = (task as? FlowTask<Success>)?.result
  }

  override func succeed() {
    if let kept = kept.take() { end(with: kept) }
  }
}
