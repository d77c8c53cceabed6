internal import CFlowLua

/// A Lua function with everything it refers to, as bytes from which any state can make it: its
/// code, and the upvalues that it had when it was packed.
///
/// Numbers, strings, booleans, tables and Lua functions are copied; cycles, sharing, variables that
/// closures share and metatables are kept. A value in `package.loaded`, or in the table of a module
/// there, is packed by name and required where the function is unpacked. The other state has its own table of
/// globals. Made by `LuaVM.pack`.
package struct CodePackage: Sendable {
  /// Trusted: bytes that aren't from `pack` may crash Lua, as any wrong bytecode does.
  let bytes: EncodedBuffer

  /// A package that another process has made. The bytes must be those of `withUnsafeBytes` there: see `bytes`.
  package init(trusting bytes: [UInt8]) {
    self.bytes = EncodedBuffer(bytes)
  }

  fileprivate init(bytes: EncodedBuffer) {
    self.bytes = bytes
  }

  /// Lends its bytes, for another process with the same version of Lua.
  package func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try bytes.withUnsafeBytes(body)
  }

  /// The object that holds its bytes.
  package var storage: AnyObject { bytes }
  /// Whether something that it refers to is a secret.
  package var hasSecrets: Bool { bytes.hasSecrets }
  /// Its size in bytes.
  package var count: Int { bytes.count }
}

extension LuaVM {
  /// Packs a function. Throws an `EncodeError` that names a value that can't travel.
  package func pack(_ function: LuaReference) throws -> CodePackage {
    try enter()
    checkHome(function)
    let buffer = EncodedBuffer()
    var error = flowlua_encode_error()
    try finishEncoding(
      flowlua_pack(state, function.id, &buffer.raw, &error), &error, isCode: true)
    return CodePackage(bytes: buffer)
  }

  /// Makes a packed function. Throws any error that requiring its modules raises.
  package func unpack(_ package: CodePackage) throws -> LuaReference {
    try enter()
    var problem: UnsafePointer<CChar>?
    let raw = package.bytes.raw
    try finishDecoding(flowlua_unpack(state, raw.bytes, raw.count, &problem), problem, at: 0)
    return try popReference(running, .function)
  }

  /// Returns the first upvalue that has changed since a function of this state was packed; nil if
  /// none has. It takes about as long as packing.
  package func change(of function: LuaReference, since package: CodePackage) throws
    -> UpvalueChange?
  {
    try enter()
    checkHome(function)
    let raw = package.bytes.raw
    guard let bytes = raw.bytes else { return nil }
    var change = flowlua_encode_error()
    let status = flowlua_find_change(state, function.id, bytes, raw.count, &change)
    secrets?.releaseValues()
    if status == Int32(FLOWLUA_CHANGED) { return UpvalueChange(&change) }
    try check(status)
    return nil
  }

  /// Gives functions that are unpacked here a separate table of globals: those that exist now.
  /// Reading another raises, unless a module has defined it since; setting one raises. Modules and
  /// `load` have the true globals.
  package func guardGlobals() throws {
    try enter()
    try check(flowlua_guard_globals(state))
  }
}
