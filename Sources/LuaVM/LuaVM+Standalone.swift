internal import CFlowLua
internal import CLua

/// What the stand-alone interpreter does beyond loading and calling.
extension LuaVM {
  /// The version of Lua, as the interpreter prints it.
  public static var copyright: String { String(cString: flowlua_copyright()) }

  /// Calls a script with the arguments that the global table `arg` holds by now; drops its results.
  ///
  /// - Parameter function: The script's main chunk.
  /// - Throws: What it raised, a string with a traceback; or that `arg` is no table.
  public func callScript(_ function: LuaReference) throws {
    try enter()
    checkHome(function)
    try check(flowlua_call_script(host, function.id))
  }

  /// Calls what a global variable holds.
  ///
  /// - Parameters:
  ///   - name: The variable's name.
  ///   - arguments: What it is called with.
  ///   - traceback: Whether a string error gets the traceback that the stand-alone interpreter adds.
  /// - Returns: All results.
  /// - Throws: What was raised.
  @discardableResult
  public func call(
    global name: LuaString, _ arguments: [LuaValue] = [], traceback: Bool = false
  ) throws -> [LuaValue] {
    try enter()
    let lua = running
    var count: Int32 = 0
    let status = withRawValues(of: self, arguments) { raw in
      withCName(name) {
        flowlua_call_global(host, $0, raw, Int32(arguments.count), traceback, &count)
      }
    }
    if status != LUA_OK { throw takeError(status) }
    defer { flowlua_pop(lua, count) }
    let first = lua_gettop(lua) - count + 1
    return try (0..<count).map { try value(in: lua, at: first + $0) }
  }

  /// Sets a global variable, with metamethods.
  public func assignGlobal(_ name: LuaString, _ value: LuaValue) throws {
    try enter()
    let status = withRawValues(of: self, [value]) { raw in
      withCName(name) { flowlua_assign_global(host, $0, raw) }
    }
    try check(status)
  }

  /// Reads a global variable, with metamethods.
  public func global(_ name: LuaString) throws -> LuaValue {
    try enter()
    try check(withCName(name) { flowlua_read_global(host, $0) })
    return try popValue(running)
  }

  /// Emits a warning, as the function `warn` does; `@on` and `@off` are control messages.
  public func warn(_ message: LuaString) throws {
    try enter()
    withCName(message) { lua_warning(running, $0, 0) }
  }

  /// A name as C has it: it ends at the first zero byte.
  func withCName<Result>(
    _ name: LuaString, _ body: (UnsafePointer<CChar>) -> Result
  ) -> Result {
    (name.bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { bytes in
      // Never nil: there is a zero byte at least.
      bytes.baseAddress.map(body) ?? body("")
    }
  }
}
