/// The steps and transitions of a machine as they are written, in the terms of FlowKit.
///
/// ```swift
/// struct TransferDSL: MachineDSLBuilder {
///   typealias Step = MyStep
///   typealias StepResult = MyResult
///   typealias State = MyState
///   enum Event { case error, invalidAmount }
///
///   static var dsl: MachineDSL<Self> {
///     MachineDSL {
///       emit { result, state in
///         if case .amount(..<100) = result { return .invalidAmount }
///         return nil
///       }
///       step { on(.error) { forward(to: .alert) } }
///       step(.amount) {
///         on(.invalidAmount) { forward(to: .invalidAmount) }
///         next { forward(to: .tariffs) }
///       }
///     }
///   }
/// }
/// print(TransferDSL.dsl.dot())
/// ```
///
/// It is Sendable when its steps and events are.
///
/// Source: FlowKit's `FlowDSL`.
public struct MachineDSL<Builder: MachineDSLBuilder> {
  let parts: [MachineDSLPart<Builder>]

  /// Makes a description of consecutive parts.
  public init(@MachineListBuilder<MachineDSLPart<Builder>> parts: () -> [MachineDSLPart<Builder>]) {
    self.parts = parts()
  }

  /// The function that derives an event from a result; the last one counts.
  var emitter: Builder.Emitter? {
    var emitter: Builder.Emitter?
    for case .emitter(let one) in parts { emitter = one }
    return emitter
  }
}

/// A type in which a machine's transitions are written: it knows the types, so that steps and
/// events can be written as `.amount`.
///
/// ```swift
/// struct Door: MachineDSLBuilder {
///   typealias Step = MyStep
///   typealias StepResult = MyResult
///   typealias State = MyState
///   enum Event { case refused }
///
///   static var dsl: MachineDSL<Self> {
///     MachineDSL { step(.amount) { on(.refused) { stay() } } }
///   }
/// }
/// ```
///
/// Source: FlowKit's `FlowDSLBuilder`.
public protocol MachineDSLBuilder {
  /// The type of the steps.
  associatedtype Step: Hashable
  /// The type of the results of steps.
  associatedtype StepResult
  /// The type of the states.
  associatedtype State
  /// The type of the events: the meanings of a step's result for the transitions.
  associatedtype Event: Hashable
}

extension MachineDSLBuilder {
  /// Returns the event of a result, given the new state; nil when there is none. May wait. Sendable, because
  /// descriptions may be shared by threads.
  public typealias Emitter =
    nonisolated(nonsending) @Sendable (StepResult, State) async throws -> Event?

  /// Derives events with `emitter`.
  public static func emit(using emitter: @escaping Emitter) -> MachineDSLPart<Self> {
    .emitter(emitter)
  }

  /// The transitions after a step.
  public static func step(
    _ step: Step,
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>]
  ) -> MachineDSLPart<Self> { .step(step, handlers()) }

  /// A step without transitions: the machine ends with its state.
  public static func step(_ step: Step) -> MachineDSLPart<Self> { .step(step, []) }

  /// A step after which the machine ends on purpose. Where results are reduced, `Machine.check`
  /// warns of steps without a transition that aren't marked so. Its events are handled as those of
  /// any step.
  public static func finalStep(
    _ step: Step,
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>] = { [] }
  ) -> MachineDSLPart<Self> { .finalStep(step, handlers()) }

  /// The transitions after any step that doesn't have its own.
  public static func step(
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>]
  ) -> MachineDSLPart<Self> { .step(nil, handlers()) }

  /// The transition on an event.
  public static func on(
    _ event: Event, _ transition: () -> MachineTransition<Step>
  ) -> MachineDSLHandler<Self> { MachineDSLHandler(event: event, transition: transition()) }

  /// The transition when there is no event.
  public static func next(_ transition: () -> MachineTransition<Step>) -> MachineDSLHandler<Self> {
    MachineDSLHandler(event: nil, transition: transition())
  }

  /// A move to a step.
  public static func forward(to step: Step) -> MachineTransition<Step> { .forward(to: step) }

  /// A move to an earlier step of the history or, without a step, to the previous one.
  public static func back(to step: Step? = nil) -> MachineTransition<Step> { .back(to: step) }

  /// A move to the same step again.
  public static func stay() -> MachineTransition<Step> { .stay }
}

extension MachineDSL: Sendable where Builder.Step: Sendable, Builder.Event: Sendable {}
extension MachineDSLPart: Sendable where Builder.Step: Sendable, Builder.Event: Sendable {}
extension MachineDSLHandler: Sendable where Builder.Step: Sendable, Builder.Event: Sendable {}

/// A part of a `MachineDSL`.
///
/// ```swift
/// func screens(_ steps: [MyStep]) -> [MachineDSLPart<TransferDSL>] {
///   steps.map { TransferDSL.step($0) }
/// }
/// let dsl = MachineDSL { for screen in screens([.amount, .tariffs]) { screen } }
/// ```
public enum MachineDSLPart<Builder: MachineDSLBuilder> {
  /// The function that derives events from results.
  case emitter(Builder.Emitter)
  /// A step with its transitions; nil is the any-step.
  case step(Builder.Step?, [MachineDSLHandler<Builder>])
  /// A step after which the machine ends, with the transitions on its events.
  case finalStep(Builder.Step, [MachineDSLHandler<Builder>])
}

/// One transition after a step.
///
/// ```swift
/// let failed: MachineDSLHandler<TransferDSL> = TransferDSL.on(.error) {
///   TransferDSL.forward(to: .alert)
/// }
/// let dsl = MachineDSL {
///   TransferDSL.step(.amount) { failed }
///   TransferDSL.step(.tariffs) { failed }
/// }
/// ```
public struct MachineDSLHandler<Builder: MachineDSLBuilder> {
  let event: Builder.Event?
  let transition: MachineTransition<Builder.Step>
}

/// Builds a list of parts or handlers. `if` and `for` are evaluated when the machine is made.
@resultBuilder
public enum MachineListBuilder<Part> {
  /// One part.
  public static func buildExpression(_ part: Part) -> [Part] { [part] }

  /// Consecutive parts.
  public static func buildBlock(_ parts: [Part]...) -> [Part] { parts.flatMap { $0 } }

  /// An `if` without an `else`, evaluated when the machine is made.
  public static func buildOptional(_ part: [Part]?) -> [Part] { part ?? [] }

  /// The first branch of an `if`, evaluated when the machine is made.
  public static func buildEither(first part: [Part]) -> [Part] { part }

  /// The other branch of an `if`, evaluated when the machine is made.
  public static func buildEither(second part: [Part]) -> [Part] { part }

  /// A `for` that makes parts.
  public static func buildArray(_ parts: [[Part]]) -> [Part] { parts.flatMap { $0 } }
}

extension MachineDSL {
  /// The steps and transitions in DOT, the language of Graphviz, as those of a machine made with them; see
  /// `MachineOp.dot`.
  ///
  /// Source: FlowKit's `DOTBuilder`.
  public func dot(_ options: MachineDOTOptions = MachineDOTOptions()) -> ByteString {
    let transitions = DeclarativeTransitionProvider(self).transitions
    let logic = TypedMachineLogic<Builder.Step, Builder.StepResult, Builder.State, Builder.State>(
      transitions.names, events: transitions.events.names)
    let definition = MachineDefinition(name: "", start: 0, steps: transitions.steps)
    return MachineGraph(MachineBlueprint(definition, logic)).dot(options)
  }
}
