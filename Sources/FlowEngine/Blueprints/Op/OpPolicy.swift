/// What happens to an op of a kept run that an earlier process may have executed already.
public enum OpEffect: String, CaseIterable, Sendable {
  /// It is executed again, with the same key.
  case `repeat`
  /// It isn't executed again unless somebody says so.
  case once
}

/// How often an op is tried, how long, and how it is undone. An op without any of these has no policy.
///
/// Confined to one thread, like its op.
final class OpPolicy {
  let retry: RetryPolicy?
  /// The time that an attempt may take.
  let timeout: Duration?
  /// The time that the cleanups have after a stop; nil for the loop's default.
  let grace: Duration?
  /// What a kept run does about it; nil for `repeat`.
  let effect: OpEffect?
  /// Which results may come from another run; nil for none.
  let cache: CachePolicy?
  /// Undoes the op when a later one fails.
  let undo: (any OpBody)?
  /// Whether it is the policy of an undo.
  let isOfUndo: Bool
  /// Whether it is the policy of a computation whose end isn't logged.
  let isUnlogged: Bool

  private init(
    retry: RetryPolicy?, timeout: Duration?, grace: Duration?, effect: OpEffect?,
    cache: CachePolicy?, undo: (any OpBody)?, isOfUndo: Bool = false, isUnlogged: Bool = false
  ) {
    self.retry = retry
    self.timeout = timeout
    self.grace = grace
    self.effect = effect
    self.cache = cache
    self.undo = undo
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
      cache: policy?.cache, undo: fake.undo)
  }

  /// Makes a policy from `base` and the values that replace parts of it; nil when the result would
  /// be empty.
  static func make(
    _ base: OpPolicy?, retry: RetryPolicy? = nil, timeout: Duration? = nil, grace: Duration? = nil,
    effect: OpEffect? = nil, cache: CachePolicy? = nil, undo: (any OpBody)? = nil,
    file: StaticString = #fileID, line: UInt = #line
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
    return made(
      retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache, undo: undo)
  }

  /// nil when nothing is set.
  private static func made(
    retry: RetryPolicy?, timeout: Duration?, grace: Duration?, effect: OpEffect?,
    cache: CachePolicy?, undo: (any OpBody)?
  ) -> OpPolicy? {
    if retry == nil && timeout == nil && grace == nil && effect == nil && cache == nil
      && undo == nil
    {
      return nil
    }
    return OpPolicy(
      retry: retry, timeout: timeout, grace: grace, effect: effect, cache: cache, undo: undo)
  }
}

/// A generator of random numbers that draws the same ones from the same seed (SplitMix64).
///
/// Set one as `EventLoop.randomNumberGenerator` to make the jitter of retries predictable.
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
