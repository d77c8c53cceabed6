/// What a flow consists of. Changed only while nothing but its flow holds it, so that a run keeps
/// what it began with.
final class Blueprint {
  var steps: ContiguousArray<Step> = []
  /// Steps that are executed at the end, whatever happened; their positions have `finallyBit`.
  var finally: ContiguousArray<Step> = []
  var cases: ContiguousArray<CaseBlock> = []
  /// Whether the last block is open: what is added belongs to its last branch.
  var isInCases = false
  /// The flows among the steps.
  var nested: ContiguousArray<Flow> = []
  var data: [(name: ByteString, value: Value)] = []
  var willStart: [any RunCallback] = []
  var didFinish: [any RunCallback] = []
  var declarations = Declarations()

  init() {}

  init(copying other: Blueprint) {
    steps = other.steps
    finally = other.finally
    cases = other.cases
    isInCases = other.isInCases
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

  /// The op or flow that is the only step, final ones aside; nil when there are more, or it is
  /// executed otherwise than once.
  var onlyOp: Op? {
    guard steps.count == 1, let step = steps.first else { return nil }
    switch step.kind {
    case .op, .flow: return step.op
    case .group, .parallel, .cases: return nil
    }
  }

  func append(_ step: Step) {
    note(step.op)
    steps.append(step)
  }

  func appendFinally(_ step: Step) {
    note(step.op)
    finally.append(step)
  }

  private func note(_ op: Op) {
    guard op.isFlow, let flow = op as? Flow else { return }
    flow.markAsStep()
    nested.append(flow)
  }

  /// Begins another branch, of a new block when none is open.
  func beginBranch(_ condition: CaseCondition) {
    if !isInCases {
      steps.append(Step(.cases(block: cases.count), NamedPlace.op("Cases")))
      cases.append(CaseBlock())
      isInCases = true
    }
    cases[cases.count - 1].branches.append(.init(condition: condition, first: steps.count))
  }

  /// Ends the open block.
  func combine() {
    cases[cases.count - 1].end = steps.count
    isInCases = false
  }

  /// Set in the positions of `finally` steps.
  static let finallyBit: UInt32 = 1 << 31

  /// The step at a position of the log; nil when there is none.
  func step(at position: UInt32) -> Step? {
    if position & Self.finallyBit == 0 {
      return Int(position) < steps.count ? steps[Int(position)] : nil
    }
    let index = Int(position & ~Self.finallyBit)
    return index < finally.count ? finally[index] : nil
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
    let flows = Array(nested)
    steps = []
    finally = []
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
