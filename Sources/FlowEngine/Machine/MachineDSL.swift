/// The steps and transitions of a machine as they are written, in the words of the seed.
///
/// ```swift
/// struct TransferDSL: MachineDSLBuilder {
///   typealias Step = MyStep, StepResult = MyResult, State = MyState
///   enum Event { case invalidAmount, editAmount, error }
///
///   static var dsl: MachineDSL<Self> {
///     MachineDSL {
///       emit { result, state in … }
///       step { on(.error) { forward(to: .alert) } }
///       step(.amount) {
///         on(.invalidAmount) { forward(to: .invalidAmount) }
///         next { forward(to: .tariffs) }
///       }
///     }
///   }
/// }
/// ```
///
/// Source: the seed's `FlowDSL` (FlowKit).
public struct MachineDSL<Builder: MachineDSLBuilder> {
  let parts: [MachineDSLPart<Builder>]

  /// A description of parts, one below the other.
  public init(@MachineListBuilder<MachineDSLPart<Builder>> parts: () -> [MachineDSLPart<Builder>]) {
    self.parts = parts()
  }

  /// What says which event a result is; the last one counts.
  var emitter: Builder.Emitter? {
    var emitter: Builder.Emitter?
    for case .emitter(let one) in parts { emitter = one }
    return emitter
  }
}

/// A place to write a machine's transitions at: it knows the types, so that steps and events can be
/// written as `.amount`.
///
/// Source: the seed's `FlowDSLBuilder` (FlowKit).
public protocol MachineDSLBuilder {
  /// Names the steps.
  associatedtype Step: Hashable
  /// What performing a step leaves.
  associatedtype StepResult
  /// What the machine knows so far.
  associatedtype State
  /// What a step's result can mean for the way on.
  associatedtype Event: Hashable
}

extension MachineDSLBuilder {
  /// Says which event a result is, given the new state; nil when it is none. May wait.
  public typealias Emitter =
    nonisolated(nonsending) (StepResult, State) async throws -> Event?

  /// Has events made by `emitter`.
  public static func emit(using emitter: @escaping Emitter) -> MachineDSLPart<Self> {
    .emitter(emitter)
  }

  /// What happens behind a step.
  public static func step(
    _ step: Step,
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>]
  ) -> MachineDSLPart<Self> { .step(step, handlers()) }

  /// A step behind which nothing happens: the machine ends with its state.
  public static func step(_ step: Step) -> MachineDSLPart<Self> { .step(step, []) }

  /// A step after which the machine ends, on purpose: where results are reduced, `Machine.check` warns of
  /// steps without a way on that aren't marked so. Its events are handled as those of any step.
  public static func finalStep(
    _ step: Step,
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>] = { [] }
  ) -> MachineDSLPart<Self> { .finalStep(step, handlers()) }

  /// What happens behind any step, unless that itself says.
  public static func step(
    @MachineListBuilder<MachineDSLHandler<Self>> handlers: () -> [MachineDSLHandler<Self>]
  ) -> MachineDSLPart<Self> { .step(nil, handlers()) }

  /// What happens on an event.
  public static func on(
    _ event: Event, _ transition: () -> Transition<Step>
  ) -> MachineDSLHandler<Self> { MachineDSLHandler(event: event, transition: transition()) }

  /// What happens when there is no event.
  public static func next(_ transition: () -> Transition<Step>) -> MachineDSLHandler<Self> {
    MachineDSLHandler(event: nil, transition: transition())
  }

  /// To a step.
  public static func forward(to step: Step) -> Transition<Step> { .forward(to: step) }

  /// To an earlier step of the history, or without one to the previous step.
  public static func back(to step: Step? = nil) -> Transition<Step> { .back(to: step) }

  /// To the same step again.
  public static func stay() -> Transition<Step> { .stay }
}

/// A part of a `MachineDSL`.
public enum MachineDSLPart<Builder: MachineDSLBuilder> {
  /// What makes events of results.
  case emitter(Builder.Emitter)
  /// A step with what happens behind it; nil is any step.
  case step(Builder.Step?, [MachineDSLHandler<Builder>])
  /// A step after which the machine ends, with what happens on its events.
  case finalStep(Builder.Step, [MachineDSLHandler<Builder>])
}

/// What happens behind a step.
public struct MachineDSLHandler<Builder: MachineDSLBuilder> {
  let event: Builder.Event?
  let transition: Transition<Builder.Step>
}

/// Builds a list of parts or handlers. `if` and `for` decide when the machine is made.
@resultBuilder
public enum MachineListBuilder<Part> {
  /// One part.
  public static func buildExpression(_ part: Part) -> [Part] { [part] }

  /// Parts one below the other.
  public static func buildBlock(_ parts: [Part]...) -> [Part] { parts.flatMap { $0 } }

  /// An `if` without an `else`, decided when the machine is made.
  public static func buildOptional(_ part: [Part]?) -> [Part] { part ?? [] }

  /// The first way of an `if`, decided when the machine is made.
  public static func buildEither(first part: [Part]) -> [Part] { part }

  /// The other way of an `if`, decided when the machine is made.
  public static func buildEither(second part: [Part]) -> [Part] { part }

  /// A `for` that makes parts.
  public static func buildArray(_ parts: [[Part]]) -> [Part] { parts.flatMap { $0 } }
}
