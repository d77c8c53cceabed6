internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Throws the error that a failed operation has left.
  func check(_ status: Int32) throws {
    if status != LUA_OK { throw takeError(status) }
  }

  /// The error value on top of the running coroutine's stack, as a Swift error.
  func takeError(_ status: Int32) -> any Error {
    if status == FLOWLUA_NO_ROOM { return LuaError(.overflow, "stack overflow") }
    if status == FLOWLUA_NO_MEMORY { return LuaError(.memory, "not enough memory") }
    return takeError(status, from: running)
  }

  /// The error value on top of a stack, as a Swift error.
  ///
  /// - Parameters:
  ///   - status: What the failed operation has returned.
  ///   - lua: The stack.
  ///   - isDescribed: Whether to call the `__tostring` of a value that has one for the message.
  /// - Returns: The error.
  func takeError(
    _ status: Int32, from lua: OpaquePointer, isDescribed: Bool = true
  ) -> any Error {
    if let pointer = flowlua_object(state, lua, -1, failureType.id) {
      // A Swift error that passed through Lua.
      let box = Unmanaged<LuaFailureBox>.fromOpaque(pointer).takeUnretainedValue()
      flowlua_pop(lua, 1)
      return box.error
    }
    if status == LUA_ERRMEM, flowlua_has_exceeded_instructions(state) {
      flowlua_pop(lua, 1)
      return LuaError(.instructions, "instruction limit of \(instructionLimit ?? 0) exceeded")
    }
    let code: LuaError.Code =
      switch status {
      case LUA_ERRMEM: .memory
      case LUA_ERRSYNTAX: .syntax
      case LUA_ERRERR + 1: .file  // LUA_ERRFILE, a macro that isn't imported
      default: .runtime
      }
    do {
      let value = try popValue(lua)
      return LuaError(code, value: value, message: message(of: value, isDescribed: isDescribed))
    } catch {
      return error
    }
  }

  /// An error value as text, as the stand-alone interpreter shows it.
  func message(of value: LuaValue, isDescribed: Bool = true) -> ByteString {
    switch value {
    case .string(let string): return string
    case .integer(let integer): return ByteString(String(integer))
    case .reference(let reference) where reference.kind == .table || reference.kind == .userdata:
      // A `__tostring` may raise a value that has one itself, perhaps the same.
      if isDescribed, !isDescribingError {
        isDescribingError = true
        defer { isDescribingError = false }
        if let text = try? metafield("__tostring", of: reference), !text.isNil,
          let shown = try? tostringBytes(value)
        {
          return shown
        }
      }
      return ByteString("(error object is a \(reference.kind.name) value)")
    case .number: return (try? tostringBytes(value)) ?? "(error object is a number value)"
    case .nil: return "(error object is a nil value)"
    case .boolean: return "(error object is a boolean value)"
    case .reference(let reference):
      return ByteString("(error object is a \(reference.kind.name) value)")
    }
  }
}
