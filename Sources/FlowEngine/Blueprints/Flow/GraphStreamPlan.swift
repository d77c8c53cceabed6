/// Decides which edges of a graph pass items while both steps execute.
enum GraphStreamPlan {
  /// Leaves out edges whose reader can't start before the writer has ended, because of other edges: the writer would wait for
  /// room that the reader never makes. The reader then gets the list of all items.
  static func mark(
    _ edges: inout ContiguousArray<GraphPlan.Edge>, _ data: ContiguousArray<StepData>
  ) {
    guard edges.contains(where: \.passesItems) else { return }
    var from = ContiguousArray(repeating: ContiguousArray<Int>(), count: data.count)
    var to = from
    for (number, edge) in edges.enumerated() {
      from[edge.from].append(number)
      to[edge.to].append(number)
    }
    // Each edge that is left out lets more steps wait for ends.
    var isChanged: Bool
    repeat {
      isChanged = false
      for number in edges.indices where edges[number].passesItems {
        let edge = edges[number]
        if follows(edge.to, theEndOf: edge.from, edges, from: from, to: to) {
          edges[number].passesItems = false
          isChanged = true
        }
      }
    } while isChanged
  }

  /// Whether a step starts only after another one has ended.
  private static func follows(
    _ step: Int, theEndOf writer: Int, _ edges: ContiguousArray<GraphPlan.Edge>,
    from: ContiguousArray<ContiguousArray<Int>>, to: ContiguousArray<ContiguousArray<Int>>
  ) -> Bool {
    var ended: Set<Int> = [writer]
    var started: Set<Int> = []
    var open = [writer]
    // Of a step whose end follows, all that waits for the end follows, and the ends of those that take its items; and it ends
    // after those have started.
    while let next = open.popLast() {
      for edge in from[next].lazy.map({ edges[$0] }) {
        if edge.passesItems, !started.contains(next) {
          if ended.insert(edge.to).inserted { open.append(edge.to) }
          continue
        }
        if edge.to == step { return true }
        if started.insert(edge.to).inserted {
          ended.insert(edge.to)
          // Also if it was read because of its end alone: now its readers start later, too.
          open.append(edge.to)
          for taken in to[edge.to].lazy.map({ edges[$0] }) where taken.passesItems {
            if ended.insert(taken.from).inserted { open.append(taken.from) }
          }
        }
      }
    }
    return false
  }

  /// The keys of streams: those that ops write, and the outputs of groups over such keys.
  static func streams(
    in edges: ContiguousArray<GraphPlan.Edge>, _ data: ContiguousArray<StepData>
  ) -> Set<ByteString> {
    var streams: Set<ByteString> = []
    for place in data.indices where !data[place].emits.isEmpty {
      streams.formUnion(data[place].emits)
    }
    if streams.isEmpty { return [] }
    var groups: [ByteString: [ByteString]] = [:]
    for edge in edges where edge.passesItems {
      guard let key = edge.key, data[edge.to].input == key, let output = data[edge.to].output else {
        continue
      }
      groups[key, default: []].append(output)
    }
    var open = Array(streams)
    while let key = open.popLast() {
      for output in groups[key] ?? [] where streams.insert(output).inserted { open.append(output) }
    }
    return streams
  }
}
