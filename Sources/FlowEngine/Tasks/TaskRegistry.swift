internal import Synchronization

/// The state that the tasks of an event loop share: ids, failures, and continuations.
///
/// Confined to the loop's thread. The engine is its only subclass.
package class TaskRegistry: LoopClient {
  // Unmanaged: the loop holds it, and its callers hold the loop.
  @exclusivity(unchecked) private final var attached: Unmanaged<FlowEventLoop>?
  /// The loop that the tasks belong to.
  final var loop: FlowEventLoop {
    @inline(__always) get {
      guard let attached else { misuse("an engine was used before its event loop was made") }
      return attached.takeUnretainedValue()
    }
  }
  /// The names of all keys that are used on the loop.
  final let keys: KeyTable
  /// Unobserved failures.
  final let failures: FailureReports
  /// Counts the memory of tasks, and of what is made while they run; nil, the default, to count nothing.
  @exclusivity(unchecked) final var memory: MemoryAccount?

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) final var lastTaskID: UInt64 = 0
  /// The latest clock reading, as long as nothing that takes time has happened since; else 0.
  @exclusivity(unchecked) final var stamp: Int64 = 0
  /// How many nested continuations are running.
  @exclusivity(unchecked) final var continuationDepth: UInt8 = 0
  /// Whether another loop runs instead of this one; see `standStill`.
  @exclusivity(unchecked) final var isStandingStill = false
  /// Whether the loop is shut down. A copy, because each continuation checks it.
  @exclusivity(unchecked) final var isShutDown = false
  /// Continuations that run after the outermost one has returned.
  @exclusivity(unchecked) final var immediates = JobQueue()
  /// Objects to be released, whose end may add more: see `releaseAll`.
  @exclusivity(unchecked) final var released: ContiguousArray<AnyObject> = []
  @exclusivity(unchecked) final var isReleasing = false

  /// Continuations whose code, or the task that it has returned, is running, by their ids.
  final var continuations: [UInt64: AnyFlowTask] = [:]
  /// Describes the place where a task was made, from its `origin`.
  final var describeOrigin: ((UInt64) -> ByteString)?
  final var onLeftProgram: ((ByteString) -> Void)?
  /// The executor and the Swift tasks of the loop: see LoopTask.swift.
  final var swiftTasks: LoopTasks?

  /// The time in nanoseconds of the loop's clock.
  @inline(__always)
  final func now() -> Int64 {
    attached?.lend { $0.now() } ?? 0
  }

  init(keys: KeyTable, failures: FailureReports) {
    self.keys = keys
    self.failures = failures
  }

  package func attach(to loop: FlowEventLoop) { attached = .passUnretained(loop) }

  /// The id of the task that is being made.
  @inline(__always)
  final func makeTaskID() -> UInt64 {
    lastTaskID += 1
    return lastTaskID
  }

  /// Whether code that executes on the loop is calling it.
  package var isExecuting: Bool { false }

  package func cancelAll(reason: ByteString, on loop: FlowEventLoop) {
    swiftTasks?.stopAll(reason: reason)
  }

  /// Releases everything that is pending, for a loop that is shut down.
  package func loopIsShutDown() {
    isShutDown = true
    let held = continuations.values
    continuations = [:]
    for continuation in held { continuation.abandonContinuation() }
    while immediates.popFirst() != nil {}
    swiftTasks?.shutDown()
  }

  package func loopIsReleased() { swiftTasks?.executor.detach() }
}

extension FlowEventLoop {
  /// The state that its tasks share.
  @inline(__always)
  final var registry: TaskRegistry {
    guard let client else { misuse("an event loop was made without an engine") }
    // Safe: every client is a task registry.
    return unsafeDowncast(client, to: TaskRegistry.self)
  }

  /// The names of all keys that are used on this loop.
  package var keys: KeyTable { registry.keys }

  /// The texts that no output of this loop may contain: the secrets of its runs, and those that a
  /// program adds.
  package var secrets: SecretTexts { registry.keys.secrets }

  /// Describes the place where a task was made, from its `origin`.
  package var describeOrigin: ((UInt64) -> ByteString)? {
    get { registry.describeOrigin }
    set { registry.describeOrigin = newValue }
  }

  /// Called with a warning when a run has ended and stops a program that nothing has waited for.
  package var onLeftProgram: ((ByteString) -> Void)? {
    get { registry.onLeftProgram }
    set { registry.onLeftProgram = newValue }
  }
}

/// An unobserved failure; it keeps only the run's name and error.
///
/// ```swift
/// for failure in loop.takeUnobservedFailures() { print("\(failure.name): \(failure.error)") }
/// ```
public struct UnobservedFailure {
  /// The task's id.
  package let id: UInt64
  /// The task's name in reports.
  public let name: ByteString
  /// Why it failed.
  public let error: FlowError
  let order: UInt64
}

/// The unobserved failures of a loop and of the loops within it: their tasks' ids are unique among
/// all of them. Confined to the loop's thread.
final class FailureReports {
  private var unobserved: [UInt64: UnobservedFailure] = [:]
  /// Failures that observing the task doesn't remove.
  private var late: [UnobservedFailure] = []
  private var order: UInt64 = 0

  var inOrder: [UnobservedFailure] {
    (Array(unobserved.values) + late).sorted { $0.order < $1.order }
  }

  func add(_ error: FlowError, of task: AnyFlowTask) {
    order += 1
    unobserved[task.id] = UnobservedFailure(
      id: task.id, name: task.title, error: error, order: order)
  }

  /// Adds a failure that observing the task doesn't remove.
  func add(_ error: FlowError, name: ByteString, id: UInt64 = 0) {
    order += 1
    late.append(UnobservedFailure(id: id, name: name, error: error, order: order))
  }

  /// Returns the failures and removes them.
  func takeAll() -> [UnobservedFailure] {
    if unobserved.isEmpty && late.isEmpty { return [] }
    defer {
      unobserved = [:]
      late = []
    }
    return inOrder
  }

  /// Removes the failure of a task that has been observed.
  func remove(_ id: UInt64) { unobserved[id] = nil }
}

/// Code, or a body, that holds executions, tasks or waits which may hold it in turn: when its loop is shut
/// down, it releases them.
package protocol Abandonable: AnyObject {
  /// Releases everything that it holds and waits for. Nothing of it executes any more.
  func abandon()
}

/// The right to do something that is done once, such as settling a task: the first caller gets it, on any
/// thread.
final class Claim: Sendable {
  private let isTaken = Atomic<Bool>(false)

  /// Returns true once.
  func isFirst() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
