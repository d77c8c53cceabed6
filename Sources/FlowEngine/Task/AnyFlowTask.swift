/// Something that is running or has settled, with one outcome: a run, a program, a continuation.
///
/// What it gives when it succeeds is the business of `FlowTask`. Confined to its loop's thread. Open only
/// for this package: nobody else can initialize a subclass.
open class AnyFlowTask {
  /// How a task stands.
  public enum State: UInt8, Sendable {
    /// It goes on.
    case pending
    /// It has a result.
    case succeeded
    /// It has an error.
    case failed
    /// It has an error of kind `cancelled`.
    case cancelled

    /// The name that scripts use.
    public var name: ByteString {
      switch self {
      case .pending: "pending"
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      }
    }
  }

  /// The loop that it belongs to, whose thread alone may use it.
  public final let loop: EventLoop
  /// Unique on its loop, in the order of making; begins with 1.
  public final let id: UInt64

  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call. Not public, because the attribute is lost on the way to another module.
  // There can be very many tasks, so what takes a byte stands together, and what few have elsewhere.

  /// Most tasks have one observer at most; see `TaskExtras` for more.
  @exclusivity(unchecked) private final var firstObserver: (any TaskObserver)?
  /// What ends at the latest when this task has to.
  @exclusivity(unchecked) package final var owner: OwnedTasks?
  @exclusivity(unchecked) final var extras: TaskExtras?
  @exclusivity(unchecked) private final var storedOrigin: UInt64 = 0
  /// What it gives when that is a value of the engine's, once it is known: perhaps before it has
  /// succeeded. Here, since a generic property makes the end of each task look up its type.
  @exclusivity(unchecked) final var storedValue: Value?
  @exclusivity(unchecked) private final var storedState: State = .pending
  @exclusivity(unchecked) private final var hasConcluded = false
  @exclusivity(unchecked) private final var wasObserved = false
  /// Whether what it gives is a value of the engine's.
  package final let isOfValues: Bool
  /// Where the task was made, as the loop's `describeOrigin` understands it; 0 when nobody said.
  package final var origin: UInt64 {
    get { storedOrigin }
    set { storedOrigin = newValue }
  }

  init(on loop: EventLoop, isOfValues: Bool = false) {
    loop.checkThread()
    self.isOfValues = isOfValues
    self.loop = loop
    loop.lastTaskID += 1
    id = loop.lastTaskID
  }

  deinit { giveUpObservers() }

  /// How it stands.
  public final var state: State { storedState }
  /// Why it failed or was cancelled.
  public final var error: FlowError? { extras?.error }
  /// Whether all is done, so that what waits for it may go on: later than `state` by the
  /// `didFinish` callbacks of a run.
  public final var isConcluded: Bool { hasConcluded }
  /// Whether somebody asked for the outcome, so that a failure isn't lost.
  public final var isObserved: Bool { wasObserved }

  /// Room for what the program that shows the task to somebody keeps with it.
  public final var attachment: AnyObject? {
    get { extras?.attachment }
    set { makeExtras().attachment = newValue }
  }

  final func makeExtras() -> TaskExtras {
    if let extras { return extras }
    let made = TaskExtras()
    extras = made
    return made
  }

  /// What a report calls it.
  public var title: ByteString { title(of: "task") }

  /// The same for a kind of tasks.
  final func title(of kind: ByteString) -> ByteString {
    guard origin != 0, let place = loop.describeOrigin?(origin) else { return kind }
    return "\(kind) at \(place)"
  }

  // MARK: Observers

  /// Tells `observer` once all is done: now when that is so already, else in the order of these calls.
  // Inlined, as the optimizer makes it generic otherwise, and looks up the types of generic observers.
  @inline(__always)
  public final func observe(_ observer: any TaskObserver) {
    loop.checkThread()
    if hasConcluded {
      observer.taskEnded(self)
    } else if firstObserver == nil {
      firstObserver = observer
    } else {
      makeExtras().furtherObservers.append(observer)
    }
  }

  /// Takes an observer back, which isn't told any more. Does nothing when it isn't one.
  public final func unobserve(_ observer: any TaskObserver) {
    loop.checkThread()
    if firstObserver === observer {
      firstObserver = hasFurtherObservers ? extras?.furtherObservers.removeFirst() : nil
    } else if hasFurtherObservers {
      extras?.furtherObservers.removeAll { $0 === observer }
    }
  }

  private var hasFurtherObservers: Bool { extras?.furtherObservers.isEmpty == false }

  /// Whether anybody but `observer` waits for the end.
  package final func isObserved(besides observer: (any TaskObserver)? = nil) -> Bool {
    guard let firstObserver else { return false }
    return firstObserver !== observer || hasFurtherObservers
  }

  /// Says that somebody knows the outcome, or will.
  public final func markObserved() {
    loop.checkThread()
    if wasObserved { return }
    wasObserved = true
    if storedState == .failed { loop.failures.remove(id) }
  }

  // MARK: Waits between tasks

  /// How many wait for the end.
  final var observerCount: Int {
    firstObserver == nil ? 0 : 1 + (extras?.furtherObservers.count ?? 0)
  }

  /// Adds the tasks that can't go on before this one has ended.
  final func addWaiting(to tasks: inout ContiguousArray<AnyFlowTask>) {
    guard let firstObserver else { return }
    if let task = firstObserver.waitingTask { tasks.append(task) }
    for observer in extras?.furtherObservers ?? [] {
      if let task = observer.waitingTask { tasks.append(task) }
    }
  }

  /// How many tasks have to end before this one goes on.
  var awaitedCount: Int { 0 }

  /// Adds these tasks: those that have this one for the `waitingTask` of an observer.
  func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) {}

  /// Whether the end of one of them is enough.
  var awaitsAny: Bool { false }

  /// Says that code of this task waits for the end of another one.
  package func beginAwaiting(_ task: AnyFlowTask) {}

  /// Says that it doesn't any more.
  package func endAwaiting(_ task: AnyFlowTask) {}

  /// The error of waiting on `loop` for a task that is another loop's, which may stand still; nil when
  /// the task is the loop's own, or has ended.
  package final func foreignError(on loop: EventLoop) -> FlowError? {
    guard self.loop !== loop, !hasConcluded else { return nil }
    return .usage("attempt to wait for a task of another event loop: \(title)")
  }

  // MARK: Cancellation

  /// Asks it, and all that it started, to stop; it ends as cancelled once that has ended. Of a run that
  /// has settled it limits the time of the callbacks that are called after its end.
  ///
  /// - Parameter reason: Why, for its log line and error.
  /// - Returns: Whether it was still pending.
  @discardableResult
  public final func cancel(reason: ByteString? = nil) -> Bool {
    loop.checkThread()
    let isPending = storedState == .pending
    if isPending || !hasConcluded { stop(.cancelled(reason: reason)) }
    return isPending
  }

  /// Asks what goes on in it to stop because of `error`; the first error counts.
  package final func stop(_ error: FlowError) {
    // A chain of any length is asked without recursion.
    var next: AnyFlowTask? = self
    while let task = next { next = task.requestStop(error) }
  }

  /// When what has started it times out; `.max` for never.
  package final var ownerDeadline: Int64 { owner?.deadline ?? .max }

  /// Called at `ownerDeadline` for code of the task that was busy; answers what the code ends with.
  package final func expire() -> FlowError { owner?.expire() ?? .cancelled() }

  /// Reports that a `__close` of its code was cut.
  ///
  /// - Parameters:
  ///   - waits: What it waited in, and where; nil when it was busy.
  ///   - grace: The seconds that it had; nil for the loop's `cleanupGrace`.
  package final func reportCutClose(waits: ByteString?, grace: Double?) {
    let error = FlowError.cut(
      "a __close of '\(loop.secrets.redacted(title))'", at: nil, waits: waits,
      isBusy: waits == nil, grace: grace ?? loop.cleanupGrace)
    if let run = self as? Run { run.addLateError(error) } else { loop.reportLate(error, of: self) }
  }

  /// Asks what goes on in this task itself to stop; answers the task that is to be asked next.
  package func requestStop(_ error: FlowError) -> AnyFlowTask? {
    // Nothing comes any more that could settle it.
    end(error: error)
    return nil
  }

  /// Stops what waits in it and nothing can end any more; answers whether anything did.
  @discardableResult
  package func stopStalled() -> Bool { false }

  /// Lets everything go that a continuation holds, for a loop that is shut down.
  func abandonContinuation() {}

  // MARK: The end

  /// Sets the outcome, once; observers wait for `conclude`.
  func settle(_ error: FlowError?) {
    guard storedState == .pending else { return }
    if let error {
      storedValue = nil
      makeExtras().error = error
      storedState = error.kind == .cancelled ? .cancelled : .failed
      if storedState == .failed, !wasObserved { loop.report(error, of: self) }
    } else {
      storedState = .succeeded
    }
  }

  /// Fails or, for an error of kind `cancelled`, is cancelled, unless it has settled.
  package final func end(error: FlowError) {
    guard storedState == .pending else { return }
    settle(error)
    conclude()
  }

  /// Lets go of the observers, which may outlive this task and won't be told of its end.
  final func giveUpObservers() {
    if firstObserver == nil { return }
    // The last reference to a task of a loop that is shut down may go anywhere.
    guard loop.identity.isCurrentThread else { return }
    handOverObservers()
    loop.releaseAll()
  }

  // A function of its own, so that nothing here holds them any more when the loop lets go of them.
  private func handOverObservers() {
    guard let first = firstObserver.take() else { return }
    first.taskIsGone()
    loop.released.append(first)
    guard hasFurtherObservers else { return }
    for observer in takeFurtherObservers() {
      observer.taskIsGone()
      loop.released.append(observer)
    }
  }

  private func takeFurtherObservers() -> ContiguousArray<any TaskObserver> {
    guard let extras else { return [] }
    let further = extras.furtherObservers
    extras.furtherObservers = []
    return further
  }

  func conclude() {
    guard !hasConcluded else { return }
    hasConcluded = true
    if let first = firstObserver.take() {
      if hasFurtherObservers {
        let further = takeFurtherObservers()
        first.taskEnded(self)
        for observer in further { observer.taskEnded(self) }
      } else {
        first.taskEnded(self)
      }
    }
    if let owner {
      self.owner = nil
      owner.remove(self)
    }
  }
}

/// Who is told that a task has ended.
public protocol TaskObserver: LoopJob {
  /// The task that can't go on before the observed one has ended, and that is told so by `beginAwaiting`;
  /// nil when it is no task, or doesn't wait for good.
  var waitingTask: AnyFlowTask? { get }

  /// Called once, on the loop's thread, when all of `task` is done. Has the loop run the observer as a
  /// job unless this is implemented.
  func taskEnded(_ task: AnyFlowTask)

  /// Called when the task was released before its end, so that this never comes.
  func taskIsGone()
}

extension TaskObserver {
  public var waitingTask: AnyFlowTask? { nil }

  public func taskEnded(_ task: AnyFlowTask) { task.loop.enqueue(self) }

  public func taskIsGone() {}
}

extension EventLoop {
  /// Runs that aren't concluded, in the order in which they were started.
  public var pendingRuns: [Run] { pending.values.sorted { $0.id < $1.id } }

  /// All that goes on by itself and isn't concluded, in the order of its start: runs, and tasks whose
  /// code waits.
  package var pendingTasks: [AnyFlowTask] {
    (Array(pending.values) + Array(continuations.values)).sorted { $0.id < $1.id }
  }

  /// The one of them that has this id, if there is one.
  package func pendingTask(_ id: UInt64) -> AnyFlowTask? { pending[id] ?? continuations[id] }

  /// How many of them there are.
  package var pendingTaskCount: Int { pending.count + continuations.count }

  /// The id of the task that was made last.
  package var newestTask: UInt64 { lastTaskID }

  /// Failures that nobody observed, errors of `didFinish` callbacks among them, in their order. Of a
  /// loop within another one those of both.
  public var unobservedFailures: [UnobservedFailure] { failures.inOrder }

  /// Takes the failures that nobody observed, in their order: each is given once.
  public func takeUnobservedFailures() -> [UnobservedFailure] {
    checkThread()
    return failures.takeAll()
  }

  /// Takes over a failure of another loop.
  package func reportFailure(_ error: FlowError, name: ByteString) {
    failures.add(error, name: name)
  }

  func report(_ error: FlowError, of task: AnyFlowTask) { failures.add(error, of: task) }

  /// Reports an error that came when the outcome was already known: observing doesn't lift it.
  func reportLate(_ error: FlowError, of task: AnyFlowTask) {
    failures.add(error, name: task.title, id: task.id)
  }

  /// Lets go of what is in `released`, and of what comes to it by that, without recursion.
  func releaseAll() {
    if isReleasing { return }
    isReleasing = true
    while !released.isEmpty { _ = released.popLast() }
    isReleasing = false
  }
}
