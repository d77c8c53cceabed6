/// Different ops that execute at the same time, over the data of their flow; or those of a graph, each with data of its own,
/// as soon as what they wait for is there.
final class ParallelExecution: MemberGroup, StreamGraph {
  private let steps: ContiguousArray<Step>
  private let scope: UInt32
  /// The position of the first step.
  private let position: UInt32
  private let logs: Bool
  private let graph: GraphData?
  private let hasConditions: Bool
  private let maxConcurrent: Int

  // Unchecked exclusivity: see HotPath.swift.

  @exclusivity(unchecked) private var progress: GraphProgress
  /// The executions of the steps. A graph uses them again, but keeps only a few for that, as each has memory.
  @exclusivity(unchecked) private var pool = MemberPool()
  private static let mostIdle = 32
  /// How many ops, and items of groups, execute, if `maxConcurrent` limits them.
  @exclusivity(unchecked) private var used = 0
  /// The members that execute groups, by their steps, if `maxConcurrent` limits their items.
  private var groups: [Int: Execution] = [:]
  /// The steps of groups that wait for a slot. Each is here once.
  private var waitingGroups = EarliestFirst<Int>()
  private var waiting: Set<Int> = []
  /// Whether a failure stops nothing.
  private let keepsGoing: Bool
  /// The errors that have stopped nothing, in the order of the ends.
  private var errors: [FlowError] = []
  /// The steps that have failed and stopped nothing.
  private var failed: Set<Int> = []
  /// The keys that members have set in a kept run: which member was the first, and the value before.
  private var changes: [DataKey: (step: Int, before: FlowValue?)] = [:]
  private let streams: GraphStreams?
  private var streamSlots = StreamSlots()

  /// Makes the execution of steps, the first of which is at `position`; `graph` is what they wait for.
  init(
    _ steps: ContiguousArray<Step>, parent: Execution, scope: UInt32, position: UInt32,
    graph: (plan: GraphPlan, blueprint: Blueprint)? = nil
  ) {
    self.steps = steps
    self.scope = scope
    self.position = position
    logs = parent.logsSets
    self.graph = graph.map {
      GraphData(
        $0.plan, $0.blueprint.conditions, around: parent.bucket, isKept: parent.run.keeper != nil)
    }
    hasConditions = graph?.blueprint.conditions.isEmpty == false
    maxConcurrent = graph?.blueprint.graph?.maxConcurrent ?? .max
    streams = graph.flatMap { plan, blueprint in
      guard let shape = blueprint.graph, plan.passesItems else { return nil }
      return GraphStreams(
        plan, shape, giving: Set(blueprint.declarations.gives.map(\.name)), parent.loop.keys,
        parent.loop.engine.memory)
    }
    progress = GraphProgress(
      count: steps.count, graph?.plan, ways: Self.ways(graph?.plan, in: scope, of: parent.run))
    keepsGoing = graph?.blueprint.graph?.keepsGoing == true || parent.isRehearsing
    super.init(parent: parent)
  }

  /// How long the way from each step to the end took in the last run, if the runs of the script are kept.
  private static func ways(
    _ plan: GraphPlan?, in scope: UInt32, of run: Run
  ) -> ContiguousArray<Double> {
    guard let plan, let keeper = run.keeper else { return [] }
    return plan.ways { step in
      keeper.seconds(at: run.path(scope: scope, position: UInt32(truncatingIfNeeded: step)))
    }
  }

  override var logsSets: Bool { logs }
  override var members: [Execution] { pool.ordered }
  override var separatesData: Bool { graph != nil }

  override func proceed() {
    let waits = startMembers {
      progress.hasReady && hasRoom
    } _: {
      guard let number = progress.start() else { return nil }
      let member = member(for: number)
      member.lend {
        streams?.passReaders(to: number, $0.bucket)
        let member = $0
        unretained(steps[number].op) {
          member.prepare(
            $0, policy: steps[number].policy, scope: scope,
            position: position &+ UInt32(truncatingIfNeeded: number), index: 0)
        }
        if graph != nil, !isPlain(number) { $0.prepareStep() }
        if isLimited { takeSlot(for: $0) }
      }
      return member
    }
    guard waits, pool.count == 0 else { return }
    isScheduled = true
    streams?.close()
    parent.groupEnded(stop ?? errors.first?.with(others: errors.dropFirst()))
  }

  /// An execution for a step; one of a graph has data of its own.
  @inline(__always)
  private func member(for number: Int) -> Unmanaged<Execution> {
    guard let used = pool.takeIdle() else { return newMember(for: number) }
    if let mask = unretained(ifAny: graph, { $0.mask(of: number) }) ?? nil {
      used.lend { $0.bucket.hide(mask) }
    }
    return used
  }

  @inline(never)
  private func newMember(for number: Int) -> Unmanaged<Execution> {
    let data = graph?.data(for: number)
    return pool.add(
      Execution(
        run: parent.run, data: data ?? parent.bucket, hasBucket: graph == nil || data != nil,
        group: self))
  }

  /// The number of the step that a member executes.
  @inline(__always)
  func step(of member: Execution) -> Int { Int(member.position &- position) }

  /// Whether a step of a graph is an op without a condition and without streams.
  @inline(__always)
  private func isPlain(_ number: Int) -> Bool {
    graph != nil && streams == nil && steps[number].isOp
      && (!hasConditions || graph?.conditions[number] == nil)
  }

  override func cancelMembers(_ error: FlowError) { pool.cancel(error) }

  // MARK: Slots

  /// Whether it limits how many ops and items execute.
  var isLimited: Bool { maxConcurrent < .max }

  /// Whether another op or item may start.
  var hasRoom: Bool { used < maxConcurrent }

  /// Whether an item of a group may start; if not, the group continues once there is room.
  func hasRoom(forItemOf member: Execution) -> Bool {
    if hasRoom { return true }
    let step = step(of: member)
    if waiting.insert(step).inserted { waitingGroups.push(step) }
    return false
  }

  /// The first group that waits for a slot continues, if there is one; `member` executes a group that doesn't take it.
  func passRoom(of member: Execution? = nil) {
    while hasRoom, let step = waitingGroups.pop() {
      waiting.remove(step)
      guard let group = groups[step], group !== member, let child = group.child, child.needsSlots
      else { continue }
      return child.schedule()
    }
  }

  /// An item of a group, which is a step, starts.
  func takeSlot() { used += 1 }

  /// A step starts.
  private func takeSlot(for member: Execution) {
    let number = step(of: member)
    if steps[number].isGroup { groups[number] = member } else { takeSlot() }
  }

  /// A step has ended.
  private func giveSlot(of member: Execution) {
    let number = step(of: member)
    if steps[number].isGroup {
      groups[number] = nil
      return passRoom()
    }
    if streamSlots.end(number) { used += 1 }
    slotIsFree()
  }

  /// An op or item has ended: ops and groups that waited for its slot continue.
  func slotIsFree() {
    used -= 1
    guard isLimited else { return }
    while hasRoom, let next = streamSlots.next() { resumes(next.step, next.wait) }
    schedule()
    passRoom()
  }

  // MARK: Streams

  /// The stream that a step writes under a key.
  func stream(_ key: DataKey, of step: Int) -> ItemStream? { streams?.stream(key, of: step) }

  /// The steps that take items of the streams that a step writes.
  func takers(of step: Int) -> KeptStreams? {
    guard let (takers, areReaders) = streams?.takers(of: step, isOp: { steps[$0].isOp }) else {
      return nil
    }
    return KeptStreams(
      takers: takers.map {
        parent.run.path(scope: scope, position: position + UInt32(truncatingIfNeeded: $0))
      }, areReaders: areReaders)
  }

  /// The other side of a stream that a step writes or reads, for messages; nil if there is none.
  func otherSide(of key: DataKey, _ isWritten: Bool, _ step: Int) -> ByteString? {
    let name = loop.keys.name(of: key)
    if isWritten {
      return streams?.slowest(key, of: step).map {
        "[\(steps[$0.step].op.name)], which has read \($0.read) of \($0.written) items of <\(name)>"
      }
    }
    return graph?.giver(of: key).map { "<\(name)>, which [\(steps[$0].op.name)] gives" }
  }

  override func passItems(from member: Execution) -> PassedOutput? {
    guard let streams, let plan = graph?.plan, stop == nil else { return nil }
    let step = step(of: member)
    let stream = streams.beginGroup(step)
    if stream != nil { startReaders(of: step) }
    guard let output = plan.data[step].output else { return nil }
    return PassedOutput(
      stream: stream,
      isKept: !plan.streams.contains(output) || streams.keepsList(of: output, step))
  }

  /// Starts the steps that take the items of one that starts.
  private func startReaders(of step: Int) {
    for skip in progress.pass(from: step) { skipped(skip) }
    schedule()
  }

  /// A step isn't executed because of another one.
  private func skipped(_ skip: GraphProgress.Skip) {
    if let graph {
      logSkip(of: skip.step, because: text(of: skip, graph))
      graph.leavesOut(skip.step)
    }
    _ = streams?.end(skip.step, nil)
  }

  func pauses(_ step: Int) { if streamSlots.pause(step) { slotIsFree() } }

  func resumes(_ step: Int, _ wait: StreamWait) {
    if streamSlots.needsSlot(step), !hasRoom { return streamSlots.queue(step, wait) }
    if streamSlots.resume(step) { used += 1 }
    wait.hasSlot()
  }

  func forgets(_ step: Int, _ wait: StreamWait) {
    streamSlots.remove(wait)
    if streamSlots.resume(step) { used += 1 }
  }

  override func noteSet(_ key: DataKey, by member: Execution) {
    guard graph == nil, changes[key] == nil else { return }
    changes[key] = (step(of: member), parent.bucket.get(key))
  }

  override func changes(beside member: Execution) -> [DataKey: FlowValue?] {
    changes.filter { $0.value.step != step(of: member) }.mapValues { $0.before }
  }

  override func memberFailed(_ error: FlowError) {
    guard stop == nil, !keepsGoing else { return }
    stop = error
    stopReason = .cancelled(reason: "group failed")
    parent.log.append(
      .groupStopped, time: engine.stampedNow(), scope: scope, position: position)
    schedule()
  }

  override func memberEnded(_ member: Execution, _ error: FlowError?) {
    let number = step(of: member)
    if isLimited { giveSlot(of: member) }
    if let error { noteFailure(number, error) }
    if streams != nil { endStreams(of: number, member, error) }
    let end = unretained(ifAny: graph) { graph -> GraphProgress.End in
      graph.takeOutputs(of: number, from: member, into: parent)
      let isUsedAgain =
        error == nil && isPlain(number) && !graph.isKept && progress.hasMore
        && pool.idleCount < Self.mostIdle
      pool.remove(member, keeps: isUsedAgain)
      if error != nil { return .failed }
      return hasConditions && graph.skipped.contains(number) ? .skipped : .succeeded
    }
    if let end {
      if stop == nil { for skip in progress.end(number, end) { skipped(skip) } }
    } else {
      pool.remove(member, keeps: false)
    }
    continueAsWork()
  }

  @inline(never)
  private func noteFailure(_ number: Int, _ error: FlowError) {
    memberFailed(error)
    guard keepsGoing else { return }
    if !isConsequence(number) { errors.append(error) }
    failed.insert(number)
  }

  @inline(never)
  private func endStreams(of number: Int, _ member: Execution, _ error: FlowError?) {
    // Its end is known, but not its items.
    if error == nil, parent.isRehearsing, steps[number].isOp, !member.hasExecuted {
      let lost = streams?.lose(number) ?? []
      _ = streams?.end(number, nil)
      for (key, reader) in lost { member.bucket.set(key, .opaque(reader)) }
      return
    }
    for (key, items) in streams?.end(number, error) ?? [] where error == nil {
      member.store(
        key, engine.makeList(items), scope: scope, position: member.position, attempt: 1)
    }
  }

  /// Whether a step has failed only because one whose items passed to it has.
  private func isConsequence(_ number: Int) -> Bool {
    guard streams != nil, !failed.isEmpty, let plan = graph?.plan else { return false }
    return plan.predecessors(of: number).contains {
      plan.edges[$0].passesItems && failed.contains(plan.edges[$0].from)
    }
  }

  override func abandon() {
    _ = pool.removeAll()
    groups = [:]
    streams?.close()
    isScheduled = true
  }

  // MARK: Steps of a graph

  override func begin(_ member: Execution) -> Execution.Advance {
    guard let condition = graph?.conditions[step(of: member)] else { return beginStep(member) }
    return member.ask(condition) == .waiting ? .waiting : conditionEnded(member)
  }

  private func beginStep(_ member: Execution) -> Execution.Advance {
    let number = step(of: member)
    if let streams, let plan = graph?.plan, !plan.data[number].emits.isEmpty {
      streams.begin(number)
      startReaders(of: number)
    }
    return member.beginStep(steps[number])
  }

  override func conditionEnded(_ member: Execution) -> Execution.Advance {
    let number = step(of: member)
    if member.stop != nil { return .ended }
    if let error = member.lastError {
      logSkip(of: number, because: "its condition failed: \(error.message)")
      return .ended
    }
    if graph?.isMet == true { return beginStep(member) }
    graph?.skipped.insert(number)
    logSkip(of: number, because: "its condition")
    return .ended
  }

  override func take(_ answer: CallbackCompletion, of member: Execution) {
    graph?.isMet = answer.isMatch
    member.lastError = answer.error?.attributed(
      to: steps[step(of: member)].op.name,
      at: parent.run.path(scope: scope, position: member.position))
  }

  private func text(of skip: GraphProgress.Skip, _ graph: GraphData) -> ByteString {
    let most = 5
    var texts = skip.edges.prefix(most).map { number -> ByteString in
      let edge = graph.plan.edges[number]
      let before = steps[edge.from].op.name
      return edge.key.map { "needs <\($0)>, which [\(before)] would give" }
        ?? "it comes after [\(before)], which has failed"
    }
    if skip.edges.count > most { texts.append("and \(skip.edges.count - most) more") }
    return texts.joined(separator: "; ")
  }

  private func logSkip(of number: Int, because reason: ByteString) {
    let log = parent.log
    log.append(
      .skipped, time: engine.stampedNow(), scope: scope,
      position: position + UInt32(truncatingIfNeeded: number),
      first: log.payload("Skipped: \(reason)"))
  }

  override func refusal(reading key: DataKey, by member: Execution) -> FlowError? {
    // A member may read the keys that it has set itself.
    let step = step(of: member)
    guard let graph, let giver = graph.giver(of: key), giver != step,
      !graph.isNeeded(key, by: step), !member.bucket.hasOwn(key)
    else { return nil }
    let (name, op) = (loop.keys.name(of: key), steps[step].op.name)
    return .usage(
      "<\(name)> isn't among the needs of [\(op)]: in a graph it has to be, as [\(steps[giver].op.name)] gives it"
    )
  }

  override func refusal(setting key: DataKey, by member: Execution) -> FlowError? {
    let step = step(of: member)
    guard let graph, steps[step].isOp else { return nil }
    if streams == nil, graph.giver(of: key) == step { return nil }
    let (name, op) = (loop.keys.name(of: key), steps[step].op.name)
    let data = graph.plan.data[step]
    if data.emits.contains(name) {
      return .usage("<\(name)> is a stream: ctx:emit gives an item of it")
    }
    if data.gives.contains(name) { return nil }
    return .usage("<\(name)> isn't among the gives of [\(op)]: in a graph it has to be")
  }
}

/// The data of a graph that executes.
private final class GraphData {
  let plan: GraphPlan
  let conditions: [Int: any CasePredicate]
  private let outer: DataBucket
  private let keys: GraphPlan.Keys
  /// Whether steps give keys.
  private let hasKeys: Bool
  /// Whether the run is kept: then a step has copies of what it needs, because its record says which keys it has read of
  /// others, and those of its own data aren't among them.
  let isKept: Bool
  /// The keys that steps have given in this execution, in a kept run.
  private var given: Set<DataKey> = []
  /// The keys that steps have left out, or won't give.
  private var absent: Set<DataKey> = []
  /// The answer of the latest condition.
  var isMet = false
  /// The steps whose conditions were false.
  var skipped: Set<Int> = []

  init(
    _ plan: GraphPlan, _ conditions: [Int: any CasePredicate], around outer: DataBucket,
    isKept: Bool
  ) {
    self.plan = plan
    self.isKept = isKept
    self.conditions = conditions
    self.outer = outer
    keys = plan.keys(of: outer.keys)
    hasKeys = !keys.givers.isEmpty
  }

  func giver(of key: DataKey) -> Int? { keys.givers[key] }

  /// Whether a step needs a key of others.
  func isNeeded(_ key: DataKey, by step: Int) -> Bool {
    hasKeys && keys.mask(of: step, absent: []).shows(key)
  }

  /// Hides from a step what others give and it doesn't need; nil if there is nothing to hide.
  func mask(of step: Int) -> DataMask? {
    hasKeys ? keys.mask(of: step, absent: absent) : nil
  }

  /// The data of a step: what it needs of others, and what all see; nil if it sees all.
  func data(for step: Int) -> DataBucket? {
    if isKept {
      let made = DataBucket(keys: outer.keys, parent: outer)
      made.hide(DataMask(keys.givers))
      for key in hasKeys ? keys.needs[step] : [] where given.contains(key) {
        made.copy(key, from: outer)
      }
      return made
    }
    guard let mask = mask(of: step) else { return nil }
    let made = DataBucket(keys: outer.keys, parent: outer)
    made.hide(mask)
    return made
  }

  /// Takes what a step has given.
  @inline(__always)
  func takeOutputs(of step: Int, from member: Execution, into parent: Execution) {
    if !hasKeys || keys.gives[step].isEmpty { return }
    takeSome(of: step, from: member, into: parent)
  }

  @inline(never)
  private func takeSome(of step: Int, from member: Execution, into parent: Execution) {
    let bucket = member.bucket
    for key in keys.gives[step] {
      guard bucket.hasOwn(key) else {
        absent.insert(key)
        continue
      }
      if isKept {
        parent.noteSet(key)
        given.insert(key)
      }
      outer.copy(key, from: bucket)
    }
  }

  /// A step isn't executed.
  func leavesOut(_ step: Int) {
    if hasKeys { absent.formUnion(keys.gives[step]) }
  }
}
