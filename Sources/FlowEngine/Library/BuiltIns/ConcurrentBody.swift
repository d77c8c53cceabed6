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
      context.fail(.from(error))
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
    let running = Task.detached(executorPreference: ComputingExecutor.shared) {
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
    task.suspend(running, number: number, on: loop)
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
    _ context: OpContext, _ give: @escaping (Output, OpContext) -> Void, on loop: EventLoop
  ) {
    self.give = give
    super.init(context, on: loop)
  }

  /// The result of a stopped op is dropped.
  func end(with result: Result<Output, any Error>) {
    switch result {
    case .success(let output):
      if !wasCancelled, let context = openContext { give(output, context) }
    case .failure(let error): fail(error)
    }
    end()
  }
}
