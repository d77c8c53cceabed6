/// The graphs of several flows and ops in one, side by side.
///
/// Each blueprint is drawn as it is when it is added, once.
package final class GraphCollection {
  private var graphs: ContiguousArray<FlowGraph> = []
  private var seen: Set<ObjectIdentifier> = []
  // Retained, so that no other object gets the identity of one that was added.
  private var ops: ContiguousArray<Op> = []

  /// Makes a collection without graphs.
  package init() {}

  /// Whether nothing has been collected.
  package var isEmpty: Bool { graphs.isEmpty }

  /// Adds the op or flow that a run has started, unless it has been added.
  package func add(_ run: Run) {
    guard seen.insert(ObjectIdentifier(run.op)).inserted else { return }
    ops.append(run.op)
    graphs.append(FlowGraphBuilder.blueprint(of: run))
  }

  /// The graphs in DOT; without any, a graph without nodes.
  package func dot() -> ByteString { merged().dot }

  /// The graphs as a flowchart in Mermaid.
  package func mermaid() -> ByteString { merged().mermaid }

  /// The graph itself if there is one; several graphs each get a box.
  private func merged() -> FlowGraph {
    if graphs.count == 1, let only = graphs.first { return only }
    var merged = FlowGraph(title: graphs.isEmpty ? ["nothing was started"] : ["flows"])
    var nodes = 0
    var boxes = 0
    for graph in graphs {
      let (firstNode, firstBox) = (nodes, boxes + 1)
      boxes += 1
      merged.items.append(
        .open(FlowGraph.Box(number: boxes, kind: .flow, lines: graph.title, outcome: nil)))
      for item in graph.items {
        switch item {
        case .node(let node):
          let number = firstNode + node.number
          nodes = max(nodes, number)
          merged.items.append(
            .node(
              FlowGraph.Node(
                number: number, shape: node.shape, lines: node.lines, outcome: node.outcome)))
        case .open(let box):
          let number = firstBox + box.number
          boxes = max(boxes, number)
          merged.items.append(
            .open(
              FlowGraph.Box(
                number: number, kind: box.kind, lines: box.lines, outcome: box.outcome)))
        case .close: merged.items.append(.close)
        }
      }
      merged.items.append(.close)
      for edge in graph.edges {
        merged.edges.append(
          FlowGraph.Edge(
            from: firstNode + edge.from, to: firstNode + edge.to, label: edge.label,
            isDashed: edge.isDashed))
      }
    }
    return merged
  }
}
