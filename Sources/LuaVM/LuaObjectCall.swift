internal import CFlowLua
internal import CLua

/// A call of a method with its object and at most one argument, a scalar or a function, ready to use.
/// Valid only until the function returns.
public struct LuaObjectCall {
  let raw: UnsafeMutablePointer<flowlua_object_call>

  // MARK: Arguments

  /// The object, if it is of this type.
  public func object<Object>(_ type: LuaObjectType<Object>) -> Object? {
    uncountedObject(type)?.takeUnretainedValue()
  }

  /// The same without a count of its own. Lua holds it as long as no script code runs: by
  /// the debug library that may take it off the stack.
  public func uncountedObject<Object>(_ type: LuaObjectType<Object>) -> Unmanaged<Object>? {
    guard raw.pointee.type == type.id else { return nil }
    // The type's number was only ever given to objects of this class.
    return .fromOpaque(raw.pointee.object)
  }

  /// Whether there is an argument besides the object.
  public var hasArgument: Bool { raw.pointee.argument_count == 2 }

  /// The argument when it is nil, a boolean or a number; nil as well without one.
  public var scalar: LuaScalar? {
    if !hasArgument { return .nil }
    return Int(raw.pointee.value.kind) == FLOWLUA_ARGUMENT ? nil : raw.pointee.value.plainScalar
  }

  /// The argument when it is a function, for one owner; nil also when memory ran out.
  public func uniqueFunction() -> LuaUniqueReference? {
    guard hasArgument, Int(raw.pointee.value.kind) == FLOWLUA_ARGUMENT else { return nil }
    // A C function has room for 20 values beyond its arguments.
    let id = flowlua_share(raw.pointee.host, raw.pointee.L, raw.pointee.value.reference)
    guard id > 0 else { return nil }
    // The state set its own address as C's context.
    return LuaUniqueReference(vm: .fromOpaque(raw.pointee.context), id: id)
  }

  /// Where the script is that calls; see `LuaCall.origin`.
  public var origin: UInt64 { flowlua_origin(raw.pointee.host, raw.pointee.L) }

  // MARK: Answers

  /// No results.
  public func answer() -> LuaObjectAnswer { LuaObjectAnswer(results: 0) }

  /// Nil, a boolean or a number as the result.
  public func answer(scalar: LuaScalar) -> LuaObjectAnswer {
    raw.pointee.value = flowlua_value(scalar)
    return LuaObjectAnswer(results: 1)
  }

  /// A Swift object as the result: always the same userdata for the same object.
  public func answer<Object>(_ object: Object, _ type: LuaObjectType<Object>) -> LuaObjectAnswer {
    raw.pointee.value.kind = Int32(FLOWLUA_OBJECT)
    raw.pointee.value.reference = type.id
    // Given back by C, or when the userdata is gone.
    raw.pointee.value.pointer = UnsafeRawPointer(
      Unmanaged<AnyObject>.passRetained(object).toOpaque())
    return LuaObjectAnswer(results: 1)
  }

  /// Nothing was done: the call is to be made as any other, which also finds what is wrong with it.
  public func pass() -> LuaObjectAnswer { LuaObjectAnswer(results: -1) }
}

/// What a call with an object answers. Made by the methods of `LuaObjectCall`.
public struct LuaObjectAnswer {
  let results: Int32
}

/// A method's way for calls with an object; a subclass says what it does.
// A class, because each call of a closure would retain what that holds.
open class LuaObjectMethod {
  /// A method that passes every call.
  public init() {}

  /// Answers a call, or passes it.
  open func answer(_ call: LuaObjectCall) -> LuaObjectAnswer { call.pass() }
}
