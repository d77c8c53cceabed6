// `willStart` and `didFinish` of the flows that a strand is in.
extension Strand {
  /// Calls the callbacks of `list` that weren't called yet; false when one of them waits.
  func call(_ list: [any RunCallback]) -> Bool {
    let top = frames.count - 1
    while frames[top].callback < list.count, !isDoneWithCallbacks(top) {
      let callback = list[frames[top].callback]
      frames[top].callback += 1
      let run = run
      let made = CallbackCompletion(strand: self, place: { callback.place }) { completion, error in
        callback.cancel(run, completion: completion, error)
      }
      completion = made
      isAsked = false
      let isDone = made.begin { callback.call(run, completion: $0) }
      loop.stamp = 0
      guard isDone else {
        askCallback()
        cutIfOverdue()
        return false
      }
      endCallback()
    }
    return true
  }

  /// The first error of a `willStart` ends them; a `didFinish` is never left out.
  private func isDoneWithCallbacks(_ top: Int) -> Bool {
    frames[top].phase == .willStart && frames[top].error != nil
  }

  /// Takes the result of the callback, predicate or cleanup that has finished.
  func endCallback() {
    if decision != nil {
      endQuestion()
      return
    }
    if leafPhase == .cleanups {
      endCleanup()
      return
    }
    guard let ended = completion, let top = frames.indices.last else { return }
    completion = nil
    if frames[top].phase == .steps {
      endPredicate(ended, top)
      return
    }
    guard let error = ended.error.map({ attributed($0, to: top) }) else { return }
    if frames[top].phase == .willStart {
      frames[top].error = error
    } else if !ended.isCut {
      // One that was cut has been reported.
      run.addLateError(error)
    }
  }
}
