/// What a machine consists of: its steps, and which transition comes after each.
///
/// Steps and events are numbers here, given out by a `NameTable` of whoever writes the definition;
/// a front end thus has steps of any kind, and the engine only shows their names.
public struct MachineDefinition {
  /// What lines and errors call the machine.
  public var name: ByteString
  /// The step that a machine begins with.
  public var start: Int
  /// The steps in the order in which they were written, the any-step among them.
  public var steps: [MachineStep]
  /// Whether the any-step's transitions come before a step's own, as in FlowKit.
  public var triesAnyStepFirst = false
  /// How many transitions a run may make.
  public var maxTransitions = Self.defaultMaxTransitions
  /// Who performs the steps: with a navigator, the logic performs all of them.
  public var hasNavigator = false
  /// Whether the logic makes a new state of a result; else the result becomes the state.
  public var hasReducer = false
  /// Whether the logic makes events.
  public var hasEmitter = false
  /// Whether the logic says which transition comes next, in place of the steps' own.
  public var hasProvider = false
  /// Where what says so was written; see `MachineLogic.position(of:)`.
  public var providerPlace = -1

  /// How many transitions a run may make unless a machine says otherwise.
  public static let defaultMaxTransitions = 10_000

  /// A definition with the defaults for all else.
  ///
  /// - Parameters:
  ///   - name: What lines and errors call the machine.
  ///   - start: The number of the first step.
  ///   - steps: The steps with what leads on from them.
  public init(name: ByteString, start: Int, steps: [MachineStep]) {
    self.name = name
    self.start = start
    self.steps = steps
  }

  /// Whether steps needn't be declared: when nothing is said of them in the definition.
  public var isOpen: Bool { hasNavigator && hasProvider }
}

/// One step of a machine, or what holds for any step.
public struct MachineStep {
  /// Who performs a step.
  public enum Action {
    /// The machine's logic.
    case logic
    /// An op, flow or machine, in a run of its own.
    case op(Op)
    /// Nobody: the any-step, and the steps of a machine with a navigator.
    case none
  }

  /// Its number; nil for the any-step.
  public let number: Int?
  /// What performs it.
  public var action: Action
  /// What happens after it, in the order in which it was written.
  public var handlers: [MachineHandler]
  /// Whether the machine ends after it, although the any-step may lead on; its events are handled as
  /// those of any step.
  public let isFinal: Bool
  /// Where it was written; see `MachineLogic.position(of:)`.
  public let place: Int

  /// A step.
  ///
  /// - Parameters:
  ///   - number: Its number; nil for any step.
  ///   - action: What performs it.
  ///   - handlers: What leads on from it.
  ///   - isFinal: Whether the machine ends after it.
  ///   - place: Where it was written; see `MachineLogic.position`.
  public init(
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

/// One transition of a step: on an event, or when there is none.
public struct MachineHandler {
  /// The event's number; nil for the transition that is made without an event.
  public let event: Int?
  /// Where it leads.
  public let transition: Transition<Int>
  /// Where it was written; see `MachineLogic.position(of:)`.
  public let place: Int

  /// A handler.
  ///
  /// - Parameters:
  ///   - event: The number of the event; nil for when there is none.
  ///   - transition: Where it leads.
  ///   - place: Where it was written; see `MachineLogic.position`.
  public init(on event: Int?, _ transition: Transition<Int>, place: Int = -1) {
    self.event = event
    self.transition = transition
    self.place = place
  }
}

/// Numbers for steps or events of any kind, and the names that lines show for them.
public struct NameTable<Element: Hashable> {
  private var numbers: [Element: Int] = [:]
  /// By their numbers.
  public private(set) var elements: [Element] = []
  /// The names by their numbers.
  public private(set) var names: [ByteString] = []

  /// A table without names.
  public init() {}

  /// The number of an element, if it has one.
  public func number(of element: Element) -> Int? { numbers[element] }

  /// The number of an element, which gets one if it has none.
  public mutating func add(_ element: Element, name: ByteString) -> Int {
    if let known = numbers[element] { return known }
    let number = elements.count
    numbers[element] = number
    elements.append(element)
    names.append(name)
    return number
  }
}
