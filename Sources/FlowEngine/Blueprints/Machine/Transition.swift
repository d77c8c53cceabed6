/// A move of a machine from one step to the next.
///
/// Source: the seed's `forward(to:)` and `back(to:)` (FlowKit).
public enum Transition<Step> {
  /// To a step, which is added to the history.
  case forward(to: Step)
  /// To an earlier step of the history, which is cut there: the latest such step before the present
  /// one, or with nil the previous step.
  case back(to: Step?)
  /// To the present step again.
  case stay

  /// The name that scripts use for the kind.
  package var kindName: ByteString {
    switch self {
    case .forward: "forward"
    case .back: "back"
    case .stay: "stay"
    }
  }

  /// The target step, if the transition names one.
  public var step: Step? {
    switch self {
    case .forward(let step): step
    case .back(let step): step
    case .stay: nil
    }
  }

  /// The same transition with the step converted by `convert`.
  package func map<Other>(_ convert: (Step) -> Other) -> Transition<Other> {
    switch self {
    case .forward(let step): .forward(to: convert(step))
    case .back(let step): .back(to: step.map(convert))
    case .stay: .stay
    }
  }
}

extension Transition: Sendable where Step: Sendable {}
extension Transition: Equatable where Step: Equatable {}

/// The effect of a step's result on a machine's state.
///
/// Source: the seed's `StateReducer` (FlowKit).
public enum Reduction<State, Output> {
  /// The machine continues with this state.
  case `continue`(State)
  /// The machine ends with this result.
  case finish(Output)
  /// The machine takes the previous step's result again, with the state before that was reduced. At
  /// the first step it performs that step again.
  case retry
}

extension Reduction: Sendable where State: Sendable, Output: Sendable {}
