/// The drawing of a flow: nodes, boxes around some of them, and edges.
struct FlowGraph {
  /// The outcome of an op, or of all its executions.
  enum Outcome {
    case running, succeeded, failed, cancelled, notReached
  }

  struct Node {
    enum Shape {
      case start, end, op, decision, fork, join
      /// A flow without steps.
      case empty
      /// A flow that isn't drawn again.
      case folded
    }

    /// Unique among nodes.
    let number: Int
    let shape: Shape
    var lines: [ByteString]
    var outcome: Outcome?
  }

  struct Box {
    enum Kind {
      case flow, group, parallel, finally
    }

    /// Unique among boxes.
    let number: Int
    let kind: Kind
    var lines: [ByteString]
    var outcome: Outcome?
  }

  /// Boxes are in one list with their content, so that no depth of nesting recurses.
  enum Item {
    case node(Node)
    case open(Box)
    case close
  }

  struct Edge {
    let from: Int
    let to: Int
    let label: ByteString?
    /// How its line is drawn.
    let line: Line

    enum Line {
      case plain
      /// It leads to final steps, or is an order without data.
      case dashed
      /// Items of a stream pass while both ends execute.
      case thick
    }
  }

  var title: [ByteString]
  var items: ContiguousArray<Item> = []
  var edges: ContiguousArray<Edge> = []
}

/// A text that is being written, and the indentation of its lines.
struct GraphText {
  private(set) var bytes: [UInt8] = []
  private var depth = 1

  /// Beyond this depth lines aren't indented further: for flows nested 10,000 deep, almost all of
  /// the text would be spaces.
  private static let maximumDepth = 16

  mutating func open(_ line: ByteString) {
    write(line)
    depth += 1
  }

  mutating func close(_ line: ByteString) {
    depth -= 1
    write(line)
  }

  /// A line that isn't indented.
  mutating func writeFlush(_ line: ByteString) {
    bytes += line.bytes
    bytes.append(UInt8(ascii: "\n"))
  }

  mutating func write(_ line: ByteString) {
    for _ in 0..<min(depth, Self.maximumDepth) * 2 { bytes.append(UInt8(ascii: " ")) }
    writeFlush(line)
  }

  /// Lines as one text with `separator` between, each through `escape`.
  static func join(
    _ lines: [ByteString], _ separator: ByteString, _ escape: (ByteString) -> ByteString
  ) -> ByteString {
    guard let first = lines.first else { return "" }
    return lines.dropFirst().reduce(escape(first)) { "\($0)\(separator)\(escape($1))" }
  }

  /// The text as Unicode: U+FFFD replaces bytes that are no UTF-8, and control characters other
  /// than line breaks, which neither format can contain.
  static func scalars(_ text: ByteString) -> [Unicode.Scalar] {
    text.description.unicodeScalars.map { scalar in
      switch scalar {
      case "\n": scalar
      case "\t": " "
      case "\0"..<" ", "\u{7F}"..<"\u{A0}", "\u{2028}", "\u{2029}", "\u{FFFE}", "\u{FFFF}":
        "\u{FFFD}"
      default: scalar
      }
    }
  }
}

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
            line: edge.line))
      }
    }
    return merged
  }
}
