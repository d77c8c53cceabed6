/// Performs a machine's steps: shows screens, asks a user, calls a server.
///
/// ```swift
/// struct Screens: TransitionNavigator {
///   func navigate(
///     _ transition: MachineTransition<MyStep>, to step: MyStep, state: MyState, context: OpContext
///   ) async throws -> MyResult {
///     step == .amount ? .amount(try await askAmount(state)) : .tariffs
///   }
/// }
/// ```
///
/// Source: FlowKit's `TransitionNavigator`.
public protocol TransitionNavigator<Step, StepResult, State> {
  /// The type of the steps.
  associatedtype Step: Hashable
  /// The type of the results of steps.
  associatedtype StepResult
  /// The type of the states.
  associatedtype State

  /// Performs the step that a transition leads to, on the loop's thread; may wait.
  ///
  /// - Parameters:
  ///   - transition: The transition; a move back names the step that it leads to.
  ///   - step: The step to perform.
  ///   - state: The present state.
  ///   - context: The machine's execution, for logging and waiting.
  /// - Returns: The result of the step.
  /// - Throws: The error that the machine is to fail with.
  nonisolated(nonsending) func navigate(
    _ transition: MachineTransition<Step>, to step: Step, state: State, context: OpContext
  ) async throws -> StepResult
}

/// Reduces a machine's state and the result of a step to a new state, and decides when the machine
/// ends.
///
/// ```swift
/// struct Amounts: StateReducer {
///   func reduce(
///     _ state: MyState, with result: MyResult
///   ) async throws -> Reduction<MyState, Transfer> {
///     if case .tariffs = result { .finish(Transfer()) } else { .continue(state) }
///   }
/// }
/// ```
///
/// Source: FlowKit's `StateReducer`.
public protocol StateReducer<StepResult, State, Output> {
  /// The type of the results of steps.
  associatedtype StepResult
  /// The type of the states.
  associatedtype State
  /// The type of the machine's result; by default the states' type.
  associatedtype Output = State

  /// Determines the effect of a step's result on the state; may wait.
  nonisolated(nonsending) func reduce(
    _ state: State, with result: StepResult
  ) async throws -> Reduction<State, Output>
}

/// Chooses the transition after a step.
///
/// ```swift
/// struct Order: TransitionProvider {
///   func transition(
///     from step: MyStep, result: MyResult, state: MyState
///   ) async throws -> MachineTransition<MyStep>? { step == .amount ? .forward(to: .tariffs) : nil }
/// }
/// ```
///
/// Source: FlowKit's `TransitionProvider`.
public protocol TransitionProvider<Step, StepResult, State> {
  /// The type of the steps.
  associatedtype Step: Hashable
  /// The type of the results of steps.
  associatedtype StepResult
  /// The type of the states.
  associatedtype State

  /// The transition after a step; nil when the machine ends with its state. May wait.
  nonisolated(nonsending) func transition(
    from step: Step, result: StepResult, state: State
  ) async throws -> MachineTransition<Step>?
}

/// A reducer that is a closure.
///
/// ```swift
/// let reducer = DeclarativeStateReducer<MyResult, MyState, Transfer> { state, result in
///   if case .tariffs = result { .finish(Transfer()) } else { .continue(state) }
/// }
/// ```
public struct DeclarativeStateReducer<StepResult, State, Output>: StateReducer {
  private let body:
    nonisolated(nonsending) (State, StepResult) async throws -> Reduction<State, Output>

  /// - Parameter body: Determines the effect of a step's result on the state.
  public init(
    _ body:
      nonisolated(nonsending) @escaping (State, StepResult) async throws ->
      Reduction<State, Output>
  ) {
    self.body = body
  }

  public nonisolated(nonsending) func reduce(
    _ state: State, with result: StepResult
  ) async throws -> Reduction<State, Output> {
    try await body(state, result)
  }
}

/// A navigator that has a closure for each step.
///
/// ```swift
/// let navigator = DeclarativeNavigator<MyStep, MyResult, MyState> {
///   Perform(.amount) { state, context in .amount(try await askAmount(state)) }
///   Perform(.tariffs) { state, context in … }
/// }
/// ```
public struct DeclarativeNavigator<Step: Hashable, StepResult, State>: TransitionNavigator {
  private var bodies: [Step: Perform<Step, StepResult, State>.Body] = [:]

  /// Makes a navigator of the listed steps; when a step is listed twice, the last one counts.
  public init(
    @FlowListBuilder<Perform<Step, StepResult, State>>
    steps: () -> [Perform<Step, StepResult, State>]
  ) {
    for step in steps() { bodies[step.step] = step.body }
  }

  public nonisolated(nonsending) func navigate(
    _ transition: MachineTransition<Step>, to step: Step, state: State, context: OpContext
  ) async throws -> StepResult {
    guard let body = bodies[step] else {
      throw FlowError.usage("nothing performs step '\(ByteString(String(describing: step)))'")
    }
    return try await body(state, context)
  }
}

/// Performs one step, for a `DeclarativeNavigator`.
///
/// ```swift
/// let navigator = DeclarativeNavigator<MyStep, MyResult, MyState> {
///   Perform(.amount) { state, _ in .amount(try await askAmount(state)) }
///   Perform(.tariffs, ScaleOp(), result: { _ in .tariffs })
/// }
/// ```
public struct Perform<Step: Hashable, StepResult, State> {
  typealias Body = nonisolated(nonsending) (State, OpContext) async throws -> StepResult

  let step: Step
  let body: Body

  /// - Parameters:
  ///   - step: The step.
  ///   - body: Its work, from the state at that time and the machine's execution.
  public init(
    _ step: Step,
    body: nonisolated(nonsending) @escaping (State, OpContext) async throws -> StepResult
  ) {
    self.step = step
    self.body = body
  }

  /// Performs a step with an op, in a run of its own.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - op: The op, flow or machine.
  ///   - result: The result of the step, from the final data of the run.
  ///   - data: The initial data of the run.
  public init(
    _ step: Step, _ op: some OpConvertible,
    result: @escaping (DataBucket) throws -> StepResult,
    data: @escaping (State) -> InitialData = { _ in [:] }
  ) {
    let made = op.makeOp()
    self.init(step) { state, context in
      let run = context.start(made, data: data(state))
      return try result(try await run.value(cancelsTask: true))
    }
  }
}
