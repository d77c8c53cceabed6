/// A program, a request or a wait of an op, as the event log has it when it starts and when it has ended. All texts are without
/// secrets.
package struct LoggedWork: Sendable {
  /// The kind of work.
  package enum Kind: UInt8, Sendable {
    /// A program was executed.
    case program
    /// An HTTP request was sent.
    case request
    /// Code of a script waited. Only logged for `--trace`.
    case wait

    /// The kind of its record, at its start or at its end; the start of a wait isn't logged.
    func logKind(isStart: Bool) -> LogKind {
      switch self {
      case .program: isStart ? .programStart : .program
      case .request: isStart ? .requestStart : .request
      case .wait: .wait
      }
    }
  }

  /// How it ended for its task.
  package enum Outcome: UInt8, Sendable {
    /// It did what was asked for.
    case succeeded
    /// It failed: with a status, for example, or by its time limit.
    case failed
    /// It was stopped.
    case cancelled
    /// It hasn't ended.
    case running

    /// The name in events.
    package var name: ByteString {
      switch self {
      case .succeeded: "succeeded"
      case .failed: "failed"
      case .cancelled: "cancelled"
      case .running: "running"
      }
    }
  }

  /// The kind of work.
  package let kind: Kind
  /// The command of a program as messages show it; the URL of a request without user and query; what a wait
  /// was for.
  package let subject: ByteString
  /// The method of a request, such as `GET`.
  package internal(set) var method: ByteString?
  /// The exit status of a program, 128 and the number of the signal that has ended it, or the status of a
  /// response; nil when there is none.
  package internal(set) var status: Int?
  /// The number of the signal that has ended a program.
  package internal(set) var signal: Int?
  /// The number of a program's process; nil for one that wasn't started.
  package internal(set) var process: Int?
  /// The number of bytes of a response's body, after decompression; nil when the body isn't complete.
  package internal(set) var byteCount: Int64?
  /// Nanoseconds from its start to its end.
  package internal(set) var duration: Int64 = 0
  /// How it ended for its task: with `check = false` a status isn't a failure.
  package let outcome: Outcome
  /// The kind of the error.
  package internal(set) var errorKind: ByteString?
  /// The message of the error.
  package internal(set) var error: ByteString?

  /// Makes the description of a work that has ended with `error`; nil means success.
  package init(
    _ kind: Kind, _ subject: ByteString, error: FlowError?, method: ByteString? = nil,
    status: Int? = nil, signal: Int? = nil, process: Int? = nil, byteCount: Int64? = nil
  ) {
    self.kind = kind
    self.subject = subject
    self.method = method
    self.status = status
    self.signal = signal
    self.process = process
    self.byteCount = byteCount
    outcome = error.map { $0.kind == .cancelled ? .cancelled : .failed } ?? .succeeded
    errorKind = error?.kind.name
    self.error = error?.message.truncated(to: Self.longestError)
  }

  /// Makes the description of a work that starts.
  package init(
    starting kind: Kind, _ subject: ByteString, method: ByteString? = nil, process: Int? = nil
  ) {
    self.kind = kind
    self.subject = subject
    self.method = method
    self.process = process
    outcome = .running
  }

  private static let longestError = 500

  /// The name of the program without the folders of its path, or the method of the request.
  package var name: ByteString {
    if let method { return method }
    if kind == .wait { return subject }
    let name = subject.prefix { $0 != UInt8(ascii: " ") }.fileName
    return name.isEmpty ? subject : ByteString(name)
  }

  /// When it started, for an end in seconds since the start of the run.
  package func start(endedAt time: Double) -> Double { time - Double(duration) / 1e9 }

  /// The program's command, or the method and the URL: `GET https://api.example/items`.
  package var title: ByteString { method.map { "\($0) \(subject)" } ?? subject }
}

// A record has the end of a work as its time, and the duration as the second payload. The numbers and the outcome
// are bits of the key, the rest is one text.
extension LoggedWork {
  /// The bits of a record's key: status 16, signal 8, outcome 2, and whether there is a status.
  var key: UInt32 {
    UInt32(truncatingIfNeeded: status ?? 0) & 0xFFFF
      | (UInt32(truncatingIfNeeded: signal ?? 0) & 0xFF) << 16 | UInt32(outcome.rawValue) << 24
      | (status == nil ? 0 : 1) << 26
  }

  /// The texts of a record; no command, URL or message has a NUL byte.
  var text: ByteString {
    let numbers: [ByteString?] = [process.map { "\($0)" }, byteCount.map { "\($0)" }]
    let parts: [ByteString?] = [subject, method] + numbers + [errorKind, error]
    return ByteString(parts.map { $0?.bytes ?? [] }.joined(separator: [0]))
  }

  /// Reads the record of a work.
  init(_ kind: Kind, key: UInt32, text: ByteString, duration: Int64) {
    let parts = text.bytes.split(separator: 0, omittingEmptySubsequences: false)
      .map { ByteString($0) }
    func part(_ index: Int) -> ByteString? {
      index < parts.count && !parts[index].bytes.isEmpty ? parts[index] : nil
    }
    self.kind = kind
    subject = part(0) ?? ""
    method = kind == .request ? part(1) ?? "" : nil
    status = key >> 26 & 1 == 1 ? Int(key & 0xFFFF) : nil
    let number = Int(key >> 16 & 0xFF)
    signal = number == 0 ? nil : number
    process = part(2).flatMap { Int($0.description) }
    byteCount = part(3).flatMap { Int64($0.description) }
    self.duration = duration
    outcome = Outcome(rawValue: UInt8(key >> 24 & 3)) ?? .succeeded
    errorKind = part(4)
    error = part(5)
  }
}

extension EventLog {
  /// The work that a record of a program, a request or a wait is about.
  func work(of record: LogRecord) -> LoggedWork {
    let kind: LoggedWork.Kind =
      switch record.kind {
      case .program, .programStart: .program
      case .request, .requestStart: .request
      default: .wait
      }
    return LoggedWork(
      kind, key: record.key, text: text(record.firstPayload),
      duration: Int64(bitPattern: record.second))
  }
}

// Works of the log and places in a trace as bytes, for other processes.

extension LoggedWork: ByteRecord {
  package static let byteForm = ByteForm(
    { LoggedWork($0, key: $1, text: $2, duration: $3) },
    { (work: LoggedWork) in (work.kind, work.key, work.text, work.duration) })
}

extension LoggedWork.Kind: ByteCodable {}

extension SpanOrigin: ByteRecord {
  package static let byteForm = ByteForm(
    { SpanOrigin($0, place: $1) }, { (origin: SpanOrigin) in (origin.trace, origin.place) })
}

extension TraceContext: ByteRecord {
  @usableFromInline package static let byteForm = ByteForm(
    { TraceContext(high: $0, low: $1, parent: $2, isSampled: $3, state: $4) },
    { (trace: TraceContext) in
      (trace.high, trace.low, trace.parent, trace.isSampled, trace.state)
    })
}

extension SpanOrigin.Place: ByteUnion {
  package static let byteCases: [ByteCase<SpanOrigin.Place>] = [
    ByteCase(0, { .items(run: $0, scope: $1) }) { place in
      if case .items(let run, let scope) = place { (run, scope) } else { nil }
    },
    ByteCase(1, SpanOrigin.Place.execution) { place in
      if case .execution(let span) = place { span } else { nil }
    },
  ]
}

/// The outcome of an execution, read from the text that its `DidFinish` line has.
///
/// The log keeps the text of `FlowError.logLine` only, so that a record needs no reference.
struct LoggedOutcome {
  enum State { case succeeded, failed, cancelled }

  let state: State
  /// The kind of the error; `.error` also for kinds whose lines are the same.
  let kind: FlowError.Kind?
  /// The error's message; nil for a success.
  let message: ByteString?

  /// The outcome in a text after `DidFinish: `; nil means success.
  init(_ text: ByteString?) {
    guard let text else {
      (state, kind, message) = (.succeeded, nil, nil)
      return
    }
    for (prefix, kind) in Self.prefixes where text.bytes.starts(with: prefix.utf8) {
      let rest = ByteString(text.bytes.dropFirst(prefix.utf8.count))
      (state, self.kind) = (.failed, kind)
      message = kind == .timeout ? "timed out after \(rest)" : rest
      return
    }
    (state, kind, message) = (.cancelled, .cancelled, text)
  }

  private static let prefixes: [(String, FlowError.Kind)] = [
    ("withError: ", .error), ("withInsufficientInputData: ", .insufficientInput),
    ("withMismatchInputDataType: ", .mismatchedInput),
    ("withMissingOutputData: ", .missingOutput),
    ("withMismatchOutputDataType: ", .mismatchedOutput), ("timedOut after ", .timeout),
  ]
}

extension EventLog {
  /// The outcome in the record of a finish.
  func loggedOutcome(of record: LogRecord) -> LoggedOutcome {
    LoggedOutcome(record.firstPayload.tag == .none ? nil : text(record.firstPayload))
  }
}

/// The undo of an op, as the event log has it once it has ended. The text is without secrets.
package struct LoggedUndo: Sendable {
  /// Nanoseconds from its start to its end.
  package let duration: Int64
  /// How it ended: an undo that took longer than its grace was cancelled.
  package let outcome: LoggedWork.Outcome
  /// The message of the error; nil for a success.
  package let error: ByteString?
  /// The kind of the error.
  package let errorKind: ByteString?

  /// When it started, for an end in seconds since the start of the run.
  package func start(endedAt time: Double) -> Double { time - Double(duration) / 1e9 }
}

extension EventLog {
  /// The undo that a record of the kind `undo` is about.
  func undo(of record: LogRecord) -> LoggedUndo {
    let logged = loggedOutcome(of: record)
    let outcome: LoggedWork.Outcome =
      switch logged.state {
      case .succeeded: .succeeded
      case .failed: .failed
      case .cancelled: .cancelled
      }
    return LoggedUndo(
      duration: Int64(bitPattern: record.second), outcome: outcome, error: logged.message,
      errorKind: logged.kind?.name)
  }
}

/// The execution in whose code a program or request was started: the place of its record in the log.
///
/// Made when the work starts. Confined to the thread of the log's loop.
package struct WorkPlace {
  private let log: EventLog
  private let scope: UInt32
  private let position: UInt32
  private let attempt: Int
  /// The trace, and the span that encloses what is started; nil without a trace.
  package let trace: (context: TraceContext, span: UInt64)?

  package init(
    _ log: EventLog, scope: UInt32, position: UInt32, attempt: Int,
    trace: (context: TraceContext, span: UInt64)?
  ) {
    self.trace = trace
    self.log = log
    self.scope = scope
    self.position = position
    self.attempt = attempt
  }

  /// The `traceparent` of what is started; nil without a trace.
  package var traceparent: ByteString? { trace.map { $0.context.traceparent(of: $0.span) } }

  /// The trace and the span, for another loop; nil without a trace.
  package var spanOrigin: SpanOrigin? {
    trace.map { SpanOrigin($0.context, place: .execution($0.span)) }
  }

  /// Logs the start of a work; the time is nanoseconds of the loop's clock.
  package func append(starting work: LoggedWork, at time: Int64) {
    append(work, duration: 0, endedAt: time)
  }

  /// Logs a work that has ended; times are nanoseconds of the loop's clock.
  package func append(_ work: LoggedWork, from start: Int64, to end: Int64) {
    append(work, duration: max(0, end - start), endedAt: end)
  }

  /// Logs a work of another loop, which that loop's log has had: its end, or its start if it is running.
  package func append(_ work: LoggedWork, endedAt end: Int64) {
    append(work, duration: work.duration, endedAt: end)
  }

  private func append(_ work: LoggedWork, duration: Int64, endedAt end: Int64) {
    log.append(
      work.kind.logKind(isStart: work.outcome == .running), time: end, scope: scope,
      position: position,
      key: work.key, attempt: attempt, first: log.payload(work.text), second: .integer(duration))
  }
}
