/// Something to do when an attempt at an op ends, whatever the outcome. Called on the loop's thread.
public protocol OpCleanup: AnyObject {
  /// Does its work; the context can be used to the end. `.suspended` promises a later
  /// `completion.finish()`.
  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> OpProgress
  /// Asks a suspended cleanup to stop at once, whose grace period is over.
  func cancel(_ context: OpContext, completion: CallbackCompletion, _ error: FlowError)
  /// Where its code begins, such as `deploy.lua:12`; nil where that isn't known.
  var place: ByteString? { get }
}

extension OpCleanup {
  /// Not known.
  public var place: ByteString? { nil }

  /// Doesn't wait for it any longer.
  public func cancel(
    _ context: OpContext, completion: CallbackCompletion, _ error: FlowError
  ) {
    completion.finish(error)
  }
}

/// A synchronous Swift closure as a cleanup.
final class ClosureCleanup: OpCleanup {
  private let body: (OpContext) throws -> Void

  init(_ body: @escaping (OpContext) throws -> Void) {
    self.body = body
  }

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> OpProgress {
    do {
      try body(context)
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}

/// What few executions of an op have: cleanups, and tasks that it started.
final class OpExtras {
  var cleanups: ContiguousArray<any OpCleanup> = []
  var owned: OwnedTasks?
  /// Ops that this one executes over its own data: unlike other tasks they never outlive it.
  var inner: OwnedTasks?
  /// What the op tells of its progress, where somebody looks.
  var progress: OpProgressNote?
  /// What a context was about that somebody keeps beyond its use.
  var keptOp: Op?
  var keptRun: Run?
}
