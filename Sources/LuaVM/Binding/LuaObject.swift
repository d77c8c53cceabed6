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

/// Holds a structure for Lua.
protocol AnyValueBox: AnyObject {
  /// The structure as it is now.
  var anyValue: Any { get }
}

/// Holds a structure of one type for Lua.
@usableFromInline
final class ValueBox<Value>: AnyValueBox {
  @usableFromInline var value: Value
  var anyValue: Any { value }

  @usableFromInline
  init(_ value: Value) {
    self.value = value
  }
}

/// A class as one state knows it.
@usableFromInline
final class BoundClass {
  let type: LuaObjectType<AnyObject>
  /// The Swift type of its objects.
  @usableFromInline let swiftType: Any.Type
  /// Whether userdata hold a `ValueBox`, and not the object itself.
  @usableFromInline let isBoxed: Bool

  init(type: LuaObjectType<AnyObject>, swiftType: Any.Type) {
    self.type = type
    self.swiftType = swiftType
    isBoxed = !(swiftType is AnyClass)
  }

  /// What a userdata for an object holds.
  func content<Object>(of object: Object) -> AnyObject {
    // The layout of a class type is that of any reference to an object.
    isBoxed ? ValueBox(object) : unsafeBitCast(object, to: AnyObject.self)
  }

  /// The object of a userdata of this class, if it has this type.
  @inlinable
  func value<Object>(in content: AnyObject, as type: Object.Type = Object.self) -> Object? {
    if isBoxed {
      return swiftType == type ? unsafeDowncast(content, to: ValueBox<Object>.self).value : nil
    }
    // As above; other classes may be above this one.
    if swiftType == type { return unsafeBitCast(content, to: Object.self) }
    return content as? Object
  }
}

/// The classes that a state knows.
// Owner thread only, as all of the state.
@usableFromInline
final class BoundClasses {
  @exclusivity(unchecked) private var byType: [ObjectIdentifier: BoundClass] = [:]
  /// Those of Swift classes below them.
  @exclusivity(unchecked) private var nearest: [ObjectIdentifier: BoundClass] = [:]
  /// By the number of the type.
  @exclusivity(unchecked) private var byNumber: [BoundClass?] = []

  @usableFromInline
  subscript(number: Int32) -> BoundClass? {
    number >= 0 && number < byNumber.count ? byNumber[Int(number)] : nil
  }

  var isEmpty: Bool { byType.isEmpty }

  /// The class of exactly a type.
  func exact(_ type: Any.Type) -> BoundClass? { byType[ObjectIdentifier(type)] }

  func add(_ bound: BoundClass) {
    byType[ObjectIdentifier(bound.swiftType)] = bound
    nearest = [:]
    let number = Int(bound.type.id)
    while byNumber.count <= number { byNumber.append(nil) }
    byNumber[number] = bound
  }

  /// The class of an object, or the nearest one above it.
  func find(_ object: Any, _ type: Any.Type) -> BoundClass? {
    if let bound = exact(type) ?? nearest[ObjectIdentifier(type)] { return bound }
    guard type is AnyClass else { return nil }
    var above = Mirror(reflecting: object).superclassMirror
    while let mirror = above {
      if let bound = exact(mirror.subjectType) {
        nearest[ObjectIdentifier(type)] = bound
        return bound
      }
      above = mirror.superclassMirror
    }
    return nil
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
