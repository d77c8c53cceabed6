/// A machine's functions. Called on the loop's thread; they must not block.
///
/// Each function that gets a call returns its answer at once, or returns nil and promises one
/// `call.finish`. Values have any form that the front end understands: the engine only passes
/// states and results on.
package protocol MachineLogic: CodeHolder {
  /// The first state of a machine that was started with data, as in a flow.
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
    _ transition: Transition<Int>, _ step: Int, _ state: FlowValue, _ call: MachineCall
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
  case transition(Transition<Int>?)
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
