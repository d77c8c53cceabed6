/// One event of a run, made from the log when it is read.
///
/// ```swift
/// for event in run.events where event.kind == .retry { print(event.path, event.message ?? "") }
/// ```
public struct RunEvent: Sendable {
  /// The kind of an event. `message`, `key`, `value`, … are nil where they don't apply.
  public enum Kind: UInt8, Sendable, CaseIterable {
    /// An op, or a flow within another, starts.
    case start
    /// It has ended; `message` is the text after `DidFinish: `, such as `successfully`.
    case finish
    /// It logged `message`.
    case log
    /// `key` was added with `value`.
    case set
    /// The value of `key` changed from `oldValue` to `value`.
    case replace
    /// `key` was removed.
    case remove
    /// An attempt failed and another follows; `message` is the line's text.
    case retry
    /// A group started, ended, stopped or couldn't start; `message` is the line's text.
    case group
    /// Cases were decided; `message` names the branch, or gives the reason why there is none.
    case `case`
    /// A machine went to another step; `message` is the line's text.
    case transition
    /// A machine's state changed to `value`; `message` is the line's text.
    case state
    /// An op has done `done` of `total` units.
    case progress
    /// A program of the op has started; `message` is its command.
    case programStart
    /// A program of the op has ended; `message` is its command.
    case program
    /// An HTTP request of the op has started; `message` is its method and URL.
    case requestStart
    /// An HTTP request of the op has ended; `message` is its method and URL.
    case request
    /// A wait of the op's code has ended; `message` is what it was for. Only while `--trace` is given to flowlua.
    case wait
    /// The op was undone, because its flow fails; `message` is the text after `Undo: `, such as
    /// `successfully`.
    case undo
    /// The undo of the op starts.
    case undoStart
    /// The op isn't executed, because a kept run has its result; `message` is the line's text.
    case kept

    /// The name that scripts use.
    public var name: ByteString { Self.names[Int(rawValue)] }

    /// Made once, because reading a list of a million events needs it as often.
    private static let names = allCases.map { ByteString(scriptName: $0) }
  }

  /// The time since the run started.
  public var time: Duration { .nanoseconds(nanoseconds) }
  /// The nanoseconds of `time`.
  let nanoseconds: Int64
  /// The seconds of `time`.
  package var seconds: Double { Double(nanoseconds) / 1e9 }
  /// The kind of the event.
  public let kind: Kind
  /// The id of the execution that the event is about, unique in the run: all events of the
  /// execution share it, in every attempt. 0 for the run itself.
  public let id: UInt64
  /// The id of the flow, group or op that encloses the execution; nil for the run itself.
  public let parent: UInt64?
  /// The path of the execution in the run: `publish/ShardsOp #2/CountOp #1`.
  public let path: ByteString
  /// The id of the run, unique across processes.
  public let run: ByteString
  /// The worker that executes it, counted from 1; 0 for the loop itself.
  package let lane: Int
  /// The name of the lane; nil for a worker of this process, and for the loop itself.
  package let laneName: ByteString?
  /// For the `start` of an item, the time from the run's start to the group's, when the item
  /// could have started.
  public let queued: Duration?
  /// The name of the op that the event is about.
  public let op: ByteString
  /// The op's 1-based index in a group, 0 outside of one.
  public let index: Int
  /// The label of the item, if its group gives labels.
  public let label: ByteString?
  /// The 1-based number of the attempt.
  public let attempt: Int
  /// The event in words; see `Kind`.
  public let message: ByteString?
  /// The key of a `set`, `replace` or `remove`.
  public let key: ByteString?
  /// The text of the value that was set, or of a machine's new state, as a line shows it;
  /// `<redacted>` for a secret.
  public let value: ByteString?
  /// The text of the value that was replaced.
  package let oldValue: ByteString?
  /// How much of a `progress` is done.
  public let done: Double?
  /// The total of a `progress`, if that is known.
  public let total: Double?
  /// Of a `program`, a `request` and the start of one.
  package let work: LoggedWork?
  /// Of an `undo`.
  package let undo: LoggedUndo?
}

extension ByteString {
  /// The name of a case as Lua writes it: `undo_start`.
  fileprivate init(scriptName value: some Any) {
    self.init(
      String(
        String(describing: value).flatMap { $0.isUppercase ? "_" + $0.lowercased() : String($0) }))
  }
}

extension RunEvent {
  /// A field of an event as scripts and JSON have it:
  ///
  /// | field | meaning |
  /// |---|---|
  /// | `time` | seconds since the run began |
  /// | `kind` | `start finish log set replace remove retry group case transition state progress program_start program request_start request undo_start undo kept` |
  /// | `id` | the execution it is about: unique in the run, 0 for the run itself |
  /// | `parent` | the `id` of the flow, group or op that encloses it |
  /// | `path` | the names of all that encloses it and its own: `publish/ShardsOp #2/CountOp #1` |
  /// | `run` | the id of the run, unique across processes |
  /// | `lane` | 0 for the main thread, else the number of the worker, or the name of one of another node: `gpu1/3`; 0 at a `start` that a worker hasn't taken yet |
  /// | `queued` | of an item's `start`: when it could have begun, in seconds since the run began |
  /// | `op` | the name of the op it is about |
  /// | `index` | the op's index in a group, from 1; absent outside of one |
  /// | `label` | the label of the item, if its group gives labels |
  /// | `attempt` | the number of the attempt at the op, from 1 |
  /// | `message` | of `log` the message; of `finish`, `undo`, `kept`, `retry`, `group`, `case`, `transition` and `state` the line's text; of `program` the command; of `request` method and URL |
  /// | `key` | of `set`, `replace` and `remove` |
  /// | `value` | the new value or a machine's new state as text, as a line shows it; `<redacted>` for a secret |
  /// | `old_value` | of `replace` the previous value as text |
  /// | `done`, `total` | of `progress` |
  /// | `started` | of a program, request or undo, when it started: `time` is its end |
  /// | `outcome` | how it ended for its task: `succeeded`, `failed` or `cancelled` |
  /// | `method`, `url` | of a request; the URL without user and query |
  /// | `status` | the exit status, or the response's |
  /// | `signal`, `pid` | of a program: the signal that has ended it, the number of its process |
  /// | `bytes` | of a request: the size of the response's body |
  /// | `error`, `error_kind` | of one that has failed: message and kind of the error |
  package enum Field: Int, CaseIterable {
    case time, kind, id, parent, path, run, lane, queued, op, index, label, attempt, message, key
    case value, oldValue, done, total, started, outcome, method, url, status, signal, pid, bytes
    case error, errorKind

    /// Its name. Made once: a million events use each of them as often.
    package var name: ByteString { Self.names[rawValue] }
    private static let names = allCases.map { ByteString(scriptName: $0) }
  }

  /// Calls `body` with each field that the event has, in the order of `Field`, and its text or number.
  package func forEachField(_ body: (Field, FlowValue) -> Void) {
    func add(_ field: Field, _ text: ByteString?) {
      if let text { body(field, .bytes(text)) }
    }
    func add(_ field: Field, _ number: (some BinaryInteger)?) {
      if let number { body(field, .integer(Int64(truncatingIfNeeded: number))) }
    }
    // A script may have passed an integer.
    func add(amount: Double?, _ field: Field) {
      guard let amount else { return }
      body(field, Int64(exactly: amount).map { .integer($0) } ?? .number(amount))
    }
    body(.time, .number(seconds))
    body(.kind, .bytes(kind.name))
    add(.id, id)
    add(.parent, parent)
    add(.path, path)
    add(.run, run)
    if let laneName { add(.lane, laneName) } else { add(.lane, lane) }
    if let queued { body(.queued, .number(queued.inSeconds)) }
    add(.op, op)
    if index > 0 { add(.index, index) }
    add(.label, label)
    add(.attempt, attempt)
    add(.message, message)
    add(.key, key)
    add(.value, value)
    add(.oldValue, oldValue)
    add(amount: done, .done)
    add(amount: total, .total)
    if let undo {
      body(.started, .number(undo.start(endedAt: seconds)))
      add(.outcome, undo.outcome.name)
      add(.error, undo.error)
      add(.errorKind, undo.errorKind)
    }
    guard let work else { return }
    // The time of a start says when.
    if work.outcome != .running {
      body(.started, .number(work.start(endedAt: seconds)))
      add(.outcome, work.outcome.name)
    }
    if let method = work.method {
      add(.method, method)
      add(.url, work.subject)
    }
    add(.status, work.status)
    add(.signal, work.signal)
    add(.pid, work.process)
    add(.bytes, work.byteCount)
    add(.error, work.error)
    add(.errorKind, work.errorKind)
  }
}

/// Gets each event of a run as it happens, on the loop's thread: a journal, a live display.
///
/// ```swift
/// final class Failures: EventSink {
///   var count = 0
///   func append(_ event: RunEvent, value: FlowValue?, in log: EventLog) {
///     if event.kind == .retry { count += 1 }
///   }
/// }
/// loop.eventSinks.append(Failures())
/// ```
public protocol EventSink: AnyObject {
  /// `value` is the whole value of a `set` or `replace`, for which the event only has a text. A
  /// secret, and a value that contains one, has the text `<redacted>`.
  func append(_ event: RunEvent, value: FlowValue?, in log: EventLog)
}

/// Gets each record of a run as it is appended, instead of its event: a view that shows lines.
protocol RecordSink: EventSink {
  func append(_ record: LogRecord, in log: EventLog)
}

/// The events of a log, each made when it is read.
package struct EventSequence: Sequence {
  let log: EventLog

  package struct Iterator: IteratorProtocol {
    let log: EventLog
    var place = EventLog.Place()

    package mutating func next() -> RunEvent? {
      while let record = log.record(at: &place) {
        if let event = log.event(of: record) { return event }
      }
      return nil
    }
  }

  package func makeIterator() -> Iterator { Iterator(log: log) }
}

extension EventLog {
  /// The events, in order. The lists of a run's initial and final data are no events.
  package var events: EventSequence { EventSequence(log: self) }

  func event(of record: LogRecord) -> RunEvent? {
    let kind: RunEvent.Kind
    var message: ByteString?
    var work: LoggedWork?
    var undo: LoggedUndo?
    switch record.kind {
    case .startWith, .endWith, .snapshotEntry, .attempt, .queues: return nil
    case .start, .executed: kind = .start
    case .finish:
      kind = .finish
      message = outcome(of: record)
    case .undo:
      kind = .undo
      message = outcome(of: record)
      undo = self.undo(of: record)
    case .undoStart: kind = .undoStart
    case .log, .kept, .skipped, .queued:
      kind = record.kind == .kept ? .kept : .log
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
    case .program, .request, .wait, .programStart, .requestStart:
      switch record.kind {
      case .program: kind = .program
      case .request: kind = .request
      case .programStart: kind = .programStart
      case .requestStart: kind = .requestStart
      default: kind = .wait
      }
      work = self.work(of: record)
      message = work?.title
    }
    let isSet = kind == .set || kind == .replace
    let (name, index) = subject(of: record)
    let queued = kind == .start ? queuedTime(of: record) : nil
    return RunEvent(
      nanoseconds: record.time - began, kind: kind, id: id(of: record),
      parent: parentID(of: record), path: shown(path(of: record)), run: runID,
      lane: Int(record.lane), laneName: keys.lanes.name(of: record.lane),
      queued: queued.map { .passed($0 - began) }, op: shown(name),
      index: index,
      label: index == 0
        ? nil : label(scope: record.scope, position: record.position).map { shown($0) },
      attempt: record.attempt, message: message,
      key: isSet || kind == .remove ? shown(keys.name(of: DataKey(id: record.key))) : nil,
      value: isSet || kind == .state ? text(record.firstPayload) : nil,
      oldValue: kind == .replace ? text(record.secondPayload) : nil,
      done: kind == .progress ? record.firstPayload.number : nil,
      total: kind == .progress ? record.secondPayload.number : nil, work: work, undo: undo)
  }

  /// The text of an event about cases, and of a line after `[Cases] `.
  func caseMessage(of record: LogRecord) -> ByteString {
    switch record.kind {
    case .noCase: "no case is matched. finished in early."
    case .caseFailed: "DidFinish: \(text(record.firstPayload))"
    default: text(record.firstPayload)
    }
  }

  private static let success: ByteString = "successfully"

  /// The text after `DidFinish: `.
  func outcome(of record: LogRecord) -> ByteString {
    record.firstPayload.tag == .none ? Self.success : text(record.firstPayload)
  }

  /// The subject of a line about a group, and the text of that line.
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
