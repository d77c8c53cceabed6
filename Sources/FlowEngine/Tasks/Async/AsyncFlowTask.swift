/// The code of `FlowEventLoop.task`. It always runs on the loop's thread, whatever it awaits in
/// between.
package typealias AsyncTaskBody<Success> = nonisolated(nonsending) () async throws -> Success

extension FlowEventLoop {
  /// Runs async code as a task; on the loop's thread.
  ///
  /// The code starts at once and returns to the loop's thread after each `await`; while it waits,
  /// the loop runs everything else. Cancelling the task cancels the Swift task in which the code
  /// runs; the task is cancelled after the code has ended, whatever its outcome.
  ///
  /// - Parameter body: The code; an error it throws fails the task.
  /// - Returns: A task with the code's return value.
  @discardableResult
  public func task<Success>(
    _ body: nonisolated(nonsending) @escaping () async throws -> Success
  ) -> FlowTask<Success> {
    checkThread()
    let task = AsyncFlowTask<Success>(on: self)
    task.begin(body)
    return task
  }
}

/// A task that async code settles.
private final class AsyncFlowTask<Success>: FlowTask<Success> {
  private var code: AsyncCode<Success>?
  private var stopError: FlowError?
  /// The tasks that the code waits for.
  private var awaited = AwaitedTasks()

  override init(on loop: FlowEventLoop) { super.init(on: loop) }

  func begin(_ body: @escaping AsyncTaskBody<Success>) {
    let code = AsyncCode(body, self)
    self.code = code
    code.start(on: loop)
    if code.hasEnded { self.code = nil }
  }

  func codeEnded(_ result: Result<Success, any Error>) {
    code = nil
    if let stopError { return end(error: stopError) }
    switch result {
    case .success(let value): end(with: value)
    case .failure(let error): end(error: .from(error))
    }
  }

  override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    guard state == .pending, stopError == nil else { return nil }
    stopError = error
    code?.cancel()
    return nil
  }

  override var awaitedCount: Int { awaited.count }

  override func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) { awaited.add(to: &tasks) }

  override func beginAwaiting(_ task: AnyFlowTask) { awaited.begin(task) }

  override func endAwaiting(_ task: AnyFlowTask) { awaited.end(task) }
}

/// The Swift task of an `AsyncFlowTask`.
// As with `LoopTask`, all of it is touched on the loop's thread only.
private final class AsyncCode<Success>: LoopTask, @unchecked Sendable {
  private let body: AsyncTaskBody<Success>
  // Cleared at the end: each holds the other until then.
  private var task: AsyncFlowTask<Success>?
  private var result: Result<Success, any Error>?

  init(_ body: @escaping AsyncTaskBody<Success>, _ task: AsyncFlowTask<Success>) {
    self.body = body
    self.task = task
    super.init(on: task.loop)
  }

  override var waitingTask: AnyFlowTask? { task }

  override func stopWithLoop(reason: ByteString) { task?.cancel(reason: reason) }

  override nonisolated(nonsending) func perform() async {
    do {
      result = .success(try await body())
    } catch {
      result = .failure(error)
    }
  }

  override func didEnd() {
    let task = task
    self.task = nil
    if let result { task?.codeEnded(result) }
  }

  override func abandon() {
    super.abandon()
    task = nil
  }
}
