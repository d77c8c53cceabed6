/// The steps of a definition by their numbers, and what follows each.
struct TransitionTable {
  /// nil for a step that isn't declared.
  private var steps: ContiguousArray<MachineStep?> = []
  let anyStep: MachineStep?
  private let triesAnyStepFirst: Bool

  init(_ definition: MachineDefinition) {
    anyStep = definition.steps.first { $0.number == nil }
    triesAnyStepFirst = definition.triesAnyStepFirst
    for step in definition.steps {
      guard let number = step.number, number >= 0 else { continue }
      while steps.count <= number { steps.append(nil) }
      steps[number] = step
    }
  }

  /// The step of a number, if it is declared.
  @inline(__always)
  func step(_ number: Int) -> MachineStep? {
    steps.indices.contains(number) ? steps[number] : nil
  }

  /// What follows a step, on an event or without one; nil when neither it nor the any-step says.
  func handler(after number: Int, on event: Int?) -> MachineHandler? {
    let own = step(number)
    let (first, second) = triesAnyStepFirst ? (anyStep, own) : (own, anyStep)
    return first?.handler(on: event) ?? second?.handler(on: event)
  }

  /// Whether a machine ends behind a step when nothing follows it.
  func isFinal(_ number: Int) -> Bool { step(number)?.handlers.isEmpty ?? true }
}

extension MachineStep {
  @inline(__always)
  fileprivate func handler(on event: Int?) -> MachineHandler? {
    for index in handlers.indices where handlers[index].event == event { return handlers[index] }
    return nil
  }
}

/// A definition in the form in which it is executed and drawn. Never changes.
final class MachineBlueprint {
  let definition: MachineDefinition
  let logic: any MachineLogic
  let table: TransitionTable

  init(_ definition: MachineDefinition, _ logic: any MachineLogic) {
    self.definition = definition
    self.logic = logic
    table = TransitionTable(definition)
  }

  deinit {
    // Machines in machines of any depth are released by a loop; released by their own deinitializers,
    // they would recurse as deep as they are nested.
    let ops = definition.steps.compactMap { step -> Op? in
      if case .op(let op) = step.action { op } else { nil }
    }
    if !ops.isEmpty { DeferredRelease.release(ops) }
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

  static func release(_ ops: [Op]) {
    if let open {
      open.ops += ops
      return
    }
    let own = Open()
    own.ops = ops
    $open.withValue(own) {
      // The last reference to an op may go here, which comes back to `release` with its steps.
      while own.ops.popLast() != nil {}
    }
  }
}
