import FlowEngine
import Testing

// Random flows against a model that knows nothing of the engine: plain recursion over absolute times,
// in nanoseconds. All that may fail, wait or stop takes a time of its own, so that nothing is a tie.

/// Something that a flow consists of.
private indirect enum Node {
  case op(OpNode)
  case flow(FlowNode, timeout: Int?, retry: RetryNode?)
  case parallel([Node])
  case group(Node, items: Int, limit: Int, allowFailure: Bool)
  case cases([Branch], otherwise: [Node]?)
}

private struct OpNode {
  var name: ByteString
  /// For each attempt how long it takes and how it ends; the last one stands for all further ones.
  var attempts: [(wait: Int, error: FlowError?)]
  var timeout: Int?
  var retry: RetryNode?
  var cleanup: (wait: Int, error: FlowError?)?
}

private struct FlowNode {
  var name: ByteString
  var steps: [Node] = []
  var finally: [Node] = []
}

private struct RetryNode {
  var attempts: Int
  var delay: Int

  var policy: RetryPolicy { RetryPolicy(attempts: attempts, delay: seconds(delay)) }
}

private struct Branch {
  var wait: Int
  var matches: Bool
  var steps: [Node]
}

/// How much longer everything takes for an item, so that members of a group are no ties.
private func longer(_ time: Int, for item: Int) -> Int { time == 0 ? 0 : time + item * 7_654_321 }

private func seconds(_ nanoseconds: Int) -> Duration { .nanoseconds(nanoseconds) }

// MARK: - The model

/// When things around stop what is within, from the outside in, and how that ends then.
private struct ModelStop {
  private var all: [(time: Int, error: FlowError)] = []

  init() {}

  init(time: Int, error: FlowError) {
    all = [(time, error)]
  }

  private var first: (time: Int, error: FlowError)? { all.min { $0.time < $1.time } }

  /// When the first of them comes.
  var time: Int { first?.time ?? .max }
  /// The error that an op ends with, and all in a group: the first counts.
  var error: FlowError { first?.error ?? .cancelled() }
  var asOne: ModelStop { ModelStop(time: time, error: error) }

  /// The error that a flow ends with at a time: the one furthest out counts.
  func error(at time: Int) -> FlowError? { all.first { $0.time <= time }?.error }

  func adding(_ other: ModelStop) -> ModelStop {
    var sum = self
    sum.all += other.all
    return sum
  }
}

private struct ModelEnd {
  var time: Int
  var error: FlowError?
  var isEarly = false
}

private struct Model {
  /// `time kind name outcome`, in no order.
  var lines: [String] = []
  /// How many attempts have begun that have a cleanup.
  var cleanups = 0
  /// The item of the group around; 0 outside of one.
  var item = 0

  private mutating func note(_ time: Int, _ text: String) { lines.append("\(time) \(text)") }

  private func outcome(_ error: FlowError?) -> String {
    error?.logLine.description ?? "successfully"
  }

  private mutating func noteRetry(
    _ time: Int, _ name: ByteString, _ attempt: Int, _ retry: RetryNode, _ error: FlowError
  ) {
    let delay = FlowError.timeout(after: seconds(retry.delay)).message.description.dropFirst(16)
    note(time, "retry \(name) Retry \(attempt + 1)/\(retry.attempts) in \(delay): \(error)")
  }

  private func isRetriable(_ error: FlowError) -> Bool {
    [.error, .timeout, .missingOutput].contains(error.kind)
  }

  mutating func run(_ node: Node, _ begin: Int, _ stop: ModelStop, suffix: String = "") -> ModelEnd
  {
    switch node {
    case .op(let op): run(op, begin, stop, suffix)
    case .flow(let flow, let timeout, let retry):
      run(flow, begin, stop, timeout, retry, isTop: false, suffix)
    case .parallel(let nodes):
      members(nodes.map { ($0, "", item) }, limit: nodes.count, false, begin, stop)
    case .group(let node, let items, let limit, let allowFailure):
      members(
        (1...items).map { (node, " #\($0)", $0) }, limit: limit, allowFailure, begin, stop)
    case .cases: ModelEnd(time: begin)
    }
  }

  private mutating func run(
    _ op: OpNode, _ begin: Int, _ stop: ModelStop, _ suffix: String
  ) -> ModelEnd {
    let name = op.name + ByteString(suffix)
    note(begin, "start \(name)")
    var time = begin
    var attempt = 1
    while true {
      let plan = op.attempts[min(attempt, op.attempts.count) - 1]
      var error = plan.error
      var end = time + longer(plan.wait, for: item)
      var limit = stop
      if let timeout = op.timeout {
        limit = limit.adding(
          ModelStop(time: time + timeout, error: .timeout(after: seconds(timeout))))
      }
      if limit.time < end {
        end = max(limit.time, time)
        error = limit.error
      }
      if let cleanup = op.cleanup {
        cleanups += 1
        end += longer(cleanup.wait, for: item)
        error = error ?? cleanup.error
      }
      guard let failure = error, let retry = op.retry, attempt < retry.attempts,
        isRetriable(failure), stop.time > end
      else {
        note(end, "finish \(name) \(outcome(error))")
        return ModelEnd(time: end, error: error)
      }
      noteRetry(end, name, attempt, retry, failure)
      attempt += 1
      time = end + retry.delay
      if stop.time < time {
        note(stop.time, "finish \(name) \(outcome(stop.error))")
        return ModelEnd(time: stop.time, error: stop.error)
      }
    }
  }

  mutating func run(
    _ flow: FlowNode, _ begin: Int, _ stop: ModelStop, _ timeout: Int?, _ retry: RetryNode?,
    isTop: Bool, _ suffix: String = ""
  ) -> ModelEnd {
    let name = flow.name + ByteString(suffix)
    if !isTop { note(begin, "start \(name)") }
    var time = begin
    var attempt = 1
    while true {
      var own = ModelStop()
      if let timeout {
        own = ModelStop(time: time + timeout, error: .timeout(after: seconds(timeout)))
      }
      let inner = stop.adding(ModelStop(time: own.time, error: reason(own.error)))
      var end = run(flow.steps, time, inner)
      if own.time <= end.time { end.error = own.error }
      for step in flow.finally {
        let last = run(step, end.time, ModelStop())
        end.time = last.time
        end.error = end.error ?? last.error
      }
      if let error = stop.error(at: end.time) { end.error = error }
      if let failure = end.error, let retry, attempt < retry.attempts, isRetriable(failure),
        stop.time > end.time
      {
        noteRetry(end.time, name, attempt, retry, failure)
        attempt += 1
        time = end.time + retry.delay
        if stop.time > time { continue }
        end = ModelEnd(time: stop.time, error: stop.error)
      }
      if end.error != nil { end.isEarly = false }
      if !isTop { note(end.time, "finish \(name) \(outcome(end.error))") }
      return end
    }
  }

  private func reason(_ error: FlowError) -> FlowError { .cancelled(reason: error.message) }

  /// Steps one after another, up to the first that fails or the stop.
  private mutating func run(_ steps: [Node], _ begin: Int, _ stop: ModelStop) -> ModelEnd {
    var end = ModelEnd(time: begin)
    for step in steps {
      if stop.time <= end.time || end.error != nil || end.isEarly { break }
      if case .cases(let branches, let otherwise) = step {
        end = decide(branches, otherwise, end.time, stop)
      } else {
        end = run(step, end.time, stop)
        // It ends itself alone early.
        end.isEarly = false
      }
    }
    return end
  }

  private mutating func decide(
    _ branches: [Branch], _ otherwise: [Node]?, _ begin: Int, _ stop: ModelStop
  ) -> ModelEnd {
    var time = begin
    for branch in branches {
      let answer = time + longer(branch.wait, for: item)
      if stop.time < answer {
        return ModelEnd(time: max(stop.time, time), error: stop.error)
      }
      time = answer
      if branch.matches { return run(branch.steps, time, stop) }
    }
    if let otherwise { return run(otherwise, time, stop) }
    return ModelEnd(time: time, isEarly: true)
  }

  private mutating func members(
    _ nodes: [(node: Node, suffix: String, item: Int)], limit: Int, _ allowFailure: Bool,
    _ begin: Int,
    _ stop: ModelStop
  ) -> ModelEnd {
    let outer = stop.asOne
    /// How all would go with this stop, which doesn't reach one of them; each begins when there is
    /// room.
    func all(_ stop: ModelStop, except failed: Int? = nil) -> (model: Model, ends: [ModelEnd]) {
      var model = self
      var ends: [ModelEnd] = []
      var open: [Int] = []
      for (node, suffix, item) in nodes {
        var start = begin
        if open.count == limit {
          open.sort()
          start = open.removeFirst()
        }
        if start >= stop.time { break }
        let inner = ends.count == failed ? outer : stop
        model.item = item
        let end = model.run(node, start, inner, suffix: suffix)
        ends.append(end)
        open.append(end.time)
      }
      return (model, ends)
    }
    var (model, ends) = all(outer)
    var failure: ModelEnd?
    if !allowFailure {
      let failed = ends.indices.filter { ends[$0].error != nil }
        .min { ends[$0].time < ends[$1].time }
      failure = failed.map { ends[$0] }
      if let failure, failure.time < stop.time {
        let first = ModelStop(time: failure.time, error: .cancelled(reason: "group failed"))
        (model, ends) = all(first, except: failed)
      }
    }
    let around = item
    self = model
    item = around
    let time = ends.map(\.time).max() ?? begin
    if stop.time <= (failure?.time ?? time) { return ModelEnd(time: time, error: stop.error) }
    return ModelEnd(time: time, error: failure?.error)
  }
}

// MARK: - The engine's side

/// Does what an `OpNode` says; counts its cleanups.
private final class NodeBody: OpBody {
  private let node: OpNode
  private let counts: Counts

  init(_ node: OpNode, _ counts: Counts) {
    self.node = node
    self.counts = counts
  }

  func start(_ context: OpContext) -> CallState {
    counts.slots = max(counts.slots, context.slot)
    let loop = context.loop
    let item = itemNumber(context.bucket)
    if let cleanup = node.cleanup {
      counts.opened += 1
      context.addCleanup(
        WaitingCleanup(Double(longer(cleanup.wait, for: item)) / 1e9, cleanup.error) { [counts] in
          counts.closed += 1
        })
    }
    let plan = node.attempts[min(context.attempt, node.attempts.count) - 1]
    if plan.wait == 0 { return .finished }
    context.state = loop.schedule(at: loop.now() + Int64(longer(plan.wait, for: item))) {
      context.end(plan.error)
    }
    return .suspended
  }

  func cancel(_ context: OpContext, _ error: FlowError) {
    (context.state as? FlowEngine.LoopTimer)?.cancel()
    context.state = nil
    context.end(error)
  }
}

/// The item of the group around; 0 outside of one.
private func itemNumber(_ data: DataBucket) -> Int { Int(data.number("item") ?? 0) }

private final class Counts {
  var opened = 0
  var closed = 0
  var slots: UInt32 = 0
}

private final class NodePredicate: CasePredicate {
  private let branch: Branch

  init(_ branch: Branch) {
    self.branch = branch
  }

  func matches(_ data: DataBucket, in run: Run, completion: CallbackCompletion) -> CallState {
    let wait = longer(branch.wait, for: itemNumber(data))
    run.loop.schedule(at: run.loop.now() + Int64(wait)) { [branch] in
      completion.answer(branch.matches)
    }
    return .suspended
  }
}

private struct Builder {
  let counts: Counts

  func op(_ node: Node) -> Op {
    switch node {
    case .op(let op):
      return Op(name: op.name, body: NodeBody(op, counts)).with(
        retry: op.retry?.policy, timeout: op.timeout.map { seconds($0) })
    case .flow(let flow, let timeout, let retry):
      return self.flow(flow).with(retry: retry?.policy, timeout: timeout.map { seconds($0) })
    case .parallel, .group, .cases: return quick("never")
    }
  }

  func flow(_ node: FlowNode) -> Flow {
    let flow = Flow(node.name)
    add(node.steps, to: flow)
    for step in node.finally { flow.addFinally(op(step)) }
    return flow
  }

  private func add(_ steps: [Node], to flow: Flow) {
    for step in steps {
      switch step {
      case .op, .flow: flow.add(op(step))
      case .parallel(let nodes): flow.addParallel(nodes.map(op))
      case .group(let node, let items, let limit, let allowFailure):
        let key: ByteString = "items \(items)"
        flow.addGrouped(
          op(node),
          // The model doesn't know which item takes the slot of one that waits for its next attempt.
          GroupDispatcher(
            input: key, maxConcurrent: limit, allowFailure: allowFailure, as: "item",
            holdsSlots: true))
      case .cases(let branches, let otherwise):
        for branch in branches {
          flow.case(where: NodePredicate(branch))
          add(branch.steps, to: flow)
        }
        if let otherwise { add(otherwise, to: flow.otherwise()) }
        flow.combine()
      }
    }
  }
}

// MARK: - Random flows

private struct Author {
  var random: SeededGenerator
  private var count = 0
  /// Timeouts of members would be ties.
  private var isInGroup = false

  init(_ random: SeededGenerator) {
    self.random = random
  }

  mutating func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }
  mutating func time(_ most: Int = 3_000_000_000) -> Int {
    Int.random(in: 1...most, using: &random)
  }

  private mutating func name(_ kind: String) -> ByteString {
    count += 1
    return "\(kind)\(count)"
  }

  private mutating func retry() -> RetryNode? {
    guard chance(4) else { return nil }
    return RetryNode(attempts: Int.random(in: 2...3, using: &random), delay: time(1_000_000_000))
  }

  private mutating func error() -> FlowError? {
    switch Int.random(in: 0..<12, using: &random) {
    case 0...1: FlowError(.error, "bad")
    case 2: .usage("wrong")
    case 3: .cancelled(reason: "by itself")
    default: nil
    }
  }

  private mutating func op() -> Node {
    let isAtOnce = chance(3)
    let attempts = (0..<(isAtOnce ? 1 : 3)).map { _ in
      isAtOnce ? (wait: 0, error: nil) : (wait: time(), error: error())
    }
    // Shorter than the grace period.
    let cleanup = chance(3) ? (wait: time(900_000_000), error: chance(5) ? error() : nil) : nil
    return .op(
      OpNode(
        name: name("op"), attempts: attempts, timeout: !isInGroup && chance(4) ? time() : nil,
        retry: retry(),
        cleanup: cleanup))
  }

  private mutating func opOrFlow(_ depth: Int) -> Node {
    if depth >= 3 || !chance(3) { return op() }
    let timeout = !isInGroup && chance(3) ? time(6_000_000_000) : nil
    return .flow(flow(depth + 1), timeout: timeout, retry: retry())
  }

  private mutating func steps(_ depth: Int, _ most: Int) -> [Node] {
    (0..<Int.random(in: 0...most, using: &random)).map { _ in step(depth) }
  }

  private mutating func step(_ depth: Int) -> Node {
    if depth >= 3 { return op() }
    switch Int.random(in: 0..<9, using: &random) {
    case 0:
      return .parallel((0..<Int.random(in: 1...3, using: &random)).map { _ in opOrFlow(depth) })
    case 1:
      // The items of the inner one would be ties.
      if isInGroup { return op() }
      isInGroup = true
      defer { isInGroup = false }
      return .group(
        opOrFlow(depth), items: Int.random(in: 1...5, using: &random),
        limit: Int.random(in: 1...3, using: &random), allowFailure: chance(2))
    case 2:
      // Cases don't nest.
      let branches = (0..<Int.random(in: 1...3, using: &random)).map { _ in
        Branch(
          wait: time(500_000_000), matches: chance(2),
          steps: (0..<Int.random(in: 0...2, using: &random)).map { _ in opOrFlow(depth) })
      }
      return .cases(branches, otherwise: chance(2) ? [opOrFlow(depth)] : nil)
    case 3...5: return opOrFlow(depth)
    default: return op()
    }
  }

  mutating func flow(_ depth: Int) -> FlowNode {
    FlowNode(
      name: name("flow"), steps: steps(depth, 4),
      finally: chance(3) ? [opOrFlow(depth + 1)] : [])
  }
}

@Suite("Random flows against a model")
struct ModelTests {
  @Test("Random flows of all kinds of steps behave as the model does")
  func randomFlowsOfAllKindsOfStepsGoAsTheModelSays() throws {
    let first = RandomFlows.firstSeed
    let counts = Counts()
    let loop = makeLoop()
    var states: Set<AnyFlowTask.State> = []
    for index in 0..<RandomFlows.count(500) {
      let seed = first &+ index
      guard try check(seed, on: loop, counts, &states) else {
        print("model: FLOWLUA_SEED=\(seed) FLOWLUA_FLOWS=1")
        return
      }
    }
    #expect(states == [.succeeded, .failed, .cancelled])
    // Contexts are used again: as many as ops wait at the same time.
    #expect(counts.slots < 64)
    let pending = loop.pendingRuns.count
    #expect(pending == 0)
  }

  private func check(
    _ seed: UInt64, on loop: FlowEventLoop, _ counts: Counts, _ states: inout Set<AnyFlowTask.State>
  ) throws -> Bool {
    var author = Author(SeededGenerator(state: seed))
    let node = author.flow(0)
    let stop =
      author.chance(3)
      ? ModelStop(time: author.time(9_000_000_000), error: .cancelled(reason: "enough"))
      : ModelStop()
    var model = Model()
    let expected = model.run(node, 0, stop, nil, nil, isTop: true)

    (counts.opened, counts.closed) = (0, 0)
    let flow = Builder(counts: counts).flow(node)
    let data = (1...5).map { count in
      (ByteString("items \(count)"), Array(1...count).flowValue)
    }
    let run = flow.start(on: loop, data: InitialData(data))
    var timer: FlowEngine.LoopTimer?
    if stop.time != .max {
      timer = loop.schedule(at: loop.now() + Int64(stop.time)) { run.cancel(reason: "enough") }
    }
    try run.waitUntilEnd()
    timer?.cancel()
    run.markObserved()
    states.insert(run.state)

    let happened = run.events.compactMap { event -> String? in
      let time = Int(event.time.wholeNanoseconds)
      let name = event.index == 0 ? "\(event.op)" : "\(event.op) #\(event.index)"
      switch event.kind {
      case .start: return "\(time) start \(name)"
      case .finish, .retry: return "\(time) \(event.kind.name) \(name) \(event.message ?? "")"
      default: return nil
      }
    }
    let state: AnyFlowTask.State =
      expected.error.map { $0.kind == .cancelled ? .cancelled : .failed } ?? .succeeded
    let lines = (real: happened.sorted(), model: model.lines.sorted())
    #expect(lines.real == lines.model, "seed \(seed)")
    let ends = (
      run.state, run.error?.message, Int(run.duration.wholeNanoseconds), run.isFinishedEarly
    )
    let wanted = (state, expected.error?.message, expected.time, expected.isEarly)
    #expect(ends == wanted, "seed \(seed)")
    #expect(counts.opened == model.cleanups && counts.closed == model.cleanups, "seed \(seed)")
    let isBalanced = balanced(run)
    #expect(isBalanced, "seed \(seed)")
    return lines.real == lines.model && ends == wanted && isBalanced
  }

  /// Whether each start has one later finish, and nothing happened after the end.
  private func balanced(_ run: Run) -> Bool {
    var open: [String: Int] = [:]
    for event in run.events where event.kind == .start || event.kind == .finish {
      let name = "\(event.op) \(event.index)"
      open[name, default: 0] += event.kind == .start ? 1 : -1
      if open[name, default: 0] < 0 { return false }
    }
    let summary = lines(run)
    let end = summary.firstIndex(of: "[DataBucket] end with:") ?? 0
    return open.values.allSatisfy { $0 == 0 }
      && summary[(end + 1)...].allSatisfy { !$0.hasPrefix("[") }
  }
}
