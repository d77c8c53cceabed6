/// What stops a strand, and how far out.
///
/// Levels count from the outside: frame 0 is level 0, the op that executes within all frames is level
/// `frames.count`, and `wholeStrand` is beyond all of them.
struct Stop {
  static let wholeStrand = -1

  /// The level that ends because of it.
  let level: Int
  /// What ends at that level ends with this.
  let error: FlowError
  /// What ends because something around it does ends with this.
  let inner: FlowError

  /// A stop of everything that a strand does.
  static func everything(_ error: FlowError) -> Stop {
    Stop(level: wholeStrand, error: error, inner: error)
  }

  /// A stop of one level, which what is within shows as its reason.
  static func one(_ level: Int, _ error: FlowError) -> Stop {
    Stop(level: level, error: error, inner: error.asReason)
  }

  /// With what something at `level` ends; nil when the stop is further in.
  func error(at level: Int) -> FlowError? {
    level < self.level ? nil : level == self.level ? error : inner
  }
}

/// Keeps stops of a level, and further out, away from what is within: the cleanups of an op, the final
/// steps of a flow.
struct Shield {
  let level: Int
  /// The stop that waits for its end.
  var held: Stop?
  /// The strand's `outerDeadline` outside of it.
  let deadlineAround: Int64
  /// When something busy within is cut: at the end of the grace or, while that hasn't begun, when it
  /// would end if it began with the timeout around.
  var limit: Int64 = .max
  /// The end of the grace; nil until something has stopped what encloses it.
  var graceEnd: Int64?
  /// Cuts what is within, unless the grace has no end.
  var timer: Timer?
  /// Whether the grace is over: what waits within is cut.
  var isOver = false
}

extension FlowError {
  /// What is reported of a cleanup that was cut.
  ///
  /// - Parameters:
  ///   - what: What it is, as the subject of a sentence.
  ///   - place: Where its code begins, if that is known.
  ///   - waits: What it waited in, and where, if that is known.
  ///   - isBusy: Whether it didn't wait.
  ///   - grace: The seconds that it had.
  /// - Returns: The error.
  static func cut(
    _ what: ByteString, at place: ByteString?, waits: ByteString?, isBusy: Bool, grace: Double
  ) -> FlowError {
    let place: ByteString = place.map { " at \($0)" } ?? ""
    let state: ByteString = waits.map { "waited in \($0)" } ?? (isBusy ? "was busy" : "waited")
    return FlowError(
      .error,
      """
      \(what)\(place) was cut after a grace of \(Value.text(ofSeconds: grace))s, \
      while it \(state)
      """)
  }

  /// How what is stopped because of this error ends. Of a timeout it keeps the limit.
  package var asReason: FlowError {
    if kind == .cancelled { return self }
    return FlowError(.cancelled, "cancelled: \(message)", seconds: seconds)
  }
}

/// Ends a level of a strand, or its cleanups and final steps, when their time is over.
final class LevelLimit: LimitJob {
  enum Kind { case timeout, grace }

  private let strand: Strand
  private let level: Int
  private let kind: Kind

  init(_ kind: Kind, _ strand: Strand, level: Int) {
    self.strand = strand
    self.level = level
    self.kind = kind
  }

  func run() {
    switch kind {
    case .timeout: strand.timeIsUp(level)
    case .grace: strand.graceIsOver(level)
    }
  }
}

/// Has a strand go on.
final class WakeUp: LoopJob {
  private let strand: Strand
  private let reason: Strand.Resume

  init(_ strand: Strand, _ reason: Strand.Resume) {
    self.strand = strand
    self.reason = reason
  }

  func run() { strand.timerFired(reason) }
}
