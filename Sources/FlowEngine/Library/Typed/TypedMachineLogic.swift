/// The functions of a machine with steps, results and states of Swift types. They run as Swift
/// tasks on the loop's thread; the engine passes results and states along in boxes.
final class TypedMachineLogic<Step: Hashable, StepResult, State, Output>: MachineLogic {
  var navigator:
    (
      nonisolated(nonsending) (MachineTransition<Step>, Step, State, OpContext) async throws ->
        StepResult
    )?
  var reducer:
    (nonisolated(nonsending) (State, StepResult) async throws -> Reduction<State, Output>)?
  var emitter: (nonisolated(nonsending) (StepResult, State) async throws -> MachineEvent?)?
  var provider:
    (nonisolated(nonsending) (Step, StepResult, State) async throws -> MachineTransition<Step>?)?
  var takingState: ((DataBucket) throws -> State)?
  var givingData: ((Output) throws -> InitialData)?

  // Grows where steps needn't be declared.
  private var steps: NameTable<Step>
  let events: [ByteString]

  init(_ steps: NameTable<Step>, events: [ByteString]) {
    self.steps = steps
    self.events = events
  }

  func setReducer(_ reducer: some StateReducer<StepResult, State, Output>) {
    self.reducer = { try await reducer.reduce($0, with: $1) }
  }

  var names: [ByteString] { steps.names }

  /// The steps by their numbers.
  var elements: [Step] { steps.elements }

  func number(of step: Step) -> Int {
    steps.add(step, name: ByteString(String(describing: step)))
  }

  func name(ofStep step: Int) -> ByteString { steps.names[step] }

  func name(ofEvent event: Int) -> ByteString { events[event] }

  // MARK: Boxes

  func box(_ content: some Any) -> FlowValue { .opaque(MachineBox(content)) }

  func unbox<Content>(_ value: FlowValue) -> Content? {
    guard case .opaque(let box) = value else { return nil }
    return (box as? MachineBox<Content>)?.content
  }

  /// The content of a box that was made here.
  private func content<Content>(_ value: FlowValue) -> Content {
    guard let content: Content = unbox(value) else {
      misuse("a machine was given a value of another machine")
    }
    return content
  }

  // MARK: Data

  var hasPlainStates: Bool { false }

  /// A state that isn't in a box, such as a script's, is read from the data that it was stored in.
  func convertedState(_ state: FlowValue) throws -> FlowValue? {
    let content: State? = unbox(state)
    return content == nil ? nil : state
  }

  func state(of data: DataBucket) throws -> FlowValue {
    guard let takingState else {
      throw FlowError.usage("a machine was started without a state: it doesn't take one of data")
    }
    return box(try takingState(data))
  }

  func outputs(of value: FlowValue) throws -> [(ByteString, FlowValue)] {
    guard let result: Output = unbox(value) else { return value.fields ?? [] }
    return try givingData?(result).entries ?? []
  }

  /// Never called: a navigator performs all steps.
  func data(of state: FlowValue) throws -> [(ByteString, FlowValue)] { [] }

  func result(of run: Run) throws -> FlowValue { .null }

  func result(ofEnd state: FlowValue, _ step: Int) throws -> FlowValue {
    if let _: Output = unbox(state) { return state }
    let nothing = (Output.self as? any StandardOptional.Type)?.absent ?? ()
    if let result = nothing as? Output { return box(result) }
    throw FlowError.usage(
      "the machine ended after step '\(name(ofStep: step))' without a result: its reducer has to finish it"
    )
  }

  // MARK: Functions

  func perform(
    _ transition: MachineTransition<Int>, _ step: Int, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    guard let navigator, let context = call.context else { return nil }
    let names = steps.elements
    return start(call) { [self] in
      .result(
        box(
          try await navigator(
            transition.map { names[$0] }, names[step], content(state), context)))
    }
  }

  func reduce(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    guard let reducer else { return .reduction(.continue(state)) }
    return start(call) { [self] in
      switch try await reducer(content(state), content(result)) {
      case .continue(let state): .reduction(.continue(box(state)))
      case .finish(let result): .reduction(.finish(box(result)))
      case .retry: .reduction(.retry)
      }
    }
  }

  func emit(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    guard let emitter else { return nil }
    return start(call) { [self] in .event(try await emitter(content(result), content(state))) }
  }

  func transition(
    _ step: Int, _ result: FlowValue, _ state: FlowValue, _ call: MachineCall
  ) -> MachineAnswer? {
    guard let provider else { return nil }
    let from = steps.elements[step]
    return start(call) { [self] in
      let next = try await provider(from, content(result), content(state))
      return .transition(next?.map { number(of: $0) })
    }
  }

  private func start(
    _ call: MachineCall,
    _ body: nonisolated(nonsending) @escaping () async throws -> MachineAnswer
  ) -> MachineAnswer? {
    guard let context = call.context else { return nil }
    let task = MachineTask(call, body, on: context.loop)
    call.state = task
    task.start(on: context.loop, in: context.run.taskContext)
    // A task that has ended by now has finished the call.
    return nil
  }

  func cancel(_ call: MachineCall, _ error: FlowError) {
    (call.state as? MachineTask)?.cancel()
  }
}

/// A Swift value that a machine passes along.
private final class MachineBox<Content>: OpaqueValue {
  let content: Content

  init(_ content: Content) {
    self.content = content
  }

  var typeName: ByteString { ByteString(String(describing: Content.self)) }

  func logText(limit: Int) -> ByteString {
    ByteString(String(describing: content)).truncated(to: limit)
  }

  func matches(typeName: ByteString) -> Bool { typeName == self.typeName }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }
}

/// The Swift task of one function. As with `LoopTask`, all of it is touched on the loop's thread
/// only.
private final class MachineTask: LoopTask, @unchecked Sendable {
  private var call: MachineCall?
  private var body: (nonisolated(nonsending) () async throws -> MachineAnswer)?
  private var answer = MachineAnswer.failed(.cancelled())

  init(
    _ call: MachineCall,
    _ body: nonisolated(nonsending) @escaping () async throws -> MachineAnswer,
    on loop: FlowEventLoop
  ) {
    self.call = call
    self.body = body
    super.init(on: loop)
  }

  override nonisolated(nonsending) func perform() async {
    guard let body else { return }
    do {
      answer = try await body()
    } catch {
      answer = .failed(.from(error))
    }
  }

  override func didEnd() {
    let ended = call
    call = nil
    body = nil
    ended?.finish(answer)
  }

  override func abandon() {
    super.abandon()
    call = nil
    body = nil
  }
}
