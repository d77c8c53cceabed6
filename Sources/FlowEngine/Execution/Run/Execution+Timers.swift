// The timers of the attempts at ops and flows.
extension Execution {
  /// Limits the time of the attempt at a level from now on, if its policy has a timeout.
  func startTimer(of level: Int) {
    let attempt = self[attempt: level]
    guard let timeout = attempt.policy?.timeout else { return }
    attempt.timer?.cancel()
    let deadline = loop.deadline(after: timeout)
    stops.setDeadline(.attempt(level: level), deadline)
    self[attempt: level].timer = loop.schedule(
      at: deadline, LevelLimit(.timeout, self, level: level))
  }

  /// Ends the limit of the attempt at a level.
  func stopTimer(of level: Int) {
    let attempt = self[attempt: level]
    guard let timer = attempt.timer else { return }
    timer.cancel()
    self[attempt: level].timer = nil
    stops.removeDeadline(.attempt(level: level))
  }
}

/// Ends a level of an execution, or its cleanups and final steps, when their time is over.
final class LevelLimit: LimitJob {
  enum Kind { case timeout, grace }

  private let execution: Execution
  private let level: Int
  private let kind: Kind

  init(_ kind: Kind, _ execution: Execution, level: Int) {
    self.execution = execution
    self.level = level
    self.kind = kind
  }

  func run() {
    switch kind {
    case .timeout: execution.attemptTimedOut(level)
    case .grace: execution.graceEnded(level)
    }
  }
}

/// Has an execution continue.
final class WakeUp: LoopJob {
  private let execution: Execution
  private let reason: Execution.Resume

  init(_ execution: Execution, _ reason: Execution.Resume) {
    self.execution = execution
    self.reason = reason
  }

  func run() { execution.timerFired(reason) }
}
