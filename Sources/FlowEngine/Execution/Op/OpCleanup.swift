/// A function to call when an attempt at an op ends, whatever the outcome. Called on the loop's
/// thread.
package protocol OpCleanup: AnyObject {
  /// Does its work; the context can be used until it ends. `.suspended` promises a later
  /// `completion.finish()`.
  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> CallState
  /// Stops a suspended cleanup whose grace is over.
  func cancel(_ context: OpContext, completion: CallbackCompletion, _ error: FlowError)
  /// Where its code begins, such as `deploy.lua:12`; nil when that isn't known.
  var place: ByteString? { get }
}

extension OpCleanup {
  /// nil: the place isn't known.
  package var place: ByteString? { nil }

  /// Stops waiting for the cleanup.
  package func cancel(
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

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> CallState {
    do {
      try body(context)
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }
}

/// An op that has succeeded and can be undone.
struct UndoableOp {
  /// The op, with its undo as the body.
  let op: Op
  let policy: OpPolicy
  /// The data of its flow, or of its item.
  let bucket: DataBucket
  /// Whether values that it sets are logged.
  let logsSets: Bool
  let index: Int
  /// The number of the attempt that has succeeded.
  let attempt: Int
  /// Its place in the log of the run that undoes it.
  var scope: UInt32
  var position: UInt32
  /// The lineages of its execution and of its place.
  var lineage: UInt64
  let place: UInt64
  /// Whether it was executed by a run of its own, as a step of a machine. Then the place is the machine's.
  var isOutside = false
  /// To call when it has been undone: a kept run then executes it again.
  var undone: ContiguousArray<UndoneKeeping> = []
}

/// State that few attempts at an op need: cleanups, and tasks that it started.
final class AttemptResources {
  var cleanups: ContiguousArray<any OpCleanup> = []
  var owned: OwnedTasks?
  /// Ops that this one executes over its own data: unlike other tasks they never outlive it.
  var inner: OwnedTasks?
  /// Ops that this one has executed, and those of a machine's steps: they are undone when it fails.
  var undos: ContiguousArray<UndoableOp> = []
  /// To call when the op, which an earlier process has finished, is undone.
  var undone: UndoneKeeping?
  /// To call when it is undone by its own undo: for the ops that it has executed, unless a `KeptExecution` knows
  /// that.
  var innerUndone: [UndoneKeeping] = []
  /// The lineage of the execution that an earlier process has finished.
  var keptLineage: UInt64?
  /// How many idempotency keys its requests have got.
  var keyCount = 0
  /// How many ops it has started or executed.
  var innerCount: UInt32 = 0
  /// Whether it has written or read items of streams.
  var hasPassedItems = false
  /// The waits of its code for streams.
  private(set) lazy var streamWaits = StreamWaits()
  /// The streams that it has written.
  var outputs: [(key: DataKey, output: StreamOutput)] = []
  /// The op of a context that other code keeps after its use.
  var keptOp: Op?
  var keptRun: Run?
}

extension AnyFlowTask {
  /// Reports that a `__close` of its code was cut off.
  ///
  /// - Parameters:
  ///   - waits: The function that it waited in, and where; nil when it was busy.
  ///   - grace: The time that it had; nil for the loop's `cleanupGrace`.
  package func reportCutClose(waits: ByteString?, grace: Duration?) {
    let error = FlowError.cut(
      "a __close of '\(loop.secrets.redacted(title))'", at: nil, waits: waits,
      isBusy: waits == nil, grace: grace ?? loop.cleanupGrace)
    reportLate(error)
  }
}
