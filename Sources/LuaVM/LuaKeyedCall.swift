internal import CFlowLua
internal import CLua

/// A call of a method with a handle, a string that was interned, and perhaps a scalar or string: what a
/// script does most, ready to use. Valid only until the function returns.
public struct LuaKeyedCall {
  let raw: UnsafeMutablePointer<flowlua_keyed_call>

  /// What the handle carries.
  public var slot: UInt32 { raw.pointee.slot }
  /// What the handle carries.
  public var generation: UInt64 { raw.pointee.generation }
  /// The integer that `LuaCall.intern` keeps for the string.
  public var key: Int64 { raw.pointee.key }
  /// Whether there is a third argument.
  public var hasValue: Bool { raw.pointee.argument_count == 3 }

  /// The third argument: nil, a boolean, a number, or a string, which is copied.
  public var value: LuaValue {
    guard hasValue else { return .nil }
    return raw.pointee.value.kind == FLOWLUA_STRING ? .string(string) : raw.pointee.value.scalar
  }

  @inline(never)
  private var string: LuaString {
    let bytes = raw.pointee.value.pointer
    return LuaString(
      Array(UnsafeRawBufferPointer(start: bytes, count: Int(raw.pointee.value.integer))))
  }

  // MARK: Answers

  /// No results.
  public func answer() -> LuaKeyedAnswer { LuaKeyedAnswer(results: 0) }

  /// A boolean as the result.
  public func answer(_ flag: Bool) -> LuaKeyedAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_BOOLEAN)
    raw.pointee.value.integer = flag ? 1 : 0
    return LuaKeyedAnswer(results: 1)
  }

  /// An integer as the result.
  public func answer(_ integer: Int64) -> LuaKeyedAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_INTEGER)
    raw.pointee.value.integer = integer
    return LuaKeyedAnswer(results: 1)
  }

  /// A float as the result.
  public func answer(_ number: Double) -> LuaKeyedAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_NUMBER)
    raw.pointee.value.number = number
    return LuaKeyedAnswer(results: 1)
  }

  /// Bytes as the result; passes when there is no memory for them.
  public func answer(bytes: UnsafeRawBufferPointer) -> LuaKeyedAnswer {
    // The state is alive while it calls.
    let host = Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.host }
    raw.pointee.value.kind = Int32(FLOWLUA_STRING)
    raw.pointee.value.integer = Int64(bytes.count)
    raw.pointee.value.pointer = bytes.baseAddress
    let status = flowlua_push_protected(host, &raw.pointee.value)
    guard status == LUA_OK else {
      flowlua_discard_error(host, status)
      return pass()
    }
    return LuaKeyedAnswer(results: 1)
  }

  /// Nothing was done: the call is to be made as any other, which also finds what is wrong with it.
  public func pass() -> LuaKeyedAnswer { LuaKeyedAnswer(results: -1) }
}

/// What a keyed call answers. Made by the methods of `LuaKeyedCall`.
public struct LuaKeyedAnswer {
  let results: Int32
}

/// A method's way for keyed calls; a subclass says what it does.
// A class, because each call of a closure would retain what that holds.
open class LuaKeyedMethod {
  /// A method that passes every call.
  public init() {}

  /// Answers a call, or passes it.
  open func answer(_ call: LuaKeyedCall) -> LuaKeyedAnswer { call.pass() }
}
