/// Why an op, flow or task didn't succeed: data of a run, not a wrong use of the API.
public final class FlowError: Error, Sendable, CustomStringConvertible {
  /// What kind of error it is.
  public enum Kind: UInt8, Sendable, CaseIterable {
    /// Something was raised or thrown, or the op said that it failed.
    case error
    /// A key that was needed isn't in the data bucket.
    case insufficientInput
    /// A value that was needed is of another type.
    case mismatchedInput
    /// A declared output wasn't set.
    case missingOutput
    /// A declared output is of another type.
    case mismatchedOutput
    /// It took longer than its timeout.
    case timeout
    /// It was asked to stop.
    case cancelled
    /// Nothing could make progress any more.
    case stalled
    /// A function was used wrongly.
    case usage

    /// The name that scripts and reports use.
    public var name: ByteString {
      switch self {
      case .error: "error"
      case .insufficientInput: "insufficient_input"
      case .mismatchedInput: "mismatched_input"
      case .missingOutput: "missing_output"
      case .mismatchedOutput: "mismatched_output"
      case .timeout: "timeout"
      case .cancelled: "cancelled"
      case .stalled: "stalled"
      case .usage: "usage"
      }
    }
  }

  /// The fields of an error other than its kind; `with` changes them for a copy.
  public struct Details: Sendable {
    /// What happened; for a cancellation the text of its log line.
    public var message: ByteString
    /// The name of the op in which it happened.
    public var op: ByteString?
    /// The path of that op: the names of all that encloses it and its own, `publish/ShardsOp #2/CountOp #1`.
    public var path: ByteString?
    /// The name of a key that was perhaps meant.
    public var suggestion: ByteString?
    /// Where the code was that a timeout has stopped: `upload.lua:12, in flow.sleep`.
    public var place: ByteString?
    /// Where it was raised, as Lua shows it; nil for errors of the engine.
    public var traceback: ByteString?
    /// A number the op gave with the error; the status of a program, or the system's `errno`.
    public var code: Int64?
    /// How the program ended whose status is the failure.
    public var process: ProcessResult?
    /// The value that stands for this error on its loop, such as what a script raised.
    public var payload: ConfinedValue?
    /// The limit of a timeout, in seconds; also of a cancellation because something around timed out.
    public var seconds: Double?
    /// What Swift code threw, when the error stands for that. Its own texts may contain secrets.
    public var underlying: (any Error)?
    /// Whether another attempt may mend it; false ends the attempts, nil leaves it to the kind.
    public var isRetriable: Bool?
    /// The least number of seconds before the next attempt.
    public var retryAfter: Double?
  }

  /// What kind of error it is.
  public let kind: Kind
  /// All its other fields.
  public let details: Details

  /// What happened; for a cancellation the text of its log line.
  public var message: ByteString { details.message }
  /// The name of the op in which it happened.
  public var op: ByteString? { details.op }
  /// The path of that op: the names of all that encloses it and its own, `publish/ShardsOp #2/CountOp #1`.
  public var path: ByteString? { details.path }
  /// The name of a key that was perhaps meant.
  public var suggestion: ByteString? { details.suggestion }
  /// Where the code was that a timeout has stopped: `upload.lua:12, in flow.sleep`.
  public var place: ByteString? { details.place }
  /// Where it was raised, as Lua shows it; nil for errors of the engine.
  public var traceback: ByteString? { details.traceback }
  /// A number the op gave with the error; the status of a program, or the system's `errno`.
  public var code: Int64? { details.code }
  /// How the program ended whose status is the failure.
  public var process: ProcessResult? { details.process }
  /// The value that stands for this error on its loop, such as what a script raised. On another thread
  /// it can't be read; all else can.
  public var payload: ConfinedValue? { details.payload }
  /// The limit of a timeout, in seconds; also of a cancellation because something around timed out.
  public var seconds: Double? { details.seconds }
  /// What Swift code threw, when the error stands for that. Its own texts may contain secrets.
  public var underlying: (any Error)? { details.underlying }
  /// Whether another attempt may mend it; false ends the attempts, nil leaves it to the kind.
  public var isRetriable: Bool? { details.isRetriable }
  /// The least number of seconds before the next attempt.
  public var retryAfter: Double? { details.retryAfter }

  /// An error; see the properties.
  public init(
    _ kind: Kind = .error, _ message: ByteString, op: ByteString? = nil,
    traceback: ByteString? = nil, code: Int64? = nil, payload: ConfinedValue? = nil,
    seconds: Double? = nil, process: ProcessResult? = nil, underlying: (any Error)? = nil,
    isRetriable: Bool? = nil, retryAfter: Double? = nil
  ) {
    self.kind = kind
    details = Details(
      message: message, op: op, traceback: traceback, code: code, process: process,
      payload: payload, seconds: seconds, underlying: underlying, isRetriable: isRetriable,
      retryAfter: retryAfter)
  }

  private init(_ kind: Kind, _ details: Details) {
    self.kind = kind
    self.details = details
  }

  /// The same error with other details: all that `change` leaves alone stays.
  public func with(_ change: (_ details: inout Details) -> Void) -> FlowError {
    var changed = details
    change(&changed)
    return FlowError(kind, changed)
  }

  /// An error that Swift code threw, as one of the engine, which keeps it as `underlying`; a
  /// `FlowError` stays itself, and a `CancellationError` is one of kind `cancelled`.
  public static func from(_ error: any Error) -> FlowError {
    if let error = error as? FlowError { return error }
    if error is CancellationError { return .cancelled() }
    return FlowError(.error, ByteString(String(describing: error)), underlying: error)
  }

  /// Something was used wrongly.
  public static func usage(_ message: ByteString) -> FlowError {
    FlowError(.usage, message)
  }

  /// It was asked to stop, for a reason that its line shows.
  public static func cancelled(reason: ByteString? = nil) -> FlowError {
    FlowError(.cancelled, reason.map { "cancelled: \($0)" } ?? "cancelled")
  }

  /// It took longer than its timeout.
  public static func timeout(seconds: Double) -> FlowError {
    FlowError(
      .timeout, "timed out after \(Value.text(ofSeconds: seconds))s", seconds: seconds)
  }

  /// Nothing could make progress any more while the op was waiting.
  public static func stalled(op: ByteString) -> FlowError {
    FlowError(.stalled, "stalled: [\(op)] never finished", op: op)
  }

  /// The error of a task that can't end because it waits, perhaps by others, for itself.
  package static func waitsForItself(_ task: AnyFlowTask) -> FlowError {
    FlowError(.stalled, "stalled: [\(task.title)] waits for itself")
  }

  /// A key that was needed isn't in the bucket.
  public static func missingInput(_ key: ByteString) -> FlowError {
    FlowError(.insufficientInput, "can't find <\(key)> in data bucket")
  }

  /// A value that was needed is of another type. The message shows no part of `secrets`.
  public static func mismatchedInput(
    _ key: ByteString, _ value: Value, wanted: ByteString, hiding secrets: SecretTexts? = nil
  ) -> FlowError {
    FlowError(.mismatchedInput, mismatch(key, value, wanted, secrets))
  }

  /// A declared output wasn't set.
  public static func missingOutput(_ key: ByteString) -> FlowError {
    FlowError(.missingOutput, "can't find <\(key)> in data bucket")
  }

  /// A declared output is of another type. The message shows no part of `secrets`.
  public static func mismatchedOutput(
    _ key: ByteString, _ value: Value, wanted: ByteString, hiding secrets: SecretTexts? = nil
  ) -> FlowError {
    FlowError(.mismatchedOutput, mismatch(key, value, wanted, secrets))
  }

  /// The text of the log line, after `DidFinish: `.
  public var logLine: ByteString {
    switch kind {
    case .error, .usage, .stalled: "withError: \(message)"
    case .insufficientInput: "withInsufficientInputData: \(message)"
    case .mismatchedInput: "withMismatchInputDataType: \(message)"
    case .missingOutput: "withMissingOutputData: \(message)"
    case .mismatchedOutput: "withMismatchOutputDataType: \(message)"
    case .timeout:
      seconds.map { "timedOut after \(Value.text(ofSeconds: $0))s" } ?? "withError: \(message)"
    case .cancelled: message
    }
  }

  /// The message with where it happened, and what may help: what `tostring` gives in a script.
  public var description: String { text.description }

  /// `[publish/CountOp #1] connection refused`: the path, the message, a suggestion and the place of a
  /// timeout, as far as there are some.
  public var text: ByteString {
    Self.text(message, path: path, suggestion: suggestion, place: place)
  }

  package static func text(
    _ message: ByteString, path: ByteString?, suggestion: ByteString?, place: ByteString?
  ) -> ByteString {
    var text = message
    if let path { text = "[\(path)] \(text)" }
    if let suggestion { text = "\(text) (did you mean <\(suggestion)>?)" }
    if let place { text = "\(text) (at \(place))" }
    return text
  }

  /// The same error, as one of `op` when it isn't known yet where it happened.
  func attributed(to op: ByteString, at path: @autoclosure () -> ByteString?) -> FlowError {
    if self.op != nil, self.path != nil { return self }
    return with {
      if $0.op == nil { $0.op = op }
      if $0.path == nil { $0.path = path() }
    }
  }

  /// A timeout that says where the code was that it has stopped, if `error` knows it.
  func located(as error: FlowError?) -> FlowError {
    guard kind == .timeout, place == nil, let error, let place = error.place else { return self }
    return with {
      $0.place = place
      $0.traceback = error.traceback
    }
  }

  /// The same error with what `replacement` makes of its texts; those of `underlying` stay.
  func replacingTexts(_ replacement: (ByteString) -> ByteString) -> FlowError {
    with {
      $0.message = replacement($0.message)
      $0.path = $0.path.map(replacement)
      $0.suggestion = $0.suggestion.map(replacement)
      $0.place = $0.place.map(replacement)
      $0.traceback = $0.traceback.map(replacement)
    }
  }

  private static func mismatch(
    _ key: ByteString, _ value: Value, _ wanted: ByteString, _ secrets: SecretTexts?
  ) -> ByteString {
    let shown = secrets?.shownText(of: value) ?? value.logText.truncated(to: Value.logLimit)
    return """
      <\(key)> in data bucket is <\(shown)> with type <\(value.plain.typeName)>, \
      but NOT type <\(wanted)>.
      """
  }
}
