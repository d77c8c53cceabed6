internal import FlowLoop

// Runs cost nothing more as long as they aren't followed. A tree that follows them late reads their logs when
// they have been in progress for a while, and is their sink from then on. Its nodes and notices are those that it
// would have if it had followed all from the start: it also reads the logs of ended runs with failures, and it
// begins earlier when a log is about to drop events, or when too many ended runs have failures.
extension ProgressTree: RunWatch {
  /// Follows runs once the loop has been executing some without a pause for this long. The loop has to have the
  /// system's clock; the tree must not be among its sinks.
  ///
  /// - Parameter delay: The time in nanoseconds.
  package func followLate(after delay: Int64) {
    late = LateFollowing(delay: delay)
    loop.engine.runWatch = self
  }

  /// Since when runs are in progress without a pause; nil if that isn't known.
  package var inProgressSince: Int64? { late?.began }

  /// Begins to follow what is in progress if its time has come.
  ///
  /// - Returns: The nanoseconds until then; nil if nothing is in progress, or if it is followed.
  package func followIfDue(at time: Int64) -> Int64? {
    guard let late, !late.isFollowing, let began = sinceWhenRunsArePending(late) else { return nil }
    let due = began.later(by: late.delay)
    if time < due { return due - time }
    follow(late)
    return nil
  }

  private func sinceWhenRunsArePending(_ late: LateFollowing) -> Int64? {
    if let began = late.began { return began }
    late.began = unfollowedRuns(late).map(\.log.began).min()
    return late.began
  }

  private func unfollowedRuns(_ late: LateFollowing) -> [Run] {
    loop.engine.pending.values.filter { !late.forgotten.contains($0.id) }
  }

  // MARK: The watch

  func look(at time: Int64) { _ = followIfDue(at: time) }

  func logWillDrop(_ log: EventLog) {
    if let late, !late.isFollowing, sinceWhenRunsArePending(late) != nil { follow(late) }
  }

  func innerRunEnds(_ run: Run, in log: EventLog, scope: UInt32, at time: Int64) {
    guard let late, !late.isFollowing else { return }
    late.lastInner = run.id
    keep(run, in: (log, scope), at: time, late)
  }

  func runConcluded(_ run: Run) {
    guard let late else { return }
    if !late.forgotten.isEmpty { late.forgotten.remove(run.id) }
    if late.isFollowing { return }
    if loop.engine.pending.count == late.forgotten.count {
      late.began = nil
      if !late.ended.isEmpty { late.ended = [] }
    } else if run.id != late.lastInner, !late.ended.contains(where: { $0.log === run.log }) {
      keep(run, in: nil, at: loop.now(), late)
    }
  }

  /// Keeps the log of a run that has ended, if there is a failure to report.
  private func keep(
    _ run: Run, in outer: (log: EventLog, scope: UInt32)?, at time: Int64, _ late: LateFollowing
  ) {
    guard run.state == .failed || run.log.hasFailures || late.needs(run.log) else { return }
    late.ended.append(
      LateFollowing.EndedRun(
        log: run.log, id: run.id, outer: outer, time: time, end: RunEnd(of: run)))
    if late.ended.count >= LateFollowing.endedLimit { follow(late) }
  }

  // MARK: Following

  private func follow(_ late: LateFollowing) {
    let ended = late.ended
    late.ended = []
    late.isFollowing = true
    let runs = unfollowedRuns(late).sorted { $0.id < $1.id }
    pauseChanges()
    var replay = ProgressReplay(self)
    for run in ended {
      replay.add(run.log, id: run.id, in: run.outer, end: (run.time, run.end))
    }
    let known = Set(ended.map { ObjectIdentifier($0.log) })
    for run in runs where !known.contains(ObjectIdentifier(run.log)) {
      replay.add(run.log, id: run.id, in: run.outer.map { ($0.run.log, $0.scope) }, end: nil)
    }
    replay.perform()
    for run in runs {
      run.log.add(self)
      for group in run.executingGroups { groupStarted(group) }
    }
    loop.eventSinks.append(self)
    change(at: loop.now())
  }

  /// Follows no further runs until they are executed for long again.
  func stopFollowing() {
    guard let late, late.isFollowing else { return }
    late.isFollowing = false
    late.began = nil
    loop.eventSinks.removeAll { $0 === self }
    // Callbacks after the end of such a run may still execute.
    let pending = loop.engine.pending
    for run in pending.values { run.log.remove(self) }
    late.forgotten = Set(pending.keys)
  }
}

/// The end of a run, as a tree needs it.
struct RunEnd {
  /// The message of a failed run.
  var failure: ByteString?
  /// Whether it hasn't succeeded.
  var isStopped = false

  init(of run: Run) {
    isStopped = run.state != .succeeded
    if run.state == .failed, let error = run.error, error.kind != .cancelled {
      failure = error.message
    }
  }
}

/// The state of a tree as long as it follows no runs, because none is executed for long.
final class LateFollowing {
  /// A run that has ended, and whose log has failures, or is the one of the op that has started such a run.
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
