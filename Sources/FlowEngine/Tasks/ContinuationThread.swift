/// When and where a continuation runs after its task has ended.
public enum ContinuationThread: UInt8, Sendable {
  /// At once, unless 20 nested continuations are running: then as a job of the loop, so that no
  /// chain grows the stack.
  case automatic
  /// As a job of the loop, after all jobs that are ready.
  case main
  /// At once, unless 20 nested continuations are running: then after the outermost of them has
  /// returned, before anything else.
  case immediate
}

extension TaskRegistry {
  /// How many nested continuations may run.
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
      loop.enqueue(job)
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
    // The continuation has taken time.
    stamp = 0
  }
}
