internal import CFlowLua
internal import CLua

/// A call of a method with its object or handle, a key if the method takes one, and at most one
/// scalar, string or function: the arguments are ready to use. Valid only until the function
/// returns.
@_spi(Scripting) public struct LuaDirectCall {
  let raw: UnsafeMutablePointer<flowlua_direct_call>

  // MARK: Arguments

  /// The object, if it has this type.
  public func object<Object>(_ type: LuaObjectType<Object>) -> Object? {
    uncountedObject(type)?.takeUnretainedValue()
  }

  /// The object without a reference count of its own. Lua keeps the object as long as no script code
  /// runs; through the debug library, a script could remove it from the stack.
  public func uncountedObject<Object>(_ type: LuaObjectType<Object>) -> Unmanaged<Object>? {
    guard raw.pointee.type == type.id else { return nil }
    // Only objects of this class ever got the type's number.
    return .fromOpaque(raw.pointee.object)
  }

  /// The generation in the handle; 0 if the method is called on an object.
  public var generation: UInt64 { raw.pointee.generation }
  /// The slot in the handle. It means nothing if the generation is 0.
  public var slot: UInt32 { raw.pointee.slot }
  /// The integer that `LuaCall.intern` stores for the key, of a method that takes one.
  public var key: Int64 { raw.pointee.key }
  /// Whether there is a further argument.
  public var hasArgument: Bool { raw.pointee.has_value }
  /// Whether there is one that is a scalar or string.
  public var hasValue: Bool {
    hasArgument && Int(raw.pointee.value.kind) != FLOWLUA_ARGUMENT
  }

  /// Whether it is a string.
  public var isString: Bool { hasArgument && Int(raw.pointee.value.kind) == FLOWLUA_STRING }

  /// That scalar or string, which is copied; nil if there is none.
  public var value: LuaValue {
    guard hasValue else { return .nil }
    return raw.pointee.value.kind == FLOWLUA_STRING ? .string(string) : raw.pointee.value.scalar
  }

  @inline(never)
  private var string: ByteString {
    // C's context is the state's own address.
    Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef {
      $0.copiedText(raw.pointee.value.lentBytes)
    }
  }

  /// That argument if it is a function, for one owner; nil also if memory ran out.
  package func uniqueFunction() -> LuaUniqueReference? {
    guard hasArgument, Int(raw.pointee.value.kind) == FLOWLUA_ARGUMENT else { return nil }
    // A C function has room for 20 values beyond its arguments.
    let id = flowlua_share(raw.pointee.state, raw.pointee.L, raw.pointee.value.reference)
    guard id > 0 else { return nil }
    // C's context is the state's own address.
    return LuaUniqueReference(vm: .fromOpaque(raw.pointee.context), id: id)
  }

  /// The script's place; see `LuaCall.origin`.
  public var origin: UInt64 { flowlua_origin(raw.pointee.state, raw.pointee.L) }

  // MARK: Results

  /// No results.
  public func answer() -> LuaDirectAnswer { LuaDirectAnswer(results: 0) }

  /// Nil as the result.
  public func answerNil() -> LuaDirectAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_NIL)
    return LuaDirectAnswer(results: 1)
  }

  /// A boolean as the result.
  public func answer(_ flag: Bool) -> LuaDirectAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_BOOLEAN)
    raw.pointee.value.integer = flag ? 1 : 0
    return LuaDirectAnswer(results: 1)
  }

  /// An integer as the result.
  public func answer(_ integer: Int64) -> LuaDirectAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_INTEGER)
    raw.pointee.value.integer = integer
    return LuaDirectAnswer(results: 1)
  }

  /// A float as the result.
  public func answer(_ number: Double) -> LuaDirectAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_NUMBER)
    raw.pointee.value.number = number
    return LuaDirectAnswer(results: 1)
  }

  /// Bytes as the result; passes the call on if there is no memory for them.
  public func answer(bytes: UnsafeRawBufferPointer) -> LuaDirectAnswer {
    raw.pointee.value = flowlua_value(lending: bytes)
    if bytes.count <= Int(FLOWLUA_SHORT_TEXT) {
      withUnsafeMutableBytes(of: &raw.pointee.text) { text in
        text.copyMemory(from: bytes)
        raw.pointee.value.pointer = UnsafeRawPointer(text.baseAddress)
      }
      return LuaDirectAnswer(results: 1)
    }
    let status = flowlua_push_protected(raw.pointee.state, &raw.pointee.value)
    guard status == LUA_OK else {
      flowlua_discard_error(raw.pointee.state, status)
      return pass()
    }
    raw.pointee.value.pointer = nil
    return LuaDirectAnswer(results: 1)
  }

  /// A Swift object as the result: always the same userdata for the same object.
  public func answer<Object>(_ object: Object, _ type: LuaObjectType<Object>) -> LuaDirectAnswer {
    raw.pointee.value = flowlua_value(object, type)
    return LuaDirectAnswer(results: 1)
  }

  /// Declines: the call is made as a general one, which also finds any wrong arguments.
  public func pass() -> LuaDirectAnswer { LuaDirectAnswer(results: -1) }
}

/// The result of a direct call. Made by the methods of `LuaDirectCall`.
@_spi(Scripting) public struct LuaDirectAnswer {
  let results: Int32
}

/// A method's fast way for direct calls; a subclass implements it.
// A class, because each call of a closure would retain its captures.
@_spi(Scripting) open class LuaDirectMethod {
  /// Whether the first argument is a key: a string that is interned.
  public let takesKey: Bool

  /// A method that declines every call.
  public init(takesKey: Bool = false) {
    self.takesKey = takesKey
  }

  /// Performs a call, or declines it.
  open func answer(_ call: LuaDirectCall) -> LuaDirectAnswer { call.pass() }
}
