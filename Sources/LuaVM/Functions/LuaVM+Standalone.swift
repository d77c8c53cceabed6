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
  package func call(
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
      bytes.baseAddress.map(body) ?? body("" as String)
    }
  }
}

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

extension LuaVM {
  /// Adapts the standard libraries to a sandbox that the process has entered.
  ///
  /// - Parameters:
  ///   - deniesPrograms: Whether `io.popen` says "Permission denied", as the system lets the process start no programs.
  ///   - temporaryFolder: Where `os.tmpname` and `io.tmpfile` make files; nil for the usual folder.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func confine(deniesPrograms: Bool, temporaryFolder: ByteString?) throws {
    try enter()
    let folder = temporaryFolder.map { $0.bytes.map { CChar(bitPattern: $0) } + [0] }
    try check(flowlua_confine(state, deniesPrograms, folder))
  }
}

extension LuaVM {
  /// Shares a budget from now on, as long as the state has a limit of its own.
  package func share(_ budget: LuaMemoryBudget) {
    checkOwner()
    if isOpen { flowlua_share_budget(state, budget.budget) }
  }

  /// Returns room to the budget that the state doesn't use; first collects garbage if others need the room, or
  /// may: if one of them got less than it needed, or this state has taken much more than after the last time.
  /// Called where the state has nothing to do at the moment; `isBusy` says that it has unfinished work, for which
  /// it does this less often.
  ///
  /// - Returns: Whether garbage was collected, whose finalizers may have made something ready.
  @discardableResult
  package func settleBudget(isBusy: Bool = false) -> Bool {
    guard isOpen else { return false }
    var collects = flowlua_needs_settling(state, !isBusy)
    if collects {
      let began = Self.monotonicTime
      // Others may need room again and again: that must not take all the time of this state's own work.
      collects = !isBusy || began >= settlesFrom
      if collects {
        try? collectGarbage()
        let end = Self.monotonicTime
        settlesFrom = end.addingReportingOverflow((end - began) * 20).partialValue
      }
    }
    flowlua_settle(state, !isBusy, collects)
    return collects
  }
}
