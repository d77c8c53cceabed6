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
