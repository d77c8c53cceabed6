// Where programs and requests stand in the log.

extension OpContext {
  /// The place of programs and requests that the op starts now.
  package var workPlace: WorkPlace? {
    guard execution != nil || resources?.keptRun != nil else { return nil }
    return WorkPlace(run.log, scope: scope, position: position, attempt: attempt)
  }
}

extension Run {
  /// The place of programs and requests that the callbacks of the run start, or tasks that its ops have left
  /// to it.
  package var workPlace: WorkPlace? {
    WorkPlace(log, scope: 0, position: LogRecord.ownPosition, attempt: 1)
  }
}
