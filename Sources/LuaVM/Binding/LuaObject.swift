internal import CFlowLua
internal import CLua

/// A Swift type whose values scripts hold as objects: a class, or a structure, which is copied where
/// Swift would copy it. A `LuaClass` says what scripts can do with them.
///
/// ```swift
/// final class Account: LuaObject { var balance = 0 }
/// try vm.define(LuaClass<Account>("Account") { $0.property("balance", writable: \.balance) })
/// ```
public protocol LuaObject: LuaValueConvertible {}

extension LuaObject {
  /// The object as userdata: always the same one for the same object of a class while Lua has it.
  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    let bound = try vm.boundClass(of: self)
    return try vm.value(of: bound.content(of: self), bound.type)
  }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> Self? {
    guard let (object, type) = try vm.anyObject(in: value) else { return nil }
    return vm.boundClasses[type]?.value(in: object)
  }

  @inlinable
  public static func fromArgument(_ index: Int, of call: LuaCall) throws -> Self {
    if let (object, type) = call.anyObject(index),
      let value = call.vm.boundClasses[type]?.value(in: object, as: Self.self)
    {
      return value
    }
    throw try call.mismatch(index, luaTypeName)
  }

  /// Adds the object to the results of a call, as `luaValue`.
  public func addResult(to call: LuaCall) throws {
    let bound = try call.vm.boundClass(of: self)
    call.addResult(bound.content(of: self), bound.type)
  }
}

extension LuaVM {
  /// The class that scripts see an object as.
  func boundClass<Object>(of object: Object) throws -> BoundClass {
    let type = Swift.type(of: object as Any)
    if let bound = boundClasses.find(object, type) { return bound }
    throw LuaError(
      .argument,
      ByteString(
        "objects of \(String(describing: type)) can't be passed to Lua before LuaVM.define has defined a class"
      ))
  }

  /// The userdata of a Swift value whose class this state knows; nil for any other value.
  package func boundValue(of content: Any) throws -> LuaValue? {
    guard !boundClasses.isEmpty, let object = content as? any LuaObject,
      boundClasses.find(object, type(of: object)) != nil
    else { return nil }
    return try object.luaValue(in: self)
  }

  /// The object of a class that this state knows in a value; nil for any other value.
  package func boundObject(in value: LuaValue) -> LuaBoundObject? {
    guard !boundClasses.isEmpty, let (object, number) = try? anyObject(in: value),
      let bound = boundClasses[number]
    else { return nil }
    return LuaBoundObject(content: object, isBoxed: bound.isBoxed, className: bound.type.name)
  }

  /// The Swift object in a value, and the number of its type; nil if it is none.
  func anyObject(in value: LuaValue) throws -> (object: AnyObject, type: Int32)? {
    guard case .reference(let reference) = value, reference.kind == .userdata else { return nil }
    try enter()
    checkHome(reference)
    try check(flowlua_make_room(state, running, 2))
    flowlua_push_reference(state, running, reference.id)
    defer { flowlua_pop(running, 1) }
    var type: Int32 = 0
    guard let pointer = flowlua_any_object(state, running, -1, &type) else { return nil }
    return (Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue(), type)
  }
}

/// An object of a class that a state knows. It holds the object, not the userdata.
package struct LuaBoundObject {
  /// The object, or the box of a structure: the same one as long as the userdata exists.
  package let content: AnyObject
  fileprivate let isBoxed: Bool
  /// The name of its class in scripts.
  package let className: String

  /// The object; of a structure a copy as it is now.
  package var object: Any {
    isBoxed ? (content as? any AnyValueBox)?.anyValue ?? content : content
  }
}
