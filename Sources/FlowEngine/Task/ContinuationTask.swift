/// For which outcomes a continuation runs, and what it makes of them.
package enum ContinuationKind: UInt8 {
  /// Runs in any case, or for one outcome; the task goes on as what it returns.
  case next, nextOnSuccess, nextOnError
  /// The same, but the task ends as the one before, unless the continuation fails.
  case finally, finallyOnSuccess

  func runs(after state: AnyFlowTask.State) -> Bool {
    switch self {
    case .next, .finally: true
    case .nextOnSuccess, .finallyOnSuccess: state == .succeeded
    case .nextOnError: state == .failed
    }
  }

  var keepsOutcome: Bool { self == .finally || self == .finallyOnSuccess }
}

/// The code of a `ContinuationTask`.
package protocol TaskCode<Success>: AnyObject {
  associatedtype Success

  /// Runs; one of the task's `returned(_:)`, `returned(after:)`, `follow(_:)` and `failed(_:)` has to
  /// be called when it has ended, once.
  ///
  /// - Parameters:
  ///   - source: The task before; nil for a task without one.
  ///   - task: The task whose code this is.
  func run(after source: AnyFlowTask?, in task: ContinuationTask<Success>)

  /// Asks code that goes on to stop; it has to end.
  func stop(_ error: FlowError)

  /// Stops code that waits for what never comes; called again, ends it. Answers whether it was asked.
  func stopStalled(_ error: FlowError) -> Bool

  /// The result of a task that has succeeded and that the code has handed over, or that stands before
  /// and passes through.
  func result(of task: AnyFlowTask) throws -> Success

  /// The error of a task, to pass on.
  func error(of task: AnyFlowTask) -> FlowError?
}

/// A task that runs code, perhaps once another task has ended, and ends as that code says: with a
/// value, or as a task that the code hands over.
///
/// The task that is waited for holds this one, not the other way round, so a chain whose first task is
/// given up goes with it.
package final class ContinuationTask<Success>: FlowTask<Success>, TaskObserver, TaskOwner {
  private enum Stage: UInt8 {
    /// Waits for the task before, or for its turn.
    case waiting
    /// Its code goes on.
    case running
    /// Waits for the task that its code has handed over, or for its turn.
    case following
    /// Waits for the end of what its code has started.
    case completing
  }

  /// Nil for a task without one before it.
  private let kind: ContinuationKind?
  private let thread: ContinuationThread

  // As in `AnyFlowTask`.

  /// Let go at the end.
  @exclusivity(unchecked) private var code: (any TaskCode<Success>)?
  @exclusivity(unchecked) private var stage: Stage = .waiting
  /// Whether the loop holds it, as its code, or what that has handed over, goes on.
  @exclusivity(unchecked) private var isHeld = false
  /// The task that is waited for. Unowned: it holds this one, and says when it goes.
  @exclusivity(unchecked) private unowned(unsafe) var awaited: AnyFlowTask?
  /// The task before, from its end until the code has been run.
  @exclusivity(unchecked) private var source: AnyFlowTask?
  /// The task that the code has handed over, once that has ended.
  @exclusivity(unchecked) private var followed: AnyFlowTask?
  /// What it ends with whatever its code does.
  @exclusivity(unchecked) package private(set) var stopError: FlowError?
  /// What its code has started and what hasn't ended.
  @exclusivity(unchecked) private var owned: OwnedTasks?

  /// A continuation; `begin(after:)` sets it going.
  package init(
    _ kind: ContinuationKind, on loop: EventLoop, _ thread: ContinuationThread,
    _ code: any TaskCode<Success>
  ) {
    self.kind = kind
    self.thread = thread
    self.code = code
    super.init(on: loop)
  }

  /// A task without one before it; `begin` sets it going.
  package init(on loop: EventLoop, _ code: any TaskCode<Success>) {
    kind = nil
    thread = .immediate
    self.code = code
    super.init(on: loop)
  }

  // MARK: Its course

  /// Waits for `source`, which counts as observed.
  package func begin(after source: AnyFlowTask) {
    source.markObserved()
    awaited = source
    source.observe(self)
  }

  /// Runs the code at once.
  package func begin() {
    stage = .running
    code?.run(after: nil, in: self)
  }

  package var waitingTask: AnyFlowTask? { self }

  package func taskEnded(_ task: AnyFlowTask) {
    awaited = nil
    if stage == .following {
      followed = task
      loop.dispatch(self, .automatic)
    } else {
      source = task
      loop.dispatch(self, thread)
    }
  }

  package func taskIsGone() { awaited = nil }

  /// Goes on after the end of what it has waited for.
  package func run() {
    guard state == .pending else { return }
    if let followed {
      self.followed = nil
      finish(following: followed)
    } else if let source, stage == .waiting {
      guard let kind, stopError == nil, kind.runs(after: source.state) else {
        return pass(source)
      }
      stage = .running
      code?.run(after: source, in: self)
    }
  }

  /// The code has returned.
  package func returned(_ value: Success) {
    if kind?.keepsOutcome == true, let source { return pass(source) }
    complete(.success(value))
  }

  /// The code has returned, and the outcome of the task before stays.
  package func returned(after source: AnyFlowTask) { pass(source) }

  /// The code has raised an error.
  package func failed(_ error: FlowError) { complete(.failure(error)) }

  /// The code has handed over a task: this one ends when that does and, unless it keeps the outcome of
  /// the one before, as that does.
  package func follow(_ task: AnyFlowTask) {
    task.markObserved()
    // First, as it takes no search, and what has ended waits for nothing.
    if task.isConcluded { return finish(following: task) }
    if isAwaited(by: task) {
      return failed(.waitsForItself(self))
    }
    stage = .following
    hold()
    awaited = task
    task.observe(self)
    // It was stopped while its code ran.
    if let stopError { stopAwaited(task, stopError)?.stop(stopError) }
  }

  private func finish(following task: AnyFlowTask) {
    if kind?.keepsOutcome == true, let source, task.state == .succeeded {
      pass(source)
    } else {
      pass(task)
    }
  }

  /// Ends as another task has ended.
  private func pass(_ task: AnyFlowTask) {
    guard let code else { return }
    if let error = code.error(of: task) { return complete(.failure(error)) }
    do {
      complete(.success(try code.result(of: task)))
    } catch {
      complete(.failure(.from(error)))
    }
  }

  // MARK: Its end

  /// Settles or, when it doesn't succeed, first stops what its code has started and waits for that.
  private func complete(_ outcome: Result<Success, FlowError>) {
    source = nil
    guard let owned, !owned.isEmpty else { return settle(outcome) }
    let reason: FlowError
    switch outcome {
    case .success where stopError == nil:
      // What code leaves when it succeeds goes on, as a part of what has started the task.
      if let owner { owner.takeAll(from: owned) } else { owned.abandon() }
      return settle(outcome)
    case .success(_): reason = .cancelled()
    case .failure(let error): reason = error
    }
    stage = .completing
    hold()
    owned.whenEmpty { [self] in settle(outcome) }
    owned.cancelAll((stopError ?? reason).asReason)
  }

  private func settle(_ outcome: Result<Success, FlowError>) {
    owned = nil
    code = nil
    if let stopError {
      end(error: stopError)
    } else {
      switch outcome {
      case .success(let value): end(with: value)
      case .failure(let error): end(error: error)
      }
    }
  }

  // MARK: While it goes on

  /// Has the loop hold the task until its end, as its code goes on: nobody else may.
  package func hold() {
    isHeld = true
    loop.pending[id] = self
  }

  override func conclude() {
    if isHeld { loop.pending[id] = nil }
    super.conclude()
  }

  override func abandon() -> Strand? {
    awaited?.unobserve(self)
    awaited = nil
    source = nil
    code = nil
    owned?.abandon()
    owned = nil
    return super.abandon()
  }

  /// Makes a task belong to this one, whose code has started it.
  package func adopt(_ task: AnyFlowTask) {
    guard state == .pending, !task.isConcluded else { return }
    let owned = owned ?? OwnedTasks(self)
    self.owned = owned
    owned.add(task)
  }

  package var deadline: Int64 { ownerDeadline }

  package func expireTask() -> FlowError { expire() }

  package override func stopStalled() -> Bool {
    let error = FlowError.stalled(op: title)
    switch stage {
    case .waiting, .completing: return false
    case .running: return code?.stopStalled(error) ?? false
    case .following:
      guard let awaited else { return false }
      awaited.unobserve(self)
      self.awaited = nil
      failed(error)
      return true
    }
  }

  // MARK: Cancellation

  package override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    guard state == .pending, stopError == nil else { return nil }
    stopError = error
    switch stage {
    case .waiting, .following:
      if let awaited { return stopAwaited(awaited, error) }
      // It has its turn soon, unless nothing comes any more.
      if source == nil, followed == nil { complete(.failure(error)) }
    case .running: code?.stop(error)
    case .completing: break
    }
    return nil
  }

  /// Answers what it waits for when nobody else does, so that it is to be stopped and awaited;
  /// otherwise ends at once.
  private func stopAwaited(_ task: AnyFlowTask, _ error: FlowError) -> AnyFlowTask? {
    if !task.isObserved(besides: self) { return task }
    task.unobserve(self)
    awaited = nil
    complete(.failure(error))
    return nil
  }
}
