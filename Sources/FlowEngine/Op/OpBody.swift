/// How far a body or callback got when it was called.
public enum OpProgress: Sendable {
  /// It is done.
  case finished
  /// It waits, and says later that it is done.
  case suspended
}

/// What an op does. Called on the loop's thread; must not block.
public protocol OpBody: AnyObject {
  /// Does the op's work. `.suspended` promises a later `context.end()`.
  func start(_ context: OpContext) -> OpProgress
  /// Asks a suspended body to stop because of `error`; sooner or later it must call `context.end`.
  func cancel(_ context: OpContext, _ error: FlowError)
  /// Says that a body which is still in `start` is to stop. Once it is suspended, it is asked by
  /// `cancel`; one that may be busy for long has to see to it that it ends.
  func interrupt(_ context: OpContext, _ error: FlowError)
  /// Whether it may be busy for long, and somebody else limits its time then. By default it isn't: when
  /// 1,000 ops of such bodies come one after another without a wait, jobs of the loop run in between.
  var mayBeBusy: Bool { get }
  /// The op around which this one is, as a decorator; nil, the default, for any other.
  var inner: Op? { get }
  /// Makes the runner for the items of a group of this op; nil, the default, leaves it to the loop.
  func itemRunner(for work: ItemWork) -> (any ItemRunner)?
}

extension OpBody {
  /// Ends at once: right for a body that has nothing to clean up.
  public func cancel(_ context: OpContext, _ error: FlowError) {
    context.end(error)
  }

  /// Lets it go on: right for a body that is never busy for long.
  public func interrupt(_ context: OpContext, _ error: FlowError) {}

  /// It is never busy for long.
  public var mayBeBusy: Bool { false }

  /// It isn't around another op.
  public var inner: Op? { nil }

  /// Leaves the items to the loop.
  public func itemRunner(for work: ItemWork) -> (any ItemRunner)? { nil }
}

/// A synchronous Swift closure as a body.
final class ClosureBody: OpBody {
  private let body: (OpContext) throws -> Void

  init(_ body: @escaping (OpContext) throws -> Void) {
    self.body = body
  }

  func start(_ context: OpContext) -> OpProgress {
    do {
      try body(context)
    } catch {
      context.fail(.from(error))
    }
    return .finished
  }
}
