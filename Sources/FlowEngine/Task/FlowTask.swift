/// A task that gives a value when it succeeds: a future.
///
/// Confined to its loop's thread; `handle` is for all others. The seed (Flow-Swift) calls it `Flow`,
/// Bolts `Task`. Open only for this package, like `AnyFlowTask`.
open class FlowTask<Success>: AnyFlowTask {
  /// What it gave; nil unless it has succeeded.
  public final var result: Success? {
    if !isOfValues { return (extras as? ResultBox<Success>)?.result }
    if state != .succeeded { return nil }
    // Safe: both are the same type; see `init`.
    return unsafeBitCast(storedValue, to: Success?.self)
  }

  package init(on loop: EventLoop) {
    super.init(on: loop, isOfValues: Success.self == Value.self)
  }

  /// Keeps what it gives; the caller settles it.
  final func keep(_ result: Success) {
    if isOfValues {
      // As above.
      storedValue = unsafeBitCast(result, to: Value.self)
    } else {
      extras = ResultBox(result, replacing: extras)
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

// Without generics, as scripts use them often.
extension AnyFlowTask {
  /// Of a task of values: has it succeed, unless it has settled.
  package final func end(withValue value: Value) {
    guard state == .pending else { return }
    storedValue = value
    settle(nil)
    conclude()
  }

  /// Of a task of values: what it gave; nil unless it has succeeded.
  package final var resultValue: Value? { state == .succeeded ? storedValue : nil }

  /// Of a task of values: keeps what it gives if it succeeds.
  package final func keep(value: Value) { storedValue = value }

  /// Of a task of values: has it succeed with what was kept, unless it has settled.
  package final func endWithKeptValue() {
    guard state == .pending else { return }
    settle(nil)
    conclude()
  }
}

extension FlowTask where Success == Value {
  /// Makes a pending task.
  package static func makeOfValues(on loop: EventLoop) -> FlowTask<Value> {
    FlowTask<Value>(on: loop)
  }
}

// MARK: Settled and delayed tasks

extension FlowTask {
  /// A task that has succeeded.
  ///
  /// - Parameters:
  ///   - result: What it gives.
  ///   - loop: The loop that it belongs to; called on its thread.
  /// - Returns: The task.
  public static func resolved(_ result: Success, on loop: EventLoop) -> FlowTask<Success> {
    let task = FlowTask(on: loop)
    task.end(with: result)
    return task
  }

  /// A task that has failed or, with an error of kind `cancelled`, was cancelled.
  public static func failed(_ error: any Error, on loop: EventLoop) -> FlowTask<Success> {
    let task = FlowTask(on: loop)
    task.end(error: .from(error))
    return task
  }

  /// A task that was cancelled.
  public static func cancelled(
    reason: ByteString? = nil, on loop: EventLoop
  ) -> FlowTask<Success> {
    failed(FlowError.cancelled(reason: reason), on: loop)
  }

  /// A task that succeeds after some time of the loop's clock.
  ///
  /// - Parameters:
  ///   - seconds: How long; not at all when it isn't positive.
  ///   - result: What it gives.
  ///   - loop: The loop that it belongs to; called on its thread.
  /// - Returns: The task, which can be cancelled until then.
  public static func withDelay(
    _ seconds: Double, _ result: Success, on loop: EventLoop
  ) -> FlowTask<Success> {
    DelayedTask(seconds, result, on: loop)
  }
}

extension FlowTask where Success == Void {
  /// A task that succeeds after some time of the loop's clock.
  public static func withDelay(_ seconds: Double, on loop: EventLoop) -> FlowTask<Void> {
    withDelay(seconds, (), on: loop)
  }
}

/// Succeeds when its time has come. The timer holds it until then.
private final class DelayedTask<Success>: FlowTask<Success>, LoopJob {
  private var given: Success?
  private var timer: Timer?

  init(_ seconds: Double, _ result: Success, on loop: EventLoop) {
    given = result
    super.init(on: loop)
    timer = loop.schedule(at: loop.deadline(after: seconds), self)
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
