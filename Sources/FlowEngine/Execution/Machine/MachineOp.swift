/// A state machine over steps: an op, which can be started, nested and grouped like any other.
///
/// Front ends make this form; Swift programs write a `Machine`, which knows the types of steps,
/// results and states. A machine never changes after it is made, and all its executions share its
/// functions.
///
/// ```swift
/// for finding in machine.op.check() { print(finding.message) }
/// print(machine.op.mermaid())
/// ```
///
/// Source: FlowKit's `Flow`.
public final class MachineOp: Op {
  /// How many transitions a run may make, unless the machine sets another number.
  package static let defaultMaxTransitions = MachineDefinition.defaultMaxTransitions

  let blueprint: MachineBlueprint

  /// Makes a machine.
  ///
  /// - Parameters:
  ///   - definition: Its steps and transitions.
  ///   - logic: Its functions.
  ///   - steps: The names of the steps, by their numbers.
  ///   - events: The names of the events, by their numbers.
  ///   - doc: The purpose of the machine, for people.
  ///   - needs: Declared inputs, as of any op.
  ///   - gives: Declared outputs, as of any op.
  ///   - primaryInput: The key under which a group passes an item.
  ///   - primaryOutput: The key that a group collects.
  ///   - policy: Its policy; an undo undoes the whole machine after it has succeeded, before the ops of its steps.
  /// - Throws: A `MachineProblem` when the definition is inconsistent.
  package init(
    _ definition: MachineDefinition, logic: any MachineLogic, steps: [ByteString],
    events: [ByteString], doc: ByteString? = nil, needs: [Declaration] = [],
    gives: [Declaration] = [], primaryInput: ByteString? = nil, primaryOutput: ByteString? = nil,
    policy: OpPolicy? = nil
  ) throws(MachineProblem) {
    if let problem = definition.problem(steps: steps, events: events) { throw problem }
    blueprint = MachineBlueprint(definition, logic)
    super.init(
      name: definition.name, doc: doc, needs: needs, gives: gives, primaryInput: primaryInput,
      primaryOutput: primaryOutput, policy: policy, body: MachineBody(blueprint, entry: nil))
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
  package var logic: any MachineLogic { blueprint.logic }

  override package var codeParts: [CodePart] { blueprint.definition.codeParts(logic) }

  override package var settings: [CodePart] {
    ownSettings + [.text(ByteString("max_transitions \(blueprint.maxTransitions)"))]
  }

  override var parts: [Op] {
    blueprint.definition.steps.compactMap { step in
      if case .op(let inner) = step.action { inner } else { nil }
    }
  }

  override var stepNames: [ByteString] {
    blueprint.definition.steps.compactMap(\.number).map { logic.name(ofStep: $0) }
  }

  /// Whether steps needn't be declared.
  package var isOpen: Bool { blueprint.definition.isOpen }

  /// Whether a step is declared, or needn't be.
  package func accepts(step: Int) -> Bool {
    isOpen || blueprint.table.has(step)
  }

  /// The machine, starting with a state, or after a step.
  func entering(_ entry: MachineEntry) -> Op {
    MachineOp(
      copying: self, name: name, body: MachineBody(blueprint, entry: entry),
      declarations: declarations, policy: policy)
  }

  /// Starts the machine alone and runs it until its first wait.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - state: The state to begin with.
  ///   - step: The step to begin with; nil for the last one of `history` or, without one, the machine's
  ///     start. One that the machine doesn't have ends the process with a sentence.
  ///   - history: The steps entered so far, as `Run.history` has them: where `back` leads. `step` is
  ///     added unless it is the last of them. Their results aren't known: a retry performs the step
  ///     again.
  ///   - owner: The op that owns the run, if an op starts it.
  ///   - adopt: Called before anything is executed, to attach the run to another owner.
  /// - Returns: The run, which may have settled already. Its data starts with the fields of the
  ///   state.
  package func start(
    on loop: FlowEventLoop, from state: FlowValue, at step: Int? = nil, history: [Int] = [],
    owner: OpContext? = nil, adopt: ((Run) -> Void)? = nil
  ) -> Run {
    checkSteps(history + [step].compactMap { $0 })
    return entering(MachineEntry(state: state, step: step, history: history))
      .start(on: loop, data: data(of: state), owner: owner, adopt: adopt)
  }

  /// Starts the machine alone after a step, whose result the caller provides.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The step's result.
  ///   - state: The state before the result is reduced.
  ///   - history: The steps entered before it, as with `start`; by default it begins with the step.
  ///   - owner: The op that owns the run, if an op starts it.
  ///   - adopt: Called before anything is executed, to attach the run to another owner.
  /// - Returns: The run, which may have settled already.
  package func `continue`(
    on loop: FlowEventLoop, after step: Int, result: FlowValue, state: FlowValue,
    history: [Int] = [],
    owner: OpContext? = nil, adopt: ((Run) -> Void)? = nil
  ) -> Run {
    checkSteps(history + [step])
    return entering(MachineEntry(state: state, step: step, result: result, history: history))
      .start(on: loop, data: data(of: state), owner: owner, adopt: adopt)
  }

  /// Determines what would follow a step, without performing any: only the functions that reduce
  /// the result, derive an event from it and choose the transition are called.
  ///
  /// - Parameters:
  ///   - loop: The loop that it belongs to; called on its thread.
  ///   - step: The step; one that the machine doesn't have ends the process with a sentence.
  ///   - result: The step's result.
  ///   - state: The state before the result is reduced.
  ///   - adopt: Called before any function is, to attach the run to another owner.
  ///   - body: Called with the decision; not called when the run fails.
  /// - Returns: The run of these functions; it may have settled. Monitors aren't notified of it.
  package func decide(
    on loop: FlowEventLoop, after step: Int, result: FlowValue, state: FlowValue,
    adopt: ((Run) -> Void)? = nil,
    _ body: @escaping (MachineDecision<Int, FlowValue, FlowValue>) -> Void
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

  /// The initial data of the run: the fields of a state that is a table.
  private func data(of state: FlowValue) -> [(ByteString, FlowValue)] {
    (try? logic.outputs(of: state)) ?? []
  }
}

/// The decision after a step of a machine.
package enum MachineDecision<Step, State, Output> {
  /// A transition, with the new state.
  case go(MachineTransition<Step>, State)
  /// The machine ends with this result.
  case finish(Output)
  /// The previous step's result is taken again.
  case retry
}

/// The place where an execution of a machine starts.
struct MachineEntry {
  let state: FlowValue
  /// The step to start with; nil for the last one of the history, or else the machine's start.
  var step: Int?
  /// The result of the step, when the step is done already.
  var result: FlowValue?
  /// The steps entered before.
  var history: [Int] = []
  /// Called with the decision after the step; then no step is performed.
  var decide: ((MachineDecision<Int, FlowValue, FlowValue>) -> Void)?
}

/// Executes a machine.
final class MachineBody: OpBody {
  private let blueprint: MachineBlueprint
  private let entry: MachineEntry?

  init(_ blueprint: MachineBlueprint, entry: MachineEntry?) {
    self.blueprint = blueprint
    self.entry = entry
  }

  func start(_ context: OpContext) -> CallState {
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

extension FlowValue {
  /// The fields of a table of the engine's own, or of any table that can be copied into one.
  public var fields: [(name: ByteString, value: FlowValue)]? {
    guard case .opaque(let table) = self else { return nil }
    return MapValue(copying: table)?.fields
  }
}

extension Run {
  /// The finish value, unless only the machine's own functions understand it.
  package var plainFinishValue: FlowValue? {
    (op as? MachineOp)?.logic.hasPlainStates == true ? finishValue : nil
  }

  /// The names of the steps that a machine has entered, the present or last one included, for a run
  /// of a machine; nil for any other run. `MachineOp.start` takes them to continue there.
  package var history: [ByteString]? {
    loop.checkThread()
    guard let logic = (op as? MachineOp)?.logic else { return nil }
    return enteredSteps?.map { logic.name(ofStep: $0) }
  }

  /// The numbers of the same steps.
  var enteredSteps: [Int]? {
    endedHistory?.entered ?? (execution?.context.state as? MachineExecution)?.enteredSteps
  }
}

extension OpContext {
  /// The names of the steps that this op's machine has entered, the present one included; nil for
  /// any other op, and after the machine has ended.
  package var history: [ByteString]? { (state as? MachineExecution)?.enteredNames }
}
