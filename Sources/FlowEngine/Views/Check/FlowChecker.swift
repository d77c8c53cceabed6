/// Walks a flow with the knowledge about the data at each place, instead of data.
final class FlowChecker: BlueprintVisitor {
  private(set) var findings: [FlowFinding] = []
  private var said: Set<FlowFinding> = []
  private let root: Flow
  private let given: [(ByteString, FlowValue)]?

  /// The knowledge at the walker's place.
  private(set) var data = KnownData()
  /// The writes to the present bucket, in order; see `writes(since:)`.
  private var journal: ContiguousArray<DataWrite> = []

  // The open parts, the innermost last.

  private var flows: ContiguousArray<OpenFlow> = []
  private var groups: ContiguousArray<(outer: Outer, start: Int)> = []
  private var parallels: ContiguousArray<OpenParallel> = []
  private var cases: ContiguousArray<OpenCases> = []

  // A flow that is used in several places is checked once for each state of the data: nested flows
  // that each use another flow twice would take a time that doubles with each level.

  private let usedTwice: Set<ObjectIdentifier>
  private var known: [ObjectIdentifier: [KnownFlow]] = [:]
  private var seen: Set<ObjectIdentifier> = []
  private var repeatedSteps = 0
  /// The number of states of the data for which a flow's end is kept.
  private static let knownLimit = 16
  /// The most steps that are checked again.
  private static let repetitionLimit = 200_000

  private struct KnownFlow {
    let begin: KnownData
    let end: KnownData
    let writes: ContiguousArray<DataWrite>
  }

  /// The knowledge around a group.
  private enum Outer {
    case all(KnownData)
    /// The facts that an op which isn't a flow may change: a copy of all for each step would take quadratic time.
    case facts([(key: ByteString, fact: KnownData.Fact?)], undeclared: ByteString?)
  }

  private struct OpenFlow {
    /// The steps of a graph.
    let graph: ContiguousArray<Step>?
    var isGraph: Bool { graph != nil }
    /// The knowledge before the present step of a graph, if that is a flow.
    var step: (before: KnownData, gives: Set<ByteString>)?
    /// The knowledge before it, if that is worth keeping.
    var begin: KnownData?
    /// The knowledge at its first final step, if it has final steps; during these, at the next of
    /// them.
    var first: KnownData?
    /// The knowledge where it ends early, if it may.
    var early: KnownData?
    /// The knowledge after its last step and the final ones so far.
    var last: KnownData?
    /// The starts of its writes and of those of the present final step.
    let start: Int
    var finalStart = 0
    /// The needed keys that weren't certain to be present: assumed within the flow, with the
    /// earlier knowledge.
    var assumed: [(key: ByteString, fact: KnownData.Fact?)] = []
  }

  private struct OpenParallel {
    let members: ArraySlice<Step>
    let begin: KnownData
    var merged: KnownData
    /// The start of each member's writes.
    var starts: ContiguousArray<Int> = []
    /// The member that gives a key.
    var givers: [ByteString: Op] = [:]
  }

  private struct OpenCases {
    let block: CaseBlock
    let begin: KnownData
    var joined: KnownData?
    var seen: Set<[ByteString]> = []
  }

  init(_ root: Flow, data: [(ByteString, FlowValue)]?) {
    self.root = root
    given = data
    usedTwice = root.flowsUsedTwice()
  }

  /// Reports a finding, unless it has been reported before.
  func report(_ severity: FlowFinding.Severity, _ op: ByteString, _ message: ByteString) {
    let finding = FlowFinding(severity, op: op, message)
    if said.insert(finding).inserted { findings.append(finding) }
  }

  // MARK: Data

  private func set(_ key: ByteString, _ source: ValueSource) {
    data.set(key, source)
    journal.append(DataWrite(key: key, source: source))
  }

  /// The writes since a place of the journal, from which repeated ones are removed.
  private func writes(since start: Int) -> ArraySlice<DataWrite> {
    if journal.count - start > 32 {
      var seen: Set<DataWrite> = []
      let shorter = journal[start...].filter { seen.insert($0).inserted }
      journal.replaceSubrange(start..., with: shorter)
    }
    return journal[start...]
  }

  private func apply(_ gives: [Declaration], of op: Op) {
    for declared in gives {
      let wasCertain = data[declared.name]?.isCertain ?? false
      set(declared.name, ValueSource(declared.type.present, .op(op.name)))
      if declared.type.isOptional, !wasCertain { data.facts[declared.name]?.isCertain = false }
    }
  }

  private func checkNeeds(_ subject: Subject, _ needs: [Declaration]) {
    for need in needs { checkNeed(subject, need.name, need.type) }
  }

  func visit(_ op: Op, _ place: StepPlace) {
    checkNeeds(.op(op.name), op.needs)
    if let retry = place.step.policy?.retry, retry.attempts > 1 { checkNextAttempt(op) }
    if !(op is MachineOp), !op.name.hasSuffix("Op") {
      report(.warning, op.name, "the name [\(op.name)] doesn't end in 'Op'")
    }
    if let machine = op as? MachineOp {
      for finding in machine.check() {
        report(finding.severity, finding.op, finding.message)
      }
    }
    if flows.last?.isGraph != true, groups.isEmpty,
      let stream = op.gives.first(where: \.type.isStream)
    {
      report(
        .error, op.name,
        "[\(op.name)] gives <\(stream.name)> as a stream, which only an op of a flow.graph writes")
    }
    apply(op.gives, of: op)
    // An op of a graph declares all that it sets.
    if !op.hasGives, data.undeclared == nil, flows.last?.isGraph != true {
      data.undeclared = op.name
    }
  }

  // MARK: Flows

  var followsPlans: Bool { true }

  func beginStep(_ number: Int, _ plan: GraphPlan) {
    guard let top = flows.indices.last, let step = flows[top].graph?[number] else { return }
    // Others set what they give, and no more.
    flows[top].step = step.op.isFlow ? (data, plan.data[number].gives) : nil
  }

  /// Only what a step gives passes out of it.
  func endStep(_ number: Int) {
    guard let step = flows.last?.step else { return }
    let after = data
    data = step.before
    for key in step.gives { data.facts[key] = after[key] }
  }

  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool {
    let isShared = usedTwice.contains(ObjectIdentifier(flow))
    if isShared, isKnown(flow) || isTooMuch(flow) { return false }
    if !seen.insert(ObjectIdentifier(flow)).inserted {
      repeatedSteps += blueprint.steps.count + 1
    }
    var open = OpenFlow(
      graph: blueprint.graph == nil ? nil : blueprint.steps, begin: isShared ? data : nil,
      start: journal.count)
    if let problem = blueprint.plan(nil)?.problem {
      report(.error, flow.name, "graph '\(flow.name)': \(problem)")
    }
    for (name, value) in blueprint.data where data[name]?.isCertain != true {
      let source = ValueSource(.value(value.plain), .data(flow.name, ObjectIdentifier(flow)))
      var fact = data[name] ?? KnownData.Fact(isCertain: true, sources: [])
      fact.isCertain = true
      fact.add(source)
      data.facts[name] = fact
      journal.append(DataWrite(key: name, source: source))
    }
    if place == nil { beginRoot() } else { checkNeeds(.flow(flow.name), flow.ownNeeds) }
    for need in flow.ownNeeds where data[need.name]?.isCertain != true {
      let fact = data[need.name]
      if need.type.isOptional, fact != nil || place != nil || given != nil { continue }
      open.assumed.append((need.name, fact))
      if fact == nil {
        data.set(need.name, ValueSource(need.type.present, .needs(flow.name)))
      }
      data.facts[need.name]?.isCertain = !need.type.isOptional
    }
    if !blueprint.finally.isEmpty { open.first = data }
    flows.append(open)
    return true
  }

  /// Adds the initial data of the flow, and its needs.
  private func beginRoot() {
    for (name, value) in given ?? [] {
      if value.isNull {
        data.facts[name] = nil
      } else {
        set(name, ValueSource(.value(value.plain), .given))
      }
    }
    for need in root.ownNeeds {
      if data[need.name] == nil, given == nil { continue }
      checkNeed(.root(root.name), need.name, need.type)
    }
  }

  func endFlow(_ flow: Flow, _ blueprint: Blueprint) {
    guard let open = flows.popLast() else { return }
    apply(flow.ownGives, of: flow)
    if let early = open.early { data.join(early) }
    for (key, fact) in open.assumed { forget(key, fact, of: flow) }
    let writes = writes(since: open.start)
    if let begin = open.begin {
      let made = KnownFlow(begin: begin, end: data, writes: ContiguousArray(writes))
      known[ObjectIdentifier(flow), default: []].append(made)
      if known[ObjectIdentifier(flow), default: []].count > Self.knownLimit {
        known[ObjectIdentifier(flow)]?.removeFirst()
      }
    }
  }

  /// Withdraws an assumption that was made within a flow.
  private func forget(_ key: ByteString, _ before: KnownData.Fact?, of flow: Flow) {
    guard var fact = data[key] else { return }
    let assumed = before?.sources ?? fact.sources.filter { $0.provider == .needs(flow.name) }
    if !fact.sources.contains(where: { assumed.contains($0) }) { return }
    fact.isCertain = false
    if before == nil { fact.sources.removeAll { assumed.contains($0) } }
    data.facts[key] = fact.sources.isEmpty ? nil : fact
  }

  /// Whether the flow was checked with the same data; its end is known then.
  private func isKnown(_ flow: Flow) -> Bool {
    let before = known[ObjectIdentifier(flow), default: []]
    guard let same = before.first(where: { $0.begin == data }) else { return false }
    data = same.end
    journal += same.writes
    return true
  }

  /// Whether checking the flow again would take too long.
  private func isTooMuch(_ flow: Flow) -> Bool {
    guard repeatedSteps > Self.repetitionLimit, seen.contains(ObjectIdentifier(flow)) else {
      return false
    }
    report(
      .warning, root.name,
      "flow '\(root.name)' uses flows so often that not every place was checked")
    return true
  }

  func beginFinally() {
    let top = flows.count - 1
    guard top >= 0, var begin = flows[top].first else { return }
    flows[top].last = data
    for write in writes(since: flows[top].start) { begin.maySet(write.key, write.source) }
    begin.undeclared = data.undeclared ?? flows[top].early?.undeclared
    flows[top].first = begin
  }

  func beginFinalStep() {
    let top = flows.count - 1
    guard top >= 0, let begin = flows[top].first else { return }
    data = begin
    flows[top].finalStart = journal.count
  }

  func endFinalStep() {
    let top = flows.count - 1
    guard top >= 0, let last = flows[top].last else { return }
    let writes = writes(since: flows[top].finalStart)
    // The next final step is executed even if this one has failed; steps after the flow aren't.
    for write in writes { flows[top].first?.maySet(write.key, write.source) }
    if flows[top].first?.undeclared == nil { flows[top].first?.undeclared = data.undeclared }
    flows[top].last?.merge(data, writes, base: last)
    if let early = flows[top].early { flows[top].early?.merge(data, writes, base: early) }
  }

  func endFinally() {
    if let last = flows.last?.last { data = last }
  }

  // MARK: Groups

  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    let op = place.step.op
    let subject = Subject.group(of: op.name)
    if let problem = dispatcher.problem(ofStreamsOf: op) { report(.error, op.name, problem) }
    let fact = data[dispatcher.input]
    let isIterator = fact?.sources.allSatisfy { $0.isFunction } == true
    if !isIterator {
      checkNeed(subject, dispatcher.input, FlowValueType.any.list)
      if !dispatcher.allowEmpty { checkEmpty(subject, dispatcher.input, fact) }
    }
    let item = dispatcher.itemKey ?? op.primaryInput
    let changed = Set(op.gives.map(\.name) + [item].compactMap { $0 })
    let outer: Outer =
      op.isFlow
      ? .all(data) : .facts(changed.map { ($0, data[$0]) }, undeclared: data.undeclared)
    groups.append((outer, journal.count))
    guard let key = item else { return }
    let items = isIterator ? nil : fact?.sources.map { $0.items(of: dispatcher.input) }
    data.facts[key] = KnownData.Fact(
      isCertain: true, sources: ContiguousArray(items ?? [ValueSource(.any, .group(op.name))]))
  }

  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    guard let (outer, start) = groups.popLast() else { return }
    let op = place.step.op
    let collected = (dispatcher.collect ?? op.primaryOutput).flatMap { data[$0] }
    journal.removeSubrange(start...)
    switch outer {
    case .all(let outer): data = outer
    case .facts(let facts, let undeclared):
      for (key, fact) in facts { data.facts[key] = fact }
      data.undeclared = undeclared
    }
    if let output = dispatcher.output {
      let type = dispatcher.itemType(collected?.type ?? .any)
      set(output, ValueSource(type.list, .group(op.name)))
    }
    if let failures = dispatcher.failures {
      set(failures, ValueSource(FlowValueType.table.list, .group(op.name)))
    }
  }

  // MARK: Parallel steps

  func beginParallel(_ members: ArraySlice<Step>) {
    parallels.append(OpenParallel(members: members, begin: data, merged: data))
  }

  func beginMember(_ number: Int) {
    let top = parallels.count - 1
    guard top >= 0 else { return }
    parallels[top].starts.append(journal.count)
    data = parallels[top].begin
    // Values that the other members set may be present, or not yet.
    for write in siblingWrites(parallels[top], number) { data.maySet(write.key, write.source) }
  }

  private func siblingWrites(_ open: OpenParallel, _ number: Int) -> [DataWrite] {
    var result: [DataWrite] = []
    let steps = Array(open.members)
    for (index, step) in steps.enumerated() where index != number {
      let writes: any Sequence<DataWrite>
      if index < number {
        let end = open.starts[index + 1]
        writes = journal[open.starts[index]..<end]
      } else {
        // An op has checked its needs before the next member starts.
        guard steps[number].op.isFlow else { continue }
        writes = PossibleWrites.of(step.op)
      }
      for write in writes {
        let source = ValueSource(
          write.source.content, .sibling(step.op.name), itemOf: write.source.list)
        result.append(DataWrite(key: write.key, source: source))
      }
    }
    return result
  }

  func endMember(_ number: Int) {
    let top = parallels.count - 1
    guard top >= 0, let start = parallels[top].starts.last else { return }
    let op = parallels[top].members[parallels[top].members.startIndex + number].op
    let writes = writes(since: start)
    parallels[top].merged.merge(data, writes, base: parallels[top].begin)
    for key in Set(writes.map(\.key)).sorted() {
      if let other = parallels[top].givers[key] {
        let name = Subject.of(op).text
        report(
          .warning, op.name,
          "\(name) gives <\(key)> at the same time as \(Subject.of(other).text); the later one wins"
        )
      } else {
        parallels[top].givers[key] = op
      }
    }
  }

  func endParallel() {
    if let open = parallels.popLast() { data = open.merged }
  }

  // MARK: Cases

  func beginCases(_ block: CaseBlock, _ place: StepPlace) {
    cases.append(OpenCases(block: block, begin: data))
  }

  func beginBranch(_ number: Int) {
    let top = cases.count - 1
    guard top >= 0 else { return }
    data = cases[top].begin
    guard case .equals(let key, let value) = cases[top].block.branches[number].condition else {
      return
    }
    let isFirst = cases[top].seen.insert([key, value]).inserted
    checkCase(key, value, isFirst: isFirst)
    // Within the branch the key is present, and a string.
    guard var fact = data[key] else { return }
    fact.isCertain = true
    let strings = fact.sources.filter { $0.mayBe(.string) }
    if !strings.isEmpty { fact.sources = ContiguousArray(strings) }
    data.facts[key] = fact
  }

  func endBranch(_ number: Int) {
    let top = cases.count - 1
    guard top >= 0 else { return }
    if cases[top].joined == nil { cases[top].joined = data } else { cases[top].joined?.join(data) }
  }

  func endCases() {
    guard let open = cases.popLast(), let top = flows.indices.last else { return }
    if let joined = open.joined { data = joined }
    if open.block.hasOtherwise { return }
    if flows[top].early == nil {
      flows[top].early = open.begin
    } else {
      flows[top].early?.join(open.begin)
    }
  }
}

extension KnownData.Fact {
  /// The type of the value; nil when it isn't completely known.
  fileprivate var type: FlowValueType? {
    var types: [FlowValueType] = []
    for source in sources {
      guard case .declared(let type) = source.content else { return nil }
      types.append(type)
    }
    return FlowValueType.union(types)
  }
}

extension FlowValueType {
  static var string: FlowValueType {
    FlowValueType(name: "string", isOptional: false, shape: .builtin(.string))
  }

  static var table: FlowValueType {
    FlowValueType(name: "table", isOptional: false, shape: .builtin(.table))
  }
}
