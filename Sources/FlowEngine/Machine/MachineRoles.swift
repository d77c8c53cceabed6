/// Performs a machine's steps: shows screens, asks somebody, calls a server.
///
/// Source: the seed's `TransitionNavigator` (FlowKit).
public protocol TransitionNavigator<Step, StepResult, State> {
  /// Names the steps.
  associatedtype Step: Hashable
  /// What performing a step leaves.
  associatedtype StepResult
  /// What the machine knows so far.
  associatedtype State

  /// Performs the step that a transition leads to, on the loop's thread; may wait.
  ///
  /// - Parameters:
  ///   - transition: Where the machine goes; going back names the step that it leads to.
  ///   - step: The step to perform.
  ///   - state: The state now.
  ///   - context: The machine's execution, to log and to wait with.
  /// - Returns: What the step resulted in.
  /// - Throws: What the machine is to fail with.
  nonisolated(nonsending) func navigate(
    _ transition: Transition<Step>, to step: Step, state: State, context: OpContext
  ) async throws -> StepResult
}

/// Makes a machine's state of what its steps result in, and decides when there is enough to end.
///
/// Source: the seed's `StateReducer` (FlowKit).
public protocol StateReducer<StepResult, State> {
  /// What performing a step leaves.
  associatedtype StepResult
  /// What the machine knows so far.
  associatedtype State

  /// Says what becomes of the state behind a step; may wait.
  nonisolated(nonsending) func reduce(
    _ state: State, with result: StepResult
  ) async throws -> Reduction<State>
}

/// Says where a machine goes from a step.
///
/// Source: the seed's `TransitionProvider` (FlowKit).
public protocol TransitionProvider<Step, StepResult, State> {
  /// Names the steps.
  associatedtype Step: Hashable
  /// What performing a step leaves.
  associatedtype StepResult
  /// What the machine knows so far.
  associatedtype State

  /// The transition that comes behind a step; nil when the machine ends with its state. May wait.
  nonisolated(nonsending) func transition(
    from step: Step, result: StepResult, state: State
  ) async throws -> Transition<Step>?
}

/// A reducer that is a closure.
public struct DeclarativeStateReducer<StepResult, State>: StateReducer {
  private let body: nonisolated(nonsending) (State, StepResult) async throws -> Reduction<State>

  /// - Parameter body: What becomes of a state, given a step's result.
  public init(
    _ body: nonisolated(nonsending) @escaping (State, StepResult) async throws -> Reduction<State>
  ) {
    self.body = body
  }

  public nonisolated(nonsending) func reduce(
    _ state: State, with result: StepResult
  ) async throws -> Reduction<State> {
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

  /// A navigator of the steps that are listed; the last one of a step counts.
  public init(
    @StepListBuilder<Step, StepResult, State> steps: () -> [Perform<Step, StepResult, State>]
  ) {
    for step in steps() { bodies[step.step] = step.body }
  }

  public nonisolated(nonsending) func navigate(
    _ transition: Transition<Step>, to step: Step, state: State, context: OpContext
  ) async throws -> StepResult {
    guard let body = bodies[step] else {
      throw FlowError.usage("nothing performs step '\(ByteString(String(describing: step)))'")
    }
    return try await body(state, context)
  }
}

/// What performs one step, for a `DeclarativeNavigator`.
public struct Perform<Step: Hashable, StepResult, State> {
  /// What performs a step: with the state of then and the machine's execution; may wait.
  public typealias Body =
    nonisolated(nonsending) (State, OpContext) async throws -> StepResult

  let step: Step
  let body: Body

  /// - Parameters:
  ///   - step: The step.
  ///   - body: What it does, with the state of then and the machine's execution.
  public init(_ step: Step, body: @escaping Body) {
    self.step = step
    self.body = body
  }

  /// Performs a step by an op, in a run of its own.
  ///
  /// - Parameters:
  ///   - step: The step.
  ///   - op: The op, flow or machine.
  ///   - result: What the step results in, given the data that the run has left.
  ///   - data: The data that its run begins with.
  public init(
    _ step: Step, _ op: some OpConvertible,
    result: @escaping (DataBucket) throws -> StepResult,
    data: @escaping (State) -> [(ByteString, Value)] = { _ in [] }
  ) {
    let made = op.makeOp()
    self.init(step) { state, context in
      let run = context.start(made, data: data(state))
      return try result(try await run.value(cancelsTask: true))
    }
  }
}

/// Builds the list of a `DeclarativeNavigator`.
@resultBuilder
public enum StepListBuilder<Step: Hashable, StepResult, State> {
  /// One step.
  public static func buildExpression(
    _ step: Perform<Step, StepResult, State>
  ) -> [Perform<Step, StepResult, State>] { [step] }

  /// The steps one below the other.
  public static func buildBlock(
    _ parts: [Perform<Step, StepResult, State>]...
  ) -> [Perform<Step, StepResult, State>] { parts.flatMap { $0 } }
}
