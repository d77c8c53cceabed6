/// A Swift type that can be stored in a data bucket and read from it.
public protocol ValueConvertible {
  /// The name of the type in declarations: one that `ValueType` can parse.
  static var flowTypeName: ByteString { get }
  /// The name of the expected type in a line, when a value of `flowTypeName` still isn't one of
  /// this Swift type; by default the same.
  static var flowWantedName: ByteString { get }
  /// Converts a value to this type; nil when it is of another type.
  init?(flowValue: Value)
  var flowValue: Value { get }
}

extension ValueConvertible {
  public static var flowWantedName: ByteString { flowTypeName }
}

extension Bool: ValueConvertible {
  public static var flowTypeName: ByteString { "boolean" }

  public init?(flowValue: Value) {
    guard case .boolean(let value) = flowValue else { return nil }
    self = value
  }

  public var flowValue: Value { .boolean(self) }
}

extension Int64: ValueConvertible {
  public static var flowTypeName: ByteString { "integer" }

  public init?(flowValue: Value) {
    guard case .integer(let value) = flowValue else { return nil }
    self = value
  }

  public var flowValue: Value { .integer(self) }
}

extension Int: ValueConvertible {
  public static var flowTypeName: ByteString { "integer" }

  public init?(flowValue: Value) {
    guard case .integer(let value) = flowValue else { return nil }
    self.init(exactly: value)
  }

  public var flowValue: Value { .integer(Int64(self)) }
}

/// An integer of the bucket is a number too, as in Lua.
extension Double: ValueConvertible {
  public static var flowTypeName: ByteString { "number" }

  public init?(flowValue: Value) {
    switch flowValue {
    case .number(let value): self = value
    case .integer(let value): self = Double(value)
    default: return nil
    }
  }

  public var flowValue: Value { .number(self) }
}

extension ByteString: ValueConvertible {
  public static var flowTypeName: ByteString { "string" }

  public init?(flowValue: Value) {
    guard case .bytes(let value) = flowValue else { return nil }
    self = value
  }

  /// The bytes as they are.
  public var flowValue: Value { .bytes(self) }
}

/// Only bytes that are UTF-8 become a `String`; take a `ByteString` for others.
extension String: ValueConvertible {
  public static var flowTypeName: ByteString { "string" }
  public static var flowWantedName: ByteString { "string in UTF-8" }

  public init?(flowValue: Value) {
    guard case .bytes(let value) = flowValue,
      let text = String(validating: value.bytes, as: UTF8.self)
    else { return nil }
    self = text
  }

  public var flowValue: Value { .bytes(ByteString(self)) }
}

extension Array: ValueConvertible where Element: ValueConvertible {
  public static var flowTypeName: ByteString { Element.flowTypeName + "[]" }
  public static var flowWantedName: ByteString { Element.flowWantedName + "[]" }

  public init?(flowValue: Value) {
    guard case .opaque(let list) = flowValue, let count = list.listCount() else { return nil }
    self = []
    reserveCapacity(count)
    for value in list.elements(0..<count) {
      guard let element = Element(flowValue: value) else { return nil }
      append(element)
    }
  }

  public var flowValue: Value { .opaque(ListValue(map(\.flowValue))) }
}
