/// Makes the graph of a flow, or of a run.
final class FlowGraphBuilder: BlueprintVisitor {
  private(set) var graph: FlowGraph
  private let outcomes: RunOutcomes?
  /// The texts that no label of a run may show.
  private let secrets: SecretTexts?

  private var nodeCount = 0
  private var boxCount = 0
  /// The edges to the next node.
  private var tails = Tails()
  /// All tails ever made, each with the next one of its list.
  private var tailPool: ContiguousArray<(tail: Tail, next: Int)> = []

  // The open parts, the innermost last.

  private var flows: ContiguousArray<OpenFlow> = []
  private var cases: ContiguousArray<OpenCases> = []
  private var parallels: ContiguousArray<OpenParallel> = []
  private var graphs: ContiguousArray<OpenGraph> = []
  private var groupDepth = 0

  // The drawn parts, and those that are being drawn.

  private var drawn: Set<ObjectIdentifier> = []
  private var openFlows: Set<ObjectIdentifier> = []
  /// When there are more nodes than this, a flow that was drawn before is one node: nested flows
  /// that each use another flow twice would take a space that doubles with each level.
  private static let repetitionLimit = 20_000

  private struct Tail {
    let node: Int
    var label: ByteString?
    var line = FlowGraph.Edge.Line.plain
  }

  /// A list in `tailPool`: cases in cases move their tails outwards once for each level, at once whatever
  /// their number. A tail is in one list.
  private struct Tails {
    var first = -1
    var last = -1

    var isEmpty: Bool { first < 0 }

    mutating func take() -> Tails {
      defer { self = Tails() }
      return self
    }
  }

  private struct OpenFlow {
    let identity: ObjectIdentifier
    let place: RunOutcomes.Place
    /// The number of nodes before it.
    let begin: Int
    /// The edges to its end when no case matches.
    var early = Tails()
  }

  private struct OpenCases {
    let block: CaseBlock
    let decision: Int
    var ends = Tails()
  }

  /// A graph: what leads to it, and the edges that its steps leave.
  private struct OpenGraph {
    let begin: [Tail]
    var ends: [Int: [Tail]] = [:]
    /// nil as long as it has no steps.
    var plan: GraphPlan?
  }

  private struct OpenParallel {
    let fork: Int
    var ends = Tails()
  }

  /// Starts a graph: with `outcomes` one of a run, else of the blueprint alone.
  private init(_ op: Op, _ outcomes: RunOutcomes?, secrets: SecretTexts?) {
    graph = FlowGraph(title: [])
    self.outcomes = outcomes
    self.secrets = secrets
    graph.title = redacted(Self.lines(op.name, op.policy))
    append(.start, ["start"])
  }

  static func graph(of flow: Flow) -> FlowGraph {
    let builder = FlowGraphBuilder(flow, nil, secrets: nil)
    BlueprintWalker.walk(flow, builder)
    return builder.finish(nil)
  }

  /// The graph of the op or flow that a run has started, as it was at that time, without outcomes.
  static func blueprint(of run: Run) -> FlowGraph {
    let builder = FlowGraphBuilder(run.op, nil, secrets: run.log.secrets)
    if let flow = run.op as? Flow {
      let blueprint = run.log.scopes.first?.parts as? Blueprint
      BlueprintWalker.walk(flow, blueprint: blueprint, snapshot: run.snapshot, builder)
    } else {
      builder.appendOp(run.op, run.op.policy, .root, isGrouped: false)
    }
    return builder.finish(nil)
  }

  /// The graph of a run, with its outcomes.
  static func graph(of run: Run) -> FlowGraph {
    let builder = FlowGraphBuilder(
      run.op, RunOutcomes(run.log, isPending: run.state == .pending), secrets: run.log.secrets)
    if let flow = run.op as? Flow {
      let blueprint = run.log.scopes.first?.parts as? Blueprint
      BlueprintWalker.walk(flow, blueprint: blueprint, snapshot: run.snapshot, builder)
    } else {
      builder.appendOp(run.op, run.op.policy, .root, isGrouped: false)
    }
    return builder.finish(run)
  }

  private func finish(_ run: Run?) -> FlowGraph {
    guard let run else {
      append(.end, ["end"])
      return graph
    }
    let outcome: FlowGraph.Outcome =
      switch run.state {
      case .pending: .running
      case .succeeded: .succeeded
      case .failed: .failed
      case .cancelled: .cancelled
      }
    let time = FlowValue.text(ofSeconds: run.duration.inSeconds)
    let text: ByteString =
      switch outcome {
      case .running: "running for \(time)s"
      default: "\(run.state.name) in \(time)s"
      }
    append(.end, ["end", text], outcome)
    return graph
  }

  // MARK: Parts

  /// Adds a node and the edges of all open ends to it.
  @discardableResult
  private func append(
    _ shape: FlowGraph.Node.Shape, _ lines: [ByteString], _ outcome: FlowGraph.Outcome? = nil
  ) -> Int {
    nodeCount += 1
    let number = nodeCount
    graph.items.append(
      .node(
        FlowGraph.Node(number: number, shape: shape, lines: redacted(lines), outcome: outcome)))
    var next = tails.take().first
    while next >= 0 {
      let tail = tailPool[next].tail
      next = tailPool[next].next
      let label = tail.label.flatMap { redacted([$0]).first }
      graph.edges.append(
        FlowGraph.Edge(from: tail.node, to: number, label: label, line: tail.line))
    }
    tails = list(Tail(node: number))
    return number
  }

  private func list(_ tail: Tail) -> Tails {
    tailPool.append((tail, -1))
    return Tails(first: tailPool.count - 1, last: tailPool.count - 1)
  }

  /// Two lists, one after the other.
  private func joined(_ left: Tails, _ right: Tails) -> Tails {
    if left.isEmpty { return right }
    if right.isEmpty { return left }
    tailPool[left.last].next = right.first
    return Tails(first: left.first, last: right.last)
  }

  private func open(
    _ kind: FlowGraph.Box.Kind, _ lines: [ByteString], _ outcome: FlowGraph.Outcome? = nil
  ) {
    boxCount += 1
    graph.items.append(
      .open(
        FlowGraph.Box(number: boxCount, kind: kind, lines: redacted(lines), outcome: outcome)))
  }

  private func redacted(_ lines: [ByteString]) -> [ByteString] {
    guard let secrets else { return lines }
    return lines.map { secrets.redacted($0) }
  }

  private func close() {
    graph.items.append(.close)
  }

  /// A name, and the policy as lines below.
  private static func lines(_ name: ByteString, _ policy: OpPolicy?) -> [ByteString] {
    var lines = [name]
    if let retry = policy?.retry {
      let delay = retry.delay > .zero ? ", delay \(FlowValue.text(of: retry.delay))" : ""
      lines.append("retry: \(retry.attempts) attempts\(delay)")
    }
    if let timeout = policy?.timeout {
      lines.append("timeout: \(FlowValue.text(of: timeout))")
    }
    return lines
  }

  private func place(_ place: StepPlace?) -> RunOutcomes.Place {
    guard let place, let top = flows.last else { return .root }
    return outcomes?.place(in: top.place, place.position) ?? .root
  }

  private func appendOp(
    _ op: Op, _ policy: OpPolicy?, _ place: RunOutcomes.Place, isGrouped: Bool,
    _ shape: FlowGraph.Node.Shape = .op
  ) {
    var lines = Self.lines(op.name, policy)
    if let memory = op.memoryLimit { lines.append("memory: \(memory.text)") }
    let outcome = outcomes?.outcome(at: place, isGrouped: isGrouped)
    if let outcome { lines.append(outcome.text) }
    append(shape, lines, outcome?.outcome)
  }

  // MARK: Visits of the walker

  func visit(_ op: Op, _ place: StepPlace) {
    appendOp(op, place.step.policy, self.place(place), isGrouped: groupDepth > 0)
  }

  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool {
    let identity = ObjectIdentifier(flow)
    let own = self.place(place)
    if let place {
      let isRepeated = !drawn.insert(identity).inserted && nodeCount > Self.repetitionLimit
      if isRepeated || openFlows.contains(identity) {
        appendOp(flow, place.step.policy, own, isGrouped: groupDepth > 0, .folded)
        return false
      }
      var lines = Self.lines(flow.name, place.step.policy)
      let outcome = outcomes?.outcome(at: own, isGrouped: groupDepth > 0)
      if let outcome { lines.append(outcome.text) }
      open(.flow, lines, outcome?.outcome)
    }
    openFlows.insert(identity)
    flows.append(OpenFlow(identity: identity, place: own, begin: nodeCount))
    if blueprint.graph != nil { graphs.append(OpenGraph(begin: takeTails())) }
    return true
  }

  // MARK: Graphs

  var followsPlans: Bool { true }

  /// The edges of the list, which ends.
  private func takeTails() -> [Tail] {
    var result: [Tail] = []
    var next = tails.take().first
    while next >= 0 {
      result.append(tailPool[next].tail)
      next = tailPool[next].next
    }
    return result
  }

  private func openTails(_ list: [Tail]) {
    tails = list.reduce(Tails()) { joined($0, self.list($1)) }
  }

  func beginStep(_ number: Int, _ plan: GraphPlan) {
    let top = graphs.count - 1
    guard top >= 0 else { return }
    graphs[top].plan = plan
    var before: [Tail] = []
    for edge in plan.predecessors(of: number).map({ plan.edges[$0] }) {
      for var tail in graphs[top].ends[edge.from] ?? [] {
        tail.label = edge.key
        tail.line = edge.key == nil ? .dashed : edge.isStream ? .thick : .plain
        before.append(tail)
      }
    }
    openTails(before.isEmpty ? graphs[top].begin : before)
  }

  func endStep(_ number: Int) {
    if !graphs.isEmpty { graphs[graphs.count - 1].ends[number] = takeTails() }
  }

  func endSteps() {
    guard let open = graphs.popLast() else { return }
    guard let plan = open.plan else { return openTails(open.begin) }
    let last = plan.data.indices.filter { plan.successors[$0].isEmpty }
    openTails(last.flatMap { open.ends[$0] ?? [] })
  }

  func endFlow(_ flow: Flow, _ blueprint: Blueprint) {
    guard let open = flows.popLast() else { return }
    openFlows.remove(open.identity)
    tails = joined(tails, open.early)
    guard !flows.isEmpty else { return }
    if nodeCount == open.begin { append(.empty, ["no steps"]) }
    close()
  }

  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    var items = dispatcher.input
    if let output = dispatcher.output { items = "\(items) -> \(output)" }
    var lines = [items, "max_concurrent = \(dispatcher.maxConcurrent)"]
    if let rate = dispatcher.rate { lines.append("rate = \(rate.text)") }
    if dispatcher.allowFailure { lines.append("allow_failure") }
    if let failures = dispatcher.failures { lines.append("failures -> \(failures)") }
    if let absent = dispatcher.absent { lines.append("absent = \(absent.logText)") }
    if let outcomes { lines.append(outcomes.groupText(at: self.place(place))) }
    open(.group, lines)
    groupDepth += 1
  }

  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    groupDepth -= 1
    close()
  }

  func beginParallel(_ members: ArraySlice<Step>) {
    open(.parallel, ["parallel"])
    parallels.append(OpenParallel(fork: append(.fork, ["fork"])))
  }

  func beginMember(_ number: Int) {
    if let open = parallels.last { tails = list(Tail(node: open.fork)) }
  }

  func endMember(_ number: Int) {
    let top = parallels.count - 1
    if top >= 0 { parallels[top].ends = joined(parallels[top].ends, tails.take()) }
  }

  func endParallel() {
    if let open = parallels.popLast(), !open.ends.isEmpty { tails = open.ends }
    append(.join, ["join"])
    close()
  }

  func beginCases(_ block: CaseBlock, _ place: StepPlace) {
    let outcome = outcomes?.caseOutcome(at: self.place(place))
    let lines: [ByteString] = ["Cases"] + (outcome.map { $0.text.isEmpty ? [] : [$0.text] } ?? [])
    cases.append(OpenCases(block: block, decision: append(.decision, lines, outcome?.outcome)))
  }

  func beginBranch(_ number: Int) {
    guard let open = cases.last else { return }
    tails = list(
      Tail(node: open.decision, label: open.block.branches[number].condition.edgeLabel))
  }

  func endBranch(_ number: Int) {
    let top = cases.count - 1
    if top >= 0 { cases[top].ends = joined(cases[top].ends, tails.take()) }
  }

  func endCases() {
    guard let open = cases.popLast() else { return }
    tails = open.ends
    let top = flows.count - 1
    if !open.block.hasOtherwise, top >= 0 {
      let tail = list(Tail(node: open.decision, label: "no case matches"))
      flows[top].early = joined(flows[top].early, tail)
    }
  }

  func beginFinally() {
    let top = flows.count - 1
    if top >= 0 {
      tails = joined(tails, flows[top].early.take())
    }
    var next = tails.first
    while next >= 0 {
      tailPool[next].tail.line = .dashed
      next = tailPool[next].next
    }
    open(.finally, ["finally"])
  }

  func beginFinalStep() {}

  func endFinalStep() {}

  func endFinally() {
    close()
  }
}

extension CaseCondition {
  /// The label of the edge to the branch.
  fileprivate var edgeLabel: ByteString {
    switch self {
    case .equals(let key, let value): "\(key) = \(value)"
    case .predicate: "predicate"
    case .otherwise: "otherwise"
    }
  }
}
