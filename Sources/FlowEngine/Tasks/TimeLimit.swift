internal import FlowLoop

/// Limits the time of tasks that no op or run limits: those of a call with a deadline.
///
/// Confined to the thread of its loop.
package final class TimeLimit: TaskOwner {
  /// On the loop's clock.
  let taskDeadline: Int64
  /// The error of tasks that it stops.
  private let error: FlowError
  private var hasExpired = false
  private let loop: EventLoop
  let enclosingTasks: OwnedTasks? = nil
  let workPlace: WorkPlace? = nil
  /// The tasks that it limits.
  package private(set) lazy var tasks = OwnedTasks(of: self)
  private var timer: LoopTimer?

  /// A limit that begins now.
  ///
  /// - Parameters:
  ///   - time: The time until it stops its tasks; with 0 or less it stops them at once.
  ///   - loop: Their loop.
  package init(_ time: Duration, on loop: EventLoop) {
    self.loop = loop
    taskDeadline = loop.deadline(after: time)
    error = .timeout(after: max(time, .zero))
  }

  /// Stops the tasks that wait when the time is over; those that are busy, the watchdog stops.
  package func begin() {
    let body = { [weak self] in
      guard let self else { return }
      hasExpired = true
      tasks.cancelAll(error)
    }
    if loop.timeSource.isVirtual {
      timer = loop.schedule(at: taskDeadline, body)
    } else {
      // Without keeping the loop from noticing that nothing can end the wait.
      timer = loop.scheduleAside(
        after: .nanoseconds(max(taskDeadline - loop.now(), 0)), body)
    }
  }

  /// Ends the limit. Tasks that haven't ended continue without it.
  package func end() {
    timer?.cancel()
    tasks.abandon()
  }

  var taskStopError: FlowError? { hasExpired ? error : nil }

  func expireTask() -> FlowError? {
    hasExpired = true
    return error
  }

  func failOwner(_ error: FlowError) { tasks.cancelAll(error) }
}
