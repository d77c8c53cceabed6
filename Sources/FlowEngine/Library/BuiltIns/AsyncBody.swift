/// The work of an `async` op.
package typealias AsyncOpBody = nonisolated(nonsending) (OpContext) async throws -> Void

extension Op {
  /// Makes an op from an `async` Swift closure; an error it throws fails the op.
  ///
  /// The body starts at once, on the loop's thread, and returns to it after each `await`; while it
  /// waits, the loop runs everything else. Its context mustn't move to another isolation; the compiler enforces that. A stop of the op cancels the body's task: see
  /// `Task.isCancelled` and `withTaskCancellationHandler`. A `CancellationError` ends the op as
  /// cancelled. In any case the op ends only when the body has ended.
  ///
  /// `context.sleep(for:)` waits on the loop's clock. Everything else that Swift can await works,
  /// too: other actors, the main actor, continuations. While a body awaits such a thing, the loop
  /// counts it as work in progress elsewhere: the op isn't stalled, and a virtual clock doesn't
  /// advance.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: The purpose of the op, for people.
  ///   - needs: Declared inputs, as keys with their types; a malformed type ends the process with a
  ///     sentence.
  ///   - gives: Declared outputs, in the same form.
  ///   - primaryInput: The key under which a group passes an item; by default the only need.
  ///   - primaryOutput: The key that a group collects; by default the only key of `gives`.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  ///   - body: The op's work. It has exclusive use of the values it captures, unless they are
  ///     Sendable.
  public convenience init(
    _ name: some FlowText, doc: (any FlowText)? = nil, needs: KeyValuePairs<String, String> = [:],
    gives: KeyValuePairs<String, String> = [:], primaryInput: (any FlowText)? = nil,
    primaryOutput: (any FlowText)? = nil, file: StaticString = #fileID, line: UInt = #line,
    body: nonisolated(nonsending) sending @escaping (OpContext) async throws -> Void
  ) {
    self.init(
      name: name, doc: doc, needs: Self.declarations(needs, file, line),
      gives: Self.declarations(gives, file, line), primaryInput: primaryInput,
      primaryOutput: primaryOutput, body: AsyncClosureBody(body))
  }
}

/// A body that runs as a Swift task.
class AsyncBody: OpBody {
  /// Makes the task of an execution.
  func makeTask(_ context: OpContext, on loop: FlowEventLoop) -> OpTask {
    OpTask(context, on: loop)
  }

  func start(_ context: OpContext) -> CallState {
    let loop = context.loop
    let task = makeTask(context, on: loop)
    context.state = task
    task.start(on: loop, in: context.run.taskContext)
    return task.didStart() ? .finished : .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? OpTask)?.cancel()
  }
}

/// An `async` closure as a body.
final class AsyncClosureBody: AsyncBody {
  private let body: AsyncOpBody

  init(_ body: @escaping AsyncOpBody) {
    self.body = body
  }

  override func makeTask(_ context: OpContext, on loop: FlowEventLoop) -> OpTask {
    ClosureTask(context, body, on: loop)
  }
}

/// The Swift task of one execution of an op.
class OpTask: LoopTask, @unchecked Sendable {
  // Cleared at the end, so that the context can be reused.
  private var context: OpContext?
  private var isStarting = true
  private var error: FlowError?

  init(_ context: OpContext, on loop: FlowEventLoop) {
    self.context = context
    super.init(on: loop)
  }

  /// The op's work.
  nonisolated(nonsending) func execute(_ context: OpContext) async throws {}

  override final nonisolated(nonsending) func perform() async {
    guard let context else { return }
    do {
      try await execute(context)
    } catch {
      fail(error, context)
    }
  }

  /// Records an error that ends the op.
  func fail(_ error: any Error, _ context: OpContext) {
    self.error = .from(error, on: context.loop)
  }

  override final var waitingTask: AnyFlowTask? { context?.run }

  /// The context, as long as the op waits for this task.
  var openContext: OpContext? { context?.state === self ? context : nil }

  override final func didEnd() {
    guard let context = openContext else {
      self.context = nil
      return
    }
    if isStarting {
      // If `start` hasn't returned yet, the op ends after it has.
      if let error { context.fail(error) }
    } else {
      self.context = nil
      context.end(error)
    }
  }

  /// Called when `start` has returned; returns whether the task has ended.
  final func didStart() -> Bool {
    isStarting = false
    if hasEnded { context = nil }
    return hasEnded
  }

  override func abandon() {
    super.abandon()
    context = nil
  }
}

private final class ClosureTask: OpTask, @unchecked Sendable {
  private let body: AsyncOpBody

  init(_ context: OpContext, _ body: @escaping AsyncOpBody, on loop: FlowEventLoop) {
    self.body = body
    super.init(context, on: loop)
  }

  override nonisolated(nonsending) func execute(_ context: OpContext) async throws {
    try await body(context)
  }
}

extension OpContext {
  /// Suspends an `async` body for some time of the loop's clock, so that virtual time works.
  ///
  /// - Parameter duration: How long; a duration that isn't positive doesn't wait.
  /// - Throws: `CancellationError`, at once when the op is stopped.
  public nonisolated(nonsending) func sleep(for duration: Duration) async throws {
    try await loop.sleep(for: duration)
  }
}

/// A body whose work runs off the loop, on threads for computing, in parallel with everything else.
///
/// It reads the inputs before it starts and sets the outputs when it is done: in between it doesn't
/// touch the loop.
final class ConcurrentBody<Input: Sendable, Output: Sendable>: OpBody {
  private let take: (OpContext) throws -> Input
  private let work: @Sendable (Input) async throws -> Output
  private let give: (Output, OpContext) -> Void

  /// - Parameters:
  ///   - take: Gets the work's inputs, on the loop's thread.
  ///   - work: The work; its task is cancelled when the op is stopped.
  ///   - give: Stores the result in the bucket, on the loop's thread.
  init(
    take: @escaping (OpContext) throws -> Input,
    work: @escaping @Sendable (Input) async throws -> Output,
    give: @escaping (Output, OpContext) -> Void
  ) {
    self.take = take
    self.work = work
    self.give = give
  }

  func start(_ context: OpContext) -> CallState {
    let input: Input
    do {
      input = try take(context)
    } catch {
      context.fail(.from(error, on: context.loop))
      return .finished
    }
    let loop = context.loop
    let task = ConcurrentTask(context, give, on: loop)
    context.state = task
    _ = task.didStart()
    // Only the number crosses threads: the objects of the task belong to the loop's thread.
    let number = loop.taskSupport.reserveNumber()
    let work = work
    let mailbox = loop.mailbox
    let code = { @Sendable in
      let result: Result<Output, any Error>
      do {
        result = .success(
          try await OutsideWork.$current.withValue(OutsideWork(mailbox: mailbox, number: number)) {
            try await work(input)
          })
      } catch {
        result = .failure(error)
      }
      mailbox.post { loop in
        (loop.registry.swiftTasks?.task(number) as? ConcurrentTask<Output>)?.end(with: result)
      }
    }
    let executor = ComputingExecutor.shared
    if let taskContext = context.run.taskContext {
      taskContext.run {
        task.suspend(Task(executorPreference: executor, operation: code), number: number, on: loop)
      }
    } else {
      task.suspend(
        Task.detached(executorPreference: executor, operation: code), number: number, on: loop)
    }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? OpTask)?.cancel()
  }
}

/// The loop's side of work that runs elsewhere.
private final class ConcurrentTask<Output: Sendable>: OpTask, @unchecked Sendable {
  private let give: (Output, OpContext) -> Void

  init(
    _ context: OpContext, _ give: @escaping (Output, OpContext) -> Void, on loop: FlowEventLoop
  ) {
    self.give = give
    super.init(context, on: loop)
  }

  /// The result of a stopped op is dropped.
  func end(with result: Result<Output, any Error>) {
    switch result {
    case .success(let output):
      if !wasCancelled, let context = openContext { give(output, context) }
    case .failure(let error): if let context = openContext { fail(error, context) }
    }
    end()
  }
}
