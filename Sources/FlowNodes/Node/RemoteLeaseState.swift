internal import FlowEngine
internal import FlowRemote
internal import FlowScripting

/// Where a job of a script is that a worker of this node executes, and how its reports are.
///
/// A transition changes the state alone and returns what is to be done, which `RemoteLease` does; so each can be tested
/// without a server, workers and files. Times are those of the system's clock, in nanoseconds.
struct RemoteLeaseState {
  enum Phase {
    /// Its code and its files come, or those of others of its message.
    case preparing
    /// It waits for a worker.
    case waiting
    /// A worker has begun it.
    case executing
    /// The files of what it gives are sent.
    case sendingFiles
    /// Nothing of it is executed any more; its last report may be left.
    case ended
  }

  /// The next step.
  enum Action: Equatable {
    case nothing
    /// Give it back to its script, for this reason, and forget it among the tasks of workers if no worker has it.
    case handBack(ByteString, forgets: Bool)
    /// Stop it where it is.
    case stop
    /// Report that it ends with the error: no worker has it that could be stopped.
    case fail
    /// Remove a folder that a worker has made too late.
    case removeFolder
    /// Remove the folder with what else it has.
    case keepFolder
    /// Keep what it gives until it has succeeded: files of it have to be sent.
    case hold
    /// Send the files of what it gives, then report its end.
    case sendFiles
    /// Report the event; it may be the end.
    case report, reportEnd
    /// Send what has happened since the last report.
    case flush
    /// Its last report is stored: the queue may forget it.
    case conclude
    /// Send the same report again after a pause.
    case sendAgain
    /// Report that its result can't be sent.
    case refuse
  }

  /// A worker's message about it.
  enum Event {
    case other, folder
    /// A value with files among those that it gives.
    case files
    case succeeded, failed
    /// A success whose results can't be sent, as they have a secret.
    case refused
  }

  private(set) var phase = Phase.waiting
  /// When a worker began it; 0 before.
  private(set) var began: Int64 = 0
  /// How many reports the server has stored.
  private(set) var reports: UInt64 = 0
  /// Whether a report is on its way.
  private(set) var isSending = false
  /// Why it goes back to its script once it has been stopped; nil when it doesn't.
  private var returning: ByteString?
  private var holdsFiles = false
  /// How often the server had no room for a report.
  private var refusals = 0
  private let arrived: Int64

  /// After so many a result that the server has no room for is a failure.
  private static let mostRefusals = 5

  init(at now: Int64) { arrived = now }

  var hasEnded: Bool { phase == .ended }
  /// Whether it waits for code or files that come, or for files that are sent: no worker has it then.
  var movesFiles: Bool { phase == .preparing || phase == .sendingFiles }
  /// Whether no worker has it, and it waits for one.
  var isWaiting: Bool { phase == .waiting }
  /// Whether a worker has it.
  var isExecuting: Bool { phase == .executing }

  // MARK: Files and workers

  mutating func prepare() { phase = .preparing }

  /// All that it and others of its message need is there, and a pool gets them; false if it has ended meanwhile.
  mutating func prepared() -> Bool {
    guard phase == .preparing else { return false }
    phase = .waiting
    return true
  }

  /// A worker begins it.
  mutating func begin(at now: Int64) {
    began = now
    if phase == .waiting { phase = .executing }
  }

  mutating func take(_ event: Event) -> Action {
    if hasEnded { return event == .folder ? .removeFolder : .nothing }
    if let returning, event == .failed { return handBack(returning) }
    switch event {
    case .other: return .report
    case .folder: return .keepFolder
    case .files:
      holdsFiles = true
      return .hold
    case .succeeded where holdsFiles:
      phase = .sendingFiles
      return .sendFiles
    case .succeeded, .failed, .refused:
      phase = .ended
      return .reportEnd
    }
  }

  /// Its worker is lost, or something that it needs.
  mutating func lose() -> Action {
    if hasEnded { return .nothing }
    if let returning { return handBack(returning) }
    phase = .ended
    return .reportEnd
  }

  /// The files of what it gives are sent.
  mutating func sentFiles() { phase = .ended }

  /// Neither this node nor the server has a file that it needs.
  mutating func miss() { phase = .ended }

  // MARK: The end before its end

  /// Its script, or this node, doesn't want it to continue.
  func stop() -> Action {
    if hasEnded { return .nothing }
    return movesFiles ? .fail : .stop
  }

  /// It goes back to its script: after its stop, with its cleanups, unless this is the second call.
  mutating func giveBack(_ reason: ByteString) -> Action {
    guard returning == nil, isExecuting else { return handBack(reason) }
    returning = reason
    return .stop
  }

  /// It goes back at once.
  mutating func handBack(_ reason: ByteString) -> Action {
    if hasEnded { return .nothing }
    phase = .ended
    return .handBack(reason, forgets: began == 0)
  }

  /// Whether it goes back because it has waited since before a time.
  func mayBeWithdrawn(waitingSince time: Int64) -> Bool { arrived < time && !hasEnded }

  /// Nobody waits for it any more. Its stop, if a worker has it, is reported to nobody.
  mutating func abandon() -> Action {
    defer { phase = .ended }
    return isExecuting ? .stop : .nothing
  }

  // MARK: Reports

  /// A report is sent.
  mutating func send() { isSending = true }

  /// The server, or the script, has the report.
  mutating func stored(isLast: Bool) -> Action {
    (isSending, refusals) = (false, 0)
    reports += 1
    return isLast ? .conclude : .flush
  }

  /// The report wasn't taken; `isRefused`: the server has no room for it.
  mutating func notStored(isRefused: Bool) -> Action {
    if isRefused { refusals += 1 }
    if refusals <= Self.mostRefusals { return .sendAgain }
    refusals = 0
    // The end of one that executes is the next report.
    isSending = hasEnded
    return .refuse
  }
}
