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
      errorKind: logged.kind?.nameBytes)
  }
}
