/// For which outcomes a continuation runs, and what its task makes of them.
@_spi(Scripting) public enum ContinuationKind: UInt8 {
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

  /// Whether the code gets the result of the task before.
  package var isForResult: Bool { self == .nextOnSuccess || self == .finallyOnSuccess }
}

/// How far a continuation has got.
private enum ContinuationStage: UInt8 {
  /// Waits for the task before, or for its turn.
  case waiting
  /// Its code goes on.
  case running
  /// Waits for the task that its code has handed over, or for its turn.
  case following
  /// Waits for the end of what its code has started.
  case completing
  case over
}

/// A task that ends as code says that runs, perhaps once another task has ended: with a value, or as a
/// task that the code hands over.
///
/// What the code is is the business of subclasses. The task that is waited for holds this one, not the
/// other way round, so a chain whose first task is given up goes with it. One object is both the task
/// and what runs its code, as there can be very many. On the loop's thread only.
@_spi(Scripting) open class ContinuationTask<Success>: FlowTask<Success>, TaskObserver {
  // As in `AnyFlowTask`; what few continuations have is there, too, in its `extras`.

  /// The task that is waited for, while code runs the one that it waits for. Unowned: it holds this one,
  /// and says when it goes, or the code's wait holds it.
  @exclusivity(unchecked) private final unowned(unsafe) var awaited: AnyFlowTask?
  /// The task before, from its end until this has its turn; of one that keeps the outcome, until the
  /// code has been run.
  @exclusivity(unchecked) private final var source: AnyFlowTask?
  /// Nil without a task before.
  package final let continuationKind: ContinuationKind?
  private final let thread: ContinuationThread
  @exclusivity(unchecked) private final var stage: ContinuationStage = .waiting
  /// Whether the loop holds it, as its code, or what that has handed over, goes on.
  @exclusivity(unchecked) private final var isHeld = false

  /// Makes a pending task; one of the `begin`s sets it going.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to.
  ///   - kind: For which outcomes of the task before it runs; nil without one.
  ///   - thread: Where it runs.
  public init(
    on loop: EventLoop, _ kind: ContinuationKind? = nil,
    _ thread: ContinuationThread = .immediate
  ) {
    continuationKind = kind
    self.thread = thread
    super.init(on: loop)
  }

  /// What the task ends with whatever the code does; set when it was asked to stop.
  package final var stopError: FlowError? { extras?.stopReason }

  // MARK: For subclasses

  /// Runs the code; one of `returned()`, `returned(after:)`, `follow(_:)` and `failed(_:)` has to be
  /// called when it has ended, once.
  open func runCode(after source: AnyFlowTask?) {}

  /// Asks code that goes on to stop; it has to end.
  open func stopCode(_ error: FlowError) {}

  /// Stops code that waits for what never comes; called again, ends it. Answers whether it was asked.
  open func stopStalledCode(_ error: FlowError) -> Bool { false }

  /// Lets go of the code, which isn't run, or isn't heard, any more.
  open func dropCode() {}

  /// Keeps the result of a task that has succeeded as its own.
  open func keepResult(of task: AnyFlowTask) throws {}

  /// The error of a task, to pass on.
  open func error(of task: AnyFlowTask) -> FlowError? { task.error }

  /// Succeeds with the result that was kept.
  open func succeed() {}

  // MARK: Its course

  /// Waits for `source`, which counts as observed.
  package final func begin(after source: AnyFlowTask) {
    source.markObserved()
    if let error = source.foreignError(on: loop) { return failed(error) }
    awaited = source
    source.observe(self)
  }

  /// Runs the code at once.
  package final func begin() {
    stage = .running
    runCode(after: nil)
  }

  public final var waitingTask: AnyFlowTask? { self }

  public final func taskEnded(_ ended: AnyFlowTask) {
    awaited = nil
    if stage == .following {
      makeExtras().followed = ended
      loop.dispatch(self, .automatic)
    } else if loop.enterContinuation(thread) {
      // As `dispatch` does, but whoever tells of the end holds the task meanwhile.
      goOn(after: ended)
      loop.leaveContinuation()
    } else {
      source = ended
      loop.dispatch(self, thread)
    }
  }

  public final func taskIsGone() { awaited = nil }

  /// Goes on after the end of what it has waited for.
  public final func run() {
    if let followed = extras?.followed.take() {
      finish(following: followed)
    } else if stage == .waiting, let source = source.take() {
      goOn(after: source)
    }
  }

  /// Runs the code when it is for such an outcome.
  private func goOn(after ended: AnyFlowTask) {
    stage = .running
    guard let kind = continuationKind, stopError == nil, kind.runs(after: ended.state) else {
      return pass(ended)
    }
    if kind.keepsOutcome { source = ended }
    runCode(after: ended)
  }

  /// The code has returned, and what is to be the result has been kept.
  package final func returned() {
    if continuationKind?.keepsOutcome == true, let source { return pass(source) }
    complete(nil)
  }

  /// The code has returned, and the outcome of the task before stays.
  package final func returned(after source: AnyFlowTask) { pass(source) }

  /// The code has raised an error.
  package final func failed(_ error: FlowError) { complete(error) }

  /// The code has handed over a task: this one ends when that does and, unless it keeps the outcome of
  /// the one before, as that does.
  package final func follow(_ next: AnyFlowTask) {
    next.markObserved()
    // First, as it takes no search, and what has ended waits for nothing.
    if next.isConcluded { return finish(following: next) }
    if let error = next.foreignError(on: loop) { return failed(error) }
    if WaitCycle.isClosed(by: self, awaiting: next) { return failed(.waitsForItself(self)) }
    stage = .following
    // What follows itself step by step stays flat: a step that is stopped stops the next one anyway.
    if let owned = extras?.owned, owned.isOnly(next) { passOn(owned) }
    hold()
    awaited = next
    next.observe(self)
    // It was stopped while its code ran.
    if let stopError { stopAwaited(next, stopError)?.stop(stopError) }
  }

  private func finish(following next: AnyFlowTask) {
    if continuationKind?.keepsOutcome == true, let source, next.state == .succeeded {
      pass(source)
    } else {
      pass(next)
    }
  }

  /// Ends as another task has.
  private func pass(_ other: AnyFlowTask) {
    if let error = error(of: other) { return complete(error) }
    do {
      try keepResult(of: other)
      complete(nil)
    } catch {
      complete(.from(error))
    }
  }

  final override var awaitedCount: Int { awaited == nil ? 0 : 1 }

  final override func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) {
    if let awaited { tasks.append(awaited) }
  }

  package final override func beginAwaiting(_ task: AnyFlowTask) {
    if stage == .running { awaited = task }
  }

  package final override func endAwaiting(_ task: AnyFlowTask) {
    if stage == .running, awaited === task { awaited = nil }
  }

  // MARK: Its end

  /// Settles or, when it doesn't succeed, first stops what the code has started and waits for it.
  private func complete(_ error: FlowError?) {
    source = nil
    guard let owned = extras?.owned, !owned.isEmpty else { return close(error) }
    guard let reason = stopError ?? error else {
      // What code leaves when it succeeds goes on, as a part of what has started this task.
      passOn(owned)
      return close(nil)
    }
    stage = .completing
    hold()
    // As a job: tasks can have started each other in a row of any length.
    owned.whenEmpty { [self] in loop.enqueue { self.close(error) } }
    owned.cancelAll(reason.asReason)
  }

  private func passOn(_ owned: OwnedTasks) {
    extras?.owned = nil
    if let owner { owner.takeAll(from: owned) } else { owned.abandon() }
  }

  private func close(_ error: FlowError?) {
    stage = .over
    extras?.owned = nil
    dropCode()
    if isHeld { loop.continuations[id] = nil }
    if let error = stopError ?? error { end(error: error) } else { succeed() }
  }

  // MARK: While it goes on

  /// Has the loop hold it until its end, as its code goes on: nobody else may.
  package final func hold() {
    if isHeld { return }
    isHeld = true
    loop.continuations[id] = self
  }

  final override func abandonContinuation() {
    awaited?.unobserve(self)
    awaited = nil
    source = nil
    extras?.followed = nil
    extras?.owned?.abandon()
    extras?.owned = nil
    stage = .over
    giveUpObservers()
    dropCode()
  }

  /// Makes a task belong to this one, whose code has started it.
  package final func adopt(_ other: AnyFlowTask) {
    guard stage != .over, !other.isConcluded else { return }
    let extras = makeExtras()
    let owned = extras.owned ?? OwnedTasks(within: owner)
    extras.owned = owned
    owned.add(other)
  }

  package final override func stopStalled() -> Bool {
    let error = FlowError.stalled(op: title)
    switch stage {
    case .waiting, .completing, .over: return false
    case .running: return stopStalledCode(error)
    case .following:
      awaited?.unobserve(self)
      awaited = nil
      failed(error)
      return true
    }
  }

  // MARK: Cancellation

  package final override func requestStop(_ error: FlowError) -> AnyFlowTask? {
    guard stopError == nil else { return nil }
    makeExtras().stopReason = error
    switch stage {
    case .waiting, .following:
      if let awaited { return stopAwaited(awaited, error) }
      // It has its turn soon, unless nothing comes any more.
      if source == nil || stage == .following, extras?.followed == nil { complete(error) }
    case .running: stopCode(error)
    case .completing, .over: break
    }
    return nil
  }

  /// Answers what it waits for when nobody else does, so that it is to be stopped and awaited;
  /// otherwise ends at once.
  private func stopAwaited(_ other: AnyFlowTask, _ error: FlowError) -> AnyFlowTask? {
    if !other.isObserved(besides: self) { return other }
    other.unobserve(self)
    awaited = nil
    complete(error)
    return nil
  }
}
