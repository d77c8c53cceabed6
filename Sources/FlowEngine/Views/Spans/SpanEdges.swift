/// An order between two steps of a graph, both of which were executed.
package struct SpanEdge: Sendable {
  /// The index of the span that comes first.
  package let from: Int32
  package let to: Int32
  /// The index of the name of the key that one gives and the other needs; -1 for an order without data.
  package let key: Int32
  /// Whether items pass from one to the other while both execute.
  let passesItems: Bool
}

extension SpanReader {
  /// Adds the edges of the graphs of a log, all of which was read.
  mutating func addEdges(of log: EventLog, _ known: [UInt64: Int32]) {
    for (number, scope) in log.scopes.enumerated() {
      guard let plan = (scope.parts as? Blueprint)?.plan(nil) else { continue }
      let scope = UInt32(truncatingIfNeeded: number)
      func span(of step: Int) -> Int32? {
        known[log.id(scope: scope, position: UInt32(truncatingIfNeeded: step))]
      }
      for edge in plan.edges {
        guard let from = span(of: edge.from), let to = span(of: edge.to) else { continue }
        edges.append(
          SpanEdge(
            from: from, to: to, key: edge.key.map { self.number(of: log.shown($0)) } ?? -1,
            passesItems: edge.passesItems))
      }
    }
  }
}

/// How much earlier a run could have ended.
///
/// The run is executed once more in thought, in the order of its log: each span starts as long after its causes as it did,
/// and takes as long. Causes are the steps before in a graph, and the results that passed to an item. Other spans wait for
/// all that had ended before in the flow or group around them, as that made room.
struct RunSavings {
  private let run: RunSpans
  private var before: [Int32: [Int32]] = [:]
  /// The groups that pass items to a group.
  private var passing: [Int32: [Int32]] = [:]
  private var graphs: Set<Int32> = []
  /// The ops that write or read streams.
  private var streaming: Set<Int32> = []

  init(_ run: RunSpans) {
    self.run = run
    for edge in run.edges {
      graphs.insert(run.spans[Int(edge.to)].parent)
      if edge.passesItems {
        passing[edge.to, default: []].append(edge.from)
        for span in [edge.from, edge.to] where run.spans[Int(span)].kind != .group {
          streaming.insert(span)
        }
      } else {
        before[edge.to, default: []].append(edge.from)
      }
    }
  }

  /// Another end of a span, or of the last one within a span, in the run and in thought.
  private struct Ends {
    var real: Int64
    var thought: Int64

    mutating func take(_ other: Ends) {
      real = max(real, other.real)
      thought = max(thought, other.thought)
    }
  }

  /// Whether nothing is known of the waits of an execution, as it writes or reads a stream: it isn't logged when it waits for
  /// the other side.
  func isUnknown(_ span: Int) -> Bool { streaming.contains(Int32(truncatingIfNeeded: span)) }

  /// The time that the run would have been shorter if these executions had taken none.
  func time(without isRemoved: (Int) -> Bool) -> Int64 {
    var starts = [Int64](repeating: 0, count: run.spans.count)
    // Of each span, its start or the last end within it.
    var inner = [Ends](repeating: Ends(real: 0, thought: 0), count: run.spans.count)
    var ends = [Ends?](repeating: nil, count: run.spans.count)
    for number in run.order {
      guard number < 0 else {
        let index = Int(number)
        let span = run.spans[index]
        if span.parent >= 0 { starts[index] = start(of: index, starts, inner, ends) }
        inner[index] = Ends(real: span.start, thought: starts[index])
        continue
      }
      let index = Int(~number)
      let span = run.spans[index]
      var end = Ends(real: span.end, thought: starts[index])
      if !isRemoved(index) {
        let last = inner[index]
        end.thought = last.thought + max(0, span.end - last.real)
      }
      ends[index] = end
      if span.parent >= 0 { inner[Int(span.parent)].take(end) }
    }
    return max(0, run.root.end - (ends[0]?.thought ?? run.root.end))
  }

  private func start(
    of index: Int, _ starts: [Int64], _ inner: [Ends], _ ends: [Ends?]
  ) -> Int64 {
    let span = run.spans[index]
    let parent = Int(span.parent)
    var cause = Ends(real: run.spans[parent].start, thought: starts[parent])
    for other in before[Int32(truncatingIfNeeded: index)] ?? [] {
      if let end = ends[Int(other)] { cause.take(end) }
    }
    for group in passing[span.parent] ?? [] { cause.take(inner[Int(group)]) }
    let isOrdered = graphs.contains(span.parent) || passing[span.parent] != nil
    if !isOrdered || cause.real < span.start { cause.take(inner[parent]) }
    return cause.thought + max(0, span.start - cause.real)
  }
}
