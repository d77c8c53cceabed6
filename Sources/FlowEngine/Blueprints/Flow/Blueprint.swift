/// The content of a flow. It changes only while nothing but its flow holds it, so that a run keeps
/// the blueprint that it started with.
final class Blueprint {
  var steps: ContiguousArray<Step> = []
  /// Final steps, which run whatever the outcome; their positions have `finallyBit`.
  var finally: ContiguousArray<Step> = []
  var cases: ContiguousArray<CaseBlock> = []
  /// Whether the last block is open: an added step then belongs to its last branch.
  var isInCases = false
  /// The flows among the steps.
  var nested: ContiguousArray<Flow> = []
  private(set) var data: [(name: ByteString, value: FlowValue)] = []
  /// The places of their names, if there are many.
  private var places: [ByteString: Int] = [:]
  var willStart: [any RunCallback] = []
  var didFinish: [any RunCallback] = []
  var declarations = Declarations()
  /// The shape of a graph; nil for a flow.
  var graph: GraphShape?
  /// Its data as a step of a graph, as it was after so many changes of flows; see `NestedData`.
  var knownData: (data: StepData, changes: UInt64)?
  /// The conditions of steps of a graph.
  var conditions: [Int: any CasePredicate] = [:]
  /// The bytes that it takes, roughly; see `MemoryAccount`.
  private(set) var byteCount = 0

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
    graph = other.graph
    conditions = other.conditions
    byteCount = other.byteCount
  }

  deinit {
    // This loop releases nested flows of any depth. Their own deinitializers would recurse as deep
    // as they are nested.
    var pending = takeNestedFlows()
    while var flow = pending.popLast() {
      if isKnownUniquelyReferenced(&flow) { pending.append(contentsOf: flow.takeNestedFlows()) }
    }
  }

  /// The op or flow that is the only step, not counting final steps; nil when there are more, or
  /// when it isn't executed exactly once.
  var onlyOp: Op? {
    guard steps.count == 1, let step = steps.first else { return nil }
    switch step.kind {
    case .op, .flow: return step.op
    case .group, .parallel, .cases: return nil
    }
  }

  func append(_ step: Step) {
    addNestedFlow(step.op)
    steps.append(step)
    byteCount += step.byteCount
  }

  func appendFinally(_ step: Step) {
    addNestedFlow(step.op)
    finally.append(step)
    byteCount += step.byteCount
  }

  private func addNestedFlow(_ op: Op) {
    guard op.isFlow, let flow = op as? Flow else { return }
    flow.markAsStep()
    nested.append(flow)
  }

  /// Starts another branch, of a new block when none is open.
  func beginBranch(_ condition: CaseCondition) {
    if !isInCases {
      append(Step(.cases(block: cases.count), NamedPlace.op("Cases")))
      cases.append(CaseBlock())
      isInCases = true
    }
    cases[cases.count - 1].branches.append(.init(condition: condition, first: steps.count))
    byteCount += condition.byteCount
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

  /// The place of a name in its data, which only grows.
  private func place(of name: ByteString) -> Int? {
    if data.count < 32 { return data.firstIndex { $0.name == name } }
    while places.count < data.count { places[data[places.count].name] = places.count }
    return places[name]
  }

  func setData(_ name: ByteString, _ value: FlowValue) {
    if let index = place(of: name) {
      data[index].value = value
    } else {
      data.append((name, value))
      byteCount += MemoryLayout<(name: ByteString, value: FlowValue)>.stride + name.count
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
  /// Takes the nested flows out of a blueprint that is about to be released.
  fileprivate func takeNestedFlows() -> [Flow] {
    snapshot = nil
    return isKnownUniquelyReferenced(&blueprint) ? blueprint.takeNestedFlows() : []
  }
}

extension Blueprint: LogParts {
  func nameOfPart(at position: UInt32) -> ByteString? { step(at: position)?.op.name }

  var partCount: Int? {
    guard cases.isEmpty else { return nil }
    return steps.count { if case .parallel = $0.kind { false } else { true } }
  }
}
