public import FlowEngine
internal import LuaVM

/// The ops written in Swift, by name: the contents of `flow.ops`.
final class OpRegistry {
  private var ops: [ByteString: Op] = [:]
  /// Adds the ops of flowlua; called when an op is first added or looked up.
  var addBuiltIns: (() -> Void)?
  /// The names in order; empty until they are needed.
  private var sorted: [ByteString] = []
  /// The function that `pairs(flow.ops)` calls; made on first use.
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

  /// Releases all ops: one that a script made keeps the host alive.
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

  /// The name after `name`, or the first one for nil; a name needn't be known.
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
  /// Makes an op, or a flow, available to scripts: they find it in `flow.ops` by its name and use
  /// it like one of their own. Registering a name twice ends the process with a message.
  ///
  /// - Parameter op: An op, or a typed op, that takes no arguments; see `OpClass` for those that do.
  public func register(_ op: some OpConvertible) {
    registry.add(op.makeOp())
  }

  /// Makes a class of ops available to scripts: they call `flow.ops.NAME(…)` to make one.
  /// Registering a name twice ends the process with a message.
  ///
  /// - Parameter opClass: The class.
  public func register(_ opClass: OpClass) {
    registry.add(opClass.asOp())
  }

  /// The value of `flow.ops.NAME`: the op, or nil for an unknown name, as in a table.
  static func registryProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard call.object(1, host.types.registry) != nil else {
      throw Arguments(host, call, method: "__index").wrongSelf("ops")
    }
    guard let name = call.string(2), let op = host.registry[name] else {
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
    let last = call.string(2).map { $0 }
    guard let name = host.registry.name(after: last), let op = host.registry[name] else {
      return call.answer(.nil)
    }
    return call.answer([.string(name), try host.value(of: op)])
  }
}
