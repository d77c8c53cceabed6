/// The object with which a function of a machine reports its result. One serves all functions of an
/// execution, which are called one after another. Confined to the loop's thread.
package final class MachineCall {
  // Unchecked exclusivity: see HotPath.swift.

  // Cleared when the machine has ended.
  @exclusivity(unchecked) private(set) var execution: MachineExecution?
  @exclusivity(unchecked) private var answer: MachineAnswer?
  /// Whether a function was called whose answer hasn't been taken yet.
  @exclusivity(unchecked) private(set) var isPending = false
  /// Whether the function is being called, so that it may still finish at once.
  @exclusivity(unchecked) private(set) var isInCall = false
  /// State that belongs to the function, such as a coroutine; released when it has finished.
  package var state: AnyObject?
  /// The execution of the machine, an op; nil once it has ended.
  package private(set) var context: OpContext?

  init(_ context: OpContext) {
    self.context = context
  }

  /// Sets the execution that calls the functions.
  func bind(_ execution: MachineExecution) { self.execution = execution }

  /// The machine's functions.
  package var logic: (any MachineLogic)? { execution?.blueprint.logic }

  /// The number of the step that the function is called for.
  package var step: Int { execution?.step ?? 0 }

  /// When a busy function has to be stopped, as `OpContext.deadline`.
  package var deadline: Int64 { context?.deadline ?? .max }

  /// Reports that `deadline` has passed while the function was busy; returns the error to finish
  /// with.
  package func expire() -> FlowError { context?.expire() ?? .cancelled() }

  /// Reports that the function is done. Only the first answer counts.
  package func finish(_ answer: MachineAnswer) {
    guard let execution, isPending, self.answer == nil else { return }
    self.answer = answer
    state = nil
    if !isInCall { execution.wake() }
  }

  /// Calls a function, which may answer at once.
  @inline(__always)
  func begin(_ function: () -> MachineAnswer?) -> MachineAnswer? {
    isPending = true
    isInCall = true
    let answer = function()
    isInCall = false
    guard let answer else { return takeAnswer() }
    isPending = false
    return answer
  }

  /// Returns the answer, once; nil as long as the function waits.
  @inline(__always)
  func takeAnswer() -> MachineAnswer? {
    guard let answer else { return nil }
    self.answer = nil
    isPending = false
    return answer
  }

  /// Releases everything.
  func end() {
    execution = nil
    context = nil
    answer = nil
    state = nil
    isPending = false
  }
}
