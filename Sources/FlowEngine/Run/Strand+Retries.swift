/// What becomes of an op or flow whose attempt has failed.
enum RetryAnswer {
  /// It ends with its error.
  case end
  /// It ends with another error: one of a function that was asked.
  case fail(FlowError)
  /// It is tried again after so many seconds.
  case again(Double)
}

/// The failure of an attempt about which a policy has to decide.
final class RetryDecision {
  let policy: RetryPolicy
  let error: FlowError
  let attempt: Int
  private var questions: ArraySlice<RetryQuestion>
  private(set) var question: RetryQuestion?
  /// Seconds that a function has answered.
  private(set) var seconds: Double?
  private var end: RetryAnswer?

  init(_ policy: RetryPolicy, _ error: FlowError, attempt: Int) {
    self.policy = policy
    self.error = error
    self.attempt = attempt
    questions = policy.rule?.questions[...] ?? []
  }

  /// What has to be asked next; nil when all is decided.
  func nextQuestion() -> RetryQuestion? {
    question = end == nil ? questions.popFirst() : nil
    return question
  }

  /// Takes the answer to the question that was asked last.
  func take(_ answer: CallbackCompletion) {
    guard let question else { return }
    if let error = answer.error {
      end = .fail(
        error.with {
          $0.message = "'\(question.name)' of retry failed: \($0.message)"
          $0.payload = nil
        })
      return
    }
    switch question {
    case .when: if !answer.isMatch { end = .end }
    case .delay:
      guard let answered = answer.seconds, answered.isFinite, answered >= 0 else {
        end = .fail(
          FlowError(
            .error,
            "'delay' of retry must return a finite number of seconds, at least 0"))
        return
      }
      seconds = answered
    }
  }

  /// What was decided.
  func answer(using generator: inout any RandomNumberGenerator) -> RetryAnswer {
    end
      ?? .again(
        policy.delay(before: attempt + 1, asked: seconds, after: error, using: &generator))
  }
}

// How a strand decides whether what has failed is tried again.
extension Strand {
  /// Begins to decide about another attempt at an op or flow; false when there is none.
  func beginDecision(_ policy: RetryPolicy?, attempt: Int, _ error: FlowError) -> Bool {
    guard let policy, stop == nil, policy.allows(attemptAfter: attempt, error) else { return false }
    decision = RetryDecision(policy, error, attempt: attempt)
    return true
  }

  /// Asks what the policy has to ask; nil while an answer is waited for.
  func decide() -> RetryAnswer? {
    guard let decision else { return .end }
    let run = run
    while stop == nil, let question = decision.nextQuestion(), let rule = decision.policy.rule {
      let made = CallbackCompletion(strand: self, place: { nil }) { completion, error in
        rule.cancel(run, completion: completion, error)
      }
      completion = made
      isAsked = false
      let isDone = made.begin {
        rule.answer(
          question, decision.error, attempt: decision.attempt, in: run, completion: $0)
      }
      loop.stamp = 0
      guard isDone else {
        askCallback()
        return nil
      }
      endQuestion()
    }
    self.decision = nil
    return decision.answer(using: &loop.randomNumberGenerator)
  }

  /// Takes the answer that was waited for.
  func endQuestion() {
    guard let ended = completion else { return }
    completion = nil
    decision?.take(ended)
  }

  /// Logs that another attempt is to come, and has the strand go on when it is time.
  func beginDelay(
    _ seconds: Double, of attempts: Int, attempt: Int, _ error: FlowError, scope: UInt32,
    position: UInt32, _ reason: Resume
  ) -> Timer {
    let text: ByteString = """
      Retry \(attempt + 1)/\(attempts) in \(Value.text(ofSeconds: seconds))s: \
      \(error.message)
      """
    let nanoseconds = Int64(exactly: (seconds * 1e9).rounded()) ?? .max
    log.append(
      .retry, time: loop.stampedNow(), scope: scope, position: position, attempt: attempt,
      first: log.payload(text), second: .integer(nanoseconds))
    return loop.schedule(at: loop.deadline(after: seconds), WakeUp(self, reason))
  }
}
