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
      let rest = ByteString(Array(text.bytes.dropFirst(prefix.utf8.count)))
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
