internal import FlowLoop

/// Limits the time of tasks by more than their op or run does: those of a call with a deadline, and of code that has so many
/// seconds.
///
/// Confined to the thread of its loop.
package final class TimeLimit: TaskOwner {
  /// On the loop's clock.
  let taskDeadline: Int64
  /// The error of tasks that it stops.
  private let error: FlowError
  private var hasExpired = false
  /// Whether its tasks are those that its code has started, and the code itself is limited.
  private var isOfCode = false
  private let loop: FlowEventLoop
  let enclosingTasks: OwnedTasks?
  var workPlace: WorkPlace? { enclosingTasks?.workPlace }
  let owningRun: AnyFlowTask?
  var isCode: Bool { true }
  /// The tasks that it limits.
  package private(set) lazy var tasks = OwnedTasks(of: self)
  private var timer: LoopTimer?

  /// A limit that begins now.
  ///
  /// - Parameters:
  ///   - time: The time until it stops its tasks; with 0 or less it stops them at once.
  ///   - loop: Their loop.
  ///   - enclosing: The tasks of the op or run that starts the code; nil for none.
  ///   - run: The run around code that waits on this thread until its tasks have ended; nil for none.
  package init(
    _ time: Duration, on loop: FlowEventLoop, within enclosing: OwnedTasks? = nil,
    of run: AnyFlowTask? = nil
  ) {
    self.loop = loop
    owningRun = run
    enclosingTasks = enclosing
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

  /// Stops one task when the time is over. That it waits for this keeps the loop from being idle, as the timeout of an op.
  func begin(stopping task: AnyFlowTask) {
    isOfCode = true
    timer = loop.schedule(at: taskDeadline) { [weak self, weak task] in
      guard let self else { return }
      hasExpired = true
      task?.stop(error)
    }
  }

  /// Ends that.
  func endStopping() { timer?.cancel() }

  /// Ends the limit. Tasks that haven't ended continue without it.
  package func end() {
    timer?.cancel()
    tasks.abandon()
  }

  var taskStopError: FlowError? { hasExpired ? error : nil }

  func expireTask() -> FlowError? {
    let error = expire()
    return isOfCode ? error.asReason : error
  }

  /// Called when the code itself was busy; returns the error that it ends with.
  func expire() -> FlowError {
    if let enclosingTasks, enclosingTasks.deadline < taskDeadline { return enclosingTasks.expire() }
    hasExpired = true
    return error
  }

  func failOwner(_ error: FlowError) {
    tasks.cancelAll(error)
    enclosingTasks?.failOwner(error)
  }
}
