package import FlowBytes

// The parts of a state for the files above it: the types of objects, the classes that are bound, and what is being
// encoded.

/// A Swift class whose objects scripts can hold. Made by `LuaVM.defineType`.
@_spi(Scripting) public struct LuaObjectType<Object: AnyObject> {
  /// The name in messages.
  public let name: String

  let id: Int32
}

/// A kind of handle: a userdata with a slot and a generation instead of a reference. It keeps
/// nothing alive, so nothing has to be released with it.
package struct LuaHandleType {
  /// The name in messages.
  package let name: String

  let id: Int32
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

  /// The content of a userdata for an object.
  func content<Object>(of object: Object) -> AnyObject {
    // A class type has the layout of any reference to an object.
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

/// How objects of one type travel.
final class SecretCoding {
  let type: Int32
  let unwrap: (UnsafeMutableRawPointer) -> LuaValue?
  let wrap: (LuaValue) -> UnsafeMutableRawPointer?
  /// Values that were taken out of secrets and haven't been written yet.
  var held: [LuaReference] = []

  init(
    type: Int32, unwrap: @escaping (UnsafeMutableRawPointer) -> LuaValue?,
    wrap: @escaping (LuaValue) -> UnsafeMutableRawPointer?
  ) {
    self.type = type
    self.unwrap = unwrap
    self.wrap = wrap
  }

  /// The values are written.
  func releaseValues() {
    if !held.isEmpty { held.removeAll() }
  }
}

/// Describes the things in a form of code that only the host knows.
package protocol LuaCodeDescriber: AnyObject {
  /// The value to be compared for an object of the host; nil when its type is all. It is asked once for
  /// each object, so an object may hold itself.
  func description(of object: AnyObject) throws -> LuaValue?
  /// Whether a module is a library of Lua or of the host: it stays the same while the state is open.
  func isLibrary(_ name: ByteString) -> Bool
  /// How the content of a module counts. A library counts by its name.
  func content(ofModule name: ByteString) throws -> LuaModuleContent
}

/// How the content of a module counts in a form of code.
package enum LuaModuleContent: Sendable {
  /// By the module's name alone, as a library of Lua.
  case name
  /// By the SHA-256 of its files, 32 bytes.
  case digest([UInt8])
  /// By its name, and that its file can't be read.
  case unreadable
  /// It has no file: values in it count as any other value.
  case values
}

/// A form of code that is being made.
final class CodeForming {
  let describer: any LuaCodeDescriber
  /// The descriptions of objects, until the form is complete.
  var held: [LuaReference] = []
  /// The describer's error.
  var error: (any Error)?

  init(_ describer: any LuaCodeDescriber) {
    self.describer = describer
  }
}
