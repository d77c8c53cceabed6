public import FlowEngine
internal import LuaVM

/// The ops written in Swift, by name: what scripts see as `flow.ops`.
final class OpRegistry {
  private var ops: [ByteString: Op] = [:]
  /// Adds the ops that flowlua brings along; called when an op is added or looked for.
  var addBuiltIns: (() -> Void)?
  /// The names in order; empty until it is asked for.
  private var sorted: [ByteString] = []
  /// What `pairs(flow.ops)` calls; made when it is first asked for.
  var iterator: LuaReference?

  subscript(name: ByteString) -> Op? {
    complete()
    return ops[name]
  }

  // Most scripts use none of them.
  private func complete() {
    guard let addBuiltIns else { return }
    self.addBuiltIns = nil
    addBuiltIns()
  }

  func add(_ op: Op) {
    complete()
    if ops.updateValue(op, forKey: op.name) != nil {
      misuse("an op named '\(op.name)' is registered already: each has a name of its own")
    }
    sorted = []
  }

  /// Lets go of all ops: one that a script made holds the host.
  func removeAll() {
    addBuiltIns = nil
    ops = [:]
    sorted = []
    iterator = nil
  }

  /// The names in order.
  var names: [ByteString] {
    complete()
    return ops.keys.sorted()
  }

  /// The name that follows `name`, the first one behind nil; a name needn't be known.
  func name(after name: ByteString?) -> ByteString? {
    if sorted.isEmpty { sorted = names }
    guard let name else { return sorted.first }
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      if name < sorted[middle] { high = middle } else { low = middle + 1 }
    }
    return low < sorted.count ? sorted[low] : nil
  }
}

extension ScriptHost {
  /// Makes an op, or a flow, known to scripts: they find it in `flow.ops` by its name and use it like
  /// one of their own. A name that is registered already ends the process with a sentence.
  ///
  /// - Parameter op: An op, or a typed op, that takes no arguments; see `OpClass` for those that do.
  public func register(_ op: some OpConvertible) {
    registry.add(op.makeOp())
  }

  /// Makes a class of ops known to scripts: they call `flow.ops.NAME(…)` to make one. A name that is
  /// registered already ends the process with a sentence.
  ///
  /// - Parameter opClass: The class.
  public func register(_ opClass: OpClass) {
    registry.add(opClass.asOp())
  }

  /// What `flow.ops.NAME` gives: the op, and nil for an unknown name, as a table would.
  static func registryProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard call.object(1, host.types.registry) != nil else {
      throw Arguments(host, call, method: "__index").wrongSelf("ops")
    }
    guard let name = call.string(2), let op = host.registry[ByteString(name)] else {
      return call.answer(.nil)
    }
    return call.answer(try host.value(of: op))
  }

  static var registryMetamethods: LuaFields<BoundMethod> {
    [
      "__newindex": BoundMethod { host, call in
        throw host.usage(
          call, "flow.ops is read-only: the program that runs the script registers what is in it")
      },
      "__tostring": BoundMethod { _, call in call.answer(.string("flow.ops")) },
      "__pairs": BoundMethod { host, call in
        let iterator =
          try host.registry.iterator ?? host.vm.makeFunction(host.bind(ScriptHost.nextOp))
        host.registry.iterator = iterator
        let ops = try host.vm.value(of: host.registry, host.types.registry)
        return call.answer([.reference(iterator), ops, .nil])
      },
    ]
  }

  /// `next` for `flow.ops`, in the order of the names.
  private static func nextOp(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    let last = call.string(2).map { ByteString($0) }
    guard let name = host.registry.name(after: last), let op = host.registry[name] else {
      return call.answer(.nil)
    }
    return call.answer([.string(LuaString(name)), try host.value(of: op)])
  }
}
