/// Anything running or settled, with one outcome: a run, a program, a continuation.
///
/// `FlowTask` holds the result. Confined to its loop's thread. Open only for this package: no other
/// module can initialize a subclass.
///
/// ```swift
/// let tasks: [AnyFlowTask] = [run, fetchImage()]
/// for task in tasks where task.state == .pending { task.cancel(reason: "too slow") }
/// ```
open class AnyFlowTask {
  /// The state of a task.
  public enum State: UInt8, Sendable {
    /// It is running.
    case pending
    /// It has a result.
    case succeeded
    /// It has an error.
    case failed
    /// It has an error of kind `cancelled`.
    case cancelled

    /// The name that scripts use.
    package var name: ByteString {
      switch self {
      case .pending: "pending"
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      }
    }
  }

  /// The loop that it belongs to, whose thread alone may use it.
  public final let loop: FlowEventLoop
  /// Unique on its loop, in the order of making; starts at 1.
  package final let id: UInt64

  // Unchecked exclusivity: see HotPath.swift. There can be very many tasks: properties of one byte are
  // together, and properties that few tasks need are elsewhere.

  /// Most tasks have at most one observer; see `TaskDetails` for more.
  @exclusivity(unchecked) private final var firstObserver: (any TaskObserver)?
  /// The group of tasks that it belongs to: when their owner ends, this task ends at the latest.
  @exclusivity(unchecked) package final var owner: OwnedTasks?
  @exclusivity(unchecked) final var details: TaskDetails?
  @exclusivity(unchecked) private final var storedOrigin: UInt64 = 0
  /// Its result when that is a value of the engine, as soon as it is known: perhaps before the task
  /// has succeeded. It is here because a generic property makes the end of each task look up its
  /// type.
  @exclusivity(unchecked) final var storedValue: FlowValue?
  @exclusivity(unchecked) private final var storedState: State = .pending
  @exclusivity(unchecked) private final var hasConcluded = false
  @exclusivity(unchecked) private final var wasObserved = false
  /// The bytes that count for it in the account of its loop.
  @exclusivity(unchecked) private final var counted: UInt32 = 0
  /// Whether its result is a value of the engine.
  package final let isOfValues: Bool
  /// The place where the task was made, for the loop's `describeOrigin`; 0 when it isn't known.
  package final var origin: UInt64 {
    get { storedOrigin }
    set { storedOrigin = newValue }
  }

  init(on loop: FlowEventLoop, isOfValues: Bool = false) {
    loop.checkThread()
    self.isOfValues = isOfValues
    self.loop = loop
    id = loop.registry.makeTaskID()
  }

  deinit {
    giveUpObservers()
    if counted != 0 { loop.registry.memory?.release(Int(counted)) }
  }

  /// Its present state.
  public final var state: State { storedState }
  /// Why it failed or was cancelled.
  public final var error: FlowError? { details?.error }
  /// Whether everything of the task is done, so that waiting code may continue. For a run this is
  /// after `state` is set: its `didFinish` callbacks are called in between.
  package final var isConcluded: Bool { hasConcluded }
  /// Whether its outcome was read or awaited, so that a failure isn't lost.
  package final var isObserved: Bool { wasObserved }

  /// An object that the program keeps with the task to present it.
  package final var attachment: AnyObject? {
    get { details?.attachment }
    set { makeDetails().attachment = newValue }
  }

  /// The bytes of a task with what belongs to most tasks: the continuation or timer that ends it, its details.
  package static var usualSize: Int { 384 }

  /// Has so many bytes count for the task until its release, or until the next number, if its loop has an
  /// account.
  @inline(__always)
  package final func count(_ bytes: Int) {
    if let memory = loop.registry.memory { count(bytes, in: memory) }
  }

  @inline(never)
  private final func count(_ bytes: Int, in memory: MemoryAccount) {
    let bytes = UInt32(clamping: bytes)
    memory.change(bySmall: Int(bytes) - Int(counted))
    counted = bytes
  }

  final func makeDetails() -> TaskDetails {
    if let details { return details }
    let made = TaskDetails()
    details = made
    return made
  }

  /// Its name in reports.
  package var title: ByteString { title(of: "task") }

  /// Its name in reports, for a kind of tasks.
  final func title(of kind: ByteString) -> ByteString {
    guard origin != 0, let place = loop.registry.describeOrigin?(origin) else { return kind }
    return "\(kind) at \(place)"
  }

  // MARK: Observers

  /// Notifies `observer` when everything of the task is done: now if it is already, else in the
  /// order of these calls. Inlined, because the optimizer otherwise makes it generic, and looks up
  /// the types of generic observers.
  @inline(__always)
  package final func observe(_ observer: any TaskObserver) {
    loop.checkThread()
    if hasConcluded {
      observer.taskEnded(self)
    } else if firstObserver == nil {
      firstObserver = observer
    } else {
      makeDetails().furtherObservers.append(observer)
    }
  }

  /// Removes an observer, which isn't notified any more. Does nothing when it isn't registered.
  package final func unobserve(_ observer: any TaskObserver) {
    loop.checkThread()
    if firstObserver === observer {
      firstObserver = hasFurtherObservers ? details?.furtherObservers.removeFirst() : nil
    } else if hasFurtherObservers {
      details?.furtherObservers.removeAll { $0 === observer }
    }
  }

  private var hasFurtherObservers: Bool { details?.furtherObservers.isEmpty == false }

  /// Whether anything other than `observer` waits for the end.
  package final func isObserved(besides observer: (any TaskObserver)? = nil) -> Bool {
    guard let firstObserver else { return false }
    return firstObserver !== observer || hasFurtherObservers
  }

  /// Marks the outcome as observed, now or later.
  package final func markObserved() {
    loop.checkThread()
    if wasObserved { return }
    wasObserved = true
    if storedState == .failed { loop.registry.failures.remove(id) }
  }

  // MARK: Waits between tasks

  /// The number of observers that wait for the end.
  final var observerCount: Int {
    firstObserver == nil ? 0 : 1 + (details?.furtherObservers.count ?? 0)
  }

  /// Adds the tasks that can't continue before this one has ended.
  final func addWaiting(to tasks: inout ContiguousArray<AnyFlowTask>) {
    guard let firstObserver else { return }
    if let task = firstObserver.waitingTask { tasks.append(task) }
    for observer in details?.furtherObservers ?? [] {
      if let task = observer.waitingTask { tasks.append(task) }
    }
  }

  /// How many tasks have to end before this one continues.
  var awaitedCount: Int { 0 }

  /// Adds the tasks that this one waits for: those whose observer has this task as its
  /// `waitingTask`.
  func addAwaited(to tasks: inout ContiguousArray<AnyFlowTask>) {}

  /// Whether the end of one of them is enough.
  var awaitsAny: Bool { false }

  /// Records that code of this task waits for the end of another one.
  package func beginAwaiting(_ task: AnyFlowTask) {}

  /// Records that the code no longer waits.
  package func endAwaiting(_ task: AnyFlowTask) {}

  /// As `observe`, for code that can't continue before the end, and so takes no lines of a program
  /// meanwhile.
  package final func observe(waiting observer: any TaskObserver) {
    observe(observer)
    loop.continueAwaitedPrograms()
  }

  /// Whether code waits for the end, perhaps by way of continuations and joins.
  package final var isAwaited: Bool {
    var open: ContiguousArray<AnyFlowTask> = [self]
    var seen: Set<ObjectIdentifier> = []
    while let task = open.popLast() {
      guard let first = task.firstObserver else { continue }
      for observer in [first] + (task.details?.furtherObservers ?? []) {
        guard let relay = observer.relay else { return true }
        if seen.insert(ObjectIdentifier(relay)).inserted { open.append(relay) }
      }
    }
    return false
  }

  /// The error of waiting on `loop` for a task of another loop, which may be paused; nil when the
  /// task belongs to `loop`, or has ended.
  package final func foreignError(on loop: FlowEventLoop) -> FlowError? {
    guard self.loop !== loop, !hasConcluded else { return nil }
    return .usage("attempt to wait for a task of another event loop: \(title)")
  }

  // MARK: Cancellation

  /// Stops it, and all tasks that it started; it ends as cancelled after they have ended. For a run
  /// that has settled, it limits the time of the callbacks after its end.
  ///
  /// ```swift
  /// run.cancel(reason: "the user closed the window")
  /// ```
  ///
  /// - Parameter reason: The reason, for its log line and error.
  /// - Returns: Whether it was still pending.
  @discardableResult
  public final func cancel(reason: (any FlowText)? = nil) -> Bool {
    loop.checkThread()
    let isPending = storedState == .pending
    if isPending || !hasConcluded { stop(.cancelled(reason: reason)) }
    return isPending
  }

  /// Stops the work of the task because of `error`; the first error counts.
  package final func stop(_ error: FlowError) {
    // A loop stops a chain of any length, without recursion.
    var next: AnyFlowTask? = self
    while let task = next { next = task.requestStop(error) }
  }

  /// When its starter times out; `.max` for never.
  package var ownerDeadline: Int64 { owner?.deadline ?? .max }

  /// Called at `ownerDeadline` for code of the task that was busy; returns the error that the code
  /// ends with.
  package func expire() -> FlowError { owner?.expire() ?? .cancelled() }

  /// Reports an error that occurred after the outcome was known.
  package func reportLate(_ error: FlowError) { loop.registry.reportLate(error, of: self) }

  /// Stops the work of this task itself; returns the task to stop next.
  package func requestStop(_ error: FlowError) -> AnyFlowTask? {
    // Nothing else can settle it.
    end(error: error)
    return nil
  }

  /// Whether it ends with the op or task that has started it, also when that succeeds.
  package var endsWithOwner: Bool { false }

  /// Stops the waits of the task as stalled; returns whether anything did.
  @discardableResult
  package func stopStalled() -> Bool { false }

  /// Releases everything that a continuation holds, for a loop that is shut down.
  func abandonContinuation() {}

  // MARK: End

  /// Sets the outcome, once; observers wait for `conclude`.
  func settle(_ error: FlowError?) {
    guard storedState == .pending else { return }
    if let error {
      storedValue = nil
      makeDetails().error = error
      storedState = error.kind == .cancelled ? .cancelled : .failed
      if storedState == .failed, !wasObserved { loop.registry.failures.add(error, of: self) }
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

  /// Releases the observers, which may outlive this task and won't be notified of its end.
  final func giveUpObservers() {
    if firstObserver == nil { return }
    // The last reference to a task of a loop that is shut down may be released on any thread.
    guard loop.identity.isCurrentThread else { return }
    let registry = loop.registry
    handOverObservers(to: registry)
    registry.releaseAll()
  }

  // A function of its own, so that nothing here holds the observers any more when the loop releases
  // them.
  private func handOverObservers(to registry: TaskRegistry) {
    guard let first = firstObserver.take() else { return }
    first.taskIsGone()
    registry.released.append(first)
    guard hasFurtherObservers else { return }
    for observer in takeFurtherObservers() {
      observer.taskIsGone()
      registry.released.append(observer)
    }
  }

  private func takeFurtherObservers() -> ContiguousArray<any TaskObserver> {
    guard let details else { return [] }
    let further = details.furtherObservers
    details.furtherObservers = []
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

/// Is notified when a task has ended.
package protocol TaskObserver: LoopJob {
  /// The task that can't continue before the observed one has ended, and that `beginAwaiting` has
  /// notified of the wait; nil when the observer is no task, or can continue without that end.
  var waitingTask: AnyFlowTask? { get }

  /// A task that only passes the end on, such as a continuation: code waits only if something waits for
  /// that task. nil when the observer itself waits.
  var relay: AnyFlowTask? { get }

  /// Called once, on the loop's thread, when everything of `task` is done. By default the loop runs
  /// the observer as a job.
  func taskEnded(_ task: AnyFlowTask)

  /// Called when the task was released before its end, so that `taskEnded` is never called.
  func taskIsGone()
}

extension TaskObserver {
  package var waitingTask: AnyFlowTask? { nil }

  package var relay: AnyFlowTask? { nil }

  package func taskEnded(_ task: AnyFlowTask) { task.loop.enqueue(self) }

  package func taskIsGone() {}
}

extension FlowEventLoop {
  /// Unobserved failures, including errors of `didFinish` callbacks, in order. A loop within
  /// another one shares its list.
  package var unobservedFailures: [UnobservedFailure] { registry.failures.inOrder }

  /// Returns the unobserved failures, in order, and removes them: errors of runs and tasks that nobody asks for, and those
  /// of `didFinish`, undos and cleanups. A loop within another one shares its list. A host that stays takes them now and
  /// then, because the loop keeps them until then.
  public func takeUnobservedFailures() -> [UnobservedFailure] {
    checkThread()
    return registry.failures.takeAll()
  }

  /// Adds a failure of another loop.
  package func reportFailure(_ error: FlowError, name: ByteString) {
    registry.failures.add(error, name: name)
  }
}

extension TaskRegistry {
  /// Reports an error that occurred after the outcome was known: observing the task doesn't remove
  /// it.
  func reportLate(_ error: FlowError, of task: AnyFlowTask) {
    failures.add(error, name: task.title, id: task.id)
  }

  /// Releases the objects in `released`, and those that are added meanwhile, without recursion.
  func releaseAll() {
    if isReleasing { return }
    isReleasing = true
    while !released.isEmpty { _ = released.popLast() }
    isReleasing = false
  }
}

/// Properties that few tasks need. An object of its own, because there can be very many tasks.
class TaskDetails {
  // Unchecked exclusivity: see HotPath.swift.

  /// Why the task failed or was cancelled.
  @exclusivity(unchecked) final var error: FlowError?
  /// The observers after the first, in order.
  @exclusivity(unchecked) final var furtherObservers: ContiguousArray<any TaskObserver> = []
  /// See `AnyFlowTask.attachment`.
  @exclusivity(unchecked) final var attachment: AnyObject?

  // For continuations: see `ContinuationTask`.

  /// The task that the code has returned, after it has ended.
  @exclusivity(unchecked) final var followed: AnyFlowTask?
  /// The error that the task ends with whatever its code does; set when it is stopped.
  @exclusivity(unchecked) final var stopReason: FlowError?
  /// The tasks that the code has started and that haven't ended.
  @exclusivity(unchecked) final var owned: OwnedTasks?
  /// The limit of the code's time, if it has one of its own.
  @exclusivity(unchecked) final var limit: TimeLimit?
  /// The limits that the code holds or waits for.
  @exclusivity(unchecked) final var hold: LimitHold?

  init() {}

  /// Takes over the properties of another object.
  init(replacing other: TaskDetails?) {
    guard let other else { return }
    error = other.error
    furtherObservers = other.furtherObservers
    attachment = other.attachment
    followed = other.followed
    stopReason = other.stopReason
    owned = other.owned
    limit = other.limit
  }
}

/// The result of a task, when it isn't a value of the engine.
final class ResultBox<Success>: TaskDetails {
  let result: Success

  init(_ result: Success, replacing other: TaskDetails?) {
    self.result = result
    super.init(replacing: other)
  }
}
