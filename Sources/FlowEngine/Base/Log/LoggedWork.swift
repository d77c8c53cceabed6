/// A program, a request or a wait of an op, as the event log has it when it starts and when it has ended. All texts are without
/// secrets.
package struct LoggedWork: Sendable {
  /// What was done.
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

  /// What was done.
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
    errorKind = error?.kind.nameBytes
    self.error = error?.messageBytes.truncated(to: Self.longestError)
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
    let word = subject.bytes.prefix { $0 != UInt8(ascii: " ") }
    let name = word.lastIndex(of: UInt8(ascii: "/")).map { word[($0 + 1)...] } ?? word
    return name.isEmpty ? subject : ByteString(Array(name))
  }

  /// When it started, for an end in seconds since the start of the run.
  package func start(endedAt time: Double) -> Double { time - Double(duration) / 1e9 }

  /// The program's command, or the method and the URL: `GET https://api.example/items`.
  package var title: ByteString { method.map { "\($0) \(subject)" } ?? subject }
}

// A record has the end of a work as its time, the duration as the second payload, the numbers and the outcome
// as bits of the key, and the rest as one text.
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
    return ByteString(Array(parts.map { $0?.bytes ?? [] }.joined(separator: [0])))
  }

  /// Reads the record of a work.
  init(_ kind: Kind, key: UInt32, text: ByteString, duration: Int64) {
    let parts = text.bytes.split(separator: 0, omittingEmptySubsequences: false)
      .map { ByteString(Array($0)) }
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
