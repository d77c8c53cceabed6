/// The form of a machine's graph in DOT; by default FlowKit's.
package struct MachineDOTOptions: Sendable {
  /// The direction of the graph.
  package enum Direction: String, Sendable, CaseIterable {
    /// From left to right.
    case leftToRight = "LR"
    /// From right to left.
    case rightToLeft = "RL"
    /// From top to bottom.
    case topToBottom = "TB"
    /// From bottom to top.
    case bottomToTop = "BT"
  }

  /// Whether several edges between two steps are drawn as one.
  package var isStrict: Bool
  /// The direction of the graph.
  package var direction: Direction
  /// The shape of the nodes: one that Graphviz knows.
  package var shape: String

  /// Makes options; by default FlowKit's.
  package init(
    isStrict: Bool = true, direction: Direction = .leftToRight, shape: String = "box"
  ) {
    self.isStrict = isStrict
    self.direction = direction
    self.shape = shape
  }
}

extension MachineOp {
  /// The machine's steps and transitions in DOT, the language of Graphviz, in the order in which
  /// they were defined; `*` is the any-step.
  ///
  /// A move back without a step leads to each step that has a forward transition to the present
  /// one. If a function provides the transitions, only the steps are known. The text ends in one
  /// line break.
  ///
  /// Source: FlowKit's `DOTBuilder`.
  public func dot() -> ByteString { dot(MachineDOTOptions()) }

  package func dot(_ options: MachineDOTOptions) -> ByteString {
    MachineGraph(blueprint).dot(options)
  }

  /// The machine as a state diagram in Mermaid, with its start and its ends.
  public func mermaid() -> ByteString { MachineGraph(blueprint).mermaid() }
}

/// The drawing of a machine.
struct MachineGraph {
  /// A step by its number; nil is the any-step.
  typealias Node = Int?

  struct Edge {
    let from: Node
    let to: Node
    let event: Int?
  }

  let blueprint: MachineBlueprint
  /// In the order of the definition.
  private(set) var edges: [Edge] = []

  init(_ blueprint: MachineBlueprint) {
    self.blueprint = blueprint
    for step in blueprint.definition.steps {
      for handler in step.handlers {
        for target in targets(of: handler.transition, from: step.number) {
          edges.append(Edge(from: step.number, to: target, event: handler.event))
        }
      }
    }
  }

  private func targets(of transition: MachineTransition<Int>, from node: Node) -> [Node] {
    switch transition {
    case .forward(let step), .back(let step?): [step]
    case .stay: [node]
    case .back(nil): predecessors(of: node)
    }
  }

  /// The steps with a forward transition to a step; for the any-step, all steps with a forward
  /// transition.
  private func predecessors(of node: Node) -> [Node] {
    blueprint.definition.steps.filter { step in
      if node == nil, step.number == nil { return false }
      return step.handlers.contains { handler in
        guard case .forward(let target) = handler.transition else { return false }
        return node == nil || target == node
      }
    }.map(\.number)
  }

  private func name(_ node: Node) -> ByteString {
    node.map { blueprint.logic.name(ofStep: $0) } ?? "*"
  }

  private func label(_ edge: Edge) -> ByteString? {
    edge.event.map { "on \(blueprint.logic.name(ofEvent: $0))" }
  }

  // MARK: DOT

  func dot(_ options: MachineDOTOptions) -> ByteString {
    var text = GraphText()
    text.writeFlush(options.isStrict ? "strict digraph {" : "digraph {")
    text.writeFlush("\trankdir=\(ByteString(options.direction.rawValue))")
    text.writeFlush("\tnode [shape=\(Self.identifier(ByteString(options.shape)))]")
    text.writeFlush("")
    let joined = Set(edges.flatMap { [$0.from, $0.to] })
    for step in blueprint.definition.steps where step.number != nil {
      if !joined.contains(step.number) {
        text.writeFlush("\t\(Self.identifier(name(step.number)))")
      }
    }
    for edge in edges {
      let label = label(edge).map { " [label=\(FlowGraph.quoted([$0]))]" as ByteString } ?? ""
      let (from, to) = (Self.identifier(name(edge.from)), Self.identifier(name(edge.to)))
      text.writeFlush("\t\(from) -> \(to)\(label)")
    }
    text.writeFlush("}")
    return ByteString(text.bytes)
  }

  /// A name as an identifier of DOT: quoted, unless it is a valid one already.
  static func identifier(_ name: ByteString) -> ByteString {
    let keywords: Set<String> = ["node", "edge", "graph", "digraph", "subgraph", "strict"]
    let isPlain = name.bytes.enumerated().allSatisfy { index, byte in
      byte.isLetter || byte == UInt8(ascii: "_") || index > 0 && byte.isDigit
    }
    let isNumber =
      name.bytes.allSatisfy(\.isDigit)
    if name.isEmpty || keywords.contains(name.description.lowercased()) || !isPlain && !isNumber {
      return FlowGraph.quoted([name])
    }
    return name
  }

  // MARK: Mermaid

  func mermaid() -> ByteString {
    let definition = blueprint.definition
    var numbers: [Node: Int] = [:]
    var text = GraphText()
    text.writeFlush("stateDiagram-v2")
    text.write("direction LR")
    for step in definition.steps {
      numbers[step.number] = numbers.count + 1
      text.write(
        "state \"\(GraphText.mermaid([name(step.number)]))\" as s\(numbers.count)")
    }
    if let start = numbers[definition.start] { text.write("[*] --> s\(start)") }
    for edge in edges {
      guard let from = numbers[edge.from], let to = numbers[edge.to] else { continue }
      let label = label(edge).map { " : \(GraphText.mermaid([$0]))" as ByteString } ?? ""
      text.write("s\(from) --> s\(to)\(label)")
    }
    let anyGoesOn = blueprint.table.anyStep?.handlers.contains { $0.event == nil } ?? false
    for step in definition.steps where step.number != nil {
      let isEnd = !anyGoesOn && !definition.hasProvider && step.handlers.isEmpty
      if step.isFinal || isEnd, let number = numbers[step.number] {
        text.write("s\(number) --> [*]")
      }
    }
    return ByteString(text.bytes)
  }
}
