/// What a machine's functions do. Called on the loop's thread; must not block.
///
/// Each function that gets a call answers at once, or with nil promises one `call.finish`. Values are
/// whatever the front end understands: the engine only passes states and results on.
public protocol MachineLogic: AnyObject {
  /// The state that a machine begins with that was started with data, as in a flow.
  func state(of data: DataBucket) throws -> Value
  /// A state that comes from elsewhere in the form that the functions understand, by default as it is;
  /// nil for one that they don't: then the machine begins with what `state(of:)` makes of its data.
  func own(_ state: Value) throws -> Value?
  /// Whether its functions may be busy for long, as `OpBody.mayBeBusy`; by default they aren't.
  var mayBeBusy: Bool { get }
  /// Whether states and results mean something to others than these functions; by default they do.
  var hasPlainStates: Bool { get }
  /// The data that the run of an op begins with when it is a step. What it throws is a sentence about
  /// the state.
  func data(of state: Value) throws -> [(ByteString, Value)]
  /// What a step's result is that has been such a run.
  func result(of run: Run) throws -> Value
  /// What goes into the data bucket when the machine ends with `value`.
  func outputs(of value: Value) throws -> [(ByteString, Value)]

  /// Performs a step whose action is `logic`, or any with a navigator. Answers `.result`.
  func perform(
    _ transition: Transition<Int>, _ step: Int, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer?
  /// Performs a step by a function that a test has put in its place. Answers `.result`.
  func perform(
    _ function: AnyObject, _ step: Int, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer?
  /// Makes a new state of a result. Answers `.reduction`.
  func reduce(
    _ step: Int, _ result: Value, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer?
  /// Says which event a result is. Answers `.event`.
  func emit(
    _ step: Int, _ result: Value, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer?
  /// Says which transition comes next. Answers `.transition`.
  func transition(
    _ step: Int, _ result: Value, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer?

  /// Asks what waits to stop because of `error`; it must finish sooner or later.
  func cancel(_ call: MachineCall, _ error: FlowError)
  /// Says that what is being called is to stop, which may be busy for long.
  func interrupt(_ call: MachineCall, _ error: FlowError)

  /// The names of steps and events.
  func name(ofStep step: Int) -> ByteString
  /// The name of an event, for lines and errors.
  func name(ofEvent event: Int) -> ByteString
  /// Where something was written, as messages begin: `file:12: `, or nothing.
  func position(of place: Int) -> ByteString
}

extension MachineLogic {
  public func own(_ state: Value) throws -> Value? { state }

  public var hasPlainStates: Bool { true }

  /// They are never busy for long.
  public var mayBeBusy: Bool { false }

  public func perform(
    _ function: AnyObject, _ step: Int, _ state: Value, _ call: MachineCall
  ) -> MachineAnswer? {
    .failed(.usage("no function can take the place of step '\(name(ofStep: step))'"))
  }

  public func interrupt(_ call: MachineCall, _ error: FlowError) {}

  public func position(of place: Int) -> ByteString { "" }
}

/// What a function of a machine answers.
public enum MachineAnswer {
  /// Of `perform`: the step's result.
  case result(Value)
  /// Of `reduce`.
  case reduction(Reduction<Value>)
  /// Of `emit`: the event, if there is one. An event that no step knows has a name only.
  case event(MachineEvent?)
  /// Of `transition`: where to go; nil ends the machine with its state.
  case transition(Transition<Int>?)
  /// It failed, and the machine with it.
  case failed(FlowError)
}

/// An event, by its number if a step handles it.
public enum MachineEvent {
  /// One that a step handles, by its number.
  case known(Int)
  /// One that no step handles, by its name.
  case unknown(ByteString)
}

/// How a function of a machine says that it is done. One serves all functions of an execution, which
/// come one after another. Confined to the loop's thread.
public final class MachineCall {
  // Unchecked exclusivity, of these: the loop's thread alone touches them, and no access lasts into
  // a call of a function.

  // Cleared when the machine has ended.
  @exclusivity(unchecked) private(set) var execution: MachineExecution?
  @exclusivity(unchecked) private var answer: MachineAnswer?
  /// Whether a function was called whose answer wasn't taken yet.
  @exclusivity(unchecked) private(set) var isPending = false
  /// Whether the function is being called, and may still finish at once.
  @exclusivity(unchecked) private(set) var isInCall = false
  /// The function's own, such as a coroutine; released when it has finished.
  public var state: AnyObject?
  /// The execution of the machine, an op; nil once it has ended.
  public private(set) var context: OpContext?

  init(_ context: OpContext) {
    self.context = context
  }

  /// Says whose call it is.
  func bind(_ execution: MachineExecution) { self.execution = execution }

  /// The machine's functions.
  public var logic: (any MachineLogic)? { execution?.blueprint.logic }

  /// The number of the step that the function is about.
  public var step: Int { execution?.step ?? 0 }

  /// When a function that is busy has to be stopped, as `OpContext.deadline`.
  public var deadline: Int64 { context?.deadline ?? .max }

  /// Says that `deadline` has passed while the function was busy; answers what to finish with.
  public func expire() -> FlowError { context?.expire() ?? .cancelled() }

  /// Says that the function is done. Only the first answer counts.
  public func finish(_ answer: MachineAnswer) {
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

  /// The answer, once; nil as long as the function waits.
  @inline(__always)
  func takeAnswer() -> MachineAnswer? {
    guard let answer else { return nil }
    self.answer = nil
    isPending = false
    return answer
  }

  /// Lets everything go.
  func end() {
    execution = nil
    context = nil
    answer = nil
    state = nil
    isPending = false
  }
}
