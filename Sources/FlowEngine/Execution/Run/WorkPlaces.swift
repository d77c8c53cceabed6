// The places of programs and requests in the log and in a trace.

extension OpContext {
  /// The place of programs and requests that the op starts now.
  package var workPlace: WorkPlace? {
    guard execution != nil || resources?.keptRun != nil else { return nil }
    return run.workPlace(scope: scope, position: position, attempt: attempt)
  }

  /// The trace at the span of this op, for what it starts: `traceContext?.traceparent` is the header of a request. nil
  /// without a trace.
  public var traceContext: TraceContext? {
    run.traceContext.map { TraceContext($0, at: run.spanID(scope: scope, position: position)) }
  }

  /// The trace and the span of this op, for another loop that executes it; nil without a trace.
  package var spanOrigin: SpanOrigin? {
    run.traceContext.map {
      SpanOrigin($0, place: .execution(run.spanID(scope: scope, position: position)))
    }
  }
}

extension ItemWork {
  /// The spans of the items; nil without a trace.
  package var spans: SpanOrigin? {
    run.traceContext.map {
      SpanOrigin($0, place: .items(run: run.identifier, scope: itemScope))
    }
  }
}

extension Run {
  /// The distributed trace that its ops continue: the one that it was started with, or its loop's. A run that an op
  /// has started has the trace of the op's run.
  public var traceContext: TraceContext? { spanOrigin?.trace ?? loop.trace }

  /// The place of programs and requests that the callbacks of the run start, or tasks that its ops have left
  /// to it.
  package var workPlace: WorkPlace? {
    workPlace(scope: 0, position: LogRecord.ownPosition, attempt: 1)
  }

  fileprivate func workPlace(scope: UInt32, position: UInt32, attempt: Int) -> WorkPlace {
    WorkPlace(
      log, scope: scope, position: position, attempt: attempt,
      trace: traceContext.map { ($0, spanID(scope: scope, position: position)) })
  }

  fileprivate func spanID(scope: UInt32, position: UInt32) -> UInt64 {
    switch spanOrigin?.place {
    case .execution(let id): id
    case .items(let run, let items) where scope == LogSlice.itemScope:
      SpanID.execution(run: run, id: EventLog.id(scope: items, item: position))
    case .items, nil:
      SpanID.execution(run: identifier, id: log.id(scope: scope, position: position))
    }
  }
}
