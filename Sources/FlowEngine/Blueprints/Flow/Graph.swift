internal import Synchronization

/// Ops that start when their data is there. A graph is a flow: it can be started, nested and grouped.
///
/// The order follows from the declarations: an op that needs a key runs after the one that gives it. Each op sees what it
/// needs, the initial data that no op gives, and what it has set itself; so ops that run at the same time can't disturb
/// each other.
///
/// ```swift
/// let release = Graph("release")
///   .add(checkout)  // gives source
///   .add(lint)  // needs source
///   .add(build)  // needs source, gives binary
///   .add(publish, after: [lint])  // needs binary
/// ```
///
/// Cases and parallel steps don't belong to a graph. A flow within it may have them.
public final class Graph: Flow {
  /// A graph without ops.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: What the graph does, for people.
  ///   - maxConcurrent: How many of its ops execute at the same time, at least 1; a group counts as one. nil for no limit.
  ///   - keepsGoing: Whether what doesn't need a failed op is executed all the same.
  public init(
    _ name: some FlowText = "Graph" as ByteString, doc: (any FlowText)? = nil,
    maxConcurrent: Int? = nil, keepsGoing: Bool = false
  ) {
    super.init(name, doc: doc)
    blueprint.graph = GraphShape(maxConcurrent: maxConcurrent, keepsGoing: keepsGoing)
  }

  override init(
    copying other: Flow, name: ByteString, declarations: Declarations, policy: OpPolicy?
  ) {
    super.init(copying: other, name: name, declarations: declarations, policy: policy)
  }

  override func remade(
    name: ByteString, declarations: Declarations, policy: OpPolicy?
  ) -> Flow {
    Graph(copying: self, name: name, declarations: declarations, policy: policy)
  }

  /// Adds an op or flow, which starts when what it needs is there.
  ///
  /// - Parameters:
  ///   - op: An op or flow. Its name must be that of no other one of the graph, and no other one may give what it gives.
  ///   - others: Ops of the graph after which it runs, whether it needs their data or not; they may be added later.
  ///   - condition: Asked once its needs are there; if false, the op is skipped, and so is what needs its keys.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The graph.
  @discardableResult
  public func add(
    _ op: Op, after others: [Op] = [], when condition: ((DataBucket) throws -> Bool)? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) -> Graph {
    if let problem = problem(ofAdding: op, nil) {
      misuse("graph '\(name)': \(problem)", file: file, line: line)
    }
    return add(
      Step(op, policy: op.policy), after: others.map(\.name),
      when: condition.map { ClosurePredicate($0) })
  }

  /// Adds a step, of an op or of a group.
  @discardableResult
  package func add(
    _ op: Op, _ dispatcher: GroupDispatcher? = nil, after others: [ByteString],
    when condition: (any CasePredicate)?, retry: RetryPolicy? = nil, timeout: Duration? = nil,
    grace: Duration? = nil, undo: (any OpBody)? = nil
  ) -> Graph {
    let policy = OpPolicy.make(
      op.policy, retry: retry, timeout: timeout, grace: grace, undo: undo, file: #fileID,
      line: #line)
    let step =
      dispatcher.map { Step(.group($0), op, policy: op.policy) } ?? Step(op, policy: policy)
    return add(step, after: others, when: condition)
  }

  private func add(
    _ step: Step, after others: [ByteString], when condition: (any CasePredicate)?
  ) -> Graph {
    change { blueprint in
      let place = blueprint.steps.count
      blueprint.graph?.add(step.op.name, StepData(step), at: place, after: others)
      if let condition { blueprint.conditions[place] = condition }
      blueprint.append(step)
    }
    return self
  }

  /// Why an op, or a group of it, can't be added; nil when it can.
  package func problem(ofAdding op: Op, _ dispatcher: GroupDispatcher?) -> ByteString? {
    guard let shape = blueprint.graph else { return nil }
    if shape.names.contains(op.name) {
      return "it has a step [\(op.name)] already: give this one a name of its own"
    }
    let data = StepData(op, dispatcher)
    for key in data.gives.sorted() {
      if let giver = shape.givers[key] {
        return "[\(op.name)] gives <\(key)>, as [\(giver)] does: one op gives a key"
      }
      if data.needs[key] != nil {
        return "[\(op.name)] needs and gives <\(key)>: in a graph two values of a key have no order"
      }
      if blueprint.data.contains(where: { $0.name == key }) {
        return "[\(op.name)] gives <\(key)>, which is among the graph's own data"
      }
    }
    return nil
  }

  /// Why a value can't be among the graph's own data; nil when it can.
  package func problem(ofData key: ByteString) -> ByteString? {
    blueprint.graph?.givers[key].map { "<\(key)> is what [\($0)] gives" }
  }
}

extension Blueprint {
  /// The plan of a graph; nil for a flow. What nested flows need may change with them.
  func plan(_ name: ByteString) -> GraphPlan? {
    guard let graph else { return nil }
    let changes = Flow.changes.load(ordering: .relaxed)
    if let plan = graph.plan(at: changes) { return plan }
    let made = GraphPlan(
      steps.map(\.op.name), ContiguousArray(steps.map { StepData($0) }), graph.after)
    self.graph?.note(made, at: changes)
    return made
  }
}

extension StepData {
  init(_ step: Step) {
    if case .group(let dispatcher) = step.kind {
      self.init(step.op, dispatcher)
    } else {
      self.init(step.op, nil)
    }
  }

  /// Of an op, or of a group of it.
  init(_ op: Op, _ dispatcher: GroupDispatcher?) {
    self.init()
    if let flow = op as? Flow, flow.ownNeeds.isEmpty, flow.ownGives.isEmpty {
      self = NestedData.of(flow)
    } else {
      for each in op.needs { need(each.name, isOptional: each.type.isOptional) }
      for each in op.gives { give(each.name) }
    }
    guard let dispatcher else { return }
    // An item has its own data; a list comes and goes.
    if let item = dispatcher.itemKey ?? op.primaryInput { doWithout(item) }
    need(dispatcher.input, isOptional: false)
    gives = Set([dispatcher.output, dispatcher.failures].compactMap { $0 })
  }
}

/// Finds what a flow without declarations needs that none of its steps gives before, and what they give.
private final class NestedData: BlueprintVisitor {
  private var data = StepData()
  private var known: Set<ByteString> = []
  private var open: Set<ObjectIdentifier> = []
  private var groupDepth = 0
  /// What was known before the open parts, and what is known after each of their branches.
  private var outer: [(begin: Set<ByteString>, ends: [Set<ByteString>])] = []
  private var blocks: [CaseBlock] = []

  static func of(_ flow: Flow) -> StepData {
    let reader = NestedData()
    BlueprintWalker.walk(flow, reader)
    return reader.data
  }

  private func read(_ step: StepData) {
    for (key, isOptional) in step.needs where !known.contains(key) {
      data.need(key, isOptional: isOptional)
    }
    known.formUnion(step.gives)
    if groupDepth == 0 { for key in step.gives { data.give(key) } }
  }

  func visit(_ op: Op, _ place: StepPlace) { read(StepData(op, nil)) }

  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool {
    if place != nil, !flow.ownNeeds.isEmpty || !flow.ownGives.isEmpty {
      read(StepData(flow, nil))
      return false
    }
    if !open.insert(ObjectIdentifier(flow)).inserted { return false }
    for (name, _) in blueprint.data { known.insert(name) }
    // The order of a graph isn't that of its steps.
    if let shape = blueprint.graph { known.formUnion(shape.givers.keys) }
    return true
  }

  func endFlow(_ flow: Flow, _ blueprint: Blueprint) { open.remove(ObjectIdentifier(flow)) }

  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    if !known.contains(dispatcher.input) { data.need(dispatcher.input, isOptional: false) }
    outer.append((known, []))
    if let item = dispatcher.itemKey ?? place.step.op.primaryInput { known.insert(item) }
    groupDepth += 1
  }

  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    groupDepth -= 1
    known = outer.popLast()?.begin ?? []
    for key in [dispatcher.output, dispatcher.failures].compactMap({ $0 }) {
      known.insert(key)
      if groupDepth == 0 { data.give(key) }
    }
  }

  func beginParallel(_ members: ArraySlice<Step>) { outer.append((known, [])) }
  func beginMember(_ number: Int) { known = outer.last?.begin ?? [] }
  func endMember(_ number: Int) { endBranch(number) }
  func endParallel() {
    if let part = outer.popLast() { known = part.ends.reduce(part.begin) { $0.union($1) } }
  }

  func beginCases(_ block: CaseBlock, _ place: StepPlace) {
    outer.append((known, []))
    blocks.append(block)
    for branch in block.branches {
      if case .equals(let key, _) = branch.condition, !known.contains(key) {
        data.need(key, isOptional: true)
      }
    }
  }

  func beginBranch(_ number: Int) { known = outer.last?.begin ?? [] }
  func endBranch(_ number: Int) {
    if !outer.isEmpty { outer[outer.count - 1].ends.append(known) }
  }

  func endCases() {
    guard let part = outer.popLast(), let block = blocks.popLast() else { return }
    known = part.begin
    // Without one that matches, the flow ends.
    guard block.hasOtherwise || !part.ends.isEmpty, let first = part.ends.first else { return }
    known = part.ends.dropFirst().reduce(first) { $0.intersection($1) }
  }

  func beginFinally() {}
  func beginFinalStep() {}
  func endFinalStep() {}
  func endFinally() {}
}
