/// Something that is running or has settled, with one outcome. Confined to its loop's thread.
public class FlowTask {
  public enum State: UInt8, Sendable {
    case pending, succeeded, failed, cancelled

    public var name: ByteString {
      switch self {
      case .pending: "pending"
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      }
    }
  }

  public let loop: EventLoop
  /// Unique on its loop, in the order of making; begins with 1.
  public let id: UInt64
  public private(set) var state: State = .pending
  /// Why it failed or was cancelled.
  public private(set) var error: FlowError?
  /// Whether all is done, so that what waits for it may go on: later than `state` by the
  /// `didFinish` callbacks of a run.
  public private(set) var isConcluded = false
  /// Whether somebody asked for the outcome, so that a failure isn't lost.
  public private(set) var isObserved = false
  /// Room for what the program that shows the task to somebody keeps with it.
  public var attachment: AnyObject?
  private var observers: ContiguousArray<any LoopJob> = []
  /// What ends at the latest when this task has to.
  var owner: OwnedTasks?

  public init(on loop: EventLoop) {
    loop.checkThread()
    self.loop = loop
    loop.lastTaskID += 1
    id = loop.lastTaskID
  }

  /// What a report calls it.
  public var title: ByteString { "task" }

  /// Has the loop run `job` once all is done, in the order of these calls.
  public func observe(_ job: any LoopJob) {
    loop.checkThread()
    if isConcluded { loop.enqueue(job) } else { observers.append(job) }
  }

  /// Takes an observer back: `job` isn't enqueued any more. Does nothing when it isn't one.
  public func unobserve(_ job: any LoopJob) {
    loop.checkThread()
    observers.removeAll { $0 === job }
  }

  /// Says that somebody knows the outcome, or will.
  public func markObserved() {
    loop.checkThread()
    isObserved = true
    loop.unobserved[id] = nil
  }

  /// Asks it, and all that it started, to stop; it ends as cancelled once that has ended.
  ///
  /// - Parameter reason: Why, for its log line and error.
  /// - Returns: Whether it was still pending.
  @discardableResult
  public func cancel(reason: ByteString? = nil) -> Bool {
    loop.checkThread()
    guard state == .pending else { return false }
    stop(.cancelled(reason: reason))
    return true
  }

  /// Asks what goes on in it to stop because of `error`; the first error counts.
  func stop(_ error: FlowError) {}

  /// Sets the outcome, once; observers wait for `conclude`.
  func settle(_ error: FlowError?) {
    guard state == .pending else { return }
    self.error = error
    if let error {
      state = error.kind == .cancelled ? .cancelled : .failed
      if state == .failed, !isObserved { loop.report(error, of: self) }
    } else {
      state = .succeeded
    }
  }

  func dropObservers() { observers = [] }

  func conclude() {
    guard !isConcluded else { return }
    isConcluded = true
    for job in observers { loop.enqueue(job) }
    observers = []
    if let owner {
      self.owner = nil
      owner.remove(self)
    }
  }
}

/// A failure that nobody observed; it holds nothing of the run but its name and error.
public struct UnobservedFailure {
  /// The task's id.
  public let id: UInt64
  public let name: ByteString
  public let error: FlowError
  let order: UInt64
}

extension EventLoop {
  /// Runs that aren't concluded, in the order in which they were started.
  public var pendingRuns: [Run] {
    pending.values.sorted { $0.id < $1.id }
  }

  /// Failures that nobody observed, errors of `didFinish` callbacks among them, in their order.
  public var unobservedFailures: [UnobservedFailure] {
    (Array(unobserved.values) + lateFailures).sorted { $0.order < $1.order }
  }

  func report(_ error: FlowError, of task: FlowTask) {
    unobserved[task.id] = failure(error, of: task)
  }

  /// Reports an error that came when the outcome was already known: observing doesn't lift it.
  func reportLate(_ error: FlowError, of task: FlowTask) {
    lateFailures.append(failure(error, of: task))
  }

  private func failure(_ error: FlowError, of task: FlowTask) -> UnobservedFailure {
    failureOrder += 1
    return UnobservedFailure(id: task.id, name: task.title, error: error, order: failureOrder)
  }
}
