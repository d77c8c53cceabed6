/// A Swift value of any type in a data bucket, such as an instance of a program's own class.
///
/// Ops of Swift read it with `OpContext.object`. Scripts can pass it on and store it under other
/// keys, but not look into it; the name of its type is its type in declarations:
/// `needs = { session = "Session" }`. It can't be copied, so it neither travels to workers nor is
/// kept in a store.
public final class ObjectValue: OpaqueValue {
  /// The value.
  public let content: Any

  /// Makes a value for a bucket.
  public init(_ content: Any) {
    self.content = content
  }

  /// The name of its Swift type.
  public var typeName: ByteString { ByteString(String(describing: type(of: content))) }

  /// Its `String(describing:)`.
  public func logText(limit: Int) -> ByteString {
    ByteString(String(describing: content)).truncated(to: limit)
  }

  public func matches(typeName: ByteString) -> Bool {
    typeName == self.typeName || typeName == "userdata"
  }

  public func listCount() -> Int? { nil }

  public func element(at index: Int) -> FlowValue { .null }

  public func plainCopy() -> PlainValue? { nil }

  /// Whether both hold the same instance of a class.
  public func isSame(as other: any OpaqueValue) -> Bool {
    if self === other { return true }
    guard type(of: content) is AnyClass, let other = other as? ObjectValue,
      type(of: other.content) is AnyClass
    else { return false }
    return content as AnyObject === other.content as AnyObject
  }
}

extension FlowValue {
  /// A Swift value of any type, which scripts can only pass on; see `ObjectValue`.
  public static func object(_ content: Any) -> FlowValue {
    if let value = content as? any OpaqueValue { return .opaque(value) }
    return .opaque(ObjectValue(content))
  }

  /// The Swift value that `object(_:)` was called with; nil when it is none, or of another type.
  public func object<Content>(as type: Content.Type = Content.self) -> Content? {
    guard case .opaque(let value) = self else { return nil }
    if let object = value as? ObjectValue { return object.content as? Content }
    return value as? Content
  }
}

extension DataBucket {
  /// The Swift value that was stored with `FlowValue.object` under a name; nil when there is none, or
  /// one of another type.
  public func object<Content>(
    _ name: ByteString, as type: Content.Type = Content.self
  ) -> Content? {
    self[name].flatMap { $0.object(as: type) }
  }
}
