/// The treatment of an op of a kept run that an earlier process may have executed already.
///
/// ```swift
/// let flow = Flow("order") { UploadOp().makeOp().with(effect: .once) }
/// ```
public enum OpEffect: String, CaseIterable, Sendable {
  /// It is executed again, with the same key.
  case `repeat`
  /// It isn't executed again unless somebody says so.
  case once
}

/// How often an op is tried, how long, when it may start, and how it is undone. An op without any of these has no policy.
///
/// Confined to one thread, like its op.
package final class OpPolicy {
  let retry: RetryPolicy?
  /// The time that an attempt may take.
  let timeout: Duration?
  /// The time that the cleanups have after a stop; nil for the loop's default.
  let grace: Duration?
  /// The treatment by a kept run; nil for `repeat`.
  let effect: OpEffect?
  /// Which results may come from another run; nil for none.
  let cache: CachePolicy?
  /// Undoes the op when a later one fails.
  let undo: (any OpBody)?
  /// The limits that it holds while it executes.
  let limits: [Limit]
  /// Whether it is the policy of an undo.
  let isOfUndo: Bool
  /// Whether it is the policy of a computation whose end isn't logged.
  let isUnlogged: Bool

  private init(
    retry: RetryPolicy?, timeout: Duration?, grace: Duration?, effect: OpEffect?,
    cache: CachePolicy?, undo: (any OpBody)?, limits: [Limit] = [], isOfUndo: Bool = false,
    isUnlogged: Bool = false
  ) {
    self.retry = retry
    self.timeout = timeout
    self.grace = grace
    self.effect = effect
    self.cache = cache
    self.undo = undo
    self.limits = limits
    self.isOfUndo = isOfUndo
    self.isUnlogged = isUnlogged
  }

  /// The policy for the undo of an op with this one.
  var ofUndo: OpPolicy {
    OpPolicy(
      retry: nil, timeout: nil, grace: grace, effect: nil, cache: nil, undo: nil, isOfUndo: true)
  }

  /// The policy of a computation whose end isn't logged.
  static func unlogged() -> OpPolicy {
    OpPolicy(
      retry: nil, timeout: nil, grace: nil, effect: nil, cache: nil, undo: nil, isUnlogged: true)
  }

  /// The policy of an op that is executed instead of another one, which has this policy: everything but the
  /// undo, because an op is undone by its own function only.
  static func standIn(_ policy: OpPolicy?, for fake: Op) -> OpPolicy? {
    if policy?.undo == nil && fake.undo == nil { return policy }
    return made(
      retry: policy?.retry, timeout: policy?.timeout, grace: policy?.grace, effect: policy?.effect,
      cache: policy?.cache, undo: fake.undo, limits: policy?.limits ?? [])
  }

  /// Makes a policy from `base` and the values that replace parts of it; nil when the result would
  /// be empty.
  package static func make(
    _ base: OpPolicy?, retry: RetryPolicy? = nil, timeout: Duration? = nil, grace: Duration? = nil,
    effect: OpEffect? = nil, cache: CachePolicy? = nil, undo: (any OpBody)? = nil,
    limits: [Limit]? = nil, file: StaticString = #fileID, line: UInt = #line
  ) -> OpPolicy? {
    if let timeout, timeout <= .zero {
      misuse("a timeout is longer than 0, not \(timeout)", file: file, line: line)
    }
    if let grace, grace < .zero {
      misuse("a grace is at least 0, not \(grace)", file: file, line: line)
    }
    let retry = retry ?? base?.retry
    let timeout = timeout ?? base?.timeout
    let grace = grace ?? base?.grace
    let effect = effect ?? base?.effect
    let cache = cache ?? base?.cache
    let undo = undo ?? base?.undo
    let limits = limits ?? base?.limits ?? []
    return made(
      retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache, undo: undo,
      limits: limits)
  }

  /// A policy for items of a group with limits of its own.
  static func adding(_ limits: [Limit], to base: OpPolicy?) -> OpPolicy? {
    if limits.isEmpty { return base }
    let held = base?.limits ?? []
    return make(
      base, limits: held + limits.filter { limit in !held.contains { $0 === limit } })
  }

  /// nil when nothing is set.
  private static func made(
    retry: RetryPolicy?, timeout: Duration?, grace: Duration?, effect: OpEffect?,
    cache: CachePolicy?, undo: (any OpBody)?, limits: [Limit]
  ) -> OpPolicy? {
    if retry == nil && timeout == nil && grace == nil && effect == nil && cache == nil
      && undo == nil && limits.isEmpty
    {
      return nil
    }
    return OpPolicy(
      retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache, undo: undo,
      limits: limits)
  }
}

/// A generator of random numbers that draws the same ones from the same seed (SplitMix64).
///
/// Set one as `FlowEventLoop.randomNumberGenerator` to make the jitter of retries predictable.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator that draws the same numbers for the same seed.
  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var bits = state
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
  }
}

/// How often an op is retried when an attempt fails, and how long to wait before each retry.
///
/// An op is retried after errors, timeouts, failed requests and missing outputs. It is never retried
/// after input errors, wrong use, cancels or stalls, nor after an error that forbids it
/// (`FlowError.isRetriable`). Without `when` it isn't retried either after an error that won't go
/// away, such as the response 404.
///
/// ```swift
/// let policy = RetryPolicy(
///   attempts: 5, delay: .seconds(1), factor: 2, maxDelay: .seconds(30),
///   when: { error, _ in error.kind == .network })
/// ```
public struct RetryPolicy: Sendable {
  /// How often the op is executed at most, at least 1.
  package let attempts: Int
  /// The time before the second attempt.
  package let delay: Duration
  /// The factor by which each delay is multiplied for the next one.
  package let factor: Double
  /// The longest delay; nil for no limit, except on a delay that an error requests
  /// (`FlowError.retryAfter`), which is then at most a minute.
  package let maxDelay: Duration?
  /// The share of each delay, from 0 to 1, by which it is made longer or shorter at random.
  package let jitter: Double
  /// The functions to call after each failure; nil without functions.
  package let rule: (any RetryRule)?

  /// Makes a policy of numbers and, optionally, of functions, which are called on the loop's
  /// thread. A function that throws fails the op with its error.
  ///
  /// Ends the process with a sentence when a value is out of its range.
  ///
  /// - Parameters:
  ///   - attempts: How often the op is executed at most.
  ///   - delay: The time before the second attempt.
  ///   - factor: The factor by which each delay is multiplied for the next one.
  ///   - maxDelay: The longest delay.
  ///   - jitter: The share of each delay by which it varies at random.
  ///   - when: Whether there is another attempt, from the error and the 1-based number of the
  ///     attempt that has failed. Called only for errors whose kind allows a retry.
  ///   - delayAfter: The time before the next attempt, from the same arguments; replaces `delay` and
  ///     `factor`.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public init(
    attempts: Int, delay: Duration = .zero, factor: Double = 1, maxDelay: Duration? = nil,
    jitter: Double = 0,
    when: (@Sendable (_ error: FlowError, _ attempt: Int) throws -> Bool)? = nil,
    delayAfter: (@Sendable (_ error: FlowError, _ attempt: Int) throws -> Duration)? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    self.init(
      attempts: attempts, delay: delay, factor: factor, maxDelay: maxDelay, jitter: jitter,
      rule: when == nil && delayAfter == nil
        ? nil : ClosureRetryRule(when: when, delay: delayAfter), file: file, line: line)
  }

  /// Makes a policy with the rule to ask after each failure.
  package init(
    attempts: Int, delay: Duration = .zero, factor: Double = 1, maxDelay: Duration? = nil,
    jitter: Double = 0, rule: (any RetryRule)?, file: StaticString = #fileID, line: UInt = #line
  ) {
    self.attempts = attempts
    self.delay = delay
    self.factor = factor
    self.maxDelay = maxDelay
    self.jitter = jitter
    self.rule = rule
    guard attempts >= 1, delay >= .zero, factor.isFinite, factor >= 0, maxDelay ?? .zero >= .zero,
      (0...1).contains(jitter)
    else {
      misuse(
        "a RetryPolicy has at least 1 attempt, delays of at least 0, a finite factor of at least 0, "
          + "and a jitter from 0 to 1", file: file, line: line)
    }
  }

  /// Whether another attempt may follow one that failed with `error`, before the functions decide.
  func allows(attemptAfter attempt: Int, _ error: FlowError) -> Bool {
    guard attempt < attempts, error.kind.isRetriable else { return false }
    if let isRetriable = error.isRetriable { return isRetriable }
    return error.isTransient != false || rule?.questions.contains(.when) == true
  }

  /// The longest delay that an error can request where there is no limit.
  private static let longestAskedFor = Duration.seconds(60)

  /// The time before `attempt`, which is 2 or more, after `error`; `asked` is the result of a
  /// function, in seconds.
  func delay(
    before attempt: Int, asked: Double?, after error: FlowError,
    using generator: inout any RandomNumberGenerator
  ) -> Duration {
    let delay = Duration(
      clampingSeconds: varied(asked ?? grown(before: attempt), using: &generator))
    guard let least = error.retryAfter else { return delay }
    return max(delay, min(least, maxDelay ?? Self.longestAskedFor))
  }

  /// The delay in seconds, multiplied by the factor for each earlier attempt.
  private func grown(before attempt: Int) -> Double {
    guard delay > .zero else { return 0 }
    var seconds = delay.inSeconds
    let longest = maxDelay?.inSeconds
    // The exact power function would be imprecise for the usual whole factors.
    var left = attempt - 2
    while left > 0, factor != 1, seconds > 0, seconds < .greatestFiniteMagnitude {
      seconds = min(seconds * factor, .greatestFiniteMagnitude)
      left -= 1
      if let longest, factor > 1, seconds >= longest { break }
    }
    return seconds
  }

  /// A delay in seconds, within the limit and with its random share.
  private func varied(
    _ delay: Double, using generator: inout any RandomNumberGenerator
  ) -> Double {
    let longest = maxDelay?.inSeconds ?? .infinity
    let seconds = min(delay, longest)
    guard seconds > 0, jitter > 0 else { return seconds }
    let drawn = seconds * (1 + jitter * Double.random(in: -1...1, using: &generator))
    return min(max(0, drawn), longest)
  }
}

extension FlowError.Kind {
  /// Whether another attempt may succeed after this error.
  var isRetriable: Bool {
    switch self {
    case .insufficientInput, .mismatchedInput, .mismatchedOutput, .cancelled, .stalled, .usage,
      .time, .instructions:
      false
    default: true
    }
  }
}

/// Decides about another attempt after each failed one. Called on the loop's thread; it may wait.
package protocol RetryRule: AnyObject, Sendable {
  /// The questions to ask it, in this order.
  var questions: [RetryQuestion] { get }
  /// Passes the answer to a question to `completion.answer`, at once or later; `.suspended`
  /// promises a later answer.
  ///
  /// - Parameters:
  ///   - question: Whether there is another attempt, or when.
  ///   - error: The error of the last attempt.
  ///   - attempt: Its 1-based number.
  ///   - run: The run that the op is part of.
  ///   - completion: Takes the answer, or the error that ends the op.
  /// - Returns: `.finished` when it has already called `completion`.
  func answer(
    _ question: RetryQuestion, _ error: FlowError, attempt: Int, in run: Run,
    completion: CallbackCompletion
  ) -> CallState
  /// Stops waiting code of the rule because of `error`; the rule must finish sooner or later.
  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError)
  /// Where the function for a question begins, as `file:line`; nil if that isn't known.
  func place(of question: RetryQuestion) -> ByteString?
}

extension RetryRule {
  func place(of question: RetryQuestion) -> ByteString? { nil }
}

/// A question to a `RetryRule`.
package enum RetryQuestion: Sendable {
  /// Whether there is another attempt: a truth.
  case when
  /// How long to wait before it: a number of seconds.
  case delay

  /// The field of a policy that holds the function for it.
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
  private let delay: (@Sendable (FlowError, Int) throws -> Duration)?

  init(
    when: (@Sendable (FlowError, Int) throws -> Bool)?,
    delay: (@Sendable (FlowError, Int) throws -> Duration)?
  ) {
    self.when = when
    self.delay = delay
  }

  var questions: [RetryQuestion] { (when == nil ? [] : [.when]) + (delay == nil ? [] : [.delay]) }

  func answer(
    _ question: RetryQuestion, _ error: FlowError, attempt: Int, in run: Run,
    completion: CallbackCompletion
  ) -> CallState {
    do {
      switch question {
      case .when: completion.answer(try when?(error, attempt) ?? true)
      case .delay: completion.answer(seconds: try (delay?(error, attempt) ?? .zero).inSeconds)
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
