/// The outcomes for which a continuation runs, and the effect on its task.
@_spi(Scripting) public enum ContinuationKind: UInt8 {
  /// Runs in any case, or for one outcome; the task gets the outcome of the code.
  case next, nextOnSuccess, nextOnError
  /// Runs in the same cases, but the task ends as its source, unless the continuation fails.
  case finally, finallyOnSuccess

  func runs(after state: AnyFlowTask.State) -> Bool {
    switch self {
    case .next, .finally: true
    case .nextOnSuccess, .finallyOnSuccess: state == .succeeded
    case .nextOnError: state == .failed
    }
  }

  var keepsOutcome: Bool { self == .finally || self == .finallyOnSuccess }

  /// Whether the code gets the result of the source.
  package var isForResult: Bool { self == .nextOnSuccess || self == .finallyOnSuccess }
}

/// The stage of a continuation.
private enum ContinuationStage: UInt8 {
  /// Waits for the source, or for its turn.
  case waiting
  /// Its code is running.
  case running
  /// Waits for the task that its code has returned, or for its turn.
  case following
  /// Waits for the end of tasks that its code has started.
  case completing
  case over
}

/// A task that ends with the outcome of its code: with a value, or as a task that the code returns,
/// after that has ended.
///
/// Subclasses provide the code. The awaited task holds this one, not the reverse, so a chain is
/// released together with its first task. One object is both the task and the runner of its code,
/// because there can be very many. On the loop's thread only.
@_spi(Scripting) open class ContinuationTask<Success>: FlowTask<Success>, TaskObserver {
  // Unchecked exclusivity: see HotPath.swift. Properties that few continuations need are in
  // `details`, too.

  /// The awaited task: the source or, while code runs, the task that the code waits for. Unowned:
  /// the awaited task holds this one and notifies it when it is released, or the code's wait holds
  /// the awaited task.
  @exclusivity(unchecked) private final unowned(unsafe) var awaited: AnyFlowTask?
  /// The source, from its end until this task has its turn; when this keeps the source's outcome,
  /// until the code has been run.
  @exclusivity(unchecked) private final var source: AnyFlowTask?
  /// nil without a source.
  package final let continuationKind: ContinuationKind?
  private final let thread: ContinuationThread
  @exclusivity(unchecked) private final var stage: ContinuationStage = .waiting
  /// Whether the loop holds it, because its code, or a task that the code has returned, is running.
  @exclusivity(unchecked) private final var isHeld = false

  /// Makes a pending task; one of the `begin` functions starts it.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to.
  ///   - kind: The outcomes of the source for which it runs; nil without a source.
  ///   - thread: When and where it runs.
  public init(
    on loop: FlowEventLoop, _ kind: ContinuationKind? = nil,
    _ thread: ContinuationThread = .immediate
  ) {
    continuationKind = kind
    self.thread = thread
    super.init(on: loop)
  }

  /// The error that the task ends with whatever its code does; set when it is stopped.
  package final var stopError: FlowError? { details?.stopReason }

  // MARK: For subclasses

  /// Runs the code; after the code has ended, one of `returned()`, `returned(after:)`, `follow(_:)`
  /// and `failed(_:)` has to be called once.
  open func runCode(after source: AnyFlowTask?) {}

  /// Stops running code; it has to end.
  open func stopCode(_ error: FlowError) {}

  /// Stops code that waits for something that never comes; a second call ends it. Returns whether
  /// there was code to stop.
  open func stopStalledCode(_ error: FlowError) -> Bool { false }

  /// Releases the code, which won't run or won't be observed any more.
  open func dropCode() {}

  /// Keeps the result of a succeeded task as its own.
  open func keepResult(of task: AnyFlowTask) throws {}

  /// The error of a task, to be passed on.
  open func error(of task: AnyFlowTask) -> FlowError? { task.error }

  /// Succeeds with the kept result.
  open func succeed() {}

  // MARK: Course

  /// Waits for `source`, which is marked as observed.
  package final func begin(after source: AnyFlowTask) {
    source.markObserved()
    if let error = source.foreignError(on: loop) { return failed(error) }
    awaited = source
    source.observe(self)
  }

  /// Stops its code, and everything that the code starts, after a time from now: before `begin`, and once it has its owner.
  package final func limit(to time: Duration) {
    let (details, limit) = (makeDetails(), TimeLimit(time, on: loop, within: owner))
    details.limit = limit
    details.owned = limit.tasks
    limit.begin(stopping: self)
  }

  /// Runs the code when it holds limits, which it gives back at its end; once it has its owner.
  package final func begin(holding hold: LimitHold) {
    let details = makeDetails()
    details.hold = hold
    details.owned = hold.tasks
    if hold.take({ [self] in loop.enqueue { self.beginHolding() } }) {
      begin()
    } else {
      self.hold()
    }
  }

  private func beginHolding() {
    if stage == .waiting { begin() }
  }

  /// The tasks that its code starts, and those around it.
  package final var tasksAround: OwnedTasks? { details?.owned ?? owner }

  package final override var ownerDeadline: Int64 {
    min(super.ownerDeadline, details?.limit?.taskDeadline ?? .max)
  }

  package final override func expire() -> FlowError {
    details?.limit?.expire() ?? super.expire()
  }

  /// Runs the code at once.
  package final func begin() {
    stage = .running
    runCode(after: nil)
  }

  public final var waitingTask: AnyFlowTask? { self }

  /// Its code is over while it follows a task, so nothing of it takes that task's lines.
  public final var relay: AnyFlowTask? { stage == .following ? nil : self }

  public final func taskEnded(_ ended: AnyFlowTask) {
    awaited = nil
    // Safe: the task holds its loop, which holds the registry.
    unretained(loop.registry) { taskEnded(ended, $0) }
  }

  @inline(__always)
  private final func taskEnded(_ ended: AnyFlowTask, _ registry: TaskRegistry) {
    if stage == .following {
      makeDetails().followed = ended
      registry.dispatch(self, .automatic)
    } else if registry.enterContinuation(thread) {
      // As `dispatch` does, but the caller retains the task meanwhile.
      proceed(after: ended)
      registry.leaveContinuation()
    } else {
      source = ended
      registry.dispatch(self, thread)
    }
  }

  public final func taskIsGone() { awaited = nil }

  /// Continues after the end of the awaited task.
  public final func run() {
    if let followed = details?.followed.take() {
      finish(following: followed)
    } else if stage == .waiting, let source = source.take() {
      proceed(after: source)
    }
  }

  /// Runs the code if it is for this outcome.
  private func proceed(after ended: AnyFlowTask) {
    stage = .running
    guard let kind = continuationKind, stopError == nil, kind.runs(after: ended.state) else {
      return pass(ended)
    }
    if kind.keepsOutcome { source = ended }
    runCode(after: ended)
  }

  /// The code has returned, and its result has been kept.
  package final func returned() {
    if continuationKind?.keepsOutcome == true, let source { return pass(source) }
    complete(nil)
  }

  /// The code has returned, and the outcome of the source stays.
  package final func returned(after source: AnyFlowTask) { pass(source) }

  /// The code has raised an error.
  package final func failed(_ error: FlowError) { complete(error) }

  /// The code has returned a task: this one ends after that task has. It gets that task's outcome,
  /// unless it keeps the outcome of the source.
  package final func follow(_ next: AnyFlowTask) {
    next.markObserved()
    // Checked first: it needs no search, because an ended task waits for nothing.
    if next.isConcluded { return finish(following: next) }
    if let error = next.foreignError(on: loop) { return failed(error) }
    if WaitCycle.isClosed(by: self, awaiting: next) { return failed(.waitsForItself(self)) }
    stage = .following
    // A chain of tasks that follow each other stays flat: a stop of one step stops the next one
    // anyway.
    if let owned = details?.owned, owned.isOnly(next) { passOn(owned) }
    hold()
    awaited = next
    next.observe(waiting: self)
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

  /// Ends with the outcome of another task.
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

  // MARK: End

  /// Settles. A task that doesn't succeed first stops the tasks that its code has started, and
  /// waits for them.
  private func complete(_ error: FlowError?) {
    source = nil
    // Its time may be over before its timer has run: the time of work that the code awaited has ended with it, while that
    // was busy.
    if let details, details.stopReason == nil { details.stopReason = details.limit?.taskStopError }
    guard let owned = details?.owned, !owned.isEmpty else { return close(error) }
    guard let reason = stopError ?? error else {
      // Tasks that successful code has left continue, as tasks of this task's starter.
      passOn(owned)
      return close(nil)
    }
    stage = .completing
    hold()
    // A job, because tasks can have started each other in a row of any length.
    owned.whenEmpty { [self] in loop.enqueue { self.close(error) } }
    owned.cancelAll(reason.asReason)
  }

  private func passOn(_ owned: OwnedTasks) {
    details?.owned = nil
    owned.releaseOwn()
    if let owner { owner.takeAll(from: owned) } else { owned.abandon() }
  }

  private func close(_ error: FlowError?) {
    stage = .over
    details?.limit?.endStopping()
    details?.hold?.drop()
    details?.owned = nil
    dropCode()
    if isHeld { loop.registry.continuations[id] = nil }
    if let stopError {
      end(error: stopError.located(as: error))
    } else if let error {
      end(error: error)
    } else {
      succeed()
    }
  }

  // MARK: While code runs

  /// Has the loop hold it until its end while its code runs, because nothing else may hold it.
  package final func hold() {
    if isHeld { return }
    isHeld = true
    loop.registry.continuations[id] = self
  }

  final override func abandonContinuation() {
    awaited?.unobserve(self)
    awaited = nil
    source = nil
    details?.followed = nil
    details?.limit?.endStopping()
    details?.hold?.drop()
    details?.owned?.abandon()
    details?.owned = nil
    stage = .over
    giveUpObservers()
    dropCode()
  }

  /// Makes this task own another one, which its code has started.
  package final func adopt(_ other: AnyFlowTask) {
    guard stage != .over, !other.isConcluded else { return }
    let details = makeDetails()
    let owned = details.owned ?? OwnedTasks(within: owner)
    details.owned = owned
    owned.add(other)
  }

  package final override func stopStalled() -> Bool {
    let error = FlowError.stalled(op: title)
    switch stage {
    case .waiting:
      guard let hold = details?.hold, hold.isWaiting else { return false }
      complete(hold.stalled(hold.title()))
      return true
    case .completing, .over: return false
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
    makeDetails().stopReason = error
    switch stage {
    case .waiting, .following:
      if let awaited { return stopAwaited(awaited, error) }
      // It has its turn soon, unless nothing else can come.
      if source == nil || stage == .following, details?.followed == nil { complete(error) }
    case .running: stopCode(error)
    case .completing, .over: break
    }
    return nil
  }

  /// Returns the awaited task if nothing else waits for that, so that it is stopped and its end
  /// awaited; otherwise ends at once and returns nil.
  private func stopAwaited(_ other: AnyFlowTask, _ error: FlowError) -> AnyFlowTask? {
    if !other.isObserved(besides: self) { return other }
    other.unobserve(self)
    awaited = nil
    complete(error)
    return nil
  }
}

/// When and where a continuation runs after its task has ended.
///
/// ```swift
/// fetchImage().nextOnSuccess(.main) { image in save(image) }
/// ```
public enum ContinuationThread: UInt8, Sendable {
  /// At once, unless 20 nested continuations are running: then as a job of the loop, so that no
  /// chain grows the stack.
  case automatic
  /// As a job of the loop, after all jobs that are ready.
  case main
  /// At once, unless 20 nested continuations are running: then after the outermost of them has
  /// returned, before anything else.
  case immediate
}

extension TaskRegistry {
  /// How many nested continuations may run.
  private static var depthLimit: UInt8 { 20 }

  /// Runs a continuation whose task has ended.
  // Inlined for the same reason as `AnyFlowTask.observe`.
  @inline(__always)
  func dispatch(_ job: any LoopJob, _ thread: ContinuationThread) {
    if enterContinuation(thread) {
      job.run()
      leaveContinuation()
    } else if thread == .immediate, !isShutDown, !isStandingStill {
      immediates.append(job)
    } else {
      loop.enqueue(job)
    }
  }

  /// Whether a continuation may run at once. When it has, call `leaveContinuation`.
  @inline(__always)
  func enterContinuation(_ thread: ContinuationThread) -> Bool {
    if thread == .main || isShutDown || isStandingStill { return false }
    guard continuationDepth < Self.depthLimit else { return false }
    continuationDepth += 1
    return true
  }

  @inline(__always)
  func leaveContinuation() {
    if continuationDepth == 1 {
      while let next = immediates.popFirst() { next.run() }
    }
    continuationDepth -= 1
    // The continuation has taken time.
    stamp = 0
  }
}
