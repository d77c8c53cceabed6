internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

/// Where a job of a script is that other nodes execute, from its submission to its end.
///
/// A transition changes the state alone and returns what is to be done; `RemoteDispatcher` does it, and says the results by
/// further transitions. So each can be tested without a server and a loop. Times are those of the system's clock, in
/// nanoseconds.
struct RemoteJobState {
  /// The next step.
  enum Action {
    /// Put it into the queue, once the server has what it needs.
    case prepare
    /// Take out of the queue what is there of it, and put it there again.
    case putAgain
    /// Take it out of the queue.
    case withdraw
    /// Request that nodes stop it which had it before, up to a hand-out; `.max` for all.
    case requestStop(UInt64, Reason)
    /// Note that a node has what was last put into the queue.
    case noteHandout
    /// Say that a worker has begun it.
    case begin(ByteString)
    /// Say that the node is lost which had begun it.
    case loseNode(ByteString)
    /// Note how long it kept a worker.
    case noteTime(Int64)
    /// Get the files of what it gives, and report with `delivered`.
    case fetch([RemoteReport.News])
    /// Remove the files of a report that doesn't count.
    case removeFiles([RemoteReport.News])
    /// Pass an event on.
    case pass(WorkerReport.JobEvent.What, age: Int64)
    /// Find out which of these files nobody has sent yet, and report with `missed`.
    case look(for: [ByteString])
    /// End it: with its last event, or with an error.
    case end(End)
  }

  enum Reason { case stopped, executesElsewhere }

  enum End {
    /// With the event that a node has reported.
    case reported(WorkerReport.JobEvent.What, age: Int64)
    /// As it was to stop.
    case stopped
    /// Its nodes were lost, too often.
    case lost
    /// No node could execute it for too long.
    case unreachable
    /// Its files were deleted from the server again and again.
    case filesDeleted
  }

  /// The nodes and the server, as far as they are known when the job is looked at.
  struct World {
    var now: Int64
    /// Whether there is a connection to the server.
    var isConnected = true
    /// Whether all nodes that are there have said so.
    var knowsNodes = true
    /// Whether the node is there that has it.
    var hasItsNode = true
    /// Whether a node is there that could execute it.
    var hasNode = true
    /// Whether the script ends, or all of it is cancelled.
    var endsEverything = false
    /// How long it may wait for a node, and how long for its end after a stop.
    var patience: Int64 = 60_000_000_000
    var stopPatience: Int64 = 62_000_000_000
  }

  /// The result of a loss.
  enum Loss { case executesAgain, executesAgainAlone, isTooOften }

  /// How often it was put into the queue.
  private(set) var round: UInt64 = 0
  /// Whether the server has what it needs of files.
  private(set) var hasFiles: Bool
  /// Whether it travels alone: the node of the others was lost, and it may be the reason.
  private(set) var isAlone = false
  /// Whether the files of what it gives come.
  private(set) var isDelivering = false
  /// Whether it is to stop.
  private(set) var isStopped = false
  private(set) var hasEnded = false
  /// Where it was handed out, the latest one last: a worker, or a node as long as no worker has begun it.
  private(set) var lanes: [ByteString] = []
  /// The latest hand-out that has reported, and the reports about it.
  private var delivery: UInt64 = 0
  private var reports = RemoteReportSequence()
  /// Whether a worker of the latest hand-out has begun it.
  private var hasBegun = false
  /// How often a node was lost that had it, and the hand-out of the last one.
  private var losses = 0
  private var lostDelivery: UInt64 = 0
  /// How often the server didn't have a file any more.
  private var timesMissing = 0
  /// When it got the stop, or when it last could be executed.
  private var since: Int64

  /// How often files that a job needs are sent again because somebody has deleted them.
  private static let mostTimesMissing = 3
  /// For how many nanoseconds a job that is to stop waits in any case.
  private static let stopDelay: Int64 = 1_000_000_000

  init(hasFiles: Bool, at now: Int64) {
    self.hasFiles = hasFiles
    since = now
  }

  // MARK: The queue

  /// Whether it may be put into the queue now.
  var mayBePut: Bool { !hasEnded && !isStopped && hasFiles && !isDelivering }

  /// It is put into the queue.
  mutating func put() { round += 1 }

  /// The server has its files.
  mutating func filesAreSent(at now: Int64) -> [Action] {
    if hasEnded { return [] }
    hasFiles = true
    since = now
    return isStopped ? [] : [.prepare]
  }

  /// Takes the report of files that no node has: of each, whether it has never been sent.
  mutating func missed(isNew: [Bool]) -> [Action] {
    if isStopped { return end(.stopped) }
    if isNew.contains(false) { timesMissing += 1 }
    if timesMissing > Self.mostTimesMissing { return end(.filesDeleted) }
    hasFiles = false
    return [.withdraw, .prepare]
  }

  /// The server, or the message, is gone that had it.
  mutating func putAgain(isAlone: Bool = false) -> [Action] {
    if isAlone { self.isAlone = true }
    return round > 0 && mayBePut ? [.putAgain] : []
  }

  /// There is a connection again, after an absence of so many nanoseconds. After longer ones nodes may have dropped it,
  /// because nobody has replied for its script: if they were about to begin it, or while they executed it.
  mutating func reconnected(at now: Int64, absence: Int64) -> [Action] {
    since = now
    let isDropped: Int64 = lanes.isEmpty ? 2_000_000_000 : 20_000_000_000
    return absence > isDropped ? putAgain() : []
  }

  /// A node asks whether it is to execute a job that another one had, of this round.
  func isWanted(round: UInt64) -> Bool {
    round == self.round && !hasEnded && !isStopped && !isDelivering
  }

  /// Its node is lost, which counts once for each hand-out that has reported.
  mutating func loseNode() -> Loss {
    if lostDelivery != delivery {
      lostDelivery = delivery
      losses += 1
    }
    if losses >= RemoteQueue.mostDeliveries { return .isTooOften }
    return losses < RemoteQueue.mostDeliveries - 1 ? .executesAgain : .executesAgainAlone
  }

  /// Its nodes were lost too often.
  mutating func giveUp() -> [Action] { hasEnded ? [] : [.withdraw] + end(.lost) }

  // MARK: Reports

  /// A node has reported about it. Only reports about the latest hand-out count, and only until the end.
  mutating func take(_ report: RemoteReport, at now: Int64) -> [Action] {
    guard !hasEnded, report.delivery >= delivery, !isDelivering,
      // It was put into the queue again meanwhile; that it has succeeded before counts nevertheless.
      report.delivery >> 8 == round || (report.place == 0 && report.hasSucceeded)
    else {
      // A report that comes twice has the same files.
      let files: [Action] =
        hasEnded || report.delivery != delivery ? [.removeFiles(report.news)] : []
      return files + (report.isLast ? [] : [.requestStop(report.delivery, .executesElsewhere)])
    }
    var actions: [Action] = []
    // A report with one event and the end of the job leads to so many.
    actions.reserveCapacity(4)
    if report.delivery > delivery {
      if delivery > 0, hasBegun, !isStopped { actions.append(.loseNode(node)) }
      delivery = report.delivery
      reports = RemoteReportSequence()
      hasBegun = false
      if case .missing? = report.news.first {} else { actions += handOut(report) }
    }
    if !hasBegun, report.isOfWorker {
      hasBegun = true
      if !lanes.isEmpty { lanes[lanes.count - 1] = report.lane }
      actions.append(.begin(report.lane))
    }
    for report in reports.take(report) where !hasEnded {
      if report.took > 0 { actions.append(.noteTime(report.took)) }
      if !report.news.files.isEmpty {
        isDelivering = true
        return actions + [.fetch(report.news)]
      }
      apply(report.news, at: now, &actions)
    }
    return actions
  }

  private mutating func handOut(_ report: RemoteReport) -> [Action] {
    lanes.append(report.lane)
    let actions: [Action] = report.delivery >> 8 == round ? [.noteHandout] : []
    return isStopped ? actions + [.requestStop(.max, .stopped)] : actions
  }

  /// The files have come of what it gives: what is left of its news counts now.
  mutating func delivered(_ news: [RemoteReport.News], at now: Int64) -> [Action] {
    if hasEnded { return [] }
    isDelivering = false
    var actions: [Action] = []
    apply(news, at: now, &actions)
    return actions
  }

  private mutating func apply(
    _ news: [RemoteReport.News], at now: Int64, _ actions: inout [Action]
  ) {
    for news in news where !hasEnded {
      switch news {
      case .files: break
      case .returned: actions += isStopped ? end(.stopped) : comeBack(at: now)
      case .missing(let hashes): actions += isStopped ? end(.stopped) : [.look(for: hashes)]
      case .event(let event, let age):
        if case .ended = event {
          actions += end(.reported(event, age: age))
        } else {
          actions.append(.pass(event, age: age))
        }
      }
    }
  }

  private mutating func comeBack(at now: Int64) -> [Action] {
    var actions: [Action] = []
    if hasBegun {
      actions.append(.loseNode(node))
      hasBegun = false
    } else {
      // It was in a node, which isn't lost.
      lanes = lanes.dropLast()
    }
    since = now
    return actions + putAgain()
  }

  // MARK: The end

  /// Makes it stop. A node that has taken it without having said so receives a stop request once it does.
  mutating func stop(at now: Int64) -> [Action] {
    if isStopped || hasEnded { return [] }
    isStopped = true
    since = now
    let requests: [Action] = round > 0 ? [.requestStop(.max, .stopped)] : []
    return [.withdraw] + requests + (lanes.isEmpty || isDelivering ? end(.stopped) : [])
  }

  /// Ends it, unless it has ended.
  mutating func end(_ end: End) -> [Action] {
    if hasEnded { return [] }
    hasEnded = true
    return [.end(end)]
  }

  /// Looks whether something takes too long.
  mutating func look(_ world: World) -> [Action] {
    let wait = world.now - since
    if isStopped {
      // Without a connection the node stops it by itself; a script that ends doesn't wait for its report.
      let isUnheard = !world.hasItsNode || !world.isConnected && world.endsEverything
      let isOver = (wait > world.stopPatience || isUnheard) && wait > Self.stopDelay
      return isOver ? end(.stopped) : []
    }
    if !world.isConnected { return [] }
    if isDelivering || !hasFiles {
      since = world.now
    } else if world.knowsNodes, isHandedOutLast, !world.hasItsNode {
      return giveUp()
    } else if world.hasNode {
      since = world.now
    } else if wait > world.patience {
      return end(.unreachable)
    }
    return []
  }

  /// Whether the server doesn't hand it out again.
  private var isHandedOutLast: Bool {
    !lanes.isEmpty && delivery & 0xFF >= UInt64(RemoteQueue.mostDeliveries)
  }

  /// The node that has it, or had it last.
  var node: ByteString {
    guard let lane = lanes.last else { return "a node" }
    let slash = lane.bytes.lastIndex(of: UInt8(ascii: "/")) ?? lane.bytes.endIndex
    return ByteString(lane.bytes[..<slash])
  }
}

/// The reports about one hand-out of a job, in the order in which its node has sent them: the server delivers one
/// that was lost with a connection again after a while, when later ones have come. One may come twice.
struct RemoteReportSequence {
  /// How many have counted.
  private var count: UInt64 = 0
  /// Those that wait for earlier ones, by their place.
  private var early: [UInt64: RemoteReport] = [:]

  /// Takes a report, and returns those that count now.
  mutating func take(_ report: RemoteReport) -> [RemoteReport] {
    if report.news.isEmpty { return [] }
    // Nothing of those before it counts.
    if report.startsOver { return [report] }
    guard report.place >= count else { return [] }
    if report.place == count, early.isEmpty {
      count += 1
      return [report]
    }
    early[report.place] = report
    var next: [RemoteReport] = []
    while let report = early.removeValue(forKey: count) {
      next.append(report)
      count += 1
    }
    return next
  }
}
