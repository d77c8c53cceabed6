/// A state machine with steps, results and states of Swift types: an op, which can be started alone
/// or used in flows.
///
/// ```swift
/// let transfer = try Machine(
///   "transfer", start: MyStep.amount, navigator: MyNavigator(), reducer: MyReducer(),
///   provider: DeclarativeTransitionProvider(TransferDSL.dsl))
/// let task: FlowTask<Transfer> = transfer.start(from: .amount, with: .country("DE"))
/// ```
///
/// `Output` is the type of the result, with which the reducer finishes. A machine also ends after a step without a
/// transition: with its state, if that is an `Output`, as it is without another type; with nothing, if `Output` is an
/// optional or `Void`. With any other type such an end is a failure, because only the reducer can make a result.
///
/// Steps and events are named by their `String(describing:)`. All functions may wait. Confined to
/// the loop's thread, as every op is.
///
/// Source: FlowKit's `Flow`.
public struct Machine<Step: Hashable, StepResult, State, Output>: OpConvertible {
  /// The machine as an op. In a flow it starts with the result of `takingState` for the data, and
  /// stores the result of `givingData` for its own result there.
  public let op: MachineOp
  private let logic: TypedMachineLogic<Step, StepResult, State, Output>

  public func makeOp() -> Op { op }

  /// Makes a machine.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - start: The step to begin with.
  ///   - navigator: The object that performs the steps.
  ///   - reducer: The object that reduces results to states.
  ///   - provider: The transitions. Those of a `DeclarativeTransitionProvider` are known beforehand: they are checked
  ///     and drawn. A step that is only a target there needn't be written: the machine ends after it.
  ///   - maxTransitions: How many transitions a run may make.
  ///   - takingState: Makes the initial state from the data of a flow.
  ///   - givingData: Makes the values for a flow's data from the result.
  /// - Throws: A `MachineProblem` when the definition is inconsistent.
  public init(
    _ name: some FlowText, start: Step,
    navigator: some TransitionNavigator<Step, StepResult, State>,
    reducer: some StateReducer<StepResult, State, Output>,
    provider: some TransitionProvider<Step, StepResult, State>,
    maxTransitions: Int = 10_000,
    takingState: ((DataBucket) throws -> State)? = nil,
    givingData: ((Output) throws -> InitialData)? = nil
  ) throws(MachineProblem) {
    let (definition, logic) = Self.parts(name.byteString, start, provider)
    logic.setReducer(reducer)
    try self.init(definition, logic, navigator, maxTransitions, takingState, givingData)
  }

  fileprivate typealias Logic = TypedMachineLogic<Step, StepResult, State, Output>

  /// The definition and logic of a machine with the transitions of a provider.
  fileprivate static func parts(
    _ name: ByteString, _ start: Step, _ provider: some TransitionProvider<Step, StepResult, State>
  ) -> (MachineDefinition, Logic) {
    if let known = provider as? any KnownTransitions<Step, StepResult, State> {
      return known.parts(name, start)
    }
    var names = NameTable<Step>()
    let first = names.add(start, name: ByteString(String(describing: start)))
    var definition = MachineDefinition(name: name, start: first, steps: [])
    definition.hasProvider = true
    let logic = Logic(names, events: [])
    logic.provider = { try await provider.transition(from: $0, result: $1, state: $2) }
    return (definition, logic)
  }

  fileprivate init(
    _ definition: MachineDefinition, _ logic: Logic,
    _ navigator: some TransitionNavigator<Step, StepResult, State>, _ maxTransitions: Int,
    _ takingState: ((DataBucket) throws -> State)?,
    _ givingData: ((Output) throws -> InitialData)?
  ) throws(MachineProblem) {
    var definition = definition
    definition.hasNavigator = true
    definition.hasReducer = true
    definition.maxTransitions = maxTransitions
    logic.navigator = {
      try await navigator.navigate($0, to: $1, state: $2, context: $3)
    }
    logic.takingState = takingState
    logic.givingData = givingData
    self.logic = logic
    op = try MachineOp(definition, logic: logic, steps: logic.names, events: logic.events)
  }

  /// Starts the machine alone and runs it until its first wait.
  ///
  /// - Parameters:
  ///   - step: The step to begin with; nil for the last one of `history` or, without one, the machine's
  ///     start. One that the machine doesn't have ends the process with a sentence.
  ///   - state: The state to begin with.
  ///   - loop: The loop that it belongs to, by default the current one; called on its thread.
  ///   - history: The steps entered so far, as `history(of:)` has them: where `back` leads. `step` is
  ///     added unless it is the last of them.
  /// - Returns: The run, which may have settled already.
  @discardableResult
  public func start(
    from step: Step? = nil, with state: State, on loop: FlowEventLoop = .current,
    history: [Step] = []
  ) -> Run {
    op.start(
      on: loop, from: logic.box(state), at: step.map { logic.number(of: $0) },
      history: history.map { logic.number(of: $0) })
  }

  /// Starts the machine alone, as the other `start`; returns a task with its result.
  @_disfavoredOverload
  public func start(
    from step: Step? = nil, with state: State, on loop: FlowEventLoop = .current,
    history: [Step] = []
  ) -> FlowTask<Output> {
    task(of: start(from: step, with: state, on: loop, history: history) as Run)
  }

  /// A task with the result of a run of this machine. A stop of it stops the run, if nothing else waits for that.
  public func task(of run: Run) -> FlowTask<Output> {
    run.continuing(.nextOnSuccess, .immediate) { task in
      .value(try ended(task as? Run))
    }
  }

  /// Starts the machine alone after a step, whose result the caller provides, such as from a
  /// server.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to, by default the current one; called on its thread.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The result of the step.
  ///   - state: The state before that.
  ///   - history: The steps entered so far, as with `start`; by default it begins with the step.
  /// - Returns: The run, which may have settled already.
  @discardableResult
  public func `continue`(
    on loop: FlowEventLoop = .current, after step: Step, result: StepResult, state: State,
    history: [Step] = []
  ) -> Run {
    op.continue(
      on: loop, after: logic.number(of: step), result: logic.box(result), state: logic.box(state),
      history: history.map { logic.number(of: $0) })
  }

  /// The steps that a run of this machine has entered, the present or last one included; none for
  /// any other run. `start` takes them to continue there.
  public func history(of run: Run) -> [Step] {
    guard (run.op as? MachineOp)?.logic === logic else { return [] }
    let elements = logic.elements
    return (run.enteredSteps ?? []).map { elements[$0] }
  }

  /// Determines what would follow a step, without performing any: only the reducer, the emitter and
  /// the provider are called, so that the logic can be tested without screens.
  ///
  /// Suspends the calling Swift task, which has to be on the loop's thread.
  ///
  /// - Parameters:
  ///   - loop: The loop to run them on, by default the current one.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The result of the step.
  ///   - state: The state before that.
  /// - Returns: The transition with the new state, or the end.
  /// - Throws: The error that the machine would fail with, such as for an event that no step
  ///   handles.
  package nonisolated(nonsending) func transition(
    on loop: FlowEventLoop = .current, after step: Step, result: StepResult, state: State
  ) async throws -> MachineDecision<Step, State, Output> {
    var decision: MachineDecision<Int, FlowValue, FlowValue>?
    let run = op.decide(
      on: loop, after: logic.number(of: step), result: logic.box(result), state: logic.box(state)
    ) { decision = $0 }
    _ = try await run.value(cancelsTask: true)
    let elements = logic.elements
    switch decision {
    case .go(let transition, let state):
      guard let state: State = logic.unbox(state) else { break }
      return .go(transition.map { elements[$0] }, state)
    case .finish(let result):
      guard let result: Output = logic.unbox(result) else { break }
      return .finish(result)
    case .retry: return .retry
    case nil: break
    }
    throw FlowError.usage("machine '\(op.name)' decided nothing")
  }

  /// Searches the definition for probable mistakes; see `MachineOp.check`.
  package func check() -> [FlowFinding] { op.check() }

  /// The result that a run of this machine has finished with; nil when it hasn't succeeded.
  package func result(of run: Run) -> Output? {
    guard run.state == .succeeded else { return nil }
    return run.finishValue.flatMap { logic.unbox($0) }
  }

  /// The result that a run of this machine finishes with.
  ///
  /// Suspends the calling Swift task, which has to be on the loop's thread; see `Run.value`.
  ///
  /// - Throws: The run's error, or `CancellationError`.
  package nonisolated(nonsending) func value(
    of run: Run, cancelsTask: Bool = false
  ) async throws -> Output {
    _ = try await run.value(cancelsTask: cancelsTask)
    return try ended(run)
  }

  private func ended(_ run: Run?) throws(FlowError) -> Output {
    guard let run, let result = result(of: run) else {
      throw .usage("the run isn't one of machine '\(op.name)'")
    }
    return result
  }
}

extension Machine where Output == State {
  /// Makes a machine whose state never changes; see the other initializer.
  public init(
    _ name: some FlowText, start: Step,
    navigator: some TransitionNavigator<Step, StepResult, State>,
    provider: some TransitionProvider<Step, StepResult, State>,
    maxTransitions: Int = 10_000,
    takingState: ((DataBucket) throws -> State)? = nil,
    givingData: ((Output) throws -> InitialData)? = nil
  ) throws(MachineProblem) {
    let (definition, logic) = Self.parts(name.byteString, start, provider)
    try self.init(definition, logic, navigator, maxTransitions, takingState, givingData)
  }
}

/// A provider whose transitions are known before they are taken.
private protocol KnownTransitions<Step, StepResult, State>: TransitionProvider {
  /// The definition and logic of a machine with these transitions.
  func parts<Output>(
    _ name: ByteString, _ start: Step
  ) -> (MachineDefinition, TypedMachineLogic<Step, StepResult, State, Output>)
}

extension DeclarativeTransitionProvider: KnownTransitions {
  fileprivate func parts<Output>(
    _ name: ByteString, _ start: Builder.Step
  ) -> (
    MachineDefinition,
    TypedMachineLogic<Builder.Step, Builder.StepResult, Builder.State, Output>
  ) {
    var transitions = self.transitions
    let first = transitions.number(of: start)
    var definition = MachineDefinition(name: name, start: first, steps: transitions.steps)
    definition.triesAnyStepFirst = anyStepFirst
    definition.hasEmitter = dsl.emitter != nil
    let logic = TypedMachineLogic<Builder.Step, Builder.StepResult, Builder.State, Output>(
      transitions.names, events: transitions.events.names)
    if let emitter = dsl.emitter {
      let events = transitions.events
      logic.emitter = { result, state in
        guard let event = try await emitter(result, state) else { return nil }
        guard let number = events.number(of: event) else {
          return .unknown(ByteString(String(describing: event)))
        }
        return .known(number)
      }
    }
    return (definition, logic)
  }
}

/// The transitions of a `MachineDSL`.
///
/// It can be called directly, without a machine. A machine made with it also draws and checks them.
///
/// ```swift
/// let provider = DeclarativeTransitionProvider(TransferDSL.dsl)
/// let next = try await provider.transition(
///   from: .amount, result: .amount(50), state: .country("DE"))
/// print(next == .forward(to: .tariffs))
/// ```
///
/// Source: FlowKit's `DeclarativeTransitionProvider`.
public struct DeclarativeTransitionProvider<Builder: MachineDSLBuilder>: TransitionProvider {
  let dsl: MachineDSL<Builder>
  let transitions: NamedTransitions<Builder.Step, Builder.Event>
  fileprivate let anyStepFirst: Bool
  private let table: TransitionTable

  /// Makes a provider of a DSL's transitions.
  ///
  /// - Parameters:
  ///   - dsl: The steps with their transitions.
  ///   - anyStepFirst: Whether transitions of the any-step take precedence over a step's own, as they do for
  ///     FlowKit.
  public init(_ dsl: MachineDSL<Builder>, anyStepFirst: Bool = false) {
    self.dsl = dsl
    self.anyStepFirst = anyStepFirst
    var transitions = NamedTransitions<Builder.Step, Builder.Event>()
    for part in dsl.parts.map(\.content) {
      switch part {
      case .emitter: break
      case .step(let step, let handlers):
        transitions.add(step, handlers.map { ($0.event, $0.transition) })
      case .finalStep(let step, let handlers):
        transitions.add(step, handlers.map { ($0.event, $0.transition) }, isFinal: true)
      }
    }
    self.transitions = transitions
    var definition = MachineDefinition(name: "", start: 0, steps: transitions.steps)
    definition.triesAnyStepFirst = anyStepFirst
    table = TransitionTable(definition)
  }

  public nonisolated(nonsending) func transition(
    from step: Builder.Step, result: Builder.StepResult, state: Builder.State
  ) async throws -> MachineTransition<Builder.Step>? {
    let event = try await dsl.emitter?(result, state)
    let names = transitions
    guard let number = names.names.number(of: step) else { return nil }
    let known = event.flatMap { names.events.number(of: $0) }
    if event == nil || known != nil, let handler = table.handler(after: number, on: known) {
      return handler.transition.map { names.names.elements[$0] }
    }
    if table.isMarkedFinal(number) || event == nil && table.isFinal(number) { return nil }
    let what = event.map { "on event '\(String(describing: $0))'" } ?? "without an event"
    throw FlowError.usage("there is no transition \(what) for step '\(String(describing: step))'")
  }
}

/// Steps and transitions with numbers instead of Swift values.
struct NamedTransitions<Step: Hashable, Event: Hashable> {
  private(set) var names = NameTable<Step>()
  private(set) var events = NameTable<Event>()
  private var declared: [MachineStep] = []

  /// The steps in the order in which they were written, then those that are only targets of
  /// transitions.
  var steps: [MachineStep] {
    let known = Set(declared.compactMap(\.number))
    let others = names.names.indices.filter { !known.contains($0) }
    return declared + others.map { MachineStep($0, .none, handlers: []) }
  }

  mutating func number(of step: Step) -> Int {
    names.add(step, name: ByteString(String(describing: step)))
  }

  mutating func add(
    _ step: Step?, _ handlers: [(event: Event?, transition: MachineTransition<Step>)],
    isFinal: Bool = false
  ) {
    let number = step.map { self.number(of: $0) }
    var made: [MachineHandler] = []
    for (event, transition) in handlers {
      let target = transition.step.map { self.number(of: $0) }
      let event = event.map { events.add($0, name: ByteString(String(describing: $0))) }
      made.append(MachineHandler(on: event, transition.map { _ in target ?? 0 }))
    }
    declared.append(MachineStep(number, .none, handlers: made, isFinal: isFinal))
  }
}
