/// One place of a flow.
struct Step {
  let op: Op
  /// Set when the op runs once for each item of a list.
  let dispatcher: GroupDispatcher?
}

/// What a flow consists of. Changed only while nothing but its flow holds it, so that a run keeps
/// what it began with.
final class Blueprint {
  var steps: ContiguousArray<Step> = []
  /// The indices of the steps that are flows.
  var nested: ContiguousArray<UInt32> = []
  var data: [(name: ByteString, value: Value)] = []
  var willStart: [any RunCallback] = []
  var didFinish: [any RunCallback] = []
  var declarations = Declarations()

  init() {}

  init(copying other: Blueprint) {
    steps = other.steps
    nested = other.nested
    data = other.data
    willStart = other.willStart
    didFinish = other.didFinish
    declarations = other.declarations
  }

  deinit {
    // Flows in flows of any depth are released by this loop; released by their own deinitializers,
    // they would recurse as deep as they are nested.
    var pending = takeNestedFlows()
    while var flow = pending.popLast() {
      if isKnownUniquelyReferenced(&flow) { pending.append(contentsOf: flow.takeNestedFlows()) }
    }
  }

  func append(_ step: Step) {
    if step.op.isFlow { nested.append(UInt32(truncatingIfNeeded: steps.count)) }
    steps.append(step)
  }

  func setData(_ name: ByteString, _ value: Value) {
    if let index = data.firstIndex(where: { $0.name == name }) {
      data[index].value = value
    } else {
      data.append((name, value))
    }
  }

  fileprivate func takeNestedFlows() -> [Flow] {
    if nested.isEmpty { return [] }
    let flows = nested.compactMap { steps[Int($0)].op as? Flow }
    steps = []
    nested = []
    return flows
  }
}

extension Flow {
  /// The flows within a flow that is about to go, taken out of it.
  fileprivate func takeNestedFlows() -> [Flow] {
    snapshot = nil
    return isKnownUniquelyReferenced(&blueprint) ? blueprint.takeNestedFlows() : []
  }
}
