public import FlowEngine
@_spi(Scripting) public import LuaVM

/// Conversion between objects of the engine and values of scripts.
extension ScriptHost {
  /// An op or a flow as scripts see it: always the same Lua value while Lua has it.
  ///
  /// - Parameter op: An op of any origin, such as one whose body is a Swift closure.
  /// - Returns: The op for a script, which can add it to a flow, start and run it.
  /// - Throws: A `LuaError` when memory runs out or the host is closed.
  public func value(of op: Op) throws -> LuaValue {
    if let flow = op as? Flow { return try vm.value(of: flow, types.flow) }
    if let machine = op as? MachineOp { return try vm.value(of: machine, types.machine) }
    return try vm.value(of: op, types.op)
  }

  /// A run as scripts see it: always the same Lua value while Lua has it.
  ///
  /// - Parameter run: A run on the loop of this host.
  /// - Returns: The value that `op:start()` would have returned.
  /// - Throws: A `LuaError` when memory runs out or the host is closed.
  public func value(of run: Run) throws -> LuaValue { try vm.value(of: run, types.run) }

  /// The op or flow in a value of a script; nil when it is something else.
  public func op(in value: LuaValue) -> Op? {
    guard isOwn(value) else { return nil }
    return vm.object(in: value, types.op) ?? vm.object(in: value, types.flow)
      ?? vm.object(in: value, types.machine)
  }

  /// The run in a value of a script; nil when it is something else.
  public func run(in value: LuaValue) -> Run? {
    isOwn(value) ? vm.object(in: value, types.run) : nil
  }

  /// Whether a value belongs to this host's state, if it belongs to any.
  private func isOwn(_ value: LuaValue) -> Bool {
    guard case .reference(let reference) = value else { return true }
    return reference.vm === vm
  }
}
