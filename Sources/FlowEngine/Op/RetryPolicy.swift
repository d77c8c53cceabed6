/// How often an op is tried again when an attempt fails, and how long to wait before.
///
/// Tried again after errors, timeouts and missing outputs; never after input errors, wrong use,
/// cancellation or stalls, nor after an error that says so (`FlowError.isRetriable`).
public struct RetryPolicy: Sendable {
  /// How often the op is executed at most, at least 1.
  public let attempts: Int
  /// Seconds before the second attempt.
  public let delay: Double
  /// What each delay is multiplied with for the next one.
  public let factor: Double
  /// The longest delay in seconds; nil for no limit, but for what an error asks for
  /// (`FlowError.retryAfter`), which is then at most a minute.
  public let maxDelay: Double?
  /// The share of each delay, from 0 to 1, by which it is made longer or shorter at random.
  public let jitter: Double
  /// What is asked after each failure; nil without functions.
  package let rule: (any RetryRule)?

  /// A policy of numbers and, perhaps, of functions, which are called on the loop's thread. A function that
  /// throws fails the op with what it throws.
  ///
  /// Ends the process with a sentence when a value is out of its range.
  ///
  /// - Parameters:
  ///   - attempts: How often the op is executed at most.
  ///   - delay: Seconds before the second attempt.
  ///   - factor: What each delay is multiplied with for the next one.
  ///   - maxDelay: The longest delay in seconds.
  ///   - jitter: The share of each delay by which it varies at random.
  ///   - when: Whether there is another attempt, from the error and the 1-based number of the attempt that
  ///     has failed. Asked where the error's kind allows one.
  ///   - delayAfter: Seconds before the next attempt, from the same; in place of `delay` and `factor`.
  public init(
    attempts: Int, delay: Double = 0, factor: Double = 1, maxDelay: Double? = nil,
    jitter: Double = 0,
    when: (@Sendable (_ error: FlowError, _ attempt: Int) throws -> Bool)? = nil,
    delayAfter: (@Sendable (_ error: FlowError, _ attempt: Int) throws -> Double)? = nil
  ) {
    self.init(
      attempts: attempts, delay: delay, factor: factor, maxDelay: maxDelay, jitter: jitter,
      rule: when == nil && delayAfter == nil
        ? nil : ClosureRetryRule(when: when, delay: delayAfter))
  }

  /// The same with what is asked after each failure.
  package init(
    attempts: Int, delay: Double = 0, factor: Double = 1, maxDelay: Double? = nil,
    jitter: Double = 0, rule: (any RetryRule)?
  ) {
    self.attempts = attempts
    self.delay = delay
    self.factor = factor
    self.maxDelay = maxDelay
    self.jitter = jitter
    self.rule = rule
    let isTime = { (seconds: Double) in seconds.isFinite && seconds >= 0 }
    guard attempts >= 1, isTime(delay), isTime(factor), isTime(maxDelay ?? 0),
      (0...1).contains(jitter)
    else {
      misuse(
        "a RetryPolicy has at least 1 attempt, finite delays and a factor of at least 0, "
          + "and a jitter from 0 to 1")
    }
  }

  /// Whether an attempt that failed with `error` may be followed by another, as far as the numbers say.
  func allows(attemptAfter attempt: Int, _ error: FlowError) -> Bool {
    attempt < attempts && error.kind.isRetriable && error.isRetriable != false
  }

  /// The longest delay that an error gets for the asking where there is no limit, in seconds.
  private static let longestAskedFor = 60.0

  /// Seconds before `attempt`, which is 2 or more, after `error`; `asked` is what a function has answered.
  func delay(
    before attempt: Int, asked: Double?, after error: FlowError,
    using generator: inout any RandomNumberGenerator
  ) -> Double {
    let seconds = varied(asked ?? grown(before: attempt), using: &generator)
    guard let least = error.retryAfter else { return seconds }
    return max(seconds, min(least, maxDelay ?? Self.longestAskedFor))
  }

  /// The delay times the factor for each attempt before.
  private func grown(before attempt: Int) -> Double {
    guard delay > 0 else { return 0 }
    var seconds = delay
    // The power itself would be imprecise for the usual whole factors.
    var left = attempt - 2
    while left > 0, factor != 1, seconds > 0, seconds < .greatestFiniteMagnitude {
      seconds = min(seconds * factor, .greatestFiniteMagnitude)
      left -= 1
      if let maxDelay, factor > 1, seconds >= maxDelay { break }
    }
    return seconds
  }

  /// A delay within the limit and with its share of chance.
  private func varied(
    _ delay: Double, using generator: inout any RandomNumberGenerator
  ) -> Double {
    let seconds = min(delay, maxDelay ?? delay)
    guard seconds > 0, jitter > 0 else { return seconds }
    let drawn = seconds * (1 + jitter * Double.random(in: -1...1, using: &generator))
    return min(max(0, drawn), maxDelay ?? .greatestFiniteMagnitude)
  }
}

extension FlowError.Kind {
  /// Whether another attempt may mend it.
  var isRetriable: Bool {
    switch self {
    case .error, .timeout, .missingOutput: true
    case .insufficientInput, .mismatchedInput, .mismatchedOutput, .cancelled, .stalled, .usage:
      false
    }
  }
}

/// Decides about another attempt, each time one has failed. Called on the loop's thread; it may wait.
package protocol RetryRule: AnyObject, Sendable {
  /// What it has to be asked, in this order.
  var questions: [RetryQuestion] { get }
  /// Answers a question by `completion.answer`, at once or later; `.suspended` promises that.
  ///
  /// - Parameters:
  ///   - question: Whether there is another attempt, or when.
  ///   - error: What the last attempt has failed with.
  ///   - attempt: Its 1-based number.
  ///   - run: The run it is part of.
  ///   - completion: Takes the answer, or the error that ends the op.
  /// - Returns: Whether it has answered.
  func answer(
    _ question: RetryQuestion, _ error: FlowError, attempt: Int, in run: Run,
    completion: CallbackCompletion
  ) -> OpProgress
  /// Asks what it waits for to stop because of `error`; it must finish sooner or later.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
}

/// What a `RetryRule` is asked.
package enum RetryQuestion: Sendable {
  /// Whether there is another attempt: a truth.
  case when
  /// How long to wait before it: a number of seconds.
  case delay

  /// The field of a policy that answers it.
  package var name: ByteString {
    switch self {
    case .when: "when"
    case .delay: "delay"
    }
  }
}

/// Swift closures as a rule.
private final class ClosureRetryRule: RetryRule {
  private let when: (@Sendable (FlowError, Int) throws -> Bool)?
  private let delay: (@Sendable (FlowError, Int) throws -> Double)?

  init(
    when: (@Sendable (FlowError, Int) throws -> Bool)?,
    delay: (@Sendable (FlowError, Int) throws -> Double)?
  ) {
    self.when = when
    self.delay = delay
  }

  var questions: [RetryQuestion] { (when == nil ? [] : [.when]) + (delay == nil ? [] : [.delay]) }

  func answer(
    _ question: RetryQuestion, _ error: FlowError, attempt: Int, in run: Run,
    completion: CallbackCompletion
  ) -> OpProgress {
    do {
      switch question {
      case .when: completion.answer(try when?(error, attempt) ?? true)
      case .delay: completion.answer(seconds: try delay?(error, attempt) ?? 0)
      }
    } catch {
      completion.finish(.from(error))
    }
    return .finished
  }

  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    completion.finish(error)
  }
}
