public import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The ops written in Swift, by name: the contents of `flow.ops`.
final class OpRegistry {
  private var ops: [ByteString: Op] = [:]
  /// What to use instead of deprecated ones.
  private(set) var advice: [ByteString: ByteString] = [:]
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

  func add(
    _ op: Op, replacing: Bool, deprecated: String? = nil, file: StaticString = #fileID,
    line: UInt = #line
  ) {
    complete()
    if ops.updateValue(op, forKey: op.nameBytes) != nil, !replacing {
      misuse(
        "an op named '\(op.nameBytes)' is registered already: each has a name of its own",
        file: file, line: line)
    }
    advice[op.nameBytes] = deprecated.map { ByteString($0) }
    sorted = []
  }

  /// Removes an op; returns whether there was one of this name.
  func remove(_ name: ByteString) -> Bool {
    complete()
    sorted = []
    advice[name] = nil
    return ops.removeValue(forKey: name) != nil
  }

  /// Releases all ops: one that a script made keeps the host alive.
  func removeAll() {
    addBuiltIns = nil
    ops = [:]
    advice = [:]
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
  /// it like one of their own. Registering a name twice ends the process with a message, unless the second
  /// one is `replacing` the first.
  ///
  /// - Parameters:
  ///   - op: An op, or a typed op, that takes no arguments; see `OpClass` for those that do.
  ///   - replacing: Whether it takes the place of an op of the same name, such as one of flowlua's. Ops
  ///     and flows that scripts have already made keep the replaced one.
  ///   - deprecated: What to do instead, such as `use flow.ops.UploadOp`, if the op is deprecated: a script that reads
  ///     it from `flow.ops` is warned, in the way that `deprecations` says. nil for any other op.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public func register(
    _ op: some OpConvertible, replacing: Bool = false, deprecated: String? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    registry.add(
      op.makeOp(), replacing: replacing, deprecated: deprecated, file: file, line: line)
  }

  /// Makes a class of ops available to scripts: they call `flow.ops.NAME(…)` to make one.
  /// Registering a name twice ends the process with a message, unless the second one is `replacing` the
  /// first.
  ///
  /// - Parameters:
  ///   - opClass: The class.
  ///   - replacing: Whether it takes the place of an op or class of the same name, as of an op.
  ///   - deprecated: What to do instead if the class is deprecated, as of an op.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  public func register(
    _ opClass: OpClass, replacing: Bool = false, deprecated: String? = nil,
    file: StaticString = #fileID, line: UInt = #line
  ) {
    registry.add(
      opClass.asOp(), replacing: replacing, deprecated: deprecated, file: file, line: line)
  }

  /// Removes an op from `flow.ops`, also one of flowlua's. Ops and flows that scripts have already made
  /// with it keep it.
  ///
  /// - Parameter name: The name of the op or class.
  /// - Returns: Whether there was one of this name.
  @discardableResult
  public func unregister(_ name: String) -> Bool { registry.remove(ByteString(name)) }

  /// The value of `flow.ops.NAME`: the op, or nil for an unknown name, as in a table.
  static func registryProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    guard call.object(1, host.types.registry) != nil else {
      throw Arguments(host, call, method: "__index").wrongSelf("ops")
    }
    guard let name = call.bytes(2) else { return call.answer(.nil) }
    guard let op = host.registry[name] else {
      guard host.withholdsOp(name) else {
        // A name that is only tried, as for an older version, isn't nearly that of another op.
        let names = host.registry.names.map(\.description)
        guard let near = NearestName.of(name.description, in: names) else {
          return call.answer(.nil)
        }
        throw host.usage(call, "flow.ops.\(name) isn't there (did you mean '\(near)'?)")
      }
      throw host.usage(
        call, "flow.ops.\(name) isn't there: the host of the script doesn't allow it")
    }
    if let advice = host.registry.advice[name] {
      try host.noteDeprecation(of: "flow.ops.\(name)", advice, since: nil) { call.position }
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
    let last = call.bytes(2).map { $0 }
    guard let name = host.registry.name(after: last), let op = host.registry[name] else {
      return call.answer(.nil)
    }
    return call.answer([.string(name), try host.value(of: op)])
  }
}
