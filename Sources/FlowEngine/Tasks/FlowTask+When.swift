// Tasks that wait for several others. None of them stops its inputs.

extension FlowTask {
  /// Succeeds when all tasks have, with their results in order; for an empty list it succeeds at
  /// once.
  ///
  /// The first task that fails or is cancelled ends it at once with that error.
  ///
  /// - Parameters:
  ///   - tasks: Tasks of one loop.
  ///   - loop: That loop, by default the one of the first task or, without one, the current one; called on
  ///     its thread.
  /// - Returns: The task that waits for them.
  public static func whenAllSucceed(
    _ tasks: [FlowTask<Success>], on loop: EventLoop? = nil
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
    _ tasks: [FlowTask<Success>], on loop: EventLoop? = nil
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
    _ tasks: [FlowTask<Success>], on loop: EventLoop? = nil
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

  private static func common(_ loop: EventLoop?, _ tasks: [FlowTask<Success>]) -> EventLoop {
    loop ?? tasks.first?.loop ?? .current
  }
}
