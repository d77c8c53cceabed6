internal import CFlowLua

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
  package func waitPlace(of coroutine: LuaCoroutine) -> ByteString? {
    guard isUsable(coroutine), flowlua_coroutine_is_parked(coroutine.raw) else { return nil }
    let innermost = flowlua_coroutine_innermost(coroutine.raw)
    guard let text = try? popString(flowlua_traceback(state, innermost, nil, 0)) else { return nil }
    // One line for each level: `[C]: in function 'flow.sleep'`, `file:line: in local 'f'`.
    let lines = text.bytes.split(separator: UInt8(ascii: "\n")).dropFirst().map {
      Array($0.drop { $0 == UInt8(ascii: "\t") })
    }
    guard let first = lines.first, let parts = Self.parts(of: first) else { return nil }
    let caller = lines.dropFirst().compactMap { Self.parts(of: $0)?.place }
      .first { !$0.elementsEqual("[C]".utf8) }
    let name = parts.function.split(separator: UInt8(ascii: "'"), omittingEmptySubsequences: false)
    let function = name.count > 2 ? Array(name[1]) : Array("a function of C".utf8)
    guard let caller else { return ByteString(function) }
    return ByteString(function + Array(" at ".utf8) + Array(caller))
  }

  /// A line of a traceback: the place, and the description of the function.
  private static func parts(
    of line: [UInt8]
  ) -> (place: ArraySlice<UInt8>, function: ArraySlice<UInt8>)? {
    let mark = Array(": in ".utf8)
    guard line.count > mark.count else { return nil }
    for start in 0...line.count - mark.count
    where line[start..<start + mark.count].elementsEqual(mark) {
      return (line[..<start], line[(start + mark.count)...])
    }
    return nil
  }

  /// Whether the running code is that of a `__close`, or was called by one.
  package var runsClose: Bool { (try? enter()) != nil && flowlua_state_runs_close(state) }

  /// Whether a stopped coroutine was stopped in a `__close`, because its grace was over.
  package func hasCutClose(_ coroutine: LuaCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_coroutine_has_cut_close(coroutine.raw)
  }

  /// Whether a parked coroutine waits in a `__close`, or in a function that it called.
  package func isClosing(_ coroutine: LuaCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_coroutine_is_closing(coroutine.raw)
  }

  /// `file:line: ` of the innermost Lua function at or above a level of a stack.
  func position(in lua: OpaquePointer, level: Int32) -> ByteString {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return ByteString([]) }
      let length = flowlua_where(lua, level, base, 160)
      return ByteString(Array(UnsafeRawBufferPointer(start: base, count: Int(length))))
    }
  }

  /// `file:line` for a `LuaCall.origin`.
  package func text(ofOrigin origin: UInt64) -> ByteString {
    guard (try? enter()) != nil else { return "?" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return ByteString([]) }
      let length = flowlua_origin_text(state, origin, base, 160)
      return ByteString(Array(UnsafeRawBufferPointer(start: base, count: Int(length))))
    }
  }
}
