/// Where and when a continuation runs once its task has ended.
public enum ContinuationThread: UInt8, Sendable {
  /// At once, but posted to the loop where 20 continuations already wait for each other to return, so
  /// that no chain grows the stack.
  case automatic
  /// As a job of the loop, behind all that is ready.
  case main
  /// At once; where 20 already wait for each other to return, when the outermost of them has returned
  /// and before anything else.
  case immediate
}

extension EventLoop {
  /// How many continuations may run within one another.
  private static var depthLimit: UInt8 { 20 }

  /// Runs a continuation whose task has ended.
  // Inlined for the same reason as `AnyFlowTask.observe`.
  @inline(__always)
  func dispatch(_ job: any LoopJob, _ thread: ContinuationThread) {
    if enterContinuation(thread) {
      job.run()
      leaveContinuation()
    } else if thread == .immediate, !isShutDown, !isStandingStill {
      immediates.append(job)
    } else {
      enqueue(job)
    }
  }

  /// Whether a continuation may run at once. When it has, call `leaveContinuation`.
  @inline(__always)
  func enterContinuation(_ thread: ContinuationThread) -> Bool {
    if thread == .main || isShutDown || isStandingStill { return false }
    guard continuationDepth < Self.depthLimit else { return false }
    continuationDepth += 1
    return true
  }

  @inline(__always)
  func leaveContinuation() {
    if continuationDepth == 1 {
      while let next = immediates.popFirst() { next.run() }
    }
    continuationDepth -= 1
    // What ran has taken its time.
    stamp = 0
  }
}
