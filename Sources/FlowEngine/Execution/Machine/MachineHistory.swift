/// The steps that a machine has entered, and the results of the last of them.
struct MachineHistory {
  /// The outcome of a step, kept so that the result can be taken again.
  struct Outcome {
    let result: FlowValue
    /// The state before the result was reduced.
    let state: FlowValue
  }

  private var steps: ContiguousArray<UInt32> = []
  /// Outcomes of the steps from `firstOutcome` on; the present step may not have one yet.
  private var outcomes: ContiguousArray<Outcome> = []
  private var firstOutcome = 0

  /// The least number of outcomes that are kept: a machine that makes a million transitions doesn't
  /// hold a million results.
  static let outcomeLimit = 1024

  /// The number of steps, the present one included.
  var count: Int { steps.count }

  /// The steps that were entered, the present one included.
  var entered: [Int] { steps.map { Int($0) } }

  /// Enters a step.
  mutating func push(_ step: Int) { steps.append(UInt32(truncatingIfNeeded: step)) }

  /// The step at an index.
  subscript(index: Int) -> Int { Int(steps[index]) }

  /// The latest index of a step before the present one; nil when the step isn't there.
  func lastIndex(of step: Int) -> Int? {
    steps.dropLast().lastIndex(of: UInt32(truncatingIfNeeded: step))
  }

  /// Removes all steps after an index.
  mutating func cut(to index: Int) {
    steps.removeLast(steps.count - index - 1)
    let kept = max(0, index + 1 - firstOutcome)
    if outcomes.count > kept { outcomes.removeLast(outcomes.count - kept) }
  }

  /// Records the result of the present step.
  mutating func record(_ result: FlowValue, _ state: FlowValue) {
    let last = steps.count - 1
    if outcomes.isEmpty { firstOutcome = last }
    let outcome = Outcome(result: result, state: state)
    if last - firstOutcome < outcomes.count {
      outcomes[last - firstOutcome] = outcome
    } else {
      outcomes.append(outcome)
    }
    if outcomes.count >= Self.outcomeLimit * 2 {
      outcomes.removeFirst(Self.outcomeLimit)
      firstOutcome += Self.outcomeLimit
    }
  }

  /// The outcome of the step before the present one; nil at the first step, and when it isn't kept
  /// any more.
  var previous: Outcome? {
    let place = steps.count - 2 - firstOutcome
    return steps.count > 1 && outcomes.indices.contains(place) ? outcomes[place] : nil
  }
}
