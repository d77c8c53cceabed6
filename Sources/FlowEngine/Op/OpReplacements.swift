/// Ops that are executed in place of others, found by name: what a test puts in the place of ops that
/// it doesn't want to run.
///
/// Confined to the loop's thread, as the ops.
public final class OpReplacements {
  private let fakes: [ByteString: Op]
  private let steps: [ByteString: StepReplacement]
  /// What is executed in place of an op, which is held so that its identity stays its own.
  private var made: [ObjectIdentifier: (original: Op, fake: Op)] = [:]
  /// The names of the ops that were replaced so far.
  public private(set) var usedNames: Set<ByteString> = []

  /// - Parameters:
  ///   - fakes: What to execute, by the names of the ops that it replaces.
  ///   - steps: What to perform, by the names of the steps of machines that it replaces.
  public init(_ fakes: [ByteString: Op], steps: [ByteString: StepReplacement] = [:]) {
    self.fakes = fakes
    self.steps = steps
  }

  /// The name of an op or step whose replacement contains it, perhaps by way of other replacements, and
  /// would never end; nil when there is none. Ops that bodies start aren't looked at.
  public var nameWithinItself: ByteString? {
    // By the names of ops and steps: what is to be looked at within the replacement, the innermost last.
    var isDone: [Name: Bool] = [:]
    for start in fakes.keys.map(Name.op) + steps.keys.map(Name.step) {
      var open = [start]
      while let name = open.last {
        guard isDone[name] == nil else {
          isDone[name] = true
          open.removeLast()
          continue
        }
        isDone[name] = false
        for inner in names(within: name) {
          if isDone[inner] == false { return inner.text }
          if isDone[inner] == nil { open.append(inner) }
        }
      }
    }
    return nil
  }

  /// What is replaced.
  private enum Name: Hashable {
    case op(ByteString)
    case step(ByteString)

    var text: ByteString {
      switch self {
      case .op(let name), .step(let name): name
      }
    }
  }

  /// The replaced ops and steps within the replacement of another one.
  private func names(within name: Name) -> [Name] {
    let all: [Op]
    let replaced: ArraySlice<Op>
    switch name {
    case .op(let name):
      all = fakes[name]?.opsWithin ?? []
      // What replaces an op isn't replaced itself.
      replaced = all.dropFirst()
    case .step(let name):
      guard case .op(let op)? = steps[name] else { return [] }
      all = op.opsWithin
      replaced = all[...]
    }
    return Set(replaced.map(\.name)).filter { fakes[$0] != nil }.map(Name.op)
      + Op.stepNames(of: all).filter { steps[$0] != nil }.map(Name.step)
  }

  /// What to perform in place of a machine's step; nil when that is the step itself.
  func step(_ name: ByteString) -> StepReplacement? { steps[name] }

  /// What to execute in place of an op; nil when that is the op itself.
  ///
  /// It has the name, the declared data and the policy of the op: only what it does is another.
  func fake(for op: Op) -> Op? {
    guard let fake = fakes[op.name] else { return nil }
    let identity = ObjectIdentifier(op)
    // What replaces an op isn't replaced itself.
    if let known = made[identity] { return known.fake === op ? nil : known.fake }
    usedNames.insert(op.name)
    let copy = fake.copy(name: op.name, declarations: op.declarations, policy: op.policy)
    made[identity] = (op, copy)
    made[ObjectIdentifier(copy)] = (copy, copy)
    return copy
  }
}

/// What is performed in place of a machine's step.
public enum StepReplacement {
  /// An op, flow or machine, with the state as its data.
  case op(Op)
  /// A function that the machine's logic understands; see `MachineLogic.perform`.
  case function(AnyObject)
  /// Nothing: this is the step's result.
  case value(Value)
}

extension Op {
  /// The names of the steps of machines that this op consists of, however deep.
  public var stepNamesWithin: Set<ByteString> { Self.stepNames(of: opsWithin) }

  /// The names of the steps of those among some ops that are machines.
  fileprivate static func stepNames(of ops: [Op]) -> Set<ByteString> {
    var names: Set<ByteString> = []
    for case let machine as MachineOp in ops {
      for case let number? in machine.blueprint.definition.steps.map(\.number) {
        names.insert(machine.logic.name(ofStep: number))
      }
    }
    return names
  }

  /// The names of this op and of all that it consists of, however deep. Ops that bodies start aren't
  /// among them.
  public var namesWithin: Set<ByteString> { Set(opsWithin.map(\.name)) }

  /// This op, which comes first, and all that it consists of.
  fileprivate var opsWithin: [Op] {
    var ops: [Op] = []
    var seen: Set<ObjectIdentifier> = []
    var open: [Op] = [self]
    while let op = open.popLast() {
      guard seen.insert(ObjectIdentifier(op)).inserted else { continue }
      ops.append(op)
      if let flow = op as? Flow {
        open += (flow.blueprint.steps + flow.blueprint.finally).filter(\.isOfOp).map(\.op)
      } else if let machine = op as? MachineOp {
        for step in machine.blueprint.definition.steps {
          if case .op(let inner) = step.action { open.append(inner) }
        }
      } else if let inner = op.body?.inner {
        open.append(inner)
      }
    }
    return ops
  }
}

extension Step {
  /// Whether its op is one that is executed, and not just a name.
  fileprivate var isOfOp: Bool {
    switch kind {
    case .op, .flow, .group: true
    case .parallel, .cases: false
    }
  }
}
