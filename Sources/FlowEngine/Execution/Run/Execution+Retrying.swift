// How an execution decides whether a failed op or flow is retried.
extension Execution {
  enum Decision {
    /// A function of the policy waits.
    case waiting
    /// The next attempt follows after a delay.
    case delayed
    /// There is no other attempt; the level ends with this error, or with its own.
    case ended(FlowError?)
  }

  /// Begins to decide about another attempt at the op or flow of a level; false when there is none.
  func beginDecision(_ level: Int, _ error: FlowError) -> Bool {
    if isRehearsing, level < frames.count || context.keeping == nil { return false }
    let attempt = self[attempt: level]
    guard let policy = attempt.policy?.retry, stop == nil,
      policy.allows(attemptAfter: attempt.number, error)
    else { return false }
    decision = RetryDecision(policy, error, attempt: attempt.number)
    return true
  }

  /// Decides about another attempt at the op or flow of a level, as far as it can without a wait.
  ///
  /// - Parameters:
  ///   - level: The level.
  ///   - scope: The scope of its line in the log.
  ///   - position: The position of its line in the log.
  /// - Returns: What follows.
  func decide(_ level: Int, scope: UInt32, position: UInt32) -> Decision {
    guard let decision else { return .ended(nil) }
    guard askPolicy(decision) else { return .waiting }
    self.decision = nil
    if stop != nil { return .ended(nil) }
    switch decision.answer(using: &engine.randomNumberGenerator) {
    case .end: return .ended(nil)
    case .fail(let error): return .ended(error)
    case .again(let time):
      delay = beginDelay(time, decision, level, scope: scope, position: position)
      pause(level, for: time)
      return .delayed
    }
  }

  /// Calls the functions of the policy; false while one of them waits.
  private func askPolicy(_ decision: RetryDecision) -> Bool {
    let run = run
    while stop == nil, let question = decision.nextQuestion(), let rule = decision.policy.rule {
      let made = CallbackCompletion(owner: self, place: { nil }) { completion, error in
        rule.cancel(run, completion: completion, error)
      }
      completion = made
      stopRequested = false
      let isDone = made.begin {
        rule.answer(
          question, decision.error, attempt: decision.attempt, in: run, completion: $0)
      }
      engine.stamp = 0
      guard isDone else {
        stopCallback()
        return false
      }
      endQuestion()
    }
    return true
  }

  /// Takes the awaited answer.
  func endQuestion() {
    guard let ended = completion else { return }
    completion = nil
    decision?.takeAnswer(ended)
  }

  /// Logs that the next attempt at the op or flow of a level starts.
  func logAttempt(_ level: Int, scope: UInt32, position: UInt32) {
    log.append(
      .attempt, time: engine.stampedNow(), scope: scope, position: position,
      attempt: self[attempt: level].number)
  }

  /// Logs that another attempt follows, and has the execution continue when it is due.
  private func beginDelay(
    _ time: Duration, _ decision: RetryDecision, _ level: Int, scope: UInt32, position: UInt32
  ) -> LoopTimer {
    let text: ByteString = """
      Retry \(decision.attempt + 1)/\(decision.policy.attempts) in \
      \(FlowValue.text(of: time)): \(decision.error.messageBytes)
      """
    log.append(
      .retry, time: engine.stampedNow(), scope: scope, position: position,
      attempt: decision.attempt, first: log.payload(text), second: .integer(time.clampedNanoseconds)
    )
    return loop.schedule(
      at: loop.deadline(after: time), WakeUp(self, level < frames.count ? .frame : .op))
  }
}
