/// A task with a result when it succeeds: a future.
///
/// Confined to its loop's thread; other threads use `handle`. The seed (Flow-Swift) calls it
/// `Flow`, Bolts `Task`. Open only for this package, like `AnyFlowTask`.
open class FlowTask<Success>: AnyFlowTask {
  /// Its result; nil unless it has succeeded.
  open var result: Success? {
    if !isOfValues { return (details as? ResultBox<Success>)?.result }
    if state != .succeeded { return nil }
    // Safe: both are the same type; see `init`.
    return unsafeBitCast(storedValue, to: Success?.self)
  }

  package init(on loop: EventLoop) {
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
  package static func makeOfValues(on loop: EventLoop) -> FlowTask<FlowValue> {
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
  public static func resolved(_ result: Success, on loop: EventLoop = .current) -> FlowTask<Success>
  {
    let task = FlowTask(on: loop)
    task.end(with: result)
    return task
  }

  /// Makes a task that has failed or, with an error of kind `cancelled`, was cancelled.
  public static func failed(_ error: any Error, on loop: EventLoop = .current) -> FlowTask<Success>
  {
    let task = FlowTask(on: loop)
    task.end(error: .from(error))
    return task
  }

  /// Makes a task that was cancelled.
  public static func cancelled(
    reason: String? = nil, on loop: EventLoop = .current
  ) -> FlowTask<Success> {
    failed(FlowError.cancelled(reason: reason), on: loop)
  }

  /// Makes a task that succeeds after some time of the loop's clock.
  ///
  /// - Parameters:
  ///   - delay: How long; a duration that isn't positive doesn't wait.
  ///   - result: Its result.
  ///   - loop: The loop that it belongs to, by default the current one; called on its thread.
  /// - Returns: The task, which can be cancelled before that time.
  public static func withDelay(
    _ delay: Duration, _ result: Success, on loop: EventLoop = .current
  ) -> FlowTask<Success> {
    DelayedTask(delay, result, on: loop)
  }
}

extension FlowTask where Success == Void {
  /// Makes a task that succeeds after some time of the loop's clock.
  public static func withDelay(_ delay: Duration, on loop: EventLoop = .current) -> FlowTask<Void> {
    withDelay(delay, (), on: loop)
  }
}

/// Succeeds when its time has come. The timer retains it until then.
private final class DelayedTask<Success>: FlowTask<Success>, LoopJob {
  private var given: Success?
  private var timer: LoopTimer?

  init(_ delay: Duration, _ result: Success, on loop: EventLoop) {
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
