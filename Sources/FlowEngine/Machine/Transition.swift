/// Where a machine goes from a step.
///
/// Source: the seed's `forward(to:)` and `back(to:)` (FlowKit).
public enum Transition<Step> {
  /// On to a step, which is added to the history.
  case forward(to: Step)
  /// To an earlier step of the history, which is cut there: the last one before the present step,
  /// or with nil the previous one, whichever it is.
  case back(to: Step?)
  /// The present step once more.
  case stay

  /// The name that scripts use for the kind.
  public var kindName: ByteString {
    switch self {
    case .forward: "forward"
    case .back: "back"
    case .stay: "stay"
    }
  }

  /// The step that it names.
  public var step: Step? {
    switch self {
    case .forward(let step): step
    case .back(let step): step
    case .stay: nil
    }
  }

  /// The same with the step that `convert` makes of its own.
  public func map<Other>(_ convert: (Step) -> Other) -> Transition<Other> {
    switch self {
    case .forward(let step): .forward(to: convert(step))
    case .back(let step): .back(to: step.map(convert))
    case .stay: .stay
    }
  }
}

extension Transition: Sendable where Step: Sendable {}
extension Transition: Equatable where Step: Equatable {}

/// What becomes of a machine's state after a step.
///
/// Source: the seed's `StateReducer` (FlowKit).
public enum Reduction<State> {
  /// The machine goes on with this state.
  case `continue`(State)
  /// The machine ends with this value.
  case finish(State)
  /// The previous step's result is taken again, with the state of before it was reduced; at the
  /// first step that is performed again.
  case retry
}

extension Reduction: Sendable where State: Sendable {}
