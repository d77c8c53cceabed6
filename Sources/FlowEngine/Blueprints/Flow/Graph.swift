internal import Synchronization

/// Ops that start when their data is there. A graph is a flow: it can be started, nested and grouped.
///
/// The order follows from the declarations: an op that needs a key runs after the one that gives it. Each op sees what it
/// needs, the initial data that no op gives, and its own changes; so ops that run at the same time can't disturb
/// each other.
///
/// ```swift
/// let load = Op("LoadOp", gives: ["rows": "integer"]) { $0.set("rows", 3) }
/// let count = Op("CountOp", needs: ["rows": "integer"]) { $0.log("counts") }
/// let report = Graph("report").add(count).add(load)
/// ```
///
/// Cases and parallel steps don't belong to a graph. A flow within it may have them.
public final class Graph: Flow {
  /// A graph without ops.
  ///
  /// - Parameters:
  ///   - name: The name in lines and errors.
  ///   - doc: The purpose of the graph, for people.
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

  /// Adds an op or flow, which starts when its needs are there.
  ///
  /// ```swift
  /// let load = Op("LoadOp", gives: ["rows": "integer"]) { $0.set("rows", 3) }
  /// let log = Op("LogOp") { $0.log("loaded") }
  /// let graph = Graph("import").add(load).add(log, after: [load])
  /// ```
  ///
  /// - Parameters:
  ///   - op: An op or flow. No other one of the graph may have its name, and no other one may give what it gives.
  ///   - others: Ops of the graph after which it runs, whether it needs their data or not; they may be added later.
  ///   - buffer: How many items of each stream that it writes may be unread, at least 1; nil for 64.
  ///   - condition: Asked once its needs are there; if false, the op is skipped, and so is what needs its keys.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The graph.
  @discardableResult
  public func add(
    _ op: some OpConvertible, after others: [Op] = [], buffer: Int? = nil,
    when condition: ((DataBucket) throws -> Bool)? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) -> Graph {
    let op = op.makeOp()
    check(op, nil, file, line)
    return add(
      Step(op, policy: op.policy), after: others.map(\.name), buffer: buffer,
      when: condition.map { ClosurePredicate($0) })
  }

  /// Adds an op or flow, which starts when what it needs is there.
  @discardableResult
  public override func add(_ op: some OpConvertible) -> Graph {
    let op = op.makeOp()
    return add(op, policy: op.policy)
  }

  /// Adds an op or flow with a policy of this place.
  @discardableResult
  package override func add(_ op: Op, policy: OpPolicy?) -> Graph {
    check(op, nil, #fileID, #line)
    return add(Step(op, policy: policy), after: [], buffer: nil, when: nil)
  }

  /// Adds an op that is executed for each item of a list, once the list is there.
  @discardableResult
  public override func addGrouped(
    _ op: some OpConvertible, _ dispatcher: GroupDispatcher
  ) -> Graph {
    let op = op.makeOp()
    check(op, dispatcher, #fileID, #line)
    return add(op, dispatcher, after: [], when: nil)
  }

  /// Adds a step, of an op or of a group, which may be added.
  @discardableResult
  package func add(
    _ op: Op, _ dispatcher: GroupDispatcher?, after others: [ByteString], buffer: Int? = nil,
    when condition: (any CasePredicate)?, policy: OpPolicy? = nil
  ) -> Graph {
    let step =
      dispatcher.map { Step(.group($0), op, policy: op.policy) } ?? Step(op, policy: policy)
    return add(step, after: others, buffer: buffer, when: condition)
  }

  private func check(
    _ op: Op, _ dispatcher: GroupDispatcher?, _ file: StaticString, _ line: UInt
  ) {
    if let problem = problem(ofAdding: op, dispatcher) {
      misuse("graph '\(name)': \(problem)", file: file, line: line)
    }
  }

  private func add(
    _ step: Step, after others: [ByteString], buffer: Int?, when condition: (any CasePredicate)?
  ) -> Graph {
    change { blueprint in
      let place = blueprint.steps.count
      var dispatcher: GroupDispatcher?
      if case .group(let group) = step.kind { dispatcher = group }
      let isFlow = step.op.isFlow
      var data = isFlow ? StepData(declaredBy: step.op, dispatcher) : StepData(step, nil)
      if condition != nil { data.takeLists() }
      blueprint.graph?.add(
        step.op.name, data, isFlow: isFlow, after: others, buffer: buffer)
      if let condition { blueprint.conditions[place] = condition }
      blueprint.append(step)
    }
    return self
  }

  /// Why an op, or a group of it, can't be added; nil when it can.
  package func problem(ofAdding op: Op, _ dispatcher: GroupDispatcher?) -> ByteString? {
    guard let shape = blueprint.graph else { return nil }
    if let dispatcher, let problem = dispatcher.problem(ofStreamsOf: op) { return problem }
    if shape.places[op.name] != nil {
      return "it has a step [\(op.name)] already: give this one a name of its own"
    }
    let data = StepData(declaredBy: op, dispatcher)
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
  /// The plan of a graph; nil for a flow. A run's snapshot has the needs of nested flows, or they are as they are
  /// now.
  func plan(_ snapshot: FlowSnapshot?) -> GraphPlan? {
    guard let graph else { return nil }
    let changes = FlowSnapshot.number(of: snapshot)
    if let plan = graph.plan(at: changes) { return plan }
    var data = graph.data
    for place in graph.flows {
      data[place] = StepData(steps[place], snapshot)
      if conditions[place] != nil { data[place].takeLists() }
    }
    let made = GraphPlan(data, graph) { steps[$0].op.name }
    if graph.hasData { made.noteNeeds(of: steps, conditions) }
    self.graph?.note(made, at: changes)
    return made
  }
}

extension GraphPlan {
  /// Notes what steps without a condition need that none gives, and whether types clash.
  func noteNeeds(of steps: ContiguousArray<Step>, _ conditions: [Int: any CasePredicate]) {
    // Copies of an op share what it declares.
    var seen: Set<ObjectIdentifier> = []
    var known: Set<[ByteString]> = []
    for place in steps.indices where !data[place].needs.isEmpty && conditions[place] == nil {
      let step = steps[place]
      if step.isOp, !seen.insert(ObjectIdentifier(step.op.declarations)).inserted { continue }
      for need in step.needs {
        if let giver = givers[need.name] {
          guard clash == nil, giver != place, !steps[giver].isGroup,
            let given = steps[giver].op.gives.first(where: { $0.name == need.name })?.type.present,
            !given.overlaps(need.type)
          else { continue }
          clash =
            "[\(step.op.name)] needs <\(need.name)> as \(need.type.name), but [\(steps[giver].op.name)] gives it as \(given.name)"
        } else if known.insert([need.name, need.type.name]).inserted {
          // Others change while the graph runs, such as whether a file exists.
          let isKnown = !need.type.kinds.isEmpty && !need.type.hasFiles && !need.type.isTested
          if !isKnown, need.type.isOptional { continue }
          let declared = Declarations(needs: [
            isKnown ? need : Declaration(need.name, FlowValueType.any)
          ])
          outerNeeds.append((place, declared))
        }
      }
    }
  }
}

extension Step {
  /// The declared needs that the data around it have to meet.
  var needs: [Declaration] {
    guard case .group(let dispatcher) = kind else { return op.needs }
    let item = dispatcher.itemKey ?? op.primaryInput
    return [Declaration(dispatcher.input, FlowValueType.any)]
      + op.needs.filter { $0.name != item && $0.name != dispatcher.input }
  }
}

extension FlowSnapshot {
  /// The number of changes of flows up to a snapshot, or up to now.
  fileprivate static func number(of snapshot: FlowSnapshot?) -> UInt64 {
    snapshot?.changes ?? Flow.changes.load(ordering: .relaxed)
  }
}

extension StepData {
  fileprivate init(_ step: Step, _ snapshot: FlowSnapshot?) {
    self.init()
    if step.op.isFlow, let flow = step.op as? Flow {
      self = NestedData.of(flow, snapshot)
    } else if step.op.hasNeeds || step.op.hasGives {
      declare(step.op.needs, step.op.gives)
      if step.isOp { pass(step.op.needs, step.op.gives) }
    }
    if case .group(let dispatcher) = step.kind {
      let needsList = needs[dispatcher.input] != nil
      group(dispatcher, step.op)
      input = needsList ? nil : dispatcher.input
      output = dispatcher.output
    }
  }

  /// Of an op, or of a group of it; of a flow only what it declares itself.
  init(declaredBy op: Op, _ dispatcher: GroupDispatcher?) {
    self.init()
    if let flow = op as? Flow {
      declare(flow.ownNeeds, flow.ownGives)
    } else {
      declare(op.needs, op.gives)
    }
    if let dispatcher { group(dispatcher, op) }
  }

  fileprivate mutating func declare(_ needs: [Declaration], _ gives: [Declaration]) {
    for each in needs { need(each.name, isOptional: each.type.isOptional) }
    for each in gives { give(each.name) }
  }

  /// An item has its own data; a list comes and goes.
  private mutating func group(_ dispatcher: GroupDispatcher, _ op: Op) {
    if let item = dispatcher.itemKey ?? op.primaryInput { doWithout(item) }
    need(dispatcher.input, isOptional: false)
    gives = Set([dispatcher.output, dispatcher.failures].compactMap { $0 })
  }
}

/// Finds what flows need that none of their steps gives before, and what these give, where they don't declare it: from the
/// inside out, each flow once.
final class NestedData: BlueprintVisitor {
  /// A flow that is being read.
  private struct Level {
    let blueprint: Blueprint
    var data = StepData()
    var known: Set<ByteString> = []
    var groupDepth = 0
    /// The keys that were known before the open parts, and that are known after each of their branches.
    var outer: [(begin: Set<ByteString>, ends: [Set<ByteString>])] = []
    /// Of a graph, the streams of its ops, the keys that are needed as lists, and the inputs and outputs of groups.
    var emits: Set<ByteString> = []
    var lists: Set<ByteString> = []
    var groups: [(input: ByteString, output: ByteString)] = []
    var blocks: [CaseBlock] = []

    /// The keys of which nothing stays after the graph.
    var streams: Set<ByteString> {
      var streams = emits
      var open = Array(emits)
      while let key = open.popLast() {
        for group in groups where group.input == key && streams.insert(group.output).inserted {
          open.append(group.output)
        }
      }
      return streams.subtracting(lists)
    }
  }

  private let changes: UInt64
  private var levels: [Level] = [Level(blueprint: Blueprint())]
  private var open: Set<ObjectIdentifier> = []

  private init(_ changes: UInt64) { self.changes = changes }

  static func of(_ flow: Flow, _ snapshot: FlowSnapshot? = nil) -> StepData {
    let reader = NestedData(FlowSnapshot.number(of: snapshot))
    BlueprintWalker.walk(
      flow, blueprint: snapshot?.blueprint(of: flow), snapshot: snapshot, reader)
    return reader.levels.first?.data ?? StepData()
  }

  /// The innermost flow.
  private var level: Level {
    get { levels[levels.count - 1] }
    _modify { yield &levels[levels.count - 1] }
  }

  private func read(_ step: StepData) {
    for (key, isOptional) in step.needs where !level.known.contains(key) {
      level.data.need(key, isOptional: isOptional)
    }
    level.known.formUnion(step.gives)
    if level.groupDepth == 0 { for key in step.gives { level.data.give(key) } }
  }

  func visit(_ op: Op, _ place: StepPlace) {
    var data = StepData()
    data.declare(op.needs, op.gives)
    read(data)
    guard level.blueprint.graph != nil else { return }
    for need in op.needs where !need.type.isStream { level.lists.insert(need.name) }
    for give in op.gives where give.type.isStream { level.emits.insert(give.name) }
  }

  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool {
    let declarations = blueprint.declarations
    if declarations.hasNeeds, declarations.hasGives {
      var data = StepData()
      data.declare(declarations.needs, declarations.gives)
      read(data)
      return false
    }
    if let known = blueprint.knownData, known.changes == changes {
      read(known.data)
      return false
    }
    if !open.insert(ObjectIdentifier(flow)).inserted { return false }
    var level = Level(blueprint: blueprint)
    for (name, _) in blueprint.data { level.known.insert(name) }
    // The order of a graph isn't its steps'.
    if let shape = blueprint.graph { level.known.formUnion(shape.givers.keys) }
    levels.append(level)
    return true
  }

  func endFlow(_ flow: Flow, _ blueprint: Blueprint) {
    open.remove(ObjectIdentifier(flow))
    guard levels.count > 1, let level = levels.popLast() else { return }
    let declarations = blueprint.declarations
    var data = StepData()
    data.declare(declarations.needs, declarations.gives)
    if !declarations.hasNeeds {
      for (key, isOptional) in level.data.needs { data.need(key, isOptional: isOptional) }
    }
    if !declarations.hasGives { data.gives = level.data.gives.subtracting(level.streams) }
    blueprint.knownData = (data, changes)
    read(data)
  }

  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    if let output = dispatcher.output { level.groups.append((dispatcher.input, output)) }
    if !level.known.contains(dispatcher.input) {
      level.data.need(dispatcher.input, isOptional: false)
    }
    level.outer.append((level.known, []))
    if let item = dispatcher.itemKey ?? place.step.op.primaryInput { level.known.insert(item) }
    level.groupDepth += 1
  }

  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    level.groupDepth -= 1
    level.known = level.outer.popLast()?.begin ?? []
    var data = StepData()
    data.gives = Set([dispatcher.output, dispatcher.failures].compactMap { $0 })
    read(data)
  }

  func beginParallel(_ members: ArraySlice<Step>) { level.outer.append((level.known, [])) }
  func beginMember(_ number: Int) { level.known = level.outer.last?.begin ?? [] }
  func endMember(_ number: Int) { endBranch(number) }
  func endParallel() {
    if let part = level.outer.popLast() {
      level.known = part.ends.reduce(part.begin) { $0.union($1) }
    }
  }

  func beginCases(_ block: CaseBlock, _ place: StepPlace) {
    level.outer.append((level.known, []))
    level.blocks.append(block)
    for branch in block.branches {
      if case .equals(let key, _) = branch.condition, !level.known.contains(key) {
        level.data.need(key, isOptional: true)
      }
    }
  }

  func beginBranch(_ number: Int) { level.known = level.outer.last?.begin ?? [] }
  func endBranch(_ number: Int) {
    if !level.outer.isEmpty { level.outer[level.outer.count - 1].ends.append(level.known) }
  }

  /// Without a branch that matches the flow ends: what all branches give is known after them.
  func endCases() {
    guard let part = level.outer.popLast() else { return }
    _ = level.blocks.popLast()
    level.known = part.ends.dropFirst().reduce(part.ends.first ?? part.begin) {
      $0.intersection($1)
    }
  }

  func beginFinally() {}
  func beginFinalStep() {}
  func endFinalStep() {}
  func endFinally() {}
}
