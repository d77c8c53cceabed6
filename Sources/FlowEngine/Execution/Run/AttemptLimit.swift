internal import FlowLoop

/// The limit of the time of an attempt at an op or flow, by the timeout of its policy.
final class AttemptLimit: LimitJob, PausableLimit {
  /// nil at the end.
  private var execution: Execution?
  private let level: Int
  /// nil while it is paused.
  private var timer: LoopTimer?
  private var pauses = 0
  /// The nanoseconds that are left while it is paused.
  private var left: Int64

  init(_ timeout: Duration, of level: Int, _ execution: Execution) {
    self.execution = execution
    self.level = level
    left = timeout.clampedNanoseconds
    count()
  }

  private func count() {
    guard let execution else { return }
    let deadline = execution.loop.now().later(by: left)
    execution.stops.setDeadline(.attempt(level: level), deadline)
    timer = execution.loop.schedule(at: deadline, self)
  }

  func pause() {
    guard let execution else { return }
    pauses += 1
    guard let timer = timer.take() else { return }
    left = max(timer.deadline - execution.loop.now(), 0)
    timer.cancel()
    execution.stops.setDeadline(.attempt(level: level), .max)
    execution.renewDeadlinesWithin()
  }

  func resume() {
    guard let execution else { return }
    pauses -= 1
    if pauses > 0 { return }
    count()
    execution.renewDeadlinesWithin()
  }

  func end() {
    execution = nil
    timer.take()?.cancel()
  }

  func run() {
    guard let execution = execution.take() else { return }
    timer = nil
    execution.attemptTimedOut(level)
  }
}

/// The limit of the time of code within a shield: it follows from the limits around that.
private final class ShieldLimit: PausableLimit {
  private let execution: Execution
  private let level: Int

  init(_ execution: Execution, level: Int) {
    self.execution = execution
    self.level = level
  }

  func pause() { execution.setShieldLimit(level, isPaused: true) }
  func resume() { execution.setShieldLimit(level, isPaused: false) }
  func end() {}
}

extension Execution {
  /// Limits the time of the attempt at a level from now on, if its policy has a timeout.
  func startTimer(of level: Int) {
    let attempt = self[attempt: level]
    guard let timeout = attempt.policy?.timeout else { return }
    attempt.limit?.end()
    self[attempt: level].limit = AttemptLimit(timeout, of: level, self)
  }

  /// Ends the limit of the attempt at a level.
  func stopTimer(of level: Int) {
    guard let limit = self[attempt: level].limit else { return }
    limit.end()
    self[attempt: level].limit = nil
    stops.removeDeadline(.attempt(level: level))
  }

  /// The time limits of what it executes, and of all that encloses that.
  var limitsAround: [any PausableLimit] { limitsWithinRun + (run.owner?.attemptLimits ?? []) }

  /// The time limits of what it executes, and of what encloses that in its run, before those that they follow from.
  var limitsWithinRun: [any PausableLimit] {
    var limits: [any PausableLimit] = []
    var execution = self
    while true {
      for shield in execution.shields.reversed() {
        limits.append(ShieldLimit(execution, level: shield.level))
      }
      for level in 0...execution.opLevel {
        if let limit = execution[attempt: level].limit { limits.append(limit) }
      }
      guard let group = execution.group else { return limits }
      execution = group.parent
    }
  }

  /// Has all that it executes take over its time limits, which have changed.
  fileprivate func renewDeadlinesWithin() {
    var open = members
    while let member = open.popLast() {
      member.renewEnclosingDeadline()
      open += member.members
    }
  }
}
