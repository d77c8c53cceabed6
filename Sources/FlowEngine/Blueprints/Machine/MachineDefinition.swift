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
  /// Whether the any-step's transitions take precedence over a step's own, as FlowKit has it.
  package var triesAnyStepFirst = false
  /// How many transitions a run may make.
  package var maxTransitions = Self.defaultMaxTransitions
  /// Whether the logic, as a navigator, performs all steps.
  package var hasNavigator = false
  /// Whether the logic reduces a result to a new state; else the result becomes the state.
  package var hasReducer = false
  /// Whether the logic makes events.
  package var hasEmitter = false
  /// Whether only the emitter can know its events, as a script's do: types may have more than are used.
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
  package let transition: MachineTransition<Int>
  /// The place where it was written; see `MachineLogic.position(of:)`.
  package let place: Int

  /// Makes a handler.
  ///
  /// - Parameters:
  ///   - event: The number of the event; nil for the transition that is made without an event.
  ///   - transition: The transition.
  ///   - place: The place where it was written; see `MachineLogic.position`.
  package init(on event: Int?, _ transition: MachineTransition<Int>, place: Int = -1) {
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

/// The steps of a definition by their numbers, and the transitions of each. Never changes.
final class TransitionTable {
  /// One step, including the any-step's transitions.
  private struct Row {
    var isDeclared = false
    var isFinal = true
    /// Whether the definition marks the step as final.
    var isMarkedFinal = false
    var isOp = false
    /// The transition without an event.
    var next: MachineHandler?
    var place = -1
  }

  // Executions read single elements of these lists, which hold no references: that costs no retain.
  private let rows: ContiguousArray<Row>
  private let anyNext: MachineHandler?
  private var ops: ContiguousArray<Op?>
  private var steps: ContiguousArray<MachineStep?>
  let anyStep: MachineStep?
  private let triesAnyStepFirst: Bool

  init(_ definition: MachineDefinition) {
    let count = (definition.steps.compactMap(\.number).max() ?? -1) + 1
    let any = definition.steps.first { $0.number == nil }
    let anyNext = any?.handler(on: nil)
    var rows = ContiguousArray(repeating: Row(), count: count)
    var ops = ContiguousArray<Op?>(repeating: nil, count: count)
    var steps = ContiguousArray<MachineStep?>(repeating: nil, count: count)
    for step in definition.steps {
      guard let number = step.number, number >= 0 else { continue }
      let own = step.handler(on: nil)
      let next = definition.triesAnyStepFirst ? anyNext ?? own : own ?? anyNext
      rows[number] = Row(
        isDeclared: true, isFinal: step.handlers.isEmpty, isMarkedFinal: step.isFinal,
        next: step.isFinal ? nil : next, place: step.place)
      if case .op(let op) = step.action {
        ops[number] = op
        rows[number].isOp = true
      }
      steps[number] = step
    }
    self.rows = rows
    self.anyNext = anyNext
    self.ops = ops
    self.steps = steps
    anyStep = any
    triesAnyStepFirst = definition.triesAnyStepFirst
  }

  /// Takes the ops of the steps out of a table that is about to be released.
  fileprivate func takeOps() -> [Op] {
    steps = []
    defer { ops = [] }
    return ops.compactMap { $0 }
  }

  /// Whether a step is declared.
  func has(_ number: Int) -> Bool { rows.indices.contains(number) && rows[number].isDeclared }

  /// Whether an op performs a step.
  func isOp(_ number: Int) -> Bool { rows.indices.contains(number) && rows[number].isOp }

  /// The op that performs a step; nil when none does.
  func op(_ number: Int) -> Op? { ops.indices.contains(number) ? ops[number] : nil }

  /// The place where a step was written.
  func place(of number: Int) -> Int { rows.indices.contains(number) ? rows[number].place : -1 }

  /// The transition after a step, on an event or without one; nil when neither the step nor the
  /// any-step has one. After a final step only its own count.
  func handler(after number: Int, on event: Int?) -> MachineHandler? {
    guard let event else { return rows.indices.contains(number) ? rows[number].next : anyNext }
    let own = steps.indices.contains(number) ? steps[number] : nil
    if isMarkedFinal(number) { return own?.handler(on: event) }
    let (first, second) = triesAnyStepFirst ? (anyStep, own) : (own, anyStep)
    return first?.handler(on: event) ?? second?.handler(on: event)
  }

  /// Whether a machine ends after a step when no transition follows it.
  func isFinal(_ number: Int) -> Bool { !rows.indices.contains(number) || rows[number].isFinal }

  /// Whether the definition marks a step as final.
  func isMarkedFinal(_ number: Int) -> Bool {
    rows.indices.contains(number) && rows[number].isMarkedFinal
  }
}

extension MachineStep {
  fileprivate func handler(on event: Int?) -> MachineHandler? {
    for index in handlers.indices where handlers[index].event == event { return handlers[index] }
    return nil
  }
}

/// A definition in the form for executing and drawing it. Never changes.
final class MachineBlueprint {
  private(set) var definition: MachineDefinition
  let logic: any MachineLogic
  let table: TransitionTable
  // Copies of the definition's flags, to save the hot path copies of the definition.
  let hasReducer: Bool
  let hasEmitter: Bool
  let hasProvider: Bool
  let isOpen: Bool
  let maxTransitions: Int

  init(_ definition: MachineDefinition, _ logic: any MachineLogic) {
    self.definition = definition
    self.logic = logic
    table = TransitionTable(definition)
    hasReducer = definition.hasReducer
    hasEmitter = definition.hasEmitter
    hasProvider = definition.hasProvider
    isOpen = definition.isOpen
    maxTransitions = definition.maxTransitions
  }

  deinit {
    // A loop releases nested machines of any depth. Their own deinitializers would recurse as deep
    // as they are nested.
    definition.steps = []
    DeferredRelease.release(table.takeOps())
  }
}

/// Releases ops one after another, where each may hold further ones.
enum DeferredRelease {
  /// The ops that a release has found meanwhile. Unchecked: only the thread that releases sees it,
  /// because deinitializers start no tasks.
  private final class Open: @unchecked Sendable {
    var ops: [Op] = []
  }

  // Set while a release runs in this thread: its loop releases the ops that it finds.
  @TaskLocal private static var open: Open?

  static func release(_ ops: consuming [Op]) {
    if ops.isEmpty { return }
    if let open {
      open.ops += consume ops
      return
    }
    let own = Open()
    own.ops = consume ops
    $open.withValue(own) {
      // This may remove the last reference to an op, which then calls `release` with its own steps.
      while own.ops.popLast() != nil {}
    }
  }
}
