internal import CFlowLua
internal import CLua

/// Functions of the stand-alone interpreter, beyond loading and calling.
extension LuaVM {
  /// The version of Lua, as the interpreter prints it.
  package static var copyright: String { String(cString: flowlua_copyright()) }

  /// The release of Lua: `5.4.4`.
  package static var release: String {
    copyright.split(separator: " ").dropFirst().first.map(String.init) ?? ""
  }

  /// Calls a script with the current arguments in the global table `arg`; drops its results.
  ///
  /// - Parameter function: The script's main chunk.
  /// - Throws: The error it raised, a string with a traceback; or an error if `arg` is no table.
  package func callScript(_ function: LuaReference) throws {
    try enter()
    checkHome(function)
    try check(flowlua_call_script(state, function.id))
  }

  /// Calls the value of a global variable.
  ///
  /// - Parameters:
  ///   - name: The variable's name.
  ///   - arguments: The arguments.
  ///   - traceback: Whether a string error gets the traceback that the stand-alone interpreter
  ///     adds.
  /// - Returns: All results.
  /// - Throws: The raised error.
  @discardableResult
  public func call(
    global name: String, _ arguments: [LuaValue] = [], traceback: Bool = false
  ) throws -> [LuaValue] {
    try enter()
    let lua = running
    var count: Int32 = 0
    let status = withRawValues(of: self, arguments) { raw in
      name.withCString {
        flowlua_call_global(state, $0, raw, Int32(arguments.count), traceback, &count)
      }
    }
    if status != LUA_OK { throw takeError(status) }
    defer { flowlua_pop(lua, count) }
    let first = lua_gettop(lua) - count + 1
    return try (0..<count).map { try value(in: lua, at: first + $0) }
  }

  /// Sets a global variable, with metamethods.
  package func assignGlobal(_ name: ByteString, _ value: LuaValue) throws {
    try enter()
    let status = withRawValues(of: self, [value]) { raw in
      withCName(name) { flowlua_assign_global(state, $0, raw) }
    }
    try check(status)
  }

  /// Reads a global variable, with metamethods.
  public func global(_ name: String) throws -> LuaValue {
    try enter()
    try check(name.withCString { flowlua_read_global(state, $0) })
    return try popValue(running)
  }

  /// Emits a warning, as the function `warn` does; `@on` and `@off` are control messages.
  package func warn(_ message: ByteString) throws {
    try enter()
    withCName(message) { lua_warning(running, $0, 0) }
  }

  /// A name as C reads it: up to the first zero byte.
  func withCName<Result>(
    _ name: ByteString, _ body: (UnsafePointer<CChar>) -> Result
  ) -> Result {
    (name.bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { bytes in
      // Never nil: there is at least one zero byte.
      bytes.baseAddress.map(body) ?? body("")
    }
  }
}
