// `willStart` and `didFinish` of the flows that an execution is in.
extension Execution: CallbackOwner {
  func callbackFinished() { wake(.callback) }

  /// Calls a callback of the innermost flow.
  func call(_ callback: any RunCallback, _ top: Int) -> Advance {
    if isRehearsing { return .moved }
    let run = run
    let made = CallbackCompletion(owner: self, place: { callback.place }) { completion, error in
      callback.cancel(run, completion: completion, error)
    }
    completion = made
    stopRequested = false
    let isDone = made.begin { callback.call(run, completion: $0) }
    engine.stamp = 0
    guard isDone else {
      stopCallback()
      cutIfOverdue()
      return .waiting
    }
    endCallback()
    return .moved
  }

  /// Takes the result of the callback, predicate or cleanup that has finished.
  func endCallback() {
    if decision != nil {
      endQuestion()
      return
    }
    if opCursor.phase == .cleanups {
      endCleanup()
      return
    }
    guard let ended = completion, let top = frames.indices.last else { return }
    completion = nil
    if frames[top].cursor.block != nil {
      endPredicate(ended, top)
      return
    }
    guard let error = ended.error.map({ attributed($0, to: top) }) else { return }
    if frames[top].cursor.phase == .willStart {
      frames[top].cursor.error = error
    } else if !ended.isCut {
      // A callback that was cut off has been reported.
      run.addLateError(error)
    }
  }
}
