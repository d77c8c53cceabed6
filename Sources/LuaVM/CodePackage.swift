internal import CFlowLua

/// A Lua function with all it refers to, as bytes that any state can make it from: its code, and its
/// upvalues as they were when it was packed.
///
/// Numbers, strings, booleans, tables and Lua functions go as copies; cycles, sharing, variables that
/// closures share and metatables are kept. What stands in `package.loaded`, or there in a module's
/// table, goes by name and is required where the function is unpacked; the table of globals is the
/// other state's own. Made by `LuaVM.pack`.
public struct CodePackage: Sendable {
  /// Trusted: what isn't from `pack` may crash Lua, as any wrong bytecode does.
  let bytes: TransferBuffer

  /// How large it is, in bytes.
  public var count: Int { bytes.count }
}

extension LuaVM {
  /// Packs a function. Throws a `TravelError` that names what can't go.
  public func pack(_ function: LuaReference) throws -> CodePackage {
    try enter()
    checkHome(function)
    let buffer = TransferBuffer()
    var refusal = flowlua_refusal()
    try finishEncoding(
      flowlua_pack(host, function.id, &buffer.raw, &refusal), &refusal, isCode: true)
    return CodePackage(bytes: buffer)
  }

  /// Makes a packed function. Throws what requiring its modules raises.
  public func unpack(_ package: CodePackage) throws -> LuaReference {
    try enter()
    var problem: UnsafePointer<CChar>?
    let raw = package.bytes.raw
    try finishDecoding(flowlua_unpack(host, raw.bytes, raw.count, &problem), problem, at: 0)
    return try popReference(running, .function)
  }

  /// Finds out whether a function of this state refers to something else than when it was packed: the
  /// first upvalue that does; nil when all is the same. It takes about as long as packing.
  public func change(of function: LuaReference, since package: CodePackage) throws
    -> UpvalueChange?
  {
    try enter()
    checkHome(function)
    let raw = package.bytes.raw
    guard let bytes = raw.bytes else { return nil }
    var change = flowlua_refusal()
    let status = flowlua_find_change(host, function.id, bytes, raw.count, &change)
    secrets?.letGo()
    if status == Int32(FLOWLUA_REFUSED) { return UpvalueChange(&change) }
    try check(status)
    return nil
  }

  /// Lets functions that are unpacked here find their globals in a table of their own: those that are
  /// there now. Reading another raises, unless a module has defined it since; setting one raises.
  /// Modules and `load` have the true globals.
  public func guardGlobals() throws {
    try enter()
    try check(flowlua_guard_globals(host))
  }
}
