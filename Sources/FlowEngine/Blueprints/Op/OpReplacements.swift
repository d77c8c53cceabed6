/// Ops that are executed instead of others, found by name. Tests replace ops with them that they
/// don't want to run.
///
/// Confined to the loop's thread, like the ops.
///
/// ```swift
/// let fake = Op("FakeUploadOp") { $0.set("url", "none") }
/// loop.replacements = OpReplacements(["UploadOp": fake])
/// ```
public final class OpReplacements {
  private let fakes: [ByteString: Op]
  private let steps: [ByteString: StepReplacement]
  /// The replacements of ops. Each original is retained so that no other op gets its identity.
  private var made: [ObjectIdentifier: (original: Op, fake: Op)] = [:]
  /// The names of the ops that have been replaced so far.
  package private(set) var usedNames: Set<ByteString> = []

  /// - Parameter fakes: The ops to execute, by the names of the ops that they replace.
  public convenience init(_ fakes: [ByteString: any OpConvertible]) {
    self.init(fakes.mapValues { $0.makeOp() }, steps: [:])
  }

  /// Also replaces steps of machines, by their names.
  package init(_ fakes: [ByteString: Op], steps: [ByteString: StepReplacement]) {
    self.fakes = fakes
    self.steps = steps
  }

  /// The name of an op or step whose replacement contains it, perhaps through other replacements,
  /// and would never end; nil when there is none. Ops that bodies start aren't checked.
  package var nameWithinItself: ByteString? {
    // By the names of ops and steps: the names to check within each replacement, the innermost
    // last.
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

  /// The name of a replaced op or step.
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
      // The op of a replacement isn't replaced itself.
      replaced = all.dropFirst()
    case .step(let name):
      guard case .op(let op)? = steps[name] else { return [] }
      all = op.opsWithin
      replaced = all[...]
    }
    return Set(replaced.map(\.name)).filter { fakes[$0] != nil }.map(Name.op)
      + Op.stepNames(of: all).filter { steps[$0] != nil }.map(Name.step)
  }

  /// The replacement of a machine's step; nil when it isn't replaced.
  func step(_ name: ByteString) -> StepReplacement? { steps[name] }

  /// The replacement of an op; nil when it isn't replaced.
  ///
  /// It has the name, the declared data and the policy of the op; only its body is another.
  func fake(for op: Op) -> Op? {
    guard let fake = fakes[op.name] else { return nil }
    let identity = ObjectIdentifier(op)
    // The op of a replacement isn't replaced itself.
    if let known = made[identity] { return known.fake === op ? nil : known.fake }
    usedNames.insert(op.name)
    let copy = fake.copy(
      name: op.name, declarations: op.declarations, policy: .standIn(op.policy, for: fake))
    made[identity] = (op, copy)
    made[ObjectIdentifier(copy)] = (copy, copy)
    return copy
  }
}

/// The replacement of a machine's step.
package enum StepReplacement {
  /// An op, flow or machine, with the state as its data.
  case op(Op)
  /// A function that the machine's logic understands; see `MachineLogic.perform`.
  case function(AnyObject)
  /// No code: this value is the step's result.
  case value(FlowValue)
}

extension Op {
  /// The names of the steps of all machines within this op, at any depth.
  package var stepNamesWithin: Set<ByteString> { Self.stepNames(of: opsWithin) }

  /// The names of the steps of the machines among some ops.
  fileprivate static func stepNames(of ops: [Op]) -> Set<ByteString> {
    Set(ops.flatMap(\.stepNames))
  }

  /// The names of this op and of all ops within it, at any depth. Ops that bodies start aren't
  /// included.
  package var namesWithin: Set<ByteString> { Set(opsWithin.map(\.name)) }

  /// This op, which comes first, and all ops within it.
  fileprivate var opsWithin: [Op] {
    var ops: [Op] = []
    var seen: Set<ObjectIdentifier> = []
    var open: [Op] = [self]
    while let op = open.popLast() {
      guard seen.insert(ObjectIdentifier(op)).inserted else { continue }
      ops.append(op)
      open += op.parts
    }
    return ops
  }
}
