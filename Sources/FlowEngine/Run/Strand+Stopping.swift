// How a strand, and what it waits for, is stopped.
extension Strand {
  /// Asks the strand to stop because of `error`; the first error counts.
  func cancel(_ error: FlowError) {
    guard cancellation == nil else { return }
    cancellation = error
    if let child {
      child.cancel(error)
    } else if completion != nil {
      askCallback()
    } else {
      askBody()
    }
  }

  /// Asks a suspended body to stop, once.
  func askBody() {
    guard let error = cancellation, !isAsked, context.phase == .suspended else { return }
    isAsked = true
    context.op.body?.cancel(context, error)
  }

  func askCallback() {
    // What a callback of a settled flow does isn't part of what was cancelled.
    guard let error = cancellation, !isAsked, let completion, !completion.isFinished,
      frames.last?.phase == .willStart
    else { return }
    isAsked = true
    completion.callback.cancel(run, completion: completion, error)
  }

  /// Lets go of all it holds and waits for, and hands over the strands that it waited for.
  func abandon() -> [Strand] {
    let open = members
    child?.abandon()
    child = nil
    completion?.abandon()
    completion = nil
    frames = []
    detachContext()
    return open
  }

  /// The strands that this one waits for.
  var members: [Strand] { child?.members ?? [] }

  /// Stops what waits in this strand itself as stalled; answers whether anything did.
  func failStalled() -> Bool {
    if let child { return child.failStalled() }
    if let completion, !completion.isFinished {
      completion.finish(.stalled(op: frames.last?.flow.name ?? op.name))
      return true
    }
    if context.phase == .suspended {
      let error = FlowError.stalled(op: context.displayName)
      if isAsked {
        context.end(cancellation ?? error)
      } else if cancellation == nil {
        cancellation = error
        askBody()
      }
      return true
    }
    return false
  }
}
