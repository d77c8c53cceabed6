/// The producer's side of a task: the code that holds it settles the task, once.
///
/// With a Sendable result all methods may be called from any thread. On the loop's own thread the
/// task settles at once; otherwise the loop settles it later, in the order of the calls. Flow-Swift calls it
/// `FlowContext`, Bolts `TaskCompletionSource`.
///
/// ```swift
/// let promise = FlowPromise<Int>(on: loop)
/// let task = promise.task
/// promise.trySetResult(42)
/// print(try await task.value)
/// ```
public final class FlowPromise<Success> {
  // On threads other than the loop's, only posted closures hold the task itself, because it would
  // be released on the wrong thread there.
  private let settled: Sent<ContextTask<Success>>
  private let claim: Claim
  private let identity: FlowEventLoop.Identity
  private let mailbox: LoopMailbox
  /// Ends with this context at the latest.
  private let work: ExternalWork?

  /// Makes a pending task, on its loop's thread.
  ///
  /// - Parameters:
  ///   - loop: The loop of the task; by default the current one.
  ///   - keepsLoop: Whether the loop isn't idle until the task has settled or this is released,
  ///     because other threads will settle it.
  public init(on loop: FlowEventLoop = .current, keepsLoop: Bool = true) {
    identity = loop.identity
    mailbox = loop.mailbox
    work = keepsLoop ? loop.mailbox.begin() : nil
    claim = Claim()
    settled = Sent(ContextTask(on: loop, claim, work))
  }

  deinit {
    // First the task returns to its thread, then the loop may be idle.
    if !identity.isCurrentThread { settled.sendHome(mailbox) }
    work?.end()
  }

  /// The task that this settles. Called on its loop's thread.
  public var task: FlowTask<Success> {
    identity.check()
    guard let task = settled.content else { misuse("a context has lost its task") }
    return task
  }

  /// The error message for settling a settled task.
  package static var settledMessage: ByteString { "can't set the result of a settled task" }

  // MARK: Settling

  /// Has the task succeed.
  ///
  /// - Throws: A `FlowError` of kind `usage` when the task has settled.
  package func setResult(_ result: Success) throws(FlowError) {
    if !trySetResult(result) { throw .usage(Self.settledMessage) }
  }

  /// Has the task fail or, with an error of kind `cancelled`, cancels it.
  ///
  /// - Throws: A `FlowError` of kind `usage` when the task has settled.
  package func setError(_ error: any Error) throws(FlowError) {
    if !trySetError(error) { throw .usage(Self.settledMessage) }
  }

  /// Cancels the task.
  ///
  /// - Throws: A `FlowError` of kind `usage` when the task has settled.
  package func cancel() throws(FlowError) {
    if !tryCancel() { throw .usage(Self.settledMessage) }
  }

  /// Has the task succeed; false when it has settled.
  @discardableResult
  public func trySetResult(_ result: Success) -> Bool { settle(.success(result)) }

  /// Has the task fail; false when it has settled.
  @discardableResult
  public func trySetError(_ error: any Error) -> Bool { settle(.failure(.from(error))) }

  /// Cancels the task; false when it has settled.
  @discardableResult
  public func tryCancel() -> Bool { settle(.failure(.cancelled())) }

  private func settle(_ outcome: Result<Success, FlowError>) -> Bool {
    guard claim.isFirst() else { return false }
    if identity.isCurrentThread {
      settled.content?.finish(outcome)
    } else {
      let sent = Sent(outcome)
      // Dropped when the loop is shut down: its mailbox would retain the task, and the task the
      // loop.
      _ = mailbox.postIfOpen { [settled] _ in
        if let outcome = sent.takeContent() { settled.content?.finish(outcome) }
      }
    }
    return true
  }
}

// The task is touched on the loop's thread only: other threads post closures. The other properties
// never change. The results that cross threads are Sendable.
extension FlowPromise: @unchecked Sendable where Success: Sendable {}

// Without generics, because scripts use it often.
extension FlowPromise where Success == FlowValue {
  /// Has the task succeed, on the loop's thread; false when it has settled.
  package func trySetValue(_ value: FlowValue) -> Bool {
    identity.check()
    guard claim.isFirst() else { return false }
    settled.content?.end(withValue: value)
    work?.end()
    return true
  }
}

/// A task that the first of these settles: its context, on any thread, or a cancel.
private final class ContextTask<Success>: FlowTask<Success> {
  private let claim: Claim
  /// The work that keeps the loop from being idle until this has settled.
  private let work: ExternalWork?

  init(on loop: FlowEventLoop, _ claim: Claim, _ work: ExternalWork?) {
    self.claim = claim
    self.work = work
    super.init(on: loop)
  }

  func finish(_ outcome: Result<Success, FlowError>) {
    switch outcome {
    case .success(let result): end(with: result)
    case .failure(let error): end(error: error)
    }
    work?.end()
  }

  override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    if claim.isFirst() { finish(.failure(error)) }
    return nil
  }
}

/// An object of a loop's thread on its way there. Made on one thread and emptied on another, with
/// the mailbox's lock between.
final class Sent<Content>: @unchecked Sendable {
  /// The content, for its own thread.
  private(set) var content: Content?

  init(_ content: Content) {
    self.content = content
  }

  /// Releases the content on the thread of the mailbox's loop; when that loop is shut down, here,
  /// because nothing runs there any more.
  func sendHome(_ mailbox: LoopMailbox) {
    if !mailbox.postIfOpen({ _ in self.takeContent() }) { takeContent() }
  }

  @discardableResult
  func takeContent() -> Content? {
    defer { content = nil }
    return content
  }
}

/// A task whose work an adapter does, outside of the engine: a request, a query.
///
/// A subclass starts the work, and calls `end` with the outcome. It has to keep itself, because work
/// continues even when nothing observes its task. Confined to its loop's thread.
@_spi(Scripting) open class ExternalTask<Success>: FlowTask<Success> {
  /// Makes a pending task.
  package override init(on loop: FlowEventLoop) { super.init(on: loop) }

  /// The name of such tasks in reports; `title` adds the place where this one was made.
  open var kindName: String { "task" }

  package final override var title: ByteString { title(of: ByteString(kindName)) }

  /// Stops the work because of `error`, with which the task then has to end, soon. By default it
  /// ends at once.
  open func stopWork(_ error: FlowError) { end(error: error) }

  package final override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    stopWork(error)
    return nil
  }
}
