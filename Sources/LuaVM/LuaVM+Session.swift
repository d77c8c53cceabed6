internal import CFlowLua
internal import CLua

/// An error that ended a chunk of a session: the raised value, with a traceback.
package struct LuaSessionError: Error {
  /// The raised value.
  package let error: any Error
  /// The stack where it was raised; nil if there was no memory for it.
  package let traceback: ByteString?
}

/// The chunks of a session. Later chunks see the local variables of earlier ones.
extension LuaVM {
  /// The table that keeps the variables.
  package func makeSessionScope() throws -> LuaReference {
    try enter()
    try check(flowlua_make_session_scope(state))
    return try popReference(running, .table)
  }

  /// Compiles a chunk whose text declares the earlier variables that it uses, and passes on its
  /// own; see `flowlua_load_session_chunk`.
  ///
  /// - Parameters:
  ///   - text: The functions around the chunk, and the chunk.
  ///   - name: Lua's chunk name.
  ///   - scope: The table of `makeSessionScope`.
  ///   - levels: The number of functions that enclose the chunk.
  ///   - keeper: The name by which the chunk calls the function that stores its variables.
  /// - Returns: The compiled chunk, a function.
  /// - Throws: A `LuaError` of code `syntax` with Lua's message.
  package func loadSessionChunk(
    _ text: ByteString, name: ByteString, scope: LuaReference, levels: Int, keeper: ByteString
  ) throws -> LuaReference {
    try enter()
    checkHome(scope)
    let status = text.bytes.withUnsafeBytes { bytes in
      withCName(name) { name in
        withCName(keeper) { keeper in
          // Never empty: there are functions around the chunk.
          bytes.baseAddress.map {
            flowlua_load_session_chunk(
              state, $0, bytes.count, name, scope.id, Int32(clamping: levels), keeper)
          } ?? Int32(FLOWLUA_NO_MEMORY)
        }
      }
    }
    try check(status)
    return try popReference(running, .function)
  }

  /// The value of a variable of an earlier chunk.
  package func sessionLocal(_ name: ByteString, in scope: LuaReference) throws -> LuaValue {
    try enter()
    checkHome(scope)
    try check(withCName(name) { flowlua_push_session_local(state, scope.id, $0) })
    return try popValue(running)
  }

  /// Calls a chunk without arguments. A wait inside it runs the scheduler.
  ///
  /// - Returns: All its results.
  /// - Throws: A `LuaSessionError`.
  package func callSessionChunk(_ function: LuaReference) throws -> [LuaValue] {
    try enter()
    checkHome(function)
    let lua = running
    var count: Int32 = 0
    let status = flowlua_call_session_chunk(state, function.id, &count)
    if status != LUA_OK {
      let error = takeError(status)
      var traceback: ByteString?
      if count == 1, case .string(let text)? = try? popValue(lua) { traceback = text }
      throw LuaSessionError(error: error, traceback: traceback)
    }
    defer { flowlua_pop(lua, count) }
    let first = lua_gettop(lua) - count + 1
    return try (0..<count).map { try value(in: lua, at: first + $0) }
  }
}
