/// A state machine over steps: an op, which can be started, nested and grouped like any other.
///
/// This is the form that front ends make; Swift programs write a `Machine`, which knows the types of
/// steps, results and states. A machine never changes once it is made, and its functions are called
/// for all its executions.
///
/// Source: the seed's `Flow` (FlowKit).
public final class MachineOp: Op {
  let blueprint: MachineBlueprint

  /// Makes a machine.
  ///
  /// - Parameters:
  ///   - definition: Its steps and transitions.
  ///   - logic: Its functions.
  ///   - steps: The names of the steps, by their numbers.
  ///   - events: The names of the events, by their numbers.
  ///   - doc: What it does, for people.
  ///   - needs: Declared inputs, as of any op.
  ///   - gives: Declared outputs, as of any op.
  ///   - primaryInput: The key under which a group hands an item over.
  ///   - primaryOutput: The key that a group collects.
  ///   - retry: How often and when it is tried again; nil never.
  ///   - timeout: Seconds that an attempt may take; nil for no limit.
  ///   - grace: Seconds that its cleanups have once it was stopped; nil for the loop's `cleanupGrace`.
  /// - Throws: A `MachineProblem` when the definition doesn't hold together.
  public init(
    _ definition: MachineDefinition, logic: any MachineLogic, steps: [ByteString],
    events: [ByteString], doc: ByteString? = nil, needs: [Declaration] = [],
    gives: [Declaration] = [], primaryInput: ByteString? = nil, primaryOutput: ByteString? = nil,
    retry: RetryPolicy? = nil, timeout: Double? = nil,
    grace: Double? = nil
  ) throws(MachineProblem) {
    if let problem = definition.problem(steps: steps, events: events) { throw problem }
    blueprint = MachineBlueprint(definition, logic)
    super.init(
      name: definition.name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
      primaryOutput: primaryOutput, retry: retry, timeout: timeout, grace: grace,
      body: MachineBody(blueprint, entry: nil))
  }

  private init(
    copying other: MachineOp, name: ByteString, body: any OpBody, declarations: Declarations,
    policy: OpPolicy?
  ) {
    blueprint = other.blueprint
    super.init(
      copying: other, name: name, body: body, declarations: declarations, policy: policy)
  }

  override func copy(name: ByteString, declarations: Declarations, policy: OpPolicy?) -> Op {
    MachineOp(
      copying: self, name: name, body: MachineBody(blueprint, entry: nil),
      declarations: declarations, policy: policy)
  }

  /// The machine's functions.
  public var logic: any MachineLogic { blueprint.logic }

  /// Whether steps needn't be declared.
  public var isOpen: Bool { blueprint.definition.isOpen }

  /// Whether a step is declared, or needn't be.
  public func accepts(step: Int) -> Bool {
    isOpen || blueprint.table.has(step)
  }

  /// The same machine, beginning with a state, or behind a step.
  func entering(_ entry: MachineEntry) -> Op {
    MachineOp(
      copying: self, name: name, body: MachineBody(blueprint, entry: entry),
      declarations: declarations, policy: policy)
  }

  /// Starts the machine alone and goes on until its first wait.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - state: The state to begin with.
  ///   - step: The step to begin with; nil for the last one of `history` or, without one, the machine's
  ///     start. One that the machine doesn't have ends the process with a sentence.
  ///   - history: The steps entered so far, as `Run.history` has them: where `back` leads. `step` is
  ///     added unless it is the last of them. What they resulted in isn't known: a retry performs the
  ///     step again.
  ///   - owner: The op that it belongs to, if one starts it.
  ///   - adopt: Called before anything is executed, to make the run belong to what else starts it.
  /// - Returns: The run, which may have settled already. Its data begins with what the state holds.
  public func start(
    on loop: EventLoop, from state: Value, at step: Int? = nil, history: [Int] = [],
    owner: OpContext? = nil, adopt: ((Run) -> Void)? = nil
  ) -> Run {
    checkSteps(history + [step].compactMap { $0 })
    return entering(MachineEntry(state: state, step: step, history: history))
      .start(on: loop, data: data(of: state), owner: owner, adopt: adopt)
  }

  /// Starts the machine alone after a step, whose result comes from elsewhere.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The step's result.
  ///   - state: The state of before the result is reduced.
  ///   - history: The steps entered before it, as with `start`; by default it begins with the step.
  ///   - owner: The op that it belongs to, if one starts it.
  ///   - adopt: Called before anything is executed, to make the run belong to what else starts it.
  /// - Returns: The run, which may have settled already.
  public func `continue`(
    on loop: EventLoop, after step: Int, result: Value, state: Value, history: [Int] = [],
    owner: OpContext? = nil, adopt: ((Run) -> Void)? = nil
  ) -> Run {
    checkSteps(history + [step])
    return entering(MachineEntry(state: state, step: step, result: result, history: history))
      .start(on: loop, data: data(of: state), owner: owner, adopt: adopt)
  }

  /// Asks what would follow a step, and performs nothing: only the functions that reduce the result,
  /// make an event of it and say the transition are called.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The step's result.
  ///   - state: The state of before the result is reduced.
  ///   - adopt: Called before a function is, to make the run belong to what asks.
  ///   - body: Called with the answer; isn't called when the run fails.
  /// - Returns: The run of these functions; it may have settled. Monitors aren't told of it.
  public func decide(
    on loop: EventLoop, after step: Int, result: Value, state: Value,
    adopt: ((Run) -> Void)? = nil, _ body: @escaping (MachineDecision<Int, Value>) -> Void
  ) -> Run {
    checkSteps([step])
    let entry = MachineEntry(state: state, step: step, result: result, decide: body)
    let run = Run(entering(entry), on: loop, name: name, sinks: [])
    run.markObserved()
    run.begin([], owner: nil, adopt: adopt, isMonitored: false)
    return run
  }

  private func checkSteps(_ steps: [Int]) {
    for step in steps where !accepts(step: step) {
      misuse("machine '\(name)' was to begin with a step that it doesn't have")
    }
  }

  /// What the run's data begins with: what a state holds that is a table.
  private func data(of state: Value) -> [(ByteString, Value)] {
    (try? logic.outputs(of: state)) ?? []
  }
}

/// What follows a step of a machine.
public enum MachineDecision<Step, State> {
  /// A transition, with the new state.
  case go(Transition<Step>, State)
  /// The machine ends with this value.
  case finish(State)
  /// The previous step's result is taken again.
  case retry
}

/// Where an execution of a machine begins.
struct MachineEntry {
  let state: Value
  /// The step to begin with; nil for the last one of the history, or else the machine's start.
  var step: Int?
  /// What the step has resulted in that is done already.
  var result: Value?
  /// The steps entered before.
  var history: [Int] = []
  /// Called with what follows the step; then nothing is performed.
  var decide: ((MachineDecision<Int, Value>) -> Void)?
}

/// Executes a machine.
final class MachineBody: OpBody {
  private let blueprint: MachineBlueprint
  private let entry: MachineEntry?

  init(_ blueprint: MachineBlueprint, entry: MachineEntry?) {
    self.blueprint = blueprint
    self.entry = entry
  }

  func start(_ context: OpContext) -> OpProgress {
    let execution = MachineExecution(blueprint, context)
    context.state = execution
    return execution.start(entry)
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? MachineExecution)?.cancel(error)
  }

  func interrupt(_ context: OpContext, _ error: FlowError) {
    (context.state as? MachineExecution)?.cancel(error)
  }
}

extension Value {
  /// The fields of a table of the engine's own, or of any table that can be copied into one.
  public var fields: [(ByteString, Value)]? {
    guard case .opaque(let table) = self else { return nil }
    return MapValue(copying: table)?.fields
  }
}
