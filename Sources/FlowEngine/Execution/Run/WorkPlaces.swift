// The places of programs and requests in the log and in a trace.

extension OpContext {
  /// The place of programs and requests that the op starts now.
  package var workPlace: WorkPlace? {
    guard execution != nil || resources?.keptRun != nil else { return nil }
    return run.workPlace(scope: scope, position: position, attempt: attempt)
  }

  /// The id of the op's span; nil without a trace.
  package var spanID: UInt64? {
    loop.trace == nil ? nil : run.spanID(scope: scope, position: position)
  }
}

extension ItemWork {
  /// The spans of the items; nil without a trace.
  package var spans: SpanOrigin? {
    run.loop.trace == nil ? nil : .items(run: run.identifier, scope: itemScope)
  }
}

extension Run {
  /// The place of programs and requests that the callbacks of the run start, or tasks that its ops have left
  /// to it.
  package var workPlace: WorkPlace? {
    workPlace(scope: 0, position: LogRecord.ownPosition, attempt: 1)
  }

  fileprivate func workPlace(scope: UInt32, position: UInt32, attempt: Int) -> WorkPlace {
    WorkPlace(
      log, scope: scope, position: position, attempt: attempt,
      trace: loop.trace.map { ($0, spanID(scope: scope, position: position)) })
  }

  fileprivate func spanID(scope: UInt32, position: UInt32) -> UInt64 {
    switch spanOrigin {
    case .execution(let id): id
    case .items(let run, let items) where scope == LogSlice.itemScope:
      SpanID.execution(run: run, id: EventLog.id(scope: items, item: position))
    case .items, nil:
      SpanID.execution(run: identifier, id: log.id(scope: scope, position: position))
    }
  }
}
