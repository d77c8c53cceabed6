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

  /// What kind of error it is.
  public let kind: Kind
  /// What happened; for a cancellation the text of its log line.
  public let message: ByteString
  /// The name of the op in which it happened.
  public let op: ByteString?
  /// Where it was raised, as Lua shows it; nil for errors of the engine.
  public let traceback: ByteString?
  /// A number the op gave with the error; the status of a program, or the system's `errno`.
  public let code: Int64?
  /// How the program ended whose status is the failure.
  public let process: ProcessResult?
  /// The value that stands for this error on its loop, such as what a script raised. On another thread
  /// it can't be read; all else can.
  public let payload: ConfinedValue?
  /// The limit of a timeout, in seconds; also of a cancellation because something around timed out.
  public let seconds: Double?

  /// An error; see the properties.
  public init(
    _ kind: Kind = .error, _ message: ByteString, op: ByteString? = nil,
    traceback: ByteString? = nil, code: Int64? = nil, payload: ConfinedValue? = nil,
    seconds: Double? = nil, process: ProcessResult? = nil
  ) {
    self.kind = kind
    self.message = message
    self.op = op
    self.traceback = traceback
    self.code = code
    self.payload = payload
    self.seconds = seconds
    self.process = process
  }

  /// An error that Swift code threw, as one of the engine; a `FlowError` stays itself, and a
  /// `CancellationError` is one of kind `cancelled`.
  static func from(_ error: any Error) -> FlowError {
    if let error = error as? FlowError { return error }
    if error is CancellationError { return .cancelled() }
    return FlowError(.error, ByteString(String(describing: error)))
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

  public var description: String { message.description }

  /// The same error, as one of `op` when it isn't known yet where it happened.
  func attributed(to op: ByteString) -> FlowError {
    if self.op != nil { return self }
    return FlowError(
      kind, message, op: op, traceback: traceback, code: code, payload: payload, seconds: seconds,
      process: process)
  }

  /// The same error with what `replacement` makes of its texts.
  func replacingTexts(_ replacement: (ByteString) -> ByteString) -> FlowError {
    FlowError(
      kind, replacement(message), op: op, traceback: traceback.map(replacement), code: code,
      payload: payload, seconds: seconds, process: process)
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
