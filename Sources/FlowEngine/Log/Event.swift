/// One event of a run, made from the log when somebody looks.
public struct Event: Sendable {
  /// What an event tells. `message`, `key`, `value`, … are nil where nothing is said of them.
  public enum Kind: UInt8, Sendable, CaseIterable {
    /// An op, or a flow within another, begins.
    case start
    /// It has ended; `message` is the text behind `DidFinish: `, such as `successfully`.
    case finish
    /// It said `message`.
    case log
    /// `key` was added with `value`.
    case set
    /// `key` has `value` in place of `oldValue`.
    case replace
    /// `key` was removed.
    case remove
    /// An attempt failed and another is to come; `message` is the line's text.
    case retry
    /// A group began, ended, stopped or couldn't begin; `message` is the line's text.
    case group
    /// Cases were decided; `message` names the branch, or says why there is none.
    case `case`
    /// A machine went to another step; `message` is the line's text.
    case transition
    /// A machine's state changed to `value`; `message` is the line's text.
    case state
    /// An op has done `done` of `total`.
    case progress

    /// The name that scripts use.
    public var name: ByteString { Self.names[Int(rawValue)] }

    /// Made once: a list of a million events asks as often.
    private static let names: [ByteString] = allCases.map { kind in
      ByteString(String(describing: kind))
    }
  }

  /// Seconds since the run began.
  public let time: Double
  /// What it tells.
  public let kind: Kind
  /// The name of the op it is about.
  public let op: ByteString
  /// The op's 1-based index in a group, 0 outside of one.
  public let index: Int
  /// 1-based.
  public let attempt: Int
  /// What is said in words; see `Kind`.
  public let message: ByteString?
  /// The key of a `set`, `replace` or `remove`.
  public let key: ByteString?
  /// The text of the value that was set, or of a machine's new state, as a line shows it; of a secret
  /// `<redacted>`.
  public let value: ByteString?
  /// The text of the value that was replaced.
  public let oldValue: ByteString?
  /// How much of a `progress` is done.
  public let done: Double?
  /// How much of a `progress` there is, if that is known.
  public let total: Double?
}

/// Gets each event of a run as it happens, on the loop's thread: a journal, a live display.
public protocol EventSink: AnyObject {
  /// `value` is the whole value of a `set` or `replace`, where the event has a text only; a secret,
  /// and what contains one, comes as a `SecretValue`.
  func append(_ event: Event, value: Value?, in log: EventLog)
}

/// The events of a log, each made when it is reached.
public struct EventSequence: Sequence {
  let log: EventLog

  public struct Iterator: IteratorProtocol {
    let log: EventLog
    var place = EventLog.Place()

    public mutating func next() -> Event? {
      while let record = log.record(at: &place) {
        if let event = log.event(of: record) { return event }
      }
      return nil
    }
  }

  public func makeIterator() -> Iterator { Iterator(log: log) }
}

extension EventLog {
  /// What happened, in order. The lists of a run's data at its begin and end are no events.
  public var events: EventSequence { EventSequence(log: self) }

  func event(of record: LogRecord) -> Event? {
    let kind: Event.Kind
    var message: ByteString?
    switch record.kind {
    case .startWith, .endWith, .snapshotEntry: return nil
    case .start, .executed: kind = .start
    case .finish:
      kind = .finish
      message = outcome(of: record)
    case .log:
      kind = .log
      message = text(record.firstPayload)
    case .add: kind = .set
    case .replace: kind = .replace
    case .remove: kind = .remove
    case .groupCreated, .groupFinished, .groupStopped, .groupEmpty, .groupRefused:
      kind = .group
      message = groupMessage(of: record).text
    case .retry:
      kind = .retry
      message = text(record.firstPayload)
    case .caseMatched, .noCase, .caseFailed:
      kind = .case
      message = caseMessage(of: record)
    case .progress: kind = .progress
    case .transition:
      kind = .transition
      message = text(record.firstPayload)
    case .state:
      kind = .state
      message = "state: \(text(record.firstPayload))"
    }
    let isSet = kind == .set || kind == .replace
    let (op, index) = op(of: record)
    return Event(
      time: Double(record.time - began) / 1e9, kind: kind, op: shown(op.name), index: index,
      attempt: record.attempt, message: message,
      key: isSet || kind == .remove ? shown(keys.name(of: Key(id: record.key))) : nil,
      value: isSet || kind == .state ? text(record.firstPayload) : nil,
      oldValue: kind == .replace ? text(record.secondPayload) : nil,
      done: kind == .progress ? record.firstPayload.number : nil,
      total: kind == .progress ? record.secondPayload.number : nil)
  }

  /// What an event says about cases, and a line behind `[Cases] `.
  func caseMessage(of record: LogRecord) -> ByteString {
    switch record.kind {
    case .noCase: "no case is matched. finished in early."
    case .caseFailed: "DidFinish: \(text(record.firstPayload))"
    default: text(record.firstPayload)
    }
  }

  private static let success: ByteString = "successfully"

  /// The text behind `DidFinish: `.
  func outcome(of record: LogRecord) -> ByteString {
    record.firstPayload.tag == .none ? Self.success : text(record.firstPayload)
  }

  /// Who speaks in a line about a group, and what it says.
  func groupMessage(of record: LogRecord) -> (speaker: ByteString, text: ByteString) {
    let payload = text(record.firstPayload)
    return switch record.kind {
    case .groupCreated: ("FlowArrayGroupDispatcher", "group created: \(payload)")
    case .groupFinished:
      ("FlowArrayGroupDispatcher", "all finished. output size: \(payload)")
    case .groupStopped: ("Group", "not allow failure in group. stop immediately.")
    case .groupRefused: ("Group", "DidFinish: \(payload)")
    default: ("Group", payload)
    }
  }
}
