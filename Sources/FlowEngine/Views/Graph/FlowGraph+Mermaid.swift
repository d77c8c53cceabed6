extension Flow {
  /// The blueprint as a flowchart in Mermaid, with the parts of `dot()`.
  ///
  /// A flow always results in the same text, which ends in one line break. In names, `#NN;`
  /// replaces everything that Mermaid could interpret, and U+FFFD replaces bytes that are no UTF-8.
  public func mermaid() -> ByteString { FlowGraphBuilder.graph(of: self).mermaid }
}

extension FlowGraph {
  /// The graph in Mermaid.
  var mermaid: ByteString {
    var text = GraphText()
    text.writeFlush("flowchart TD")
    for item in items {
      switch item {
      case .node(let node):
        let (open, close) = node.shape.mermaidBrackets
        text.write("n\(node.number)\(open)\(Self.quoted(node.lines))\(close)")
      case .open(let box): text.open("subgraph g\(box.number)[\(Self.quoted(box.lines))]")
      case .close: text.close("end")
      }
    }
    for edge in edges {
      let arrow: ByteString =
        switch edge.line {
        case .plain: "-->"
        case .dashed: "-.->"
        case .thick: "==>"
        }
      let label: ByteString = edge.label.map { "|\(Self.quoted([$0]))|" } ?? ""
      text.write("n\(edge.from) \(arrow)\(label) n\(edge.to)")
    }
    return ByteString(text.bytes)
  }

  /// Lines as a quoted string.
  private static func quoted(_ lines: [ByteString]) -> ByteString {
    "\"\(GraphText.mermaid(lines))\""
  }
}

extension GraphText {
  /// Lines as a label of Mermaid. Mermaid makes HTML from labels, after several passes that search
  /// for special characters: everything but letters, digits and a few signs therefore becomes a
  /// number.
  static func mermaid(_ lines: [ByteString]) -> ByteString {
    var text = String.UnicodeScalarView()
    for scalar in GraphText.scalars(GraphText.join(lines, "\n") { $0 }) {
      switch scalar {
      case "\n": text += String("<br/>").unicodeScalars
      case "a"..."z", "A"..."Z", "0"..."9", " ", "_", ".", ",", "=", "-", "/", "'", "+":
        text.append(scalar)
      case "\0"..."\u{7F}": text += String("#\(scalar.value);").unicodeScalars
      default: text.append(scalar)
      }
    }
    return ByteString(String(text))
  }
}

extension FlowGraph.Node.Shape {
  fileprivate var mermaidBrackets: (ByteString, ByteString) {
    switch self {
    case .op: ("[", "]")
    case .start, .end: ("([", "])")
    case .decision: ("{", "}")
    case .fork, .join: ("{{", "}}")
    case .empty: ("(", ")")
    case .folded: ("[[", "]]")
    }
  }
}
