// `willStart` and `didFinish` of the flows that a strand is in.
extension Strand {
  /// Calls the callbacks of `list` that weren't called yet; false when one of them waits.
  func call(_ list: [any RunCallback]) -> Bool {
    let top = frames.count - 1
    while frames[top].callback < list.count, !isDoneWithCallbacks(top) {
      let made = CallbackCompletion(list[frames[top].callback], strand: self)
      frames[top].callback += 1
      completion = made
      let isDone = made.call(run)
      loop.stamp = 0
      guard isDone else {
        askCallback()
        return false
      }
      endCallback()
    }
    return true
  }

  /// The first error of a `willStart` ends them; a `didFinish` is never left out.
  func isDoneWithCallbacks(_ top: Int) -> Bool {
    frames[top].phase == .willStart && frames[top].error != nil
  }

  func endCallback() {
    let error = completion?.error
    completion = nil
    guard let error, let top = frames.indices.last else { return }
    let attributed = error.attributed(to: frames[top].flow.name)
    if frames[top].phase == .willStart {
      frames[top].error = attributed
    } else {
      run.addLateError(attributed)
    }
  }
}
