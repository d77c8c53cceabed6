/// A Swift value of any type in a data bucket; see `FlowValue.object`.
package final class ObjectValue: OpaqueValue {
  /// The value.
  package let content: Any

  /// Makes a value for a bucket.
  package init(_ content: Any) {
    self.content = content
  }

  /// The name of its Swift type.
  package var typeName: ByteString { ByteString(String(describing: type(of: content))) }

  /// Its `String(describing:)`.
  package func logText(limit: Int) -> ByteString {
    ByteString(String(describing: content)).truncated(to: limit)
  }

  package func matches(typeName: ByteString) -> Bool {
    typeName == "userdata" || Self.isNamed(typeName, content)
  }

  /// Whether `name` is the name of the type of a value, or of a class above it.
  package static func isNamed(_ name: ByteString, _ content: Any) -> Bool {
    if name == ByteString(String(describing: type(of: content))) { return true }
    guard type(of: content) is AnyClass else { return false }
    var above = Mirror(reflecting: content).superclassMirror
    while let mirror = above {
      if name == ByteString(String(describing: mirror.subjectType)) { return true }
      above = mirror.superclassMirror
    }
    return false
  }

  package func listCount() -> Int? { nil }

  package func element(at index: Int) -> FlowValue { .null }

  package func plainCopy() -> PlainValue? { nil }

  package func swiftObject() -> Any? { content }

  /// Whether both hold the same instance of a class.
  package func isSame(as other: any OpaqueValue) -> Bool {
    self === other || Self.isSame(content, other.swiftObject())
  }

  /// Whether both are the same instance of a class.
  package static func isSame(_ left: Any, _ right: Any?) -> Bool {
    guard let right, type(of: left) is AnyClass, type(of: right) is AnyClass else { return false }
    return left as AnyObject === right as AnyObject
  }

  package var identity: UInt { Self.identity(of: content, orOf: self) }

  /// The identity of an instance of a class; for any other value its holder's identity.
  package static func identity(of content: Any, orOf holder: AnyObject) -> UInt {
    UInt(
      bitPattern: ObjectIdentifier(type(of: content) is AnyClass ? content as AnyObject : holder))
  }
}

extension FlowValue {
  /// A Swift value of any type, such as an instance of a program's own class.
  ///
  /// Ops of Swift read it with `OpContext.object`. Scripts use it as an object if its class is defined in
  /// their state, see `LuaVM.define`; otherwise they can pass it on and store it under other keys, but not
  /// look into it. The name of its type, or of a class above it, is its type in declarations:
  /// `needs = { session = "Session" }`. It can't be copied, so it neither travels to workers nor is kept
  /// in a store.
  public static func object(_ content: Any) -> FlowValue {
    if let value = content as? any OpaqueValue { return .opaque(value) }
    return .opaque(ObjectValue(content))
  }

  /// The Swift value that `object(_:)` was called with, or that a script has stored as an object of a
  /// `LuaClass`; nil when it is none, or of another type.
  public func object<Content>(as type: Content.Type = Content.self) -> Content? {
    guard case .opaque(let value) = self else { return nil }
    return (value.swiftObject() ?? value) as? Content
  }
}

extension DataBucket {
  /// The Swift value that was stored with `FlowValue.object` under a name; nil when there is none, or
  /// one of another type.
  package func object<Content>(
    _ name: some FlowText, as type: Content.Type = Content.self
  ) -> Content? {
    self[name].flatMap { $0.object(as: type) }
  }
}
