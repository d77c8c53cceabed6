/// The content of a machine: its steps, and the transitions between them.
///
/// Steps and events are numbers here, which a `NameTable` of the definition's author assigns. A
/// front end can therefore have steps of any type, and the engine only shows their names.
package struct MachineDefinition {
  /// The machine's name in lines and errors.
  package var name: ByteString
  /// The step that a machine starts with.
  package var start: Int
  /// The steps in the order in which they were written, the any-step among them.
  package var steps: [MachineStep]
  /// Whether the any-step's transitions take precedence over a step's own, as in FlowKit.
  package var triesAnyStepFirst = false
  /// How many transitions a run may make.
  package var maxTransitions = Self.defaultMaxTransitions
  /// Whether the logic, as a navigator, performs all steps.
  package var hasNavigator = false
  /// Whether the logic reduces a result to a new state; else the result becomes the state.
  package var hasReducer = false
  /// Whether the logic makes events.
  package var hasEmitter = false
  /// Whether only the emitter can know its events, as in a script: types may have more than are used.
  package var namesEvents = false
  /// Whether the logic chooses the next transition, instead of the steps' own transitions.
  package var hasProvider = false
  /// The place where the provider was written; see `MachineLogic.position(of:)`.
  package var providerPlace = -1

  /// How many transitions a run may make, unless the machine sets another number.
  package static let defaultMaxTransitions = 10_000

  /// Makes a definition with default values for the other properties.
  ///
  /// - Parameters:
  ///   - name: The machine's name in lines and errors.
  ///   - start: The number of the first step.
  ///   - steps: The steps with their transitions.
  package init(name: ByteString, start: Int, steps: [MachineStep]) {
    self.name = name
    self.start = start
    self.steps = steps
  }

  /// Whether steps needn't be declared: when the definition contains nothing about them.
  package var isOpen: Bool { hasNavigator && hasProvider }
}

/// One step of a machine, or the any-step, which applies to every step.
package struct MachineStep {
  /// The way in which a step is performed.
  package enum Action {
    /// The machine's logic performs it.
    case logic
    /// An op, flow or machine performs it, in a run of its own.
    case op(Op)
    /// Nothing: the any-step, and the steps of a machine with a navigator.
    case none
  }

  /// Its number; nil for the any-step.
  package let number: Int?
  /// How it is performed.
  package var action: Action
  /// Its transitions, in the order in which they were written.
  package var handlers: [MachineHandler]
  /// Whether the machine ends after it, even if the any-step has a transition; its events are
  /// handled as those of any step.
  package let isFinal: Bool
  /// The place where it was written; see `MachineLogic.position(of:)`.
  package let place: Int

  /// Makes a step.
  ///
  /// - Parameters:
  ///   - number: Its number; nil for the any-step.
  ///   - action: How it is performed.
  ///   - handlers: Its transitions.
  ///   - isFinal: Whether the machine ends after it.
  ///   - place: The place where it was written; see `MachineLogic.position`.
  package init(
    _ number: Int?, _ action: Action, handlers: [MachineHandler], isFinal: Bool = false,
    place: Int = -1
  ) {
    self.number = number
    self.action = action
    self.handlers = handlers
    self.isFinal = isFinal
    self.place = place
  }
}

/// One transition of a step: on an event, or without one.
package struct MachineHandler {
  /// The event's number; nil for the transition that is made without an event.
  package let event: Int?
  /// The transition.
  package let transition: Transition<Int>
  /// The place where it was written; see `MachineLogic.position(of:)`.
  package let place: Int

  /// Makes a handler.
  ///
  /// - Parameters:
  ///   - event: The number of the event; nil for the transition that is made without an event.
  ///   - transition: The transition.
  ///   - place: The place where it was written; see `MachineLogic.position`.
  package init(on event: Int?, _ transition: Transition<Int>, place: Int = -1) {
    self.event = event
    self.transition = transition
    self.place = place
  }
}

/// Numbers for steps or events of any type, with the names that lines show for them.
package struct NameTable<Element: Hashable> {
  private var numbers: [Element: Int] = [:]
  /// The elements by their numbers.
  package private(set) var elements: [Element] = []
  /// The names by their numbers.
  package private(set) var names: [ByteString] = []

  /// A table without names.
  package init() {}

  /// The number of an element, if it has one.
  package func number(of element: Element) -> Int? { numbers[element] }

  /// Returns the number of an element, and assigns one if it has none.
  package mutating func add(_ element: Element, name: ByteString) -> Int {
    if let known = numbers[element] { return known }
    let number = elements.count
    numbers[element] = number
    elements.append(element)
    names.append(name)
    return number
  }
}
