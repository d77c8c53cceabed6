@testable import FlowEngine
import Testing

@Suite("The cursor of a flow")
struct FlowCursorTests {
  private let failure = FlowError(.error, "no")
  private let cancelled = FlowError.cancelled()

  /// A cursor of a flow with these parts, at its first step.
  private func started(_ parts: FlowCursor.Parts) -> FlowCursor {
    var cursor = FlowCursor(parts)
    #expect(cursor.act() == .start)
    cursor.started(nil)
    return cursor
  }

  /// A cursor whose only attempt has ended with `error`, without final steps.
  private func ended(_ error: FlowError?, _ parts: FlowCursor.Parts) -> FlowCursor {
    var cursor = started(parts)
    cursor.endSteps(isStopped: false)
    #expect(cursor.act() == .endAttempt)
    cursor.endAttempt(error, decides: false)
    return cursor
  }

  // MARK: Start

  @Test("An empty flow starts, ends its attempt, finishes and is left")
  func empty() {
    var cursor = started(.init())
    #expect(cursor.act() == .runSteps)
    #expect(cursor.nextStep() == nil)
    cursor.endSteps(isStopped: false)
    #expect(cursor.act() == .endAttempt)
    cursor.endAttempt(nil, decides: false)
    #expect(cursor.act() == .finish)
    cursor.finish(nil)
    #expect(cursor.act() == .leave)
    #expect(cursor.error == nil)
  }

  @Test("Callbacks are called in order before the start")
  func willStart() {
    var cursor = FlowCursor(.init(willStart: 2))
    #expect(cursor.act() == .callWillStart(0))
    #expect(cursor.act() == .callWillStart(1))
    #expect(cursor.act() == .start)
  }

  @Test("The first error of a callback ends the callbacks")
  func willStartFails() {
    var cursor = FlowCursor(.init(willStart: 2))
    #expect(cursor.act() == .callWillStart(0))
    cursor.error = failure
    #expect(cursor.act() == .start)
  }

  @Test("A flow that can't start executes no step and no final step, but calls its last callbacks")
  func startFails() {
    var cursor = FlowCursor(.init(steps: 1, finally: 1, didFinish: 1))
    #expect(cursor.act() == .start)
    cursor.started(failure)
    #expect(cursor.act() == .finish)
    cursor.finish(cursor.error)
    #expect(cursor.act() == .beginCallbacks)
    #expect(cursor.act() == .callDidFinish(0))
    #expect(cursor.act() == .endCallbacks)
    #expect(cursor.act() == .leave)
    #expect(cursor.error?.message == failure.message)
  }

  // MARK: Steps

  @Test("Steps follow one another, and a step may contain others")
  func steps() {
    var cursor = started(.init(steps: 5))
    #expect(cursor.act() == .runSteps)
    #expect(cursor.nextStep() == 0)
    #expect(cursor.nextStep() == 1)
    // Three steps that run at the same time.
    cursor.skip(2)
    #expect(cursor.nextStep() == 4)
    #expect(cursor.nextStep() == nil)
  }

  @Test("A step that has waited is followed by the next one")
  func afterAWait() {
    var cursor = started(.init(steps: 2))
    #expect(cursor.nextStep() == 0)
    #expect(cursor.act() == .runSteps)
    #expect(cursor.nextStep() == 1)
  }

  @Test("A failed step ends the steps")
  func stepFails() {
    var cursor = started(.init(steps: 2))
    #expect(cursor.nextStep() == 0)
    #expect(cursor.act(ended: failure) == .endAttempt)
    #expect(cursor.error?.message == failure.message)
    #expect(!cursor.isStopped)
  }

  @Test("A stop ends the steps, with the error for its level")
  func stopped() {
    let stop = Stop.one(0, failure)
    var (outer, inner) = (started(.init(steps: 2)), started(.init(steps: 2)))
    #expect(outer.act(stop: stop) == .endAttempt)
    #expect(outer.isStopped)
    #expect(outer.error?.message == failure.message)
    #expect(inner.act(stop: stop, level: 1) == .endAttempt)
    #expect(inner.error?.message == failure.asReason.message)
  }

  // MARK: Cases

  @Test(
    "Branches are tested in order; the steps of the one that is taken run, then those after all")
  func branches() {
    // A choice, two branches of one and two steps, and a step after them.
    var cursor = started(.init(steps: 5))
    #expect(cursor.nextStep() == 0)
    cursor.choose(7, branches: 2)
    #expect(cursor.next == 0)
    #expect(cursor.act() == .test(branch: 0, block: 7))
    cursor.skipBranch()
    #expect(cursor.act() == .test(branch: 1, block: 7))
    cursor.takeBranch(2..<4, joint: 4)
    #expect(cursor.act() == .runSteps)
    #expect(cursor.nextStep() == 2)
    #expect(cursor.nextStep() == 3)
    #expect(cursor.nextStep() == 4)
    #expect(cursor.nextStep() == nil)
  }

  @Test("A branch at the end of a flow is followed by nothing")
  func lastBranch() {
    var cursor = started(.init(steps: 2))
    #expect(cursor.nextStep() == 0)
    cursor.choose(0, branches: 1)
    cursor.takeBranch(1..<2, joint: 2)
    #expect(cursor.nextStep() == 1)
    #expect(cursor.nextStep() == nil)
  }

  @Test("Without a branch to take, the flow finishes early")
  func noBranch() {
    var cursor = started(.init(steps: 3, finally: 1))
    #expect(cursor.nextStep() == 0)
    cursor.choose(0, branches: 1)
    cursor.skipBranch()
    #expect(cursor.act() == .noCase)
    #expect(cursor.isFinishedEarly)
    #expect(cursor.act() == .beginFinalSteps)
  }

  @Test("A failed predicate, or a stop, ends the choice")
  func choiceFails() {
    var (failed, stopped) = (started(.init(steps: 2)), started(.init(steps: 2)))
    #expect(failed.nextStep() == 0)
    failed.choose(0, branches: 2)
    #expect(failed.act(ended: failure) == .endAttempt)
    #expect(failed.block == nil)
    #expect(stopped.nextStep() == 0)
    stopped.choose(0, branches: 2)
    #expect(stopped.act(stop: .everything(cancelled)) == .endAttempt)
    #expect(stopped.block == nil)
  }

  // MARK: Final steps

  @Test("Final steps run within their shield, whatever the outcome", arguments: [true, false])
  func finalSteps(fails: Bool) {
    var cursor = started(.init(steps: 1, finally: 2))
    #expect(cursor.nextStep() == 0)
    if fails {
      #expect(cursor.act(ended: failure) == .beginFinalSteps)
    } else {
      cursor.endSteps(isStopped: false)
      #expect(cursor.act() == .beginFinalSteps)
    }
    #expect(cursor.act() == .finalStep(0))
    #expect(cursor.act() == .finalStep(1))
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    #expect((cursor.error != nil) == fails)
  }

  @Test("The error of a final step doesn't end the others, and doesn't replace an earlier one")
  func finalStepFails() {
    let later = FlowError(.error, "later")
    let errors = [nil, failure]
    for first in errors {
      var cursor = started(.init(steps: 1, finally: 2))
      cursor.endSteps(isStopped: false)
      cursor.error = first
      #expect(cursor.act() == .beginFinalSteps)
      #expect(cursor.act() == .finalStep(0))
      #expect(cursor.act(ended: later) == .finalStep(1))
      #expect(cursor.error?.message == (first ?? later).message)
    }
  }

  @Test("A stop that was held during the final steps is the error of the attempt")
  func stopAfterFinalSteps() {
    var cursor = started(.init(finally: 1))
    cursor.endSteps(isStopped: false)
    #expect(cursor.act() == .beginFinalSteps)
    #expect(cursor.act() == .finalStep(0))
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act(stop: .everything(cancelled)) == .endAttempt)
    #expect(cursor.error?.kind == .cancelled)
    #expect(cursor.isStopped)
  }

  // MARK: Undos

  @Test("A failing flow undoes what had succeeded before its final steps, within one shield")
  func undos() {
    var cursor = started(.init(steps: 2, finally: 1))
    cursor.hasUndos = true
    #expect(cursor.act(ended: failure) == .beginFinalSteps)
    #expect(cursor.act() == .undo)
    #expect(cursor.phase == .undos && cursor.callsBack)
    #expect(cursor.act() == .undo)
    cursor.hasUndos = false
    #expect(cursor.act() == .finalStep(0))
    #expect(!cursor.callsBack)
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    #expect(cursor.error?.message == failure.message)
  }

  @Test("Without final steps, the shield ends after the undos")
  func undosAlone() {
    var cursor = started(.init(steps: 1))
    cursor.hasUndos = true
    #expect(cursor.act(stop: .everything(cancelled)) == .beginFinalSteps)
    #expect(cursor.act() == .undo)
    cursor.hasUndos = false
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    #expect(cursor.error?.kind == .cancelled)
  }

  @Test("A flow that succeeds undoes nothing")
  func noUndos() {
    var cursor = started(.init(finally: 1))
    cursor.hasUndos = true
    cursor.endSteps(isStopped: false)
    #expect(cursor.act() == .beginFinalSteps)
    #expect(cursor.act() == .finalStep(0))
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    cursor.endAttempt(nil, decides: false)
    #expect(cursor.act() == .finish)
    #expect(cursor.hasUndos)
  }

  @Test("A failure after the steps is followed by the undos, and no second round of final steps")
  func lateUndos() {
    var cursor = started(.init(finally: 1))
    cursor.hasUndos = true
    cursor.endSteps(isStopped: false)
    #expect(cursor.act() == .beginFinalSteps)
    #expect(cursor.act() == .finalStep(0))
    #expect(cursor.act(ended: failure) == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    cursor.undoSteps(failure)
    #expect(cursor.act() == .beginFinalSteps)
    #expect(cursor.act() == .undo)
    cursor.hasUndos = false
    #expect(cursor.act() == .endFinalSteps)
    #expect(cursor.act() == .endAttempt)
    cursor.endAttempt(cursor.error, decides: true)
    cursor.delayed()
    #expect(cursor.act() == .beginAttempt)
    cursor.hasUndos = true
    #expect(cursor.act(ended: failure) == .beginFinalSteps)
    #expect(cursor.act() == .undo)
    cursor.hasUndos = false
    #expect(cursor.act() == .finalStep(0))
  }

  // MARK: Attempts

  @Test("Another attempt begins after a delay, at the first step and without the error")
  func retry() {
    var cursor = started(.init(steps: 2))
    #expect(cursor.nextStep() == 0)
    #expect(cursor.act(ended: failure) == .endAttempt)
    cursor.endAttempt(failure, decides: true)
    #expect(cursor.act() == .decide)
    #expect(cursor.act() == .decide)
    cursor.delayed()
    #expect(cursor.act() == .beginAttempt)
    #expect(cursor.error == nil)
    #expect(cursor.act() == .runSteps)
    #expect(cursor.nextStep() == 0)
  }

  @Test("A stop during the delay ends the flow with the error of its attempt")
  func stopDuringDelay() {
    var cursor = started(.init(steps: 1))
    #expect(cursor.act(ended: failure) == .endAttempt)
    cursor.endAttempt(failure, decides: true)
    cursor.delayed()
    #expect(cursor.act(stop: .everything(cancelled)) == .finish)
    #expect(cursor.error?.message == failure.message)
  }

  @Test("Without another attempt, the flow finishes with the error of the decision")
  func noRetry() {
    var cursor = started(.init(steps: 1))
    #expect(cursor.act(ended: failure) == .endAttempt)
    cursor.endAttempt(failure, decides: true)
    cursor.stopRetrying(cancelled)
    #expect(cursor.act() == .finish)
    #expect(cursor.error?.kind == .cancelled)
  }

  // MARK: End

  @Test("Last callbacks are called within their shield, after the end is logged")
  func didFinish() {
    var cursor = ended(nil, .init(didFinish: 2))
    // It waits for tasks that its ops have left.
    #expect(cursor.act() == .finish)
    #expect(cursor.act() == .finish)
    cursor.finish(nil)
    #expect(cursor.act() == .beginCallbacks)
    #expect(cursor.phase == .didFinish)
    #expect(cursor.act() == .callDidFinish(0))
    #expect(cursor.act() == .callDidFinish(1))
    #expect(cursor.act() == .endCallbacks)
    #expect(cursor.act() == .leave)
  }

  @Test("A flow that has ended keeps its error while its callbacks run")
  func errorAtTheEnd() {
    var cursor = ended(failure, .init(didFinish: 1))
    #expect(cursor.act() == .finish)
    cursor.finish(failure)
    #expect(cursor.act() == .beginCallbacks)
    #expect(cursor.act() == .callDidFinish(0))
    #expect(cursor.act() == .endCallbacks)
    #expect(cursor.error?.message == failure.message)
  }

  // MARK: All together

  @Test("Whatever happens, a flow leaves each phase as often as it has entered it")
  func random() {
    var generator = FlowEngine.SeededGenerator(seed: 20_261_122)
    for _ in 0..<2000 {
      let parts = FlowCursor.Parts(
        willStart: .random(in: 0...2, using: &generator),
        steps: .random(in: 0...4, using: &generator),
        finally: .random(in: 0...2, using: &generator),
        didFinish: .random(in: 0...2, using: &generator))
      check(parts, &generator)
    }
  }

  /// Performs the actions of a flow with random results, and counts them.
  private func check(_ parts: FlowCursor.Parts, _ generator: inout FlowEngine.SeededGenerator) {
    func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &generator) == 0 }
    var cursor = FlowCursor(parts)
    var (attempts, shields, finals, callbacks, actions) = (0, 0, 0, 0, 0)
    var (stop, ended) = (Stop?.none, FlowError?.none)
    var (hasStarted, hasFinished) = (false, false)
    while true {
      actions += 1
      guard actions < 200 else {
        Issue.record("\(parts) doesn't end")
        return
      }
      if stop == nil, shields == 0, chance(30) { stop = .everything(cancelled) }
      let action = cursor.advance(ended: ended, stop: stop, level: 0)
      ended = nil
      switch action {
      case .callWillStart: if chance(8) { cursor.error = failure }
      case .start:
        cursor.started(stop?.error ?? cursor.error)
        hasStarted = cursor.error == nil
        if hasStarted { attempts += 1 }
      case .runSteps:
        guard let step = cursor.nextStep() else {
          cursor.endSteps(isStopped: false)
          continue
        }
        #expect(step < parts.steps)
        if chance(8) { ended = failure }
        if chance(3) { cursor.hasUndos = true }
      case .test, .noCase: Issue.record("there are no cases")
      case .beginFinalSteps, .beginCallbacks: shields += 1
      case .finalStep(let number):
        #expect(shields == 1 && number < parts.finally)
        finals += 1
      case .undo:
        #expect(shields == 1 && cursor.error != nil)
        if chance(2) { cursor.hasUndos = false }
      case .endFinalSteps, .endCallbacks: shields -= 1
      case .endAttempt:
        #expect(shields == 0)
        if let error = cursor.error, cursor.hasUndos {
          cursor.undoSteps(error)
          continue
        }
        cursor.endAttempt(cursor.error, decides: cursor.error != nil && stop == nil && attempts < 3)
      case .decide: if chance(2) { cursor.delayed() } else { cursor.stopRetrying(cursor.error) }
      case .beginAttempt: attempts += 1
      case .finish:
        #expect(!hasFinished)
        hasFinished = true
        cursor.finish(stop?.error ?? cursor.error)
      case .callDidFinish:
        #expect(shields == 1 && hasFinished)
        callbacks += 1
      case .leave:
        #expect(shields == 0 && hasFinished)
        #expect(finals == attempts * parts.finally)
        #expect(callbacks == parts.didFinish)
        return
      }
    }
  }
}

extension FlowCursor {
  fileprivate mutating func act(
    ended: FlowError? = nil, stop: Stop? = nil, level: Int = 0
  ) -> Action {
    advance(ended: ended, stop: stop, level: level)
  }
}
