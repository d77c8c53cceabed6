/// The steps of a definition by their numbers, and what follows each. Never changes.
final class TransitionTable {
  /// One step, the any-step's transitions included.
  private struct Row {
    var isDeclared = false
    var isFinal = true
    /// Whether the definition says so.
    var isMarkedFinal = false
    var isOp = false
    /// What follows without an event.
    var next: MachineHandler?
    var place = -1
  }

  // Of these the executions read single elements, which hold no references: that costs no retain.
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

  /// The ops of the steps, taken out of a table that is about to go.
  fileprivate func takeOps() -> [Op] {
    steps = []
    defer { ops = [] }
    return ops.compactMap { $0 }
  }

  /// Whether a step is declared.
  func has(_ number: Int) -> Bool { rows.indices.contains(number) && rows[number].isDeclared }

  /// Whether an op performs a step.
  func isOp(_ number: Int) -> Bool { rows.indices.contains(number) && rows[number].isOp }

  /// The op that performs a step, if one does.
  func op(_ number: Int) -> Op? { ops.indices.contains(number) ? ops[number] : nil }

  /// Where a step was written.
  func place(of number: Int) -> Int { rows.indices.contains(number) ? rows[number].place : -1 }

  /// What follows a step, on an event or without one; nil when neither it nor the any-step says.
  func handler(after number: Int, on event: Int?) -> MachineHandler? {
    guard let event else { return rows.indices.contains(number) ? rows[number].next : anyNext }
    let own = steps.indices.contains(number) ? steps[number] : nil
    let (first, second) = triesAnyStepFirst ? (anyStep, own) : (own, anyStep)
    return first?.handler(on: event) ?? second?.handler(on: event)
  }

  /// Whether a machine ends behind a step when nothing follows it.
  func isFinal(_ number: Int) -> Bool { !rows.indices.contains(number) || rows[number].isFinal }

  /// Whether the definition says that a machine ends after a step.
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

/// A definition in the form in which it is executed and drawn. Never changes.
final class MachineBlueprint {
  private(set) var definition: MachineDefinition
  let logic: any MachineLogic
  let table: TransitionTable
  // Copies of what the definition says, to spare the hot path copies of that.
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
    // Machines in machines of any depth are released by a loop; released by their own deinitializers,
    // they would recurse as deep as they are nested.
    definition.steps = []
    DeferredRelease.release(table.takeOps())
  }
}

/// Releases ops one after another, where each may hold further ones.
enum DeferredRelease {
  /// What a release has found meanwhile.
  // Unchecked: only the thread that releases sees it, as deinitializers start no tasks.
  private final class Open: @unchecked Sendable {
    var ops: [Op] = []
  }

  // Set while a release goes on in this thread: what it finds is released by its loop.
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
      // The last reference to an op may go here, which comes back to `release` with its steps.
      while own.ops.popLast() != nil {}
    }
  }
}
