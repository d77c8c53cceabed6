/// The data around a step that it reads, and that it leaves there.
struct StepData {
  /// Keys, and whether the step can do without them.
  private(set) var needs: [ByteString: Bool] = [:]
  var gives: Set<ByteString> = []
  /// Of a group, the keys of the list of its items, if nothing else of it needs that, and of its results.
  var input, output: ByteString?
  /// Of an op, the keys of the streams that it writes, and of those that it reads.
  private(set) var emits: Set<ByteString> = []
  private(set) var reads: Set<ByteString> = []

  mutating func need(_ key: ByteString, isOptional: Bool) {
    needs[key] = isOptional && needs[key] != false
  }

  mutating func doWithout(_ key: ByteString) { needs[key] = nil }

  mutating func give(_ key: ByteString) { gives.insert(key) }

  /// The op that declares these writes and reads the streams among them itself.
  mutating func pass(_ needs: [Declaration], _ gives: [Declaration]) {
    reads = Set(needs.lazy.filter(\.type.isStream).map(\.name))
    emits = Set(gives.lazy.filter(\.type.isStream).map(\.name))
  }

  /// Takes no items one by one, because a condition looks at the whole list.
  mutating func takeLists() {
    input = nil
    reads = []
  }

  /// Whether items under a key leave the step one by one.
  func passes(_ key: ByteString) -> Bool { output == key || emits.contains(key) }

  /// Whether it takes the items under a key one by one.
  func takes(_ key: ByteString) -> Bool { input == key || reads.contains(key) }
}

/// The part of a blueprint that only graphs have.
struct GraphShape {
  /// How many steps execute at the same time; nil for no limit.
  let maxConcurrent: Int?
  /// Whether what doesn't need a failed op is executed all the same.
  let keepsGoing: Bool
  /// The names of the steps that a step comes after, besides those that its data say.
  private(set) var after: ContiguousArray<[Before]> = []

  struct Before {
    let name: ByteString
    /// The step, if it was added before.
    let step: Int?
  }

  /// How many items that a step has written may be unread; `defaultBuffer` for others.
  private var buffers: [Int: Int] = [:]
  private static let defaultBuffer = 64
  /// The steps by their names.
  private(set) var places: [ByteString: Int] = [:]
  /// The steps that give keys, as far as their declarations say it.
  private(set) var givers: [ByteString: ByteString] = [:]
  /// The needs and gives of each step; of flows, which change, only what they declare.
  private(set) var data: ContiguousArray<StepData> = []
  /// The steps that are flows.
  private(set) var flows: ContiguousArray<Int> = []
  /// Whether steps need or give keys.
  private(set) var hasData = false
  private var known: (plan: GraphPlan, changes: UInt64)?

  init(maxConcurrent: Int?, keepsGoing: Bool) {
    self.maxConcurrent = maxConcurrent
    self.keepsGoing = keepsGoing
  }

  /// Adds the next step.
  mutating func add(
    _ name: ByteString, _ data: StepData, isFlow: Bool, after others: [ByteString], buffer: Int?
  ) {
    let position = after.count
    self.data.append(data)
    if isFlow { flows.append(position) }
    if isFlow || !data.needs.isEmpty || !data.gives.isEmpty { hasData = true }
    after.append(others.map { Before(name: $0, step: places[$0]) })
    if let buffer { buffers[position] = min(max(1, buffer), 1 << 40) }
    places[name] = position
    for key in data.gives { givers[key] = name }
  }

  /// How many items that a step has written may be unread.
  func buffer(of step: Int) -> Int { buffers[step] ?? Self.defaultBuffer }

  /// The plan, if it was made after so many changes of flows.
  func plan(at changes: UInt64) -> GraphPlan? {
    known.flatMap { $0.changes == changes ? $0.plan : nil }
  }

  mutating func note(_ plan: GraphPlan, at changes: UInt64) { known = (plan, changes) }
}

/// Which steps of a graph wait for which others: because of their data, or because that was said.
final class GraphPlan {
  // Numbers of steps and edges take four bytes, as positions in a log do: a new plan costs mostly the time of its pages.

  struct Edge {
    private let steps: (from: UInt32, to: UInt32)
    var from: Int { Int(steps.from) }
    var to: Int { Int(steps.to) }
    /// The key that one gives and the other needs; nil for an order without data.
    let key: ByteString?
    /// Whether the other can do without the key.
    let isOptional: Bool
    /// Whether each item under the key passes to the other step as soon as it is there: the steps execute at the same time.
    var passesItems = false
    /// Whether the key is a stream, of which nothing stays.
    var isStream = false

    init(from: Int, to: Int, key: ByteString?, isOptional: Bool, passesItems: Bool = false) {
      steps = (UInt32(truncatingIfNeeded: from), UInt32(truncatingIfNeeded: to))
      self.key = key
      self.isOptional = isOptional
      self.passesItems = passesItems
    }
  }

  /// The numbers of the edges that lead away from each step: two arrays, as one for each step would take most of the time
  /// of a plan.
  struct EdgeNumbers {
    private var starts: ContiguousArray<UInt32>
    private var numbers: ContiguousArray<UInt32>

    fileprivate init(_ edges: ContiguousArray<Edge>, count: Int) {
      starts = ContiguousArray(repeating: 0, count: count + 1)
      numbers = ContiguousArray(repeating: 0, count: edges.count)
      for edge in edges { starts[edge.from] += 1 }
      for place in 0..<count { starts[place + 1] += starts[place] }
      // Each now has the end of its step's edges, and moves to their beginning.
      for number in edges.indices.reversed() {
        let step = edges[number].from
        starts[step] -= 1
        numbers[Int(starts[step])] = UInt32(truncatingIfNeeded: number)
      }
    }

    /// The places of a step's edges.
    @inline(__always)
    func range(of step: Int) -> Range<Int> { Int(starts[step])..<Int(starts[step + 1]) }

    /// The number of the edge at a place.
    @inline(__always)
    func number(at place: Int) -> Int { Int(numbers[place]) }

    subscript(step: Int) -> some Collection<Int> {
      range(of: step).lazy.map { number(at: $0) }
    }
  }

  /// The needs and gives of each step.
  let data: ContiguousArray<StepData>
  /// The step that gives a key.
  let givers: [ByteString: Int]
  let edges: ContiguousArray<Edge>
  /// The edges that lead away from each step.
  let successors: EdgeNumbers
  /// The number of the first edge that leads to each step: they are one after another. The last one counts all edges.
  private let firstEdges: ContiguousArray<UInt32>

  /// The edges that lead to a step.
  @inline(__always)
  func predecessors(of step: Int) -> Range<Int> {
    Int(firstEdges[step])..<Int(firstEdges[step + 1])
  }

  /// How many edges lead to each step.
  var waits: ContiguousArray<Int32> { Self.waits(firstEdges) }

  private static func waits(_ firstEdges: ContiguousArray<UInt32>) -> ContiguousArray<Int32> {
    ContiguousArray(
      firstEdges.indices.dropLast().lazy.map {
        Int32(truncatingIfNeeded: firstEdges[$0 + 1] - firstEdges[$0])
      })
  }

  /// The steps, each after those for which it waits; those of a circle are missing.
  var order: ContiguousArray<Int> { sorted ?? ContiguousArray(data.indices) }
  /// nil if that is the order in which they were added.
  private let sorted: ContiguousArray<Int>?
  private(set) lazy var byLevels = sortedByLevels()
  /// How many steps come one after another before each one. A step that takes items while another one writes them comes
  /// with that one.
  var levels: ContiguousArray<Int> { byLevels.levels }
  /// The steps in the order of their levels, each after those whose items it takes; those of a circle are missing.
  var orderOfLevels: ContiguousArray<Int> { byLevels.order }
  /// The keys of streams, of which no list is made unless somebody needs one.
  let streams: Set<ByteString>
  /// Whether items pass between steps that execute at the same time, or could.
  let passesItems: Bool
  /// Why the graph can't run; nil when it can.
  let problem: ByteString?
  /// Why what one step gives can't be what another needs; nil when it can.
  var clash: ByteString?
  /// The needs of steps that none gives, each for the first step that has it.
  var outerNeeds: [(step: Int, declared: Declarations)] = []

  /// The keys on a loop.
  final class Keys {
    fileprivate let table: KeyTable
    /// The step that gives a key.
    let givers: [DataKey: Int]
    /// The keys that each step needs of others, in the order of their numbers, and those that it gives.
    let needs, gives: Lists
    /// Of each step that has started, the keys of others that it doesn't see.
    private var masks: ContiguousArray<DataMask?>

    fileprivate init(_ plan: GraphPlan, _ table: KeyTable) {
      self.table = table
      var givers: [DataKey: Int] = [:]
      givers.reserveCapacity(plan.givers.count)
      var (needs, gives) = (Lists(), Lists())
      for step in plan.givers.isEmpty ? 0..<0 : plan.data.indices {
        gives.append(plan.data[step].gives.sorted().map { table.intern($0) })
        for key in gives[step] { givers[key] = step }
      }
      for step in gives.indices {
        let keys = plan.data[step].needs.keys.sorted().map { table.intern($0) }
        needs.append(keys.filter { givers[$0] != nil }.sorted { $0.id < $1.id })
      }
      masks = ContiguousArray(repeating: nil, count: gives.indices.count)
      (self.givers, self.needs, self.gives) = (givers, needs, gives)
    }

    /// A list of keys for each step.
    struct Lists {
      private var keys: [DataKey] = []
      private var ends: ContiguousArray<Int> = []

      var indices: Range<Int> { ends.indices }

      subscript(step: Int) -> ArraySlice<DataKey> {
        keys[(step > 0 ? ends[step - 1] : 0)..<ends[step]]
      }

      fileprivate mutating func append(_ list: [DataKey]) {
        keys += list
        ends.append(keys.count)
      }
    }

    /// A key that a bucket has although a step gives it: the first by name.
    func given(in bucket: DataBucket) -> (key: ByteString, giver: Int)? {
      if givers.isEmpty { return nil }
      return bucket.visibleEntries.compactMap { entry, _ in
        givers[entry.key].map { (table.name(of: entry.key), $0) }
      }.min { $0.0 < $1.0 }
    }

    /// Hides from a step the keys of others that it doesn't need, and those of its needs that are `absent`.
    func mask(of step: Int, absent: Set<DataKey>) -> DataMask {
      if !absent.isEmpty, needs[step].contains(where: { absent.contains($0) }) {
        return DataMask(givers, except: ArraySlice(needs[step].filter { !absent.contains($0) }))
      }
      if let known = masks[step] { return known }
      let made = DataMask(givers, except: needs[step])
      masks[step] = made
      return made
    }
  }

  private var knownKeys: Keys?

  /// The keys on a loop; cached, because a graph seldom changes loops.
  func keys(of table: KeyTable) -> Keys {
    if let knownKeys, knownKeys.table === table { return knownKeys }
    let made = Keys(self, table)
    knownKeys = made
    return made
  }

  /// Makes the plan of steps with these data and names.
  init(_ data: ContiguousArray<StepData>, _ shape: GraphShape, name: (Int) -> ByteString) {
    var problem: ByteString?
    self.data = data
    var givers: [ByteString: Int] = [:]
    for place in shape.hasData ? data.indices : 0..<0 where !data[place].gives.isEmpty {
      for key in data[place].gives.sorted() {
        if let other = givers.updateValue(place, forKey: key) {
          problem = problem ?? "[\(name(place))] gives <\(key)>, as [\(name(other))] does"
        }
        if data[place].needs[key] != nil {
          problem = problem ?? "[\(name(place))] needs and gives <\(key)>"
        }
      }
    }
    self.givers = givers
    var edges: ContiguousArray<Edge> = []
    edges.reserveCapacity(data.count)
    var firstEdges: ContiguousArray<UInt32> = []
    firstEdges.reserveCapacity(data.count + 1)
    for place in data.indices {
      firstEdges.append(UInt32(truncatingIfNeeded: edges.count))
      if shape.hasData, !data[place].needs.isEmpty {
        for (key, isOptional) in data[place].needs.sorted(by: { $0.key < $1.key }) {
          guard let giver = givers[key], giver != place else { continue }
          edges.append(
            Edge(
              from: giver, to: place, key: key, isOptional: isOptional,
              passesItems: data[giver].passes(key) && data[place].takes(key)))
        }
      }
      for target in shape.after[place] {
        if let other = target.step ?? shape.places[target.name] {
          edges.append(Edge(from: other, to: place, key: nil, isOptional: false))
        } else {
          problem =
            problem ?? "[\(name(place))] comes after [\(target.name)], which isn't in the graph"
        }
      }
    }
    firstEdges.append(UInt32(truncatingIfNeeded: edges.count))
    GraphStreamPlan.mark(&edges, data)
    let streams = shape.hasData ? GraphStreamPlan.streams(in: edges, data) : []
    for number in edges.indices where edges[number].passesItems {
      edges[number].isStream = edges[number].key.map { streams.contains($0) } ?? false
    }
    self.streams = streams
    passesItems = !streams.isEmpty || edges.contains(where: \.passesItems)
    self.edges = edges
    successors = EdgeNumbers(edges, count: data.count)
    self.firstEdges = firstEdges
    sorted =
      edges.allSatisfy { $0.from < $0.to }
      ? nil : Self.sorted(edges, successors, Self.waits(firstEdges))
    if let sorted, sorted.count < data.count, problem == nil {
      problem = Self.circle(edges, data.indices.map(name), known: Set(sorted))
    }
    self.problem = problem
  }

  /// How long the way from each step to the end is, by the times of steps; empty if no time is known. Steps between which
  /// items pass execute at the same time.
  func ways(_ time: (Int) -> Double?) -> ContiguousArray<Double> {
    var ways = ContiguousArray(repeating: 0.0, count: data.count)
    var isKnown = false
    for step in order.reversed() {
      var (next, beside) = (0.0, 0.0)
      for number in successors[step] {
        let way = ways[edges[number].to]
        if edges[number].passesItems { beside = max(beside, way) } else { next = max(next, way) }
      }
      if let time = time(step), time.isFinite, time > 0 {
        next += time
        isKnown = true
      }
      ways[step] = max(next, beside)
    }
    return isKnown ? ways : []
  }

  /// The steps, each after those for which it waits; `missing` says for how many.
  private static func sorted(
    _ edges: ContiguousArray<Edge>, _ successors: EdgeNumbers, _ missing: ContiguousArray<Int32>
  ) -> ContiguousArray<Int> {
    var missing = missing
    var order: ContiguousArray<Int> = []
    order.reserveCapacity(missing.count)
    for step in missing.indices where missing[step] == 0 { order.append(step) }
    var next = 0
    while next < order.count {
      for place in successors.range(of: order[next]) {
        let other = edges[successors.number(at: place)].to
        missing[other] -= 1
        if missing[other] == 0 { order.append(other) }
      }
      next += 1
    }
    return order
  }

  private func sortedByLevels() -> (levels: ContiguousArray<Int>, order: ContiguousArray<Int>) {
    var levels = ContiguousArray(repeating: 0, count: data.count)
    /// How many steps of its level pass items before each one.
    var stages = levels
    for place in order {
      for number in successors[place] {
        let (other, passes) = (edges[number].to, edges[number].passesItems)
        let level = passes ? levels[place] : levels[place] + 1
        let stage = passes ? stages[place] + 1 : 0
        if level > levels[other] {
          (levels[other], stages[other]) = (level, stage)
        } else if level == levels[other] {
          stages[other] = max(stages[other], stage)
        }
      }
    }
    let sorted = order.sorted { (levels[$0], stages[$0], $0) < (levels[$1], stages[$1], $1) }
    return (levels, ContiguousArray(sorted))
  }

  /// The sentence about a circle among the steps that aren't known to have an order.
  private static func circle(
    _ edges: ContiguousArray<Edge>, _ names: [ByteString], known: Set<Int>
  ) -> ByteString {
    // Each of them waits for another of them: going back, one is met again.
    var before: [Int: Edge] = [:]
    for edge in edges where !known.contains(edge.from) && !known.contains(edge.to) {
      before[edge.to] = edge
    }
    var seen: [Int: Int] = [:]
    var path: [Edge] = []
    var place = before.keys.min() ?? 0
    while seen[place] == nil, let edge = before[place] {
      seen[place] = path.count
      path.append(edge)
      place = edge.from
    }
    let circle = path[(seen[place] ?? 0)...]
    let shown = circle.prefix(8).map { edge in
      let (one, other) = (names[edge.to], names[edge.from])
      return edge.key.map { "[\(one)] needs <\($0)>, which [\(other)] gives" }
        ?? "[\(one)] comes after [\(other)]" as ByteString
    }
    let text = shown.dropFirst().reduce(shown.first ?? "") { "\($0); \($1)" }
    return circle.count > 8
      ? "its steps wait in a circle: \(text); …" : "its steps wait in a circle: \(text)"
  }
}

/// The progress of a graph: which steps are ready, execute, have ended, or are skipped.
///
/// A transition changes only this value, so that all can be tested without a loop. Steps that wait for nothing are ready
/// at once; a list of steps without a plan is one of these.
struct GraphProgress {
  /// How a step has ended.
  enum End: Equatable {
    case succeeded, failed
    /// It wasn't executed, because its condition was false or because of another step.
    case skipped
  }

  /// A step that isn't executed because of edges to it.
  struct Skip: Equatable {
    let step: Int
    /// The numbers of the edges, in the order in which the steps before have ended.
    fileprivate(set) var edges: [Int] = []
    /// Whether a step before has failed, itself or because of another one.
    fileprivate(set) var hasFailed = false
  }

  private let plan: GraphPlan?
  private let count: Int
  /// The next of the steps that wait for nothing, in the order in which they were added; all are ready, besides `ready`.
  private var next = 0
  /// How many steps have started.
  private var started = 0
  /// How long the way from each step to the end took in an earlier run; empty if that isn't known.
  private let ways: ContiguousArray<Double>
  /// The steps that are ready: a heap, on top the one with the longest way, of equal ones the one that was added first.
  private var ready: ContiguousArray<Int> = []
  private var missing: ContiguousArray<Int32>
  /// Why steps that wait won't be executed.
  private var reasons: [Int: Skip] = [:]
  /// The edges whose items pass already, so that the next step needn't wait for the end.
  private var passing: Set<Int> = []

  init(count: Int, _ plan: GraphPlan?, ways: ContiguousArray<Double> = []) {
    self.plan = plan
    self.count = count
    self.ways = ways
    missing = plan?.waits ?? []
    if ways.isEmpty {
      skipWaiting()
    } else {
      for step in missing.indices where missing[step] == 0 { push(step) }
      next = count
    }
  }

  /// Moves `next` to a step that waits for nothing.
  private mutating func skipWaiting() {
    guard let plan else { return }
    while next < count, !plan.predecessors(of: next).isEmpty { next += 1 }
  }

  /// Whether a ready step starts before another one.
  private func precedes(_ step: Int, _ other: Int) -> Bool {
    if !ways.isEmpty, ways[step] != ways[other] { return ways[step] > ways[other] }
    return step < other
  }

  /// Whether steps remain that haven't started.
  var hasMore: Bool { started < count }

  /// Whether a step can start.
  var hasReady: Bool { next < count || !ready.isEmpty }

  /// Takes the ready step that was added first; nil when there is none.
  mutating func start() -> Int? {
    started += 1
    guard next < count, ready.isEmpty || next < ready[0] else { return popReady() }
    let step = next
    next += 1
    skipWaiting()
    return step
  }

  /// A step has ended.
  ///
  /// - Returns: The steps that are skipped because of it, each after the one that is the reason.
  mutating func end(_ step: Int, _ end: End) -> [Skip] {
    var skipped: [Skip] = []
    _ = unretained(ifAny: plan) { follow($0, step, end, &skipped) }
    guard !skipped.isEmpty, let plan else { return skipped }
    var place = 0
    while place < skipped.count {
      // A failure reaches all that needs it, through whatever was skipped because of it.
      follow(
        plan, skipped[place].step, skipped[place].hasFailed ? .failed : .skipped, &skipped)
      place += 1
    }
    return skipped
  }

  /// Follows the edges that lead away from a step that has ended.
  private mutating func follow(
    _ plan: GraphPlan, _ step: Int, _ end: End, _ skipped: inout [Skip]
  ) {
    for place in plan.successors.range(of: step) {
      let number = plan.successors.number(at: place)
      let next = plan.edges[number].to
      let isPassing = !passing.isEmpty && passing.contains(number)
      if isPassing, missing[next] == 0 { continue }
      if end != .succeeded, isReason(plan.edges[number], end) {
        reasons[next, default: Skip(step: next)].edges.append(number)
        if end == .failed { reasons[next]?.hasFailed = true }
      }
      if isPassing { continue }
      missing[next] -= 1
      guard missing[next] == 0 else { continue }
      if !reasons.isEmpty, let reason = reasons.removeValue(forKey: next) {
        skipped.append(reason)
      } else {
        push(next)
      }
    }
  }

  /// The items of a step begin to pass to the steps that take them.
  ///
  /// - Returns: The steps that are skipped now, because of others.
  mutating func pass(from step: Int) -> [Skip] {
    guard let plan else { return [] }
    var skipped: [Skip] = []
    for number in plan.successors[step] where plan.edges[number].passesItems {
      guard passing.insert(number).inserted else { continue }
      let next = plan.edges[number].to
      missing[next] -= 1
      guard missing[next] == 0 else { continue }
      if let reason = reasons.removeValue(forKey: next) {
        skipped.append(reason)
        skipped += end(next, reason.hasFailed ? .failed : .skipped)
      } else {
        push(next)
      }
    }
    return skipped
  }

  /// Whether the end of a step keeps the next one from being executed.
  private func isReason(_ edge: GraphPlan.Edge, _ end: End) -> Bool {
    switch end {
    case .succeeded: false
    case .failed: true
    case .skipped: edge.key != nil && !edge.isOptional
    }
  }

  private mutating func push(_ step: Int) {
    var place = ready.count
    ready.append(step)
    while place > 0, precedes(step, ready[(place - 1) / 2]) {
      ready.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func popReady() -> Int? {
    guard let first = ready.first, let last = ready.popLast() else { return nil }
    if ready.isEmpty { return first }
    ready[0] = last
    var place = 0
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2]
      where child < ready.count && precedes(ready[child], ready[least]) {
        least = child
      }
      if least == place { return first }
      ready.swapAt(place, least)
      place = least
    }
  }
}
