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
  ///   - status: The status that the failed operation has returned.
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
          let shown = try? ownText(of: value)
        {
          return shown
        }
      }
      return ByteString("(error object is a \(reference.kind.name) value)")
    case .number: return (try? tostring(value)) ?? "(error object is a number value)"
    case .nil: return "(error object is a nil value)"
    case .boolean: return "(error object is a boolean value)"
    case .reference(let reference):
      return ByteString("(error object is a \(reference.kind.name) value)")
    }
  }
}

/// The places of code, for messages.
extension LuaVM {
  /// Where a function was defined, as `file:line`; nil for one of C.
  package func place(of function: LuaReference) -> ByteString? {
    checkHome(function)
    guard (try? enter()) != nil else { return nil }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return nil }
      let length = flowlua_where_defined(state, function.id, base, 160)
      // It ends with ": ".
      guard length > 2 else { return nil }
      return ByteString(buffer.prefix(Int(length) - 2).map { UInt8(bitPattern: $0) })
    }
  }

  /// The function in which a parked coroutine waits, and its place, as `flow.sleep at file:line`;
  /// nil if it isn't known.
  package func waitPlace(of coroutine: RunningCoroutine) -> ByteString? {
    guard isUsable(coroutine), flowlua_coroutine_is_parked(coroutine.raw) else { return nil }
    let innermost = flowlua_coroutine_innermost(coroutine.raw)
    guard let text = try? popString(flowlua_traceback(state, innermost, nil, 0)) else { return nil }
    // One line for each level: `[C]: in function 'flow.sleep'`, `file:line: in local 'f'`.
    let lines = text.bytes.split(separator: UInt8(ascii: "\n")).dropFirst().map {
      Array($0.drop { $0 == UInt8(ascii: "\t") })
    }
    guard let first = lines.first, let parts = Self.parts(of: first) else { return nil }
    let caller = lines.dropFirst().compactMap { Self.parts(of: $0)?.place }
      .first { !$0.equals("[C]") }
    let name = parts.function.split(at: "'")
    let function = name.count > 2 ? Array(name[1]) : "a function of C".bytes
    guard let caller else { return ByteString(function) }
    return ByteString(function + " at ".bytes + Array(caller))
  }

  /// A line of a traceback: the place, and the description of the function.
  private static func parts(
    of line: [UInt8]
  ) -> (place: ArraySlice<UInt8>, function: ArraySlice<UInt8>)? {
    let mark = ": in ".bytes
    guard line.count > mark.count else { return nil }
    for start in 0...line.count - mark.count
    where line[start..<start + mark.count].elementsEqual(mark) {
      return (line[..<start], line[(start + mark.count)...])
    }
    return nil
  }

  /// Whether the running code belongs to a `__close`, or was called by one.
  package var runsClose: Bool { (try? enter()) != nil && flowlua_state_runs_close(state) }

  /// Whether a stopped coroutine was stopped in a `__close`, because its grace was over.
  package func hasCutClose(_ coroutine: RunningCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_coroutine_has_cut_close(coroutine.raw)
  }

  /// Whether a parked coroutine waits in a `__close`, or in a function that it called.
  package func isClosing(_ coroutine: RunningCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_coroutine_is_closing(coroutine.raw)
  }

  /// `file:line: ` of the innermost Lua function at or above a level of a stack.
  func position(in lua: OpaquePointer, level: Int32) -> ByteString {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return ByteString([]) }
      let length = flowlua_where(lua, level, base, 160)
      return ByteString(UnsafeRawBufferPointer(start: base, count: Int(length)))
    }
  }

  /// `file:line` for a `LuaCall.origin`.
  package func text(ofOrigin origin: UInt64) -> ByteString {
    guard (try? enter()) != nil else { return "?" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return ByteString([]) }
      let length = flowlua_origin_text(state, origin, base, 160)
      return ByteString(UnsafeRawBufferPointer(start: base, count: Int(length)))
    }
  }
}
