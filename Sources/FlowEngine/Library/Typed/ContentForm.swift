/// The way in which the content of a declared key is stored in a data bucket.
protocol ContentForm<Content>: Sendable {
  associatedtype Content

  /// The name of the type in declarations.
  static var typeName: ByteString { get }
  /// The name of the expected type in a line.
  static var wantedName: ByteString { get }
  /// The content in a value; nil when the value is of another type.
  ///
  /// - Throws: An error that describes the part of the value that is of another type.
  static func content(of value: FlowValue) throws -> Content?
  /// The value of a content.
  static func value(of content: Content) throws -> FlowValue
}

/// A type that defines its conversion.
enum ConvertibleForm<Content: FlowValueConvertible>: ContentForm {
  static var typeName: ByteString { ByteString(Content.flowTypeName) }
  static var wantedName: ByteString { ByteString(Content.flowWantedName) }

  static func content(of value: FlowValue) -> Content? { Content(flowValue: value) }
  static func value(of content: Content) -> FlowValue { content.flowValue }
}

/// A type that is encoded and decoded.
enum CodableForm<Content: Codable>: ContentForm {
  static var typeName: ByteString { Content.self is any StandardOptional.Type ? "any?" : "any" }
  static var wantedName: ByteString { ByteString(String(describing: Content.self)) }

  static func content(of value: FlowValue) throws -> Content? {
    try value.decoded(as: Content.self)
  }
  static func value(of content: Content) throws -> FlowValue { try FlowValue(encoding: content) }
}

/// A Swift object.
enum ObjectForm<Content>: ContentForm {
  static var typeName: ByteString { Content.self is any StandardOptional.Type ? "any?" : "any" }
  static var wantedName: ByteString { ByteString(String(describing: Content.self)) }

  static func content(of value: FlowValue) -> Content? {
    if value.isNull { return (Content.self as? any StandardOptional.Type)?.absent as? Content }
    return value.object(as: Content.self)
  }

  static func value(of content: Content) -> FlowValue {
    guard let optional = content as? any StandardOptional else { return .object(content) }
    return optional.anyContent.map { .object($0) } ?? .null
  }
}
