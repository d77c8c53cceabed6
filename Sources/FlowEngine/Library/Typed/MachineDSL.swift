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
  public init(@FlowListBuilder<MachineDSLPart<Builder>> parts: () -> [MachineDSLPart<Builder>]) {
    self.parts = parts()
  }

  /// The function that derives an event from a result; the last one counts.
  var emitter: Builder.Emitter? {
    var emitter: Builder.Emitter?
    for case .emitter(let one) in parts.map(\.content) { emitter = one }
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
    MachineDSLPart(.emitter(emitter))
  }

  /// The transitions after a step; without any the machine ends with its state.
  public static func step(
    _ step: Step,
    @FlowListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>] = { [] }
  ) -> MachineDSLPart<Self> { MachineDSLPart(.step(step, handlers())) }

  /// A step after which the machine ends on purpose. Where results are reduced, `MachineOp.check`
  /// warns of steps without a transition that aren't marked so. Its events are handled as those of
  /// any step.
  public static func finalStep(
    _ step: Step,
    @FlowListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>] = { [] }
  ) -> MachineDSLPart<Self> { MachineDSLPart(.finalStep(step, handlers())) }

  /// The transitions after any step that doesn't have its own.
  public static func step(
    @FlowListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>]
  ) -> MachineDSLPart<Self> { MachineDSLPart(.step(nil, handlers())) }

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
extension MachineDSLPart.Content: Sendable where Builder.Step: Sendable, Builder.Event: Sendable {}
extension MachineDSLHandler: Sendable where Builder.Step: Sendable, Builder.Event: Sendable {}

/// A part of a `MachineDSL`.
///
/// ```swift
/// func screens(_ steps: [MyStep]) -> [MachineDSLPart<TransferDSL>] {
///   steps.map { TransferDSL.step($0) }
/// }
/// let dsl = MachineDSL { for screen in screens([.amount, .tariffs]) { screen } }
/// ```
public struct MachineDSLPart<Builder: MachineDSLBuilder> {
  enum Content {
    /// The function that derives events from results.
    case emitter(Builder.Emitter)
    /// A step with its transitions; nil is the any-step.
    case step(Builder.Step?, [MachineDSLHandler<Builder>])
    /// A step after which the machine ends, with the transitions on its events.
    case finalStep(Builder.Step, [MachineDSLHandler<Builder>])
  }

  let content: Content

  init(_ content: Content) { self.content = content }
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

extension MachineDSL {
  /// The steps and transitions in DOT, the language of Graphviz, as those of a machine made with them; see
  /// `MachineOp.dot`.
  ///
  /// Source: FlowKit's `DOTBuilder`.
  public func dot() -> ByteString { dot(MachineDOTOptions()) }

  package func dot(_ options: MachineDOTOptions) -> ByteString {
    let transitions = DeclarativeTransitionProvider(self).transitions
    let logic = TypedMachineLogic<Builder.Step, Builder.StepResult, Builder.State, Builder.State>(
      transitions.names, events: transitions.events.names)
    let definition = MachineDefinition(name: "", start: 0, steps: transitions.steps)
    return MachineGraph(MachineBlueprint(definition, logic)).dot(options)
  }
}
