/// A stop of an execution, and the level that it reaches.
///
/// Levels count from the outside: frame 0 is level 0, the op that executes within all frames is level
/// `frames.count`, and `everything` is beyond all of them.
struct Stop {
  static let everything = -1

  /// The level that ends because of the stop.
  let level: Int
  /// The error that this level ends with.
  let error: FlowError
  /// The error that inner levels end with.
  let inner: FlowError

  /// A stop of everything that an execution does.
  static func everything(_ error: FlowError) -> Stop {
    Stop(level: everything, error: error, inner: error)
  }

  /// A stop of one level, which inner levels show as their reason.
  static func one(_ level: Int, _ error: FlowError) -> Stop {
    Stop(level: level, error: error, inner: error.asReason)
  }

  /// The error that code at `level` ends with; nil when the stop is of an inner level.
  func error(at level: Int) -> FlowError? {
    level < self.level ? nil : level == self.level ? error : inner
  }
}
