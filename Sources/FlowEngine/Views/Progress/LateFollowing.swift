/// The end of a run, as a tree needs it.
struct RunEnd {
  /// The message of a failed run.
  var failure: ByteString?
  /// Whether it hasn't succeeded.
  var isStopped = false

  init(of run: Run) {
    isStopped = run.state != .succeeded
    if run.state == .failed, let error = run.error, error.kind != .cancelled {
      failure = error.messageBytes
    }
  }
}

/// What a tree knows as long as it follows no runs, because none is executed for long.
final class LateFollowing {
  /// A run that has ended, and whose log has failures, or is that of the op that has started such a run.
  struct EndedRun {
    let log: EventLog
    let id: UInt64
    /// Its scope in the log of the op that has started it.
    let outer: (log: EventLog, scope: UInt32)?
    let time: Int64
    let end: RunEnd
  }

  /// For how long runs have to be in progress, in nanoseconds.
  let delay: Int64

  // Unchecked exclusivity: see HotPath.swift.

  /// Since when runs are in progress without a pause; nil if none was at the last look.
  @exclusivity(unchecked) var began: Int64?
  @exclusivity(unchecked) var isFollowing = false
  @exclusivity(unchecked) var ended: [EndedRun] = []
  /// The last run whose end was in the log of the op that has started it.
  @exclusivity(unchecked) var lastInner: UInt64 = 0
  /// Runs without nodes that were followed before, and haven't concluded.
  @exclusivity(unchecked) var forgotten: Set<UInt64> = []

  init(delay: Int64) { self.delay = delay }

  /// How many runs that have ended are kept.
  static let endedLimit = 500

  /// Whether the log of the op that has started an ended run is needed.
  func needs(_ log: EventLog) -> Bool { ended.contains { $0.outer?.log === log } }
}
