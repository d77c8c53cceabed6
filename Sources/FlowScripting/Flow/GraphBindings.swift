internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.graph`, and the functions of a builder that do something else for graphs.
struct GraphBindings {
  private let host: ScriptHost

  init(_ host: ScriptHost) { self.host = host }

  static func install(in host: ScriptHost) {
    host.define("graph") { host, call in
      let arguments = Arguments(host, call, "graph")
      let name = try arguments.name(1)
      let graph: Graph
      if arguments.isNil(2) {
        graph = Graph(name)
      } else {
        let options = try arguments.options(2, known: ["max_concurrent", "keep_going"])
        graph = Graph(
          name, maxConcurrent: try options.count("max_concurrent"),
          keepsGoing: try options.boolean("keep_going") ?? false)
      }
      host.noteDeclared(graph, call)
      return call.answer(graph, host.types.flow)
    }
  }

  /// Adds an op, with the options of argument 2, or a group of it, with those of argument 3.
  func add(
    _ op: Op, _ dispatcher: GroupDispatcher? = nil, to graph: Graph, _ arguments: Arguments
  ) throws {
    let place = dispatcher == nil ? 2 : 3
    var placed = op
    var policy: PolicyOptions?
    var others: [ByteString] = []
    var condition: ScriptPredicate?
    var buffer: Int?
    if !arguments.isNil(place) {
      let known = dispatcher == nil ? PolicyOptions.fields : []
      let options = try arguments.options(place, known: known + ["after", "when", "buffer"])
      if dispatcher == nil {
        let made = try PolicyOptions(options)
        try made.checkKeeping(of: op, options)
        placed = made.keeping(try PolicyBindings(host: host).op(op, with: made, options))
        policy = made
      }
      others = try targets(options)
      buffer = try options.count("buffer")
      if buffer != nil, dispatcher == nil, !placed.gives.contains(where: \.type.isStream) {
        throw arguments.wrong(
          place,
          "field 'buffer': [\(placed.name)] gives no stream, such as rows = \"stream<table>\"")
      }
      condition = try options.function("when").map { ScriptPredicate(host, $0) }
    }
    if let problem = graph.problem(ofAdding: placed, dispatcher) {
      throw arguments.wrong(1, "graph '\(graph.name)': \(problem)")
    }
    graph.add(
      placed, dispatcher, after: others, buffer: buffer, when: condition,
      policy: policy.map { $0.over(placed.policy, undo: $0.undo(of: placed)) } ?? placed.policy)
  }

  /// `after`: an op, a name, or a list of these.
  private func targets(_ options: Options) throws -> [ByteString] {
    guard let value = options.value("after") else { return [] }
    if let target = target(value) { return [target] }
    guard case .reference(let list) = value, list.kind == .table else {
      throw options.wrong("after", expected: "op, name, or list of these")
    }
    return try host.vm.pairs(of: list).map { key, value in
      guard case .integer = key, let target = target(value) else {
        throw options.wrong("after", expected: "op, name, or list of these")
      }
      return target
    }
  }

  private func target(_ value: LuaValue) -> ByteString? {
    if case .string(let name) = value { return name }
    return host.op(in: value)?.name
  }
}
