/// The outcomes of a run's ops, by their places in the blueprint: a view of the event log.
final class RunOutcomes {
  /// A place of the blueprint, nested flows included; the items of a group share theirs.
  struct Place: Hashable {
    fileprivate let number: Int

    static let root = Place(number: 0)
  }

  private struct Step: Hashable {
    let place: Place
    let position: UInt32
  }

  /// The common data of the executions at one place.
  private struct Tally {
    var running = 0
    var succeeded = 0
    var failed = 0
    var cancelled = 0
    /// How many of those that succeeded weren't executed, because a kept run has their results.
    var kept = 0
    /// How many were undone, and how many undos have failed.
    var undone = 0
    var undosFailed = 0
    /// How many of those that succeeded the log doesn't have any more.
    var dropped = 0
    /// How many of the running ones wait for their next attempt.
    var waiting = 0
    /// The outcome of the execution that started or ended last.
    var last = FlowGraph.Outcome.notReached
    var lastDuration: Int64 = 0
    var isLastKept = false
    var lastAttempt = 1
    /// The durations of the ended executions, in nanoseconds.
    var durations: ContiguousArray<Int64> = []
    /// For a group: the start of the first execution, the latest end of an item, and the durations
    /// of the finished groups.
    var began = Int64.max
    var ended = Int64.min
    var spans: ContiguousArray<Int64> = []
    /// How many groups haven't ended.
    var openGroups = 0

    var count: Int { running + succeeded + failed + cancelled }
  }

  private var steps: [Step: Place] = [:]
  private var tallies: [Place: Tally] = [:]
  /// The start times of groups that haven't ended, by their scopes.
  private var openGroups: [Step: Int64] = [:]
  /// The executions that are kept.
  private var keptOnes: Set<Step> = []
  /// The executions that wait for their next attempt.
  private var waiting: Set<Step> = []
  private let isPending: Bool
  /// The decisions of cases.
  private var cases: [Place: (outcome: FlowGraph.Outcome, text: ByteString)] = [:]

  init(_ log: EventLog, isPending: Bool) {
    self.isPending = isPending
    var places: ContiguousArray<Place> = []
    for scope in log.scopes {
      let parent = Int(scope.parent)
      guard scope.kind != .top, parent < places.count else {
        places.append(.root)
        continue
      }
      // An attempt at the top, or an item, whose position is its index.
      let isShared =
        scope.position == LogRecord.ownPosition || log.scopes[parent].kind == .group
      places.append(isShared ? places[parent] : place(in: places[parent], scope.position))
    }
    log.bound.executions.forEach { scope, position, count in
      let kind = log.scopes[Int(scope)].kind
      guard kind != .child, kind != .inner else { return }
      let own = places[Int(scope)]
      let place = position == LogRecord.ownPosition ? own : place(in: own, position)
      tallies[place, default: Tally()].succeeded += count
      tallies[place]?.dropped += count
      tallies[place]?.last = .succeeded
    }
    var reader = EventLog.Place()
    while let record = log.record(at: &reader) {
      let scope = log.scopes[Int(record.scope)]
      let own = places[Int(record.scope)]
      // Records of a run that an op has started aren't about a step; nor are those of an inner op.
      if scope.kind == .child || scope.kind == .inner { continue }
      let isOwn = record.position == LogRecord.ownPosition || scope.kind == .group
      add(record, at: isOwn ? own : place(in: own, record.position), log)
    }
  }

  /// The place of a step.
  func place(in flow: Place, _ position: UInt32) -> Place {
    let step = Step(place: flow, position: position)
    if let known = steps[step] { return known }
    let made = Place(number: steps.count + 1)
    steps[step] = made
    return made
  }

  private func add(_ record: LogRecord, at place: Place, _ log: EventLog) {
    switch record.kind {
    case .start:
      tallies[place, default: Tally()].running += 1
      tallies[place]?.last = .running
    case .retry:
      if waiting.insert(execution(of: record)).inserted { tallies[place]?.waiting += 1 }
    case .attempt: endWait(of: record, at: place)
    case .kept: keptOnes.insert(execution(of: record))
    case .undo:
      if record.firstPayload.tag == .none {
        tallies[place]?.undone += 1
      } else {
        tallies[place]?.undosFailed += 1
      }
    case .finish:
      tallies[place]?.running -= 1
      endWait(of: record, at: place)
      finish(place, FlowGraph.Outcome(log.loggedOutcome(of: record).state), at: record.time)
      if keptOnes.remove(execution(of: record)) != nil {
        tallies[place]?.kept += 1
        tallies[place]?.isLastKept = true
        return
      }
      tallies[place]?.isLastKept = false
      tallies[place]?.lastDuration = Int64(bitPattern: record.second)
      tallies[place]?.durations.append(Int64(bitPattern: record.second))
      tallies[place]?.lastAttempt = record.attempt
    case .groupCreated:
      openGroups[execution(of: record)] = record.time
      let began = tallies[place]?.began ?? .max
      tallies[place, default: Tally()].began = min(began, record.time)
      tallies[place]?.openGroups += 1
    case .groupFinished:
      guard let began = openGroups.removeValue(forKey: execution(of: record)) else { return }
      tallies[place]?.spans.append(record.time &- began)
      tallies[place]?.openGroups -= 1
    case .groupStopped:
      if openGroups.removeValue(forKey: execution(of: record)) != nil {
        tallies[place]?.openGroups -= 1
      }
    case .groupEmpty, .groupRefused:
      // No item of the group would show that.
      finish(place, .failed, at: record.time)
    case .caseMatched: cases[place] = (.succeeded, log.text(record.firstPayload))
    case .noCase: cases[place] = (.succeeded, "no case matched")
    case .caseFailed: cases[place] = (.failed, "failed")
    default: break
    }
  }

  /// Identifies an execution, or a group, among others at its place.
  private func execution(of record: LogRecord) -> Step {
    Step(place: Place(number: Int(record.scope)), position: record.position)
  }

  private func endWait(of record: LogRecord, at place: Place) {
    if waiting.remove(execution(of: record)) != nil { tallies[place]?.waiting -= 1 }
  }

  private func finish(_ place: Place, _ outcome: FlowGraph.Outcome, at time: Int64) {
    var tally = tallies[place, default: Tally()]
    switch outcome {
    case .succeeded: tally.succeeded += 1
    case .cancelled: tally.cancelled += 1
    default: tally.failed += 1
    }
    tally.last = outcome
    tally.ended = max(tally.ended, time)
    tallies[place] = tally
  }

  /// The outcome at a place, and the text of its label; for a group, of all items together.
  func outcome(
    at place: Place, isGrouped: Bool
  ) -> (outcome: FlowGraph.Outcome, text: ByteString) {
    guard let tally = tallies[place], tally.count > 0 else { return (.notReached, "not reached") }
    return isGrouped ? Self.ofItems(tally) : Self.ofLast(tally)
  }

  /// The decision of cases.
  func caseOutcome(at place: Place) -> (outcome: FlowGraph.Outcome, text: ByteString) {
    cases[place] ?? (.notReached, "not reached")
  }

  private static func ofLast(
    _ tally: Tally
  ) -> (outcome: FlowGraph.Outcome, text: ByteString) {
    if tally.last == .running {
      return (.running, tally.waiting > 0 ? "waiting for its next attempt" : "running")
    }
    if tally.dropped == tally.count { return (.succeeded, "succeeded, dropped from the log") }
    var text: ByteString =
      tally.isLastKept ? "kept" : "\(tally.last.name) in \(seconds(tally.lastDuration))"
    if tally.lastAttempt > 1 { text = "\(text), attempt \(tally.lastAttempt)" }
    if tally.count > 1 { text = "\(text), last of \(tally.count)" }
    if tally.undone > 0 { text = "\(text), undone" }
    if tally.undosFailed > 0 { text = "\(text), couldn't be undone" }
    return (tally.last, text)
  }

  private static func ofItems(
    _ tally: Tally
  ) -> (outcome: FlowGraph.Outcome, text: ByteString) {
    let counts: [(Int, ByteString)] = [
      (tally.succeeded - tally.kept, FlowGraph.Outcome.succeeded.name), (tally.kept, "kept"),
      (tally.failed, FlowGraph.Outcome.failed.name),
      (tally.cancelled, FlowGraph.Outcome.cancelled.name),
      (tally.running - tally.waiting, FlowGraph.Outcome.running.name),
      (tally.waiting, "waiting for the next attempt"),
    ]
    var text: ByteString = ""
    for (count, outcome) in counts where count > 0 {
      text = "\(text)\(text.isEmpty ? "" : ", ")\(count) \(outcome)"
    }
    // The duration of a single item: the time from the first to the last is shown for the group.
    if tally.running == 0, !tally.durations.isEmpty {
      text = "\(text) in \(seconds(Durations.median(of: tally.durations)))"
      if tally.durations.count > 1 { text = "\(text) (median)" }
    }
    if tally.undone > 0 { text = "\(text), \(tally.undone) undone" }
    if tally.undosFailed > 0 { text = "\(text), \(tally.undosFailed) couldn't be undone" }
    let outcome: FlowGraph.Outcome =
      tally.failed > 0
      ? .failed : tally.running > 0 ? .running : tally.cancelled > 0 ? .cancelled : .succeeded
    return (outcome, text)
  }

  /// The text of a group's box: the number of its items and its duration; the median of these for
  /// several groups at one place.
  func groupText(at place: Place) -> ByteString {
    guard let tally = tallies[place], tally.count > 0 || tally.began != .max else {
      return "not reached"
    }
    if tally.began == .max {
      return tally.dropped > 0 ? "\(tally.dropped) items, dropped from the log" : "couldn't begin"
    }
    // Its next items may wait for their turn.
    if tally.running > 0 || isPending && tally.openGroups > 0 { return "running" }
    let items: ByteString = "\(tally.count) item\(tally.count == 1 ? "" : "s")"
    if tally.spans.count > 1 {
      let span = Self.seconds(Durations.median(of: tally.spans))
      return "\(items) of \(tally.spans.count) groups, each in \(span) (median)"
    }
    // A group that was stopped ends with its last item.
    let span = tally.spans.first ?? max(0, tally.ended &- tally.began)
    return "\(items) in \(Self.seconds(span))"
  }

  private static func seconds(_ nanoseconds: Int64) -> ByteString {
    "\(FlowValue.text(ofSeconds: Double(nanoseconds) / 1e9))s"
  }
}

extension FlowGraph.Outcome {
  /// The outcome of an ended execution.
  init(_ state: LoggedOutcome.State) {
    self =
      switch state {
      case .succeeded: .succeeded
      case .failed: .failed
      case .cancelled: .cancelled
      }
  }

  /// The name in labels.
  var name: ByteString {
    switch self {
    case .running: "running"
    case .succeeded: "succeeded"
    case .failed: "failed"
    case .cancelled: "cancelled"
    case .notReached: "not reached"
    }
  }
}
