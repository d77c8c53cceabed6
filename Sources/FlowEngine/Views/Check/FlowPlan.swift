/// Writes the content of a flow as an outline, in the order of its steps.
final class FlowPlan: BlueprintVisitor {
  private var text: [UInt8] = []
  /// How many steps were numbered on each open level; nil where lines have a dash.
  private var levels: ContiguousArray<Int?> = []
  private var lineCount = 0
  private var written: Set<ObjectIdentifier> = []
  private var open: Set<ObjectIdentifier> = []
  private var cases: ContiguousArray<CaseBlock> = []

  /// Beyond this many lines a flow that was written before takes one line: nested flows that each
  /// use another flow twice would take a space that doubles with each level.
  private static let repetitionLimit = 10_000
  /// Deeper lines aren't indented further.
  private static let deepestIndent = 20

  /// The texts that no line may show; nil outside of runs. They are replaced before the line breaks of a name, which
  /// may be within one.
  private let secrets: SecretTexts?

  private init(_ secrets: SecretTexts?) {
    self.secrets = secrets
  }

  /// The plan of a flow: of the present one, or of the blueprint that a run has kept.
  static func text(
    of flow: Flow, blueprint: Blueprint? = nil, snapshot: FlowSnapshot? = nil,
    secrets: SecretTexts? = nil
  ) -> ByteString {
    let plan = FlowPlan(secrets)
    BlueprintWalker.walk(flow, blueprint: blueprint, snapshot: snapshot, plan)
    return ByteString(plan.text)
  }

  /// The plan of an op that isn't a flow.
  static func text(ofStep op: Op, secrets: SecretTexts? = nil) -> ByteString {
    let plan = FlowPlan(secrets)
    plan.levels.append(0)
    plan.step(op.name, op.policy, memory: op.memoryLimit)
    return ByteString(plan.text)
  }

  private func line(_ line: ByteString) {
    lineCount += 1
    let depth = min(levels.count, Self.deepestIndent)
    text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: depth * 2))
    text += line.bytes
    text.append(UInt8(ascii: "\n"))
  }

  private func step(
    _ what: ByteString, _ policy: OpPolicy?, _ end: ByteString = "", memory: ByteCount? = nil
  ) {
    var notes: [ByteString] = []
    if let retry = policy?.retry { notes.append("\(retry.attempts) attempts") }
    if let timeout = policy?.timeout {
      notes.append("timeout \(FlowValue.text(of: timeout))")
    }
    if let grace = policy?.grace { notes.append("grace \(FlowValue.text(of: grace))") }
    if let memory { notes.append("memory \(memory.text)") }
    if policy?.undo != nil { notes.append("with undo") }
    let note: ByteString = notes.isEmpty ? "" : " (\(GraphText.join(notes, ", ") { $0 }))"
    let name = secrets?.redacted(what) ?? what
    let shown = GraphText.join([name], "") { ByteString(String(Self.oneLine($0))) }
    guard let top = levels.indices.last, let number = levels[top] else {
      line("- \(shown)\(note)\(end)")
      return
    }
    levels[top] = number + 1
    line("\(number + 1). \(shown)\(note)\(end)")
  }

  /// A name with its line breaks replaced by spaces.
  private static func oneLine(_ name: ByteString) -> String.UnicodeScalarView {
    var text = String.UnicodeScalarView()
    text.append(contentsOf: GraphText.scalars(name).map { $0 == "\n" ? " " : $0 })
    return text
  }

  func beginFlow(_ flow: Flow, _ blueprint: Blueprint, _ place: StepPlace?) -> Bool {
    let identity = ObjectIdentifier(flow)
    if let place {
      let isRepeated = !written.insert(identity).inserted && lineCount > Self.repetitionLimit
      if isRepeated || open.contains(identity) {
        step(flow.name, place.step.policy, ": as above")
        return false
      }
      step(flow.name, place.step.policy, blueprint.steps.isEmpty ? ": no steps" : ":")
    } else if blueprint.steps.isEmpty {
      levels.append(0)
      line("no steps")
      levels.removeLast()
    }
    open.insert(identity)
    levels.append(0)
    return true
  }

  var followsPlans: Bool { true }

  /// Steps that may be executed at the same time have the same number.
  func beginStep(_ number: Int, _ plan: GraphPlan) {
    if let top = levels.indices.last { levels[top] = plan.levels[number] }
  }

  func endFlow(_ flow: Flow, _ blueprint: Blueprint) {
    open.remove(ObjectIdentifier(flow))
    levels.removeLast()
  }

  func visit(_ op: Op, _ place: StepPlace) {
    step(op.name, place.step.policy, memory: op.memoryLimit)
  }

  func beginGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) {
    let output: ByteString = dispatcher.output.map { " -> \($0)" } ?? ""
    let failures: ByteString = dispatcher.allowFailure ? ", failures allowed" : ""
    let absent: ByteString = dispatcher.absent.map { ", \($0.logText) without output" } ?? ""
    let rate: ByteString = dispatcher.rate.map { ", \($0.text)" } ?? ""
    let count = dispatcher.maxConcurrent
    step(
      "for each of \(dispatcher.input)\(output), \(count) at a time\(rate)\(failures)\(absent)",
      nil, ":")
    levels.append(nil)
  }

  func endGroup(_ dispatcher: GroupDispatcher, _ place: StepPlace) { levels.removeLast() }

  func beginParallel(_ members: ArraySlice<Step>) {
    step("at the same time", nil, ":")
    levels.append(nil)
  }

  func beginMember(_ number: Int) {}
  func endMember(_ number: Int) {}
  func endParallel() { levels.removeLast() }

  func beginCases(_ block: CaseBlock, _ place: StepPlace) {
    step("one of", nil, ":")
    levels.append(nil)
    cases.append(block)
  }

  func beginBranch(_ number: Int) {
    guard let block = cases.last else { return }
    switch block.branches[number].condition {
    case .equals(let key, let value): step("if \(key) is \(value)", nil, ":")
    case .predicate: step("if predicate \(number + 1) holds", nil, ":")
    case .otherwise: step("otherwise", nil, ":")
    }
    levels.append(0)
  }

  func endBranch(_ number: Int) { levels.removeLast() }

  func endCases() {
    cases.removeLast()
    levels.removeLast()
  }

  func beginFinally() {
    line("finally:")
    levels.append(0)
  }

  func beginFinalStep() {}
  func endFinalStep() {}
  func endFinally() { levels.removeLast() }
}

extension Op {
  /// An outline of the op, without running anything: a line for each step, with those of nested
  /// flows indented below. Every line ends in a line break. Called on the thread of the flow's ops.
  public func plan() -> ByteString {
    if let flow = self as? Flow { return FlowPlan.text(of: flow) }
    return FlowPlan.text(ofStep: self)
  }
}

extension Run {
  /// The plan of the op or flow that was started, as it was at that time; see `Op.plan`.
  public func plan() -> ByteString {
    loop.checkThread()
    guard let flow = op as? Flow else { return FlowPlan.text(ofStep: op, secrets: log.secrets) }
    return FlowPlan.text(
      of: flow, blueprint: log.scopes.first?.parts as? Blueprint, snapshot: snapshot,
      secrets: log.secrets)
  }

  /// The findings of `Flow.check` for the data of the run; for an op, with the op as the only step.
  package func check() -> [FlowFinding] {
    loop.checkThread()
    let given = data.entries.map { (name: loop.keys.name(of: $0.key), value: $0.value) }
    let flow = op as? Flow ?? Flow(op.name).add(op)
    return flow.check(data: InitialData(given))
  }
}
