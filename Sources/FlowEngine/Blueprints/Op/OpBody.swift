/// The work of an op. Called on the loop's thread; must not block.
package protocol OpBody: CodeHolder {
  /// Does the op's work. `.suspended` promises a later `context.end()`.
  func start(_ context: OpContext) -> CallState
  /// Stops a suspended body because of `error`; sooner or later the body must call `context.end`.
  func cancel(_ context: OpContext, _ error: FlowError)
  /// Notifies a body that is still in `start` that it is to stop. A suspended body is stopped with
  /// `cancel`; a body that may be busy for long has to make sure that it ends.
  func interrupt(_ context: OpContext, _ error: FlowError)
  /// Whether it may be busy for long, in which case other code limits its time. By default it
  /// isn't: when 1,000 ops of such bodies run one after another without a wait, jobs of the loop
  /// run in between.
  var mayBeBusy: Bool { get }
  /// The inner op of a decorator; nil, the default, for any other body.
  var inner: Op? { get }
}

extension OpBody {
  /// Ends at once: right for a body that has nothing to clean up.
  package func cancel(_ context: OpContext, _ error: FlowError) {
    context.end(error)
  }

  /// Lets the body continue: right for a body that is never busy for long.
  package func interrupt(_ context: OpContext, _ error: FlowError) {}

  /// The body is never busy for long.
  package var mayBeBusy: Bool { false }

  /// The body isn't a decorator's.
  package var inner: Op? { nil }
}

/// A decorator whose inner op knows keys by other names.
protocol RenamingBody: OpBody {
  /// The name outside of a key of the inner op.
  func nameOutside(_ key: ByteString) -> ByteString
}

/// A body whose code may allocate a limited amount of memory. Views of blueprints show it.
package protocol MemoryLimitedBody: OpBody {
  /// nil for no limit.
  var memory: ByteCount? { get }
}

extension Op {
  /// The most memory that its code may allocate; nil for no limit.
  package var memoryLimit: ByteCount? { (body as? any MemoryLimitedBody)?.memory }
}

/// A synchronous Swift closure as a body.
final class ClosureBody: OpBody {
  private let body: (OpContext) throws -> Void

  init(_ body: @escaping (OpContext) throws -> Void) {
    self.body = body
  }

  func start(_ context: OpContext) -> CallState {
    do {
      try body(context)
    } catch {
      context.fail(.from(error, on: context.loop))
    }
    return .finished
  }
}

/// The state of a body or callback after it was called.
package enum CallState: Sendable {
  /// It is done.
  case finished
  /// It waits, and later reports that it is done.
  case suspended
}

/// A type that can be a step of a flow: an op, a flow, or a typed op.
///
/// ```swift
/// func patient(_ step: some OpConvertible) -> Op {
///   step.with(retry: RetryPolicy(attempts: 5, delay: .seconds(1)))
/// }
/// let flow = Flow("publish") { patient(UploadOp()) }
/// ```
public protocol OpConvertible {
  /// Returns the op. A typed op makes a new one at each call.
  func makeOp() -> Op
}

extension Op: OpConvertible {
  /// The op itself.
  public func makeOp() -> Op { self }
}
