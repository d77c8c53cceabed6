extension Flow {
  /// The blueprint as a graph in DOT, the language of Graphviz.
  ///
  /// Ops are nodes, one for each place; groups, nested flows, parallel and final steps are boxes;
  /// cases are labelled edges. A flow always results in the same text, which ends in one
  /// line break. U+FFFD replaces bytes of names that are no UTF-8.
  public func dot() -> ByteString { FlowGraphBuilder.graph(of: self).dot }
}

extension Run {
  /// The started op or flow as a graph in DOT, with the outcome and duration of each op, or that it
  /// wasn't reached. For an op that a group executed, the duration is the median of its items; the
  /// group's box shows the time of all of them together. For a pending run the graph shows its
  /// progress. Called on the loop's thread.
  public func dot() -> ByteString {
    loop.checkThread()
    return FlowGraphBuilder.graph(of: self).dot
  }
}

extension FlowGraph {
  /// The graph in DOT.
  var dot: ByteString {
    var text = GraphText()
    text.writeFlush("digraph \(Self.quoted(title.prefix(1))) {")
    text.write("label=\(Self.quoted(title));")
    text.write("labelloc=t;")
    text.write("node [shape=box];")
    for item in items {
      switch item {
      case .node(let node): text.write("n\(node.number) [\(Self.attributes(node))];")
      case .open(let box):
        text.open("subgraph cluster_\(box.number) {")
        text.write("label=\(Self.quoted(box.lines));")
        text.write("style=\(box.kind == .flow ? "solid" : "dashed");")
        if let color = box.outcome?.strokeColor { text.write("color=\(color);") }
      case .close: text.close("}")
      }
    }
    for edge in edges {
      var attributes: [ByteString] = []
      if let label = edge.label { attributes.append("label=\(Self.quoted([label]))") }
      switch edge.line {
      case .plain: break
      case .dashed: attributes.append("style=dashed")
      case .thick: attributes.append("style=bold")
      }
      let end = attributes.isEmpty ? "" : " [\(GraphText.join(attributes, ", ") { $0 })]"
      text.write("n\(edge.from) -> n\(edge.to)\(end);")
    }
    text.writeFlush("}")
    return ByteString(text.bytes)
  }

  private static func attributes(_ node: Node) -> ByteString {
    var attributes: [ByteString] = ["label=\(quoted(node.lines))"]
    if let shape = node.shape.dotName { attributes.append("shape=\(shape)") }
    if let outcome = node.outcome {
      if let color = outcome.fillColor {
        attributes.append("style=filled")
        attributes.append("fillcolor=\(color)")
      } else {
        attributes.append("style=dashed")
        attributes.append("fontcolor=gray40")
      }
    }
    return GraphText.join(attributes, ", ") { $0 }
  }

  /// Lines as a quoted string, which Graphviz neither ends early nor changes.
  static func quoted(_ lines: some Sequence<ByteString>) -> ByteString {
    var text = String.UnicodeScalarView()
    for scalar in GraphText.scalars(GraphText.join(Array(lines), "\n") { $0 }) {
      switch scalar {
      case "\\": text += String("\\\\").unicodeScalars
      case "\"": text += String("\\\"").unicodeScalars
      case "\n": text += String("\\n").unicodeScalars
      // Graphviz interprets HTML entities in every string.
      case "&": text += String("&amp;").unicodeScalars
      default: text.append(scalar)
      }
    }
    return ByteString("\"" + String(text) + "\"")
  }
}

extension FlowGraph.Node.Shape {
  fileprivate var dotName: ByteString? {
    switch self {
    case .op: nil
    case .start, .end: "oval"
    case .decision: "diamond"
    case .fork, .join: "hexagon"
    case .empty: "plaintext"
    case .folded: "folder"
    }
  }
}

extension FlowGraph.Outcome {
  fileprivate var fillColor: ByteString? {
    switch self {
    case .running: "lightblue"
    case .succeeded: "palegreen"
    case .failed: "lightcoral"
    case .cancelled: "khaki"
    case .notReached: nil
    }
  }

  fileprivate var strokeColor: ByteString {
    switch self {
    case .running: "blue"
    case .succeeded: "forestgreen"
    case .failed: "red"
    case .cancelled: "goldenrod"
    case .notReached: "gray"
    }
  }
}
