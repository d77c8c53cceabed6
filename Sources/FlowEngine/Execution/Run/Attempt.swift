/// An attempt at an op or flow: its number, its limits, and the policy that decides about the next one.
struct Attempt {
  /// The policy at the place of the op or flow.
  let policy: OpPolicy?
  /// The 1-based number.
  private(set) var number = 1
  /// The limit of its time, while it executes.
  var limit: (any PausableLimit)?
  /// The end of the grace of its cleanups, final steps and last callbacks; nil until it has begun.
  var graceEnd: Int64?

  init(_ policy: OpPolicy?) {
    self.policy = policy
  }

  /// The next attempt begins.
  mutating func repeats() {
    number += 1
    graceEnd = nil
  }
}

/// The decision about an op or flow whose attempt has failed.
enum RetryAnswer {
  /// It ends with its error.
  case end
  /// It ends with another error: one of a function that the policy has called.
  case fail(FlowError)
  /// It is retried after this many seconds.
  case again(Duration)
}

/// The failure of an attempt, which a policy decides about.
final class RetryDecision {
  let policy: RetryPolicy
  let error: FlowError
  let attempt: Int
  private var questions: ArraySlice<RetryQuestion>
  private(set) var question: RetryQuestion?
  /// The seconds that a function has returned.
  private(set) var seconds: Double?
  private var end: RetryAnswer?

  init(_ policy: RetryPolicy, _ error: FlowError, attempt: Int) {
    self.policy = policy
    self.error = error
    self.attempt = attempt
    questions = policy.rule?.questions[...] ?? []
  }

  /// The next function of the policy to call; nil when all is decided.
  func nextQuestion() -> RetryQuestion? {
    question = end == nil ? questions.popFirst() : nil
    return question
  }

  /// Takes the answer to the latest question.
  func takeAnswer(_ answer: CallbackCompletion) {
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
        end = .fail(wrongDelay(answer))
        return
      }
      seconds = answered
    }
  }

  /// The error of a function that has returned no delay.
  private func wrongDelay(_ answer: CallbackCompletion) -> FlowError {
    let got = answer.seconds.map { FlowValue.number($0).logText } ?? answer.otherKind ?? "nil"
    let place: ByteString = policy.rule?.place(of: .delay).map { "\($0): " } ?? ""
    return FlowError(
      .error,
      "\(place)'delay' of retry must return a finite number of seconds, at least 0, got \(got)")
  }

  /// The decision.
  func answer(using generator: inout any RandomNumberGenerator) -> RetryAnswer {
    end
      ?? .again(
        policy.delay(before: attempt + 1, asked: seconds, after: error, using: &generator))
  }
}
