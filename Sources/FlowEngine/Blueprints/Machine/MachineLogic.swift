/// A machine's functions. Called on the loop's thread; they must not block.
///
/// Each function that gets a call returns its answer at once, or returns nil and promises one
/// `call.finish`. Values have any form that the front end understands: the engine only passes
/// states and results on.
package protocol MachineLogic: CodeHolder {
  /// The first state of a machine that was started with data, as a flow starts it.
  func state(of data: DataBucket) throws -> FlowValue
  /// Converts a state from elsewhere to the form that the functions understand; by default returns
  /// it unchanged. Returns nil for a state that they don't understand: then the machine starts with
  /// the result of `state(of:)` for its data.
  func convertedState(_ state: FlowValue) throws -> FlowValue?
  /// Whether its functions may be busy for long, as `OpBody.mayBeBusy`; by default they aren't.
  var mayBeBusy: Bool { get }
  /// Whether other code than these functions understands states and results; by default it does.
  var hasPlainStates: Bool { get }
  /// The initial data for the run of an op that performs a step. An error that it throws is a
  /// sentence about the state.
  func data(of state: FlowValue) throws -> [(ByteString, FlowValue)]
  /// The result of a step that was performed by such a run.
  func result(of run: Run) throws -> FlowValue
  /// The result of a machine that ends after a step without a transition; by default its state. An error that
  /// it throws fails the machine.
  func result(ofEnd state: FlowValue, _ step: Int) throws -> FlowValue
  /// The values that the data bucket gets when the machine ends with `value`.
  func outputs(of value: FlowValue) throws -> [(ByteString, FlowValue)]

  /// Performs a step whose action is `logic`, or any step with a navigator. Its answer is
  /// `.result`.
  func perform(
    _ transition: MachineTransition<Int>, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer?
  /// Performs a step with a test's replacement function. Its answer is `.result`.
  func perform(
    _ function: AnyObject, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer?
  /// Reduces a result to a new state. Its answer is `.reduction`.
  func reduce(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer?
  /// Derives an event from a result. Its answer is `.event`.
  func emit(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer?
  /// Chooses the next transition. Its answer is `.transition`.
  func transition(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer?

  /// Stops a waiting call because of `error`; the call must finish sooner or later.
  func cancel(_ call: MachineCall, _ error: FlowError)
  /// Notifies the function that is being called, which may be busy for long, that it is to stop.
  func interrupt(_ call: MachineCall, _ error: FlowError)

  /// The name of a step, for lines and errors.
  func name(ofStep step: Int) -> ByteString
  /// The name of an event, for lines and errors.
  func name(ofEvent event: Int) -> ByteString
  /// The position where something was written, as messages begin: `file:12: `, or nothing.
  func position(of place: Int) -> ByteString
}

extension MachineLogic {
  package func convertedState(_ state: FlowValue) throws -> FlowValue? { state }

  package var hasPlainStates: Bool { true }

  package func result(ofEnd state: FlowValue, _ step: Int) throws -> FlowValue { state }

  /// The functions are never busy for long.
  package var mayBeBusy: Bool { false }

  package func perform(
    _ function: AnyObject, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    .failed(.usage("no function can take the place of step '\(name(ofStep: step))'"))
  }

  package func interrupt(_ call: MachineCall, _ error: FlowError) {}

  package func position(of place: Int) -> ByteString { "" }
}

/// The answer of a function of a machine.
package enum MachineAnswer {
  /// The answer of `perform`: the step's result.
  case result(FlowValue)
  /// The answer of `reduce`.
  case reduction(Reduction<FlowValue, FlowValue>)
  /// The answer of `emit`: the event, if there is one. An event that no step handles has a name
  /// only.
  case event(MachineEvent?)
  /// The answer of `transition`: the next transition; nil ends the machine with its state.
  case transition(MachineTransition<Int>?)
  /// The function failed, and the machine fails with it.
  case failed(FlowError)
}

/// An event, by its number if a step handles it.
package enum MachineEvent {
  /// An event that a step handles, by its number.
  case known(Int)
  /// An event that no step handles, by its name.
  case unknown(ByteString)
}

/// A move of a machine from one step to the next.
///
/// ```swift
/// func next(after step: MyStep, _ result: MyResult) -> MachineTransition<MyStep>? {
///   if case .tariffs = result { return nil }  // the machine ends
///   return step == .amount ? .forward(to: .tariffs) : .back(to: .amount)
/// }
/// ```
///
/// Source: FlowKit's `forward(to:)` and `back(to:)`.
public enum MachineTransition<Step> {
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
  package var step: Step? {
    switch self {
    case .forward(let step): step
    case .back(let step): step
    case .stay: nil
    }
  }

  /// This transition with the step converted by `convert`.
  package func map<Other>(_ convert: (Step) -> Other) -> MachineTransition<Other> {
    switch self {
    case .forward(let step): .forward(to: convert(step))
    case .back(let step): .back(to: step.map(convert))
    case .stay: .stay
    }
  }
}

extension MachineTransition: Sendable where Step: Sendable {}
extension MachineTransition: Equatable where Step: Equatable {}

/// The effect of a step's result on a machine's state.
///
/// ```swift
/// func reduce(_ state: MyState, with result: MyResult) -> Reduction<MyState, Transfer> {
///   guard case .amount(let euros) = result else { return .finish(Transfer()) }
///   return euros < 100 ? .retry : .continue(state)
/// }
/// ```
///
/// Source: FlowKit's `StateReducer`.
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

/// The texts of a machine's transitions, each put into the log once: a machine that makes a million
/// transitions makes few different ones.
final class TransitionLines {
  private struct Edge: Hashable {
    let from: Int
    let to: Int
    /// -1 without an event, -2 for a retry.
    let event: Int
  }

  private let logic: any MachineLogic
  private var payloads: [Edge: Payload] = [:]

  // Unchecked exclusivity: see HotPath.swift.

  /// The last two lines: a machine often alternates between two steps.
  @exclusivity(unchecked) private var recent = Line.none
  @exclusivity(unchecked) private var older = Line.none
  /// How many records the log had removed when these were put into it: its texts move when it removes some.
  @exclusivity(unchecked) private var removed = 0

  private struct Line {
    let edge: Edge
    let payload: Payload

    /// A line for no step.
    static let none = Line(edge: Edge(from: -1, to: -1, event: -3), payload: .none)
  }

  init(_ logic: any MachineLogic) {
    self.logic = logic
  }

  /// `amount -> tariffs`, or `confirmation -> amount on editAmount`.
  @inline(__always)
  func payload(_ from: Int, _ to: Int, _ event: Int?, _ log: EventLog) -> Payload {
    payload(Edge(from: from, to: to, event: event ?? -1), log)
  }

  /// `retry amount`.
  func payload(retrying step: Int, _ log: EventLog) -> Payload {
    payload(Edge(from: step, to: step, event: -2), log)
  }

  @inline(__always)
  private func payload(_ edge: Edge, _ log: EventLog) -> Payload {
    // The log may have got more secrets, which no text may show.
    if !log.hasSecrets, removed == log.removed {
      if recent.edge == edge { return recent.payload }
      if older.edge == edge { return older.payload }
    }
    return look(for: edge, log)
  }

  @inline(never)
  private func look(for edge: Edge, _ log: EventLog) -> Payload {
    if log.hasSecrets { return log.payload(text(edge)) }
    if removed != log.removed {
      removed = log.removed
      payloads = [:]
      (recent, older) = (.none, .none)
    }
    let payload = payloads[edge] ?? log.payload(text(edge))
    payloads[edge] = payload
    older = recent
    recent = Line(edge: edge, payload: payload)
    return payload
  }

  private func text(_ edge: Edge) -> ByteString {
    let to = logic.name(ofStep: edge.to)
    if edge.event == -2 { return "retry \(to)" }
    let from = logic.name(ofStep: edge.from)
    return edge.event < 0
      ? "\(from) -> \(to)" : "\(from) -> \(to) on \(logic.name(ofEvent: edge.event))"
  }
}
