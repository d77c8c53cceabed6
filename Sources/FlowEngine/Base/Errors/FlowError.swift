/// The reason why an op, flow or task didn't succeed: data of a run, not a wrong use of the API.
///
/// ```swift
/// let op = Op("PayOp") { _ in throw FlowError(.error, "the card was refused") }
/// do {
///   _ = try await op.start(on: loop).value
/// } catch let error as FlowError where error.kind == .error {
///   print(error.message)
/// }
/// ```
public final class FlowError: Error, Sendable, CustomStringConvertible {
  /// The kind of an error. A later version may have more of them, so that a `switch` needs a `default`.
  ///
  /// ```swift
  /// switch run.error?.kind {
  /// case .timeout, .network: print("try again later")
  /// case .cancelled, nil: break
  /// default: print(run.report())
  /// }
  /// ```
  public struct Kind: Hashable, Sendable, CustomStringConvertible {
    /// The place in the list of names; forms as bytes have it.
    let number: UInt8

    private init(_ number: UInt8) { self.number = number }

    init?(number: UInt8) {
      guard number < Self.names.count else { return nil }
      self.number = number
    }

    /// The code raised or threw something, or the op reported a failure.
    public static var error: Kind { Kind(0) }
    /// A needed key isn't in the data bucket.
    public static var insufficientInput: Kind { Kind(1) }
    /// A needed value is of another type.
    public static var mismatchedInput: Kind { Kind(2) }
    /// A declared output wasn't set.
    public static var missingOutput: Kind { Kind(3) }
    /// A declared output is of another type.
    public static var mismatchedOutput: Kind { Kind(4) }
    /// It took longer than its timeout.
    public static var timeout: Kind { Kind(5) }
    /// It was stopped.
    public static var cancelled: Kind { Kind(6) }
    /// Nothing could make progress any more.
    public static var stalled: Kind { Kind(7) }
    /// A function was used wrongly.
    public static var usage: Kind { Kind(8) }
    /// The response to a request has a status that is a failure.
    public static var http: Kind { Kind(9) }
    /// A request got no whole response.
    public static var network: Kind { Kind(10) }
    /// The memory limit was reached, or memory ran out.
    public static var memory: Kind { Kind(11) }
    /// The time for everything that the script or its host runs is over.
    public static var time: Kind { Kind(12) }
    /// The nodes that executed it were lost, each time.
    public static var crashed: Kind { Kind(13) }
    /// The state has executed as many instructions as it may.
    public static var instructions: Kind { Kind(14) }

    private static let names: [StaticString] = [
      "error", "insufficient_input", "mismatched_input", "missing_output", "mismatched_output",
      "timeout", "cancelled", "stalled", "usage", "http", "network", "memory", "time", "crashed",
      "instructions",
    ]

    /// All kinds of this version.
    package static var allCases: [Kind] { names.indices.map { Kind(UInt8($0)) } }

    /// The name that scripts and reports use.
    package var name: ByteString { ByteString(Self.names[Int(number)]) }

    /// The name.
    public var description: String { name.description }

    /// The kind with a name; nil for any other text.
    package init?(named name: ByteString) {
      guard let place = Self.names.firstIndex(where: { name.equals($0) }) else { return nil }
      number = UInt8(place)
    }
  }

  /// The fields of an error other than its kind; `with` changes them for a copy.
  package struct Details: Sendable {
    /// The description of the failure; for a cancel the text of its log line.
    package var message: ByteString
    /// The name of the op in which it happened.
    package var op: ByteString?
    /// The path of that op: the names of everything that encloses it and its own, `publish/ShardsOp
    /// #2/CountOp #1`.
    package var path: ByteString?
    /// The name of a similar key that was perhaps meant.
    package var suggestion: ByteString?
    /// The place of the code that a timeout has stopped: `upload.lua:12, in flow.sleep`.
    package var place: ByteString?
    /// The column of a syntax error.
    package var column: Int?
    /// Whether Lua has made the message, which then begins with the place, or else the code has none.
    package var isMessageOfLua = false
    /// Where it was raised, as Lua shows it; nil for errors of the engine.
    package var traceback: ByteString?
    /// A number that the op provides with the error; the status of a program, or the system's
    /// `errno`.
    package var code: Int64?
    /// The end of the program whose status is the failure.
    package var process: ProcessResult?
    /// The details of the request that failed.
    package var request: RequestFailure?
    /// The value that represents this error on its loop, such as the value that a script raised.
    package var payload: ConfinedValue?
    /// The limit of a timeout; also for a cancel because enclosing code timed out.
    package var limit: Duration?
    /// The error that Swift code threw, if this error represents one. Its own texts may contain
    /// secrets.
    package var underlying: (any Error)?
    /// Whether another attempt is allowed; false ends the attempts, nil leaves the decision to the
    /// policy and the kind.
    package var isRetriable: Bool?
    /// Whether the failure may be over at another attempt, in the view of the code that made the
    /// error. Counts where the policy has no `when` and `isRetriable` is nil; nil counts as true.
    package var isTransient: Bool?
    /// The least time before the next attempt.
    package var retryAfter: Duration?
    /// Further errors; see the property.
    package var others: [FlowError] = []
  }

  /// The kind of the error.
  public let kind: Kind
  /// All its other fields.
  package let details: Details

  /// The description of the failure; for a cancel the text of its log line.
  public var message: ByteString { details.message }
  /// The name of the op in which it happened.
  public var op: ByteString? { details.op }
  /// The path of that op: the names of everything that encloses it and its own, `publish/ShardsOp
  /// #2/CountOp #1`.
  public var path: ByteString? { details.path }
  /// The name of a similar key that was perhaps meant.
  package var suggestion: ByteString? { details.suggestion }
  /// The place of the code that a timeout has stopped: `upload.lua:12, in flow.sleep`.
  package var stopPlace: ByteString? { details.place }
  /// Where it was raised, as Lua shows it; nil for errors of the engine.
  public var traceback: ByteString? { details.traceback }
  /// A number that the op provides with the error; the status of a program, or the system's
  /// `errno`.
  public var code: Int64? { details.code }
  /// The end of the program whose status is the failure.
  public var process: ProcessResult? { details.process }
  /// The details of the request that failed.
  package var request: RequestFailure? { details.request }
  /// The value that represents this error on its loop, such as the value that a script raised. It
  /// can't be read on another thread; all other fields can.
  package var payload: ConfinedValue? { details.payload }
  /// The limit of a timeout; also for a cancel because enclosing code timed out.
  public var limit: Duration? { details.limit }
  /// The error that Swift code threw, if this error represents one. Its own texts may contain
  /// secrets.
  public var underlying: (any Error)? { details.underlying }
  /// Whether another attempt is allowed; false ends the attempts, nil leaves the decision to the
  /// policy, `isTransient` and the kind.
  public var isRetriable: Bool? { details.isRetriable }
  /// Whether the failure may be over at another attempt, in the view of the code that made the
  /// error. Counts where the policy has no `when` and `isRetriable` is nil; nil counts as true.
  package var isTransient: Bool? { details.isTransient }
  /// The least time before the next attempt.
  public var retryAfter: Duration? { details.retryAfter }
  /// Further errors, in their order: those of the other ops of a graph that a failure doesn't stop, or of all tasks none
  /// of which has succeeded.
  public var others: [FlowError] { details.others }

  /// Makes an error; see the properties.
  public convenience init(
    _ kind: Kind = .error, _ message: some FlowText, op: (any FlowText)? = nil,
    traceback: (any FlowText)? = nil, code: Int64? = nil, limit: Duration? = nil,
    process: ProcessResult? = nil, underlying: (any Error)? = nil, isRetriable: Bool? = nil,
    retryAfter: Duration? = nil
  ) {
    self.init(
      kind, message.byteString, op: op?.byteString, traceback: traceback?.byteString, code: code,
      payload: nil, limit: limit, process: process, underlying: underlying,
      isRetriable: isRetriable, retryAfter: retryAfter)
  }

  /// Makes an error that a value represents on its loop.
  package init(
    _ kind: Kind = .error, _ message: ByteString, op: ByteString? = nil,
    traceback: ByteString? = nil, code: Int64? = nil, payload: ConfinedValue?,
    limit: Duration? = nil, process: ProcessResult? = nil, underlying: (any Error)? = nil,
    isRetriable: Bool? = nil, retryAfter: Duration? = nil
  ) {
    self.kind = kind
    details = Details(
      message: message, op: op, traceback: traceback, code: code, process: process,
      payload: payload, limit: limit, underlying: underlying, isRetriable: isRetriable,
      retryAfter: retryAfter)
  }

  init(_ kind: Kind, _ details: Details) {
    self.kind = kind
    self.details = details
  }

  /// A copy of the error with other details: the fields that `change` doesn't set stay.
  package func with(_ change: (_ details: inout Details) -> Void) -> FlowError {
    var changed = details
    change(&changed)
    return FlowError(kind, changed)
  }

  /// This error, which comes first, with others that came later, and what these had with them.
  func with(others: some Sequence<FlowError>) -> FlowError {
    let further = others.flatMap { [$0] + $0.others }
    return further.isEmpty ? self : with { $0.others += further }
  }

  /// Converts an error that Swift code threw to one of the engine, which keeps it as `underlying`.
  /// A `FlowError` is returned unchanged, and a `CancellationError` becomes one of kind
  /// `cancelled`.
  public static func from(_ error: any Error) -> FlowError {
    if let error = error as? FlowError { return error }
    if error is CancellationError { return .cancelled() }
    if let error = error as? SystemError {
      if error.isCancellation { return .cancelled() }
      return FlowError(
        error.isLackOfMemory ? .memory : .error, error.message,
        code: error.code.map { Int64($0) }, underlying: error)
    }
    let text = text(ofCoding: error) ?? ByteString(String(describing: error))
    let kind = (error as? any ErrorWithKind)?.flowKind ?? .error
    return FlowError(kind, text, underlying: error).with {
      guard let error = error as? any ErrorWithKind else { return }
      $0.isMessageOfLua = error.isMessageOfLua
      $0.column = error.column
    }
  }

  /// The error of code on a loop, which may map it; see `FlowEventLoop.errorMapper`.
  package static func from(_ error: any Error, on loop: FlowEventLoop) -> FlowError {
    guard let mapper = loop.errorMapper, !(error is FlowError), !(error is CancellationError),
      !(error is any ErrorWithKind)
    else { return .from(error) }
    let mapped = mapper(error)
    return mapped.underlying == nil ? mapped.with { $0.underlying = error } : mapped
  }

  /// Something was used wrongly.
  package static func usage(_ message: ByteString) -> FlowError {
    FlowError(.usage, message)
  }

  /// It was stopped, for a reason that its line shows.
  package static func cancelled(reason: (any FlowText)? = nil) -> FlowError {
    FlowError(.cancelled, reason.map { "cancelled: \($0.byteString)" } ?? "cancelled")
  }

  /// It took longer than its timeout.
  package static func timeout(after limit: Duration) -> FlowError {
    FlowError(.timeout, "timed out after \(FlowValue.text(of: limit))", limit: limit)
  }

  /// Nothing could make progress any more while the op was waiting.
  package static func stalled(op: ByteString) -> FlowError {
    FlowError(.stalled, "stalled: [\(op)] never finished", op: op)
  }

  /// A needed key isn't in the bucket.
  package static func missingInput(_ key: ByteString) -> FlowError {
    FlowError(.insufficientInput, "can't find <\(key)> in data bucket")
  }

  /// A needed value is of another type. The message shows no part of `secrets`.
  package static func mismatchedInput(
    _ key: ByteString, _ value: FlowValue, wanted: ByteString, hiding secrets: SecretTexts? = nil
  ) -> FlowError {
    FlowError(.mismatchedInput, mismatch(key, value, wanted, secrets))
  }

  /// A declared output wasn't set.
  package static func missingOutput(_ key: ByteString) -> FlowError {
    FlowError(.missingOutput, "can't find <\(key)> in data bucket")
  }

  /// A declared output is of another type. The message shows no part of `secrets`.
  package static func mismatchedOutput(
    _ key: ByteString, _ value: FlowValue, wanted: ByteString, hiding secrets: SecretTexts? = nil
  ) -> FlowError {
    FlowError(.mismatchedOutput, mismatch(key, value, wanted, secrets))
  }

  /// The text of the log line, after `DidFinish: `.
  package var logLine: ByteString {
    switch kind {
    case .insufficientInput: "withInsufficientInputData: \(message)"
    case .mismatchedInput: "withMismatchInputDataType: \(message)"
    case .missingOutput: "withMissingOutputData: \(message)"
    case .mismatchedOutput: "withMismatchOutputDataType: \(message)"
    case .timeout:
      limit.map { "timedOut after \(FlowValue.text(of: $0))" }
        ?? "withError: \(message)"
    case .cancelled: message
    default: "withError: \(message)"
    }
  }

  /// The message with the place of the failure and a suggestion: the result of `tostring` in a
  /// script.
  public var description: String { text.description }

  /// `[publish/CountOp #1] connection refused`: the path, the message, a suggestion and the place
  /// of a timeout, if there are any.
  package var text: ByteString {
    Self.text(
      message, isMissingOutput: kind == .missingOutput, path: path,
      suggestion: suggestion, place: stopPlace)
  }

  private static let absentStart: ByteString = "can't find "
  private static let absentEnd: ByteString = " in data bucket"

  package static func text(
    _ message: ByteString, isMissingOutput: Bool, path: ByteString?, suggestion: ByteString?,
    place: ByteString?
  ) -> ByteString {
    var text = isMissingOutput ? spelledOut(message) : message
    if let path { text = "[\(path)] \(text)" }
    if let suggestion { text = "\(text) (did you mean <\(suggestion)>?)" }
    if let place { text = "\(text) (at \(place))" }
    return text
  }

  /// The message of a missing output, which says whose mistake it is: in a line of the log the kind before it does.
  private static func spelledOut(_ message: ByteString) -> ByteString {
    let (start, end) = (absentStart.bytes, absentEnd.bytes)
    guard message.bytes.starts(with: start), message.bytes.suffix(end.count).elementsEqual(end)
    else { return message }
    let key = message.bytes.dropFirst(start.count).dropLast(end.count)
    return "didn't set \(ByteString(key)), which it gives"
  }

  /// This error, attributed to `op` if its place isn't known yet.
  func attributed(to op: ByteString, at path: @autoclosure () -> ByteString?) -> FlowError {
    if self.op != nil, self.path != nil { return self }
    return with {
      if $0.op == nil { $0.op = op }
      if $0.path == nil { $0.path = path() }
    }
  }

  /// The timeout with the place of the stopped code, if `error` knows it.
  func located(as error: FlowError?) -> FlowError {
    guard kind == .timeout, stopPlace == nil, let error, let place = error.stopPlace else {
      return self
    }
    return with {
      $0.place = place
      $0.traceback = error.traceback
    }
  }

  /// This error with its texts converted by `replacement`; those of `underlying` stay.
  package func replacingTexts(_ replacement: (ByteString) -> ByteString) -> FlowError {
    with {
      $0.message = replacement($0.message)
      $0.op = $0.op.map(replacement)
      $0.path = $0.path.map(replacement)
      $0.suggestion = $0.suggestion.map(replacement)
      $0.place = $0.place.map(replacement)
      $0.traceback = $0.traceback.map(replacement)
    }
  }

  private static func mismatch(
    _ key: ByteString, _ value: FlowValue, _ wanted: ByteString, _ secrets: SecretTexts?
  ) -> ByteString {
    let shown =
      secrets?.shownText(of: value) ?? value.logText.truncated(to: FlowValue.logLimit)
    return """
      <\(key)> in data bucket is <\(shown)> with type <\(value.plain.typeName)>, \
      but NOT type <\(wanted)>.
      """
  }
}

extension FlowError {
  /// The error for other code that is stopped because of this one. A timeout keeps its limit.
  package var asReason: FlowError {
    if kind == .cancelled { return self }
    return FlowError(.cancelled, "cancelled: \(message)", limit: limit)
  }
}

/// An error of Swift code whose kind as an error of the engine isn't always `error`.
package protocol ErrorWithKind: Error {
  /// Its kind.
  var flowKind: FlowError.Kind { get }
  /// Whether its message begins with a place in a script, unless the code has none.
  var isMessageOfLua: Bool { get }
  /// The column of a syntax error.
  var column: Int? { get }
}
