/// A task with a result when it succeeds: a future.
///
/// Confined to its loop's thread; other threads use `handle`. Flow-Swift calls it
/// `Flow`, Bolts `Task`. Open only for this package, like `AnyFlowTask`.
///
/// ```swift
/// let task = fetchImage().nextOnSuccess { image in scale(image) }
/// let scaled = try await task.value
/// ```
open class FlowTask<Success>: AnyFlowTask {
  /// Its result; nil unless it has succeeded.
  open var result: Success? {
    if !isOfValues { return (details as? ResultBox<Success>)?.result }
    if state != .succeeded { return nil }
    // Safe: both are the same type; see `init`.
    return unsafeBitCast(storedValue, to: Success?.self)
  }

  package init(on loop: FlowEventLoop) {
    super.init(on: loop, isOfValues: Success.self == FlowValue.self)
  }

  /// Stores the result; the caller settles the task.
  final func keep(_ result: Success) {
    if isOfValues {
      // As above.
      storedValue = unsafeBitCast(result, to: FlowValue.self)
    } else {
      details = ResultBox(result, replacing: details)
    }
  }

  /// Succeeds, unless it has settled.
  package final func end(with result: Success) {
    guard state == .pending else { return }
    keep(result)
    settle(nil)
    conclude()
  }

  /// The outcome of a settled task; nil before.
  public final var outcome: Result<Success, FlowError>? {
    if let error { return .failure(error) }
    return result.map { .success($0) }
  }
}

// MARK: Tasks of values

// Without generics, because scripts use them often.
extension AnyFlowTask {
  /// For a task of values: succeeds with this value, unless it has settled.
  package final func end(withValue value: FlowValue) {
    guard state == .pending else { return }
    storedValue = value
    settle(nil)
    conclude()
  }

  /// For a task of values: the result; nil unless it has succeeded.
  package final var resultValue: FlowValue? { state == .succeeded ? storedValue : nil }

  /// For a task of values: stores the result for the case that it succeeds.
  package final func keep(value: FlowValue) { storedValue = value }

  /// Succeeds with the result that is stored, of a task of values or of a subclass that stores it itself,
  /// unless it has settled.
  package final func endWithKeptResult() {
    guard state == .pending else { return }
    settle(nil)
    conclude()
  }
}

extension FlowTask where Success == FlowValue {
  /// Makes a pending task.
  package static func makeOfValues(on loop: FlowEventLoop) -> FlowTask<FlowValue> {
    FlowTask<FlowValue>(on: loop)
  }
}

// MARK: Settled and delayed tasks

extension FlowTask {
  /// Makes a task that has succeeded.
  ///
  /// - Parameters:
  ///   - result: Its result.
  ///   - loop: The loop that it belongs to, by default the current one; called on its thread.
  /// - Returns: The task.
  public static func resolved(_ result: Success, on loop: FlowEventLoop = .current) -> FlowTask<
    Success
  > {
    let task = FlowTask(on: loop)
    task.end(with: result)
    return task
  }

  /// Makes a task that has failed or, with an error of kind `cancelled`, was cancelled.
  public static func failed(_ error: any Error, on loop: FlowEventLoop = .current) -> FlowTask<
    Success
  > {
    let task = FlowTask(on: loop)
    task.end(error: .from(error))
    return task
  }

  /// Makes a task that was cancelled.
  package static func cancelled(
    reason: (any FlowText)? = nil, on loop: FlowEventLoop = .current
  ) -> FlowTask<Success> {
    failed(FlowError.cancelled(reason: reason), on: loop)
  }

  /// Makes a task that succeeds after some time of the loop's clock.
  ///
  /// ```swift
  /// let answer = try await FlowTask.withDelay(.seconds(1), 42, on: loop).value
  /// ```
  ///
  /// - Parameters:
  ///   - delay: How long; a duration that isn't positive doesn't wait.
  ///   - result: Its result.
  ///   - loop: The loop that it belongs to, by default the current one; called on its thread.
  /// - Returns: The task, which can be cancelled before that time.
  public static func withDelay(
    _ delay: Duration, _ result: Success, on loop: FlowEventLoop = .current
  ) -> FlowTask<Success> {
    DelayedTask(delay, result, on: loop)
  }
}

extension FlowTask where Success == Void {
  /// Makes a task that succeeds after some time of the loop's clock.
  public static func withDelay(_ delay: Duration, on loop: FlowEventLoop = .current) -> FlowTask<
    Void
  > {
    withDelay(delay, (), on: loop)
  }
}

/// Succeeds when its time has come. The timer retains it until then.
private final class DelayedTask<Success>: FlowTask<Success>, LoopJob {
  private var given: Success?
  private var timer: LoopTimer?

  init(_ delay: Duration, _ result: Success, on loop: FlowEventLoop) {
    given = result
    super.init(on: loop)
    timer = loop.schedule(at: loop.deadline(after: delay), self)
  }

  func run() {
    timer = nil
    if let given { end(with: given) }
  }

  override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    timer?.cancel()
    timer = nil
    given = nil
    end(error: error)
    return nil
  }
}

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
  /// ```swift
  /// fetchImage().nextOnSuccess(.background) { image in scale(image) }
  /// ```
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

// Tasks that wait for several others. None of them stops its inputs.

extension FlowTask {
  /// Succeeds when all tasks have, with their results in order; for an empty list it succeeds at
  /// once.
  ///
  /// The first task that fails or is cancelled ends it at once with that error.
  ///
  /// ```swift
  /// let images = try await FlowTask.whenAllSucceed([fetchImage(), fetchImage()]).value
  /// ```
  ///
  /// - Parameters:
  ///   - tasks: Tasks of one loop.
  ///   - loop: That loop, by default the one of the first task or, without one, the current one; called on
  ///     its thread.
  /// - Returns: The task that waits for them.
  public static func whenAllSucceed(
    _ tasks: [FlowTask<Success>], on loop: FlowEventLoop? = nil
  ) -> FlowTask<[Success]> {
    let task = JoinTask<[Success]>(.allSucceed, on: common(loop, tasks), error: \.error) { ended in
      ended.compactMap { ($0 as? FlowTask<Success>)?.result }
    }
    task.begin(tasks)
    return task
  }

  /// Succeeds when all tasks have ended, with their outcomes in order; for an empty list it
  /// succeeds at once.
  public static func whenAllFinish(
    _ tasks: [FlowTask<Success>], on loop: FlowEventLoop? = nil
  ) -> FlowTask<[Result<Success, FlowError>]> {
    let task = JoinTask<[Result<Success, FlowError>]>(
      .allFinish, on: common(loop, tasks), error: \.error
    ) { ended in
      ended.compactMap { ($0 as? FlowTask<Success>)?.outcome }
    }
    task.begin(tasks)
    return task
  }

  /// Ends with the outcome of the first task that ends; `firstIndex` is its place in the list.
  ///
  /// - Throws: A `FlowError` of kind `usage` for an empty list, which would never end.
  public static func whenAnyFinish(
    _ tasks: [FlowTask<Success>], on loop: FlowEventLoop? = nil
  ) throws(FlowError) -> JoinTask<Success> {
    if tasks.isEmpty { throw .usage("no task of an empty list can be the first to finish") }
    let task = JoinTask<Success>(.anyFinish, on: common(loop, tasks), error: \.error) { ended in
      guard let result = (ended.first as? FlowTask<Success>)?.result else {
        throw FlowError(.error, "a task has no result")
      }
      return result
    }
    task.begin(tasks)
    return task
  }

  private static func common(_ loop: FlowEventLoop?, _ tasks: [FlowTask<Success>]) -> FlowEventLoop
  {
    loop ?? tasks.first?.loop ?? .current
  }
}
