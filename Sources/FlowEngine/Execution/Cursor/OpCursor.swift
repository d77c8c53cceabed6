/// The position of an execution in an op that has a policy, cleanups or tasks.
///
/// A transition changes only the cursor and returns the action to perform, as those of `FlowCursor`.
struct OpCursor {
  enum Phase: UInt8 {
    case body
    /// Waits for the tasks that the op has started.
    case tasks
    case cleanups
    /// Decides whether there is another attempt.
    case deciding
    /// Waits before the next attempt.
    case delay
    /// Waits until the keeper of the run can decide about the op.
    case reading
    /// Waits until the start of the op is kept.
    case start
    /// Waits until the end of the op is kept.
    case end
  }

  enum Action: Equatable {
    /// Nothing: something else continues the op.
    case wait
    /// Cancel or pass on the tasks that the op has started; when they have ended, report with `tasksEnded`.
    case endTasks
    /// Shield the cleanups from stops, and let them use the context.
    case beginCleanups
    /// Let further cleanups use the context.
    case openCleanups
    /// Call the latest cleanup.
    case callCleanup
    /// Close the context, as there are no more cleanups.
    case closeCleanups
    /// Deliver the stops that were held meanwhile, then end the attempt.
    case endCleanups
    /// Ask the retry policy whether there is another attempt, else end the op.
    case endAttempt
    case decide
    case beginAttempt
    /// Ask the keeper of the run again.
    case decideKept
    /// Begin the first attempt, now that the start of the op is kept.
    case beginKept
    /// End the op, now that its end is kept.
    case endKept
  }

  private(set) var phase: Phase = .body
  /// Whether the cleanups of the attempt have begun.
  private(set) var isCleaningUp = false

  /// Returns the next action.
  ///
  /// - Parameters:
  ///   - hasResources: Whether the attempt has cleanups or tasks.
  ///   - hasCleanups: Whether cleanups remain.
  /// - Returns: The action to perform.
  mutating func advance(hasResources: Bool, hasCleanups: Bool) -> Action {
    switch phase {
    case .body: return .wait
    case .deciding: return .decide
    case .delay: return .beginAttempt
    case .reading: return .decideKept
    case .start: return .beginKept
    case .end: return .endKept
    case .tasks: return hasResources ? .endTasks : .endAttempt
    case .cleanups:
      if hasCleanups { return .callCleanup }
      // They may have started tasks.
      phase = .tasks
      return .closeCleanups
    }
  }

  /// An attempt begins.
  mutating func begin() {
    phase = .body
    isCleaningUp = false
  }

  /// The body has ended, and the attempt has tasks or cleanups.
  mutating func bodyEnded() { phase = .tasks }

  /// The tasks of the attempt have ended, or belong to the run.
  mutating func tasksEnded(hasCleanups: Bool) -> Action {
    if hasCleanups {
      phase = .cleanups
      let hasBegun = isCleaningUp
      isCleaningUp = true
      return hasBegun ? .openCleanups : .beginCleanups
    }
    if !isCleaningUp { return .endAttempt }
    isCleaningUp = false
    return .endCleanups
  }

  /// The retry policy is asked about another attempt.
  mutating func decides() { phase = .deciding }

  /// Another attempt follows after a delay.
  mutating func delayed() { phase = .delay }

  /// Files have to be read before the keeper of the run can decide about the op.
  mutating func reads() { phase = .reading }

  /// The start of the op has to be kept before its first attempt.
  mutating func keepsStart() { phase = .start }

  /// The end of the op has to be kept.
  mutating func keepsEnd() { phase = .end }
}
