/// The position of an execution in a flow: which callback, step or branch is next.
///
/// A transition changes only the cursor and returns the action to perform. The execution performs it and
/// reports the result with another transition, so that all transitions can be tested without a loop.
struct FlowCursor {
  /// How many parts a flow has.
  struct Parts: Equatable {
    var willStart = 0
    var steps = 0
    var finally = 0
    var didFinish = 0
  }

  enum Phase: UInt8 {
    /// The callbacks before the first step.
    case willStart
    case steps
    case finally
    /// Undoes what had succeeded in the attempt that fails.
    case undos
    /// The final steps, which run whatever the outcome.
    case finalSteps
    /// The end of an attempt: succeeded, to be retried, or failed.
    case attemptEnd
    /// Decides whether there is another attempt.
    case deciding
    /// Waits before the next attempt.
    case delay
    /// Waits for the tasks that the ops of the run have left, then ends.
    case finish
    /// The end is logged.
    case finished
    /// The callbacks after the end.
    case didFinish
    case left
  }

  enum Action: Equatable {
    /// Call a callback of `willStart`; an error is reported with `failedToStart`.
    case callWillStart(Int)
    /// Check the flow's input, then report with `started`.
    case start
    /// Execute the steps that `nextStep` returns, then report with `endSteps`.
    case runSteps
    /// Test the condition of a branch, then report with `takeBranch` or `skipBranch`.
    case test(branch: Int, block: Int)
    /// Log that no branch was taken.
    case noCase
    /// Shield what follows from stops: undos and final steps.
    case beginFinalSteps
    /// Undo what has succeeded last, and set `hasUndos`.
    case undo
    case finalStep(Int)
    /// Deliver the stops that were held meanwhile.
    case endFinalSteps
    /// Check the flow's output, then report with `endAttempt`.
    case endAttempt
    /// Ask the retry policy, then report with `delayed` or `stopRetrying`.
    case decide
    case beginAttempt
    /// Await the tasks that ops have left, log the end, then report with `finish`.
    case finish
    /// Shield what follows from stops.
    case beginCallbacks
    case callDidFinish(Int)
    /// Deliver the stops that were held meanwhile.
    case endCallbacks
    /// Continue the enclosing flow with the error of this one.
    case leave
  }

  let parts: Parts
  private(set) var phase: Phase = .willStart
  /// The next step or final step.
  private(set) var next = 0
  /// The end of the steps of the present branch, or of all steps.
  private var end: Int
  /// The cases that are being decided, their number of branches and the next branch to test.
  private(set) var block: Int?
  private var branches = 0
  private(set) var branch = 0
  /// The step after the present branch; -1 outside of one.
  private var joint = -1
  /// The next callback of the phase.
  private var callback = 0
  /// The error that the flow ends with, unless another attempt follows.
  var error: FlowError?
  /// Whether a stop has ended the present attempt.
  private(set) var isStopped = false
  /// Whether there is anything to undo: set by the execution.
  var hasUndos = false
  /// Whether a shield is there for undos and final steps.
  private var isShielded = false
  /// Whether the final steps have ended.
  private var hasEndedFinally = false
  /// Whether no case matched.
  private(set) var isFinishedEarly = false

  init(_ parts: Parts) {
    self.parts = parts
    end = parts.steps
  }

  /// Whether a callback after the end, or an undo, is executing: a stop limits its time.
  var callsBack: Bool { phase == .undos || phase == .didFinish }

  /// Returns the next action.
  ///
  /// - Parameters:
  ///   - ended: The error of the step or predicate that has ended.
  ///   - stop: The stop of the execution.
  ///   - level: The level of the flow.
  /// - Returns: The action to perform.
  mutating func advance(ended: FlowError?, stop: Stop?, level: Int) -> Action {
    switch phase {
    case .willStart:
      // The first error ends the callbacks.
      if error == nil, callback < parts.willStart {
        callback += 1
        return .callWillStart(callback - 1)
      }
      callback = 0
      return .start
    case .steps:
      if ended == nil, stop == nil { return block == nil ? .runSteps : testBranch() }
      error = stop?.error(at: level) ?? ended
      endSteps(isStopped: stop != nil)
      return beginFinally()
    case .finally:
      return beginFinally()
    case .undos:
      if !isShielded {
        isShielded = true
        return .beginFinalSteps
      }
      if hasUndos { return .undo }
      if hasEndedFinally || parts.finally == 0 { return endFinally() }
      beginFinalSteps()
      return nextFinalStep()
    case .finalSteps:
      if error == nil { error = ended }
      return nextFinalStep()
    case .attemptEnd:
      if let error = stop?.error(at: level) {
        self.error = error
        isStopped = true
      }
      return .endAttempt
    case .deciding:
      return .decide
    case .delay:
      if stop != nil {
        phase = .finish
        return .finish
      }
      rewind()
      phase = .steps
      return .beginAttempt
    case .finish:
      return .finish
    case .finished:
      if parts.didFinish == 0 { return .leave }
      phase = .didFinish
      return .beginCallbacks
    case .didFinish:
      // An error doesn't end these callbacks.
      if callback < parts.didFinish {
        callback += 1
        return .callDidFinish(callback - 1)
      }
      phase = .left
      return .endCallbacks
    case .left:
      return .leave
    }
  }

  // MARK: Start

  /// The start has been checked; `error` keeps the flow from executing its first step.
  mutating func started(_ error: FlowError?) {
    self.error = error
    // No step has been executed, so there is nothing to end or to retry.
    phase = error == nil ? .steps : .finish
  }

  // MARK: Steps

  /// Moves to the next step and returns its position; nil when there are no more.
  @inline(__always)
  mutating func nextStep() -> Int? {
    if next >= end {
      if joint < 0 { return nil }
      next = joint
      joint = -1
      end = parts.steps
      if next >= end { return nil }
    }
    next += 1
    return next - 1
  }

  /// Passes the steps that the present one has started as well.
  mutating func skip(_ count: Int) { next += count }

  /// The steps have ended.
  ///
  /// - Parameter isStopped: Whether a stop has ended them.
  mutating func endSteps(isStopped: Bool) {
    block = nil
    phase = .finally
    if isStopped { self.isStopped = true }
  }

  // MARK: Cases

  /// Makes the latest step, a choice, the present one until a branch is taken.
  mutating func choose(_ block: Int, branches: Int) {
    next -= 1
    self.block = block
    self.branches = branches
    branch = 0
  }

  private mutating func testBranch() -> Action {
    if let block, branch < branches { return .test(branch: branch, block: block) }
    isFinishedEarly = true
    endSteps(isStopped: false)
    return .noCase
  }

  /// The condition of the present branch isn't met.
  mutating func skipBranch() { branch += 1 }

  /// Takes the branch whose steps are `steps`; after them, the flow continues at `joint`.
  mutating func takeBranch(_ steps: Range<Int>, joint: Int) {
    block = nil
    next = steps.lowerBound
    end = steps.upperBound
    self.joint = joint
  }

  // MARK: The end of an attempt

  private mutating func beginFinally() -> Action {
    if error != nil, hasUndos {
      phase = .undos
      isShielded = true
      return .beginFinalSteps
    }
    if parts.finally == 0 {
      phase = .attemptEnd
      return .endAttempt
    }
    beginFinalSteps()
    isShielded = true
    return .beginFinalSteps
  }

  private mutating func beginFinalSteps() {
    phase = .finalSteps
    next = 0
  }

  private mutating func nextFinalStep() -> Action {
    guard next < parts.finally else { return endFinally() }
    next += 1
    return .finalStep(next - 1)
  }

  private mutating func endFinally() -> Action {
    hasEndedFinally = true
    isShielded = false
    phase = .attemptEnd
    return .endFinalSteps
  }

  /// The attempt fails with `error` although its steps had succeeded: undoes them first. `endAttempt`
  /// follows once more.
  mutating func undoSteps(_ error: FlowError) {
    self.error = error
    hasEndedFinally = true
    phase = .undos
  }

  /// The attempt has ended with `error`; `decides` is whether the retry policy is asked about another
  /// one.
  mutating func endAttempt(_ error: FlowError?, decides: Bool) {
    self.error = error
    phase = decides ? .deciding : .finish
  }

  /// Another attempt follows after a delay.
  mutating func delayed() { phase = .delay }

  /// No other attempt follows; the flow ends with `error`.
  mutating func stopRetrying(_ error: FlowError?) {
    self.error = error
    phase = .finish
  }

  /// Returns to the first step.
  private mutating func rewind() {
    next = 0
    end = parts.steps
    block = nil
    joint = -1
    error = nil
    isStopped = false
    isFinishedEarly = false
    hasEndedFinally = false
  }

  /// The flow has ended with `error`, and that is logged.
  mutating func finish(_ error: FlowError?) {
    self.error = error
    callback = 0
    phase = .finished
  }
}
