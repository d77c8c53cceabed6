/// A Swift type that can be stored in a data bucket and read from it.
public protocol FlowValueConvertible {
  /// The name of the type in declarations: one that `FlowValueType` can parse.
  static var flowTypeName: String { get }
  /// The name of the expected type in a line, when a value of `flowTypeName` still isn't one of
  /// this Swift type; by default the same.
  static var flowWantedName: String { get }
  /// Converts a value to this type; nil when it is of another type.
  init?(flowValue: FlowValue)
  var flowValue: FlowValue { get }
}

extension FlowValueConvertible {
  public static var flowWantedName: String { flowTypeName }
}

extension Bool: FlowValueConvertible {
  public static var flowTypeName: String { "boolean" }

  public init?(flowValue: FlowValue) {
    guard case .boolean(let value) = flowValue else { return nil }
    self = value
  }

  public var flowValue: FlowValue { .boolean(self) }
}

extension Int64: FlowValueConvertible {
  public static var flowTypeName: String { "integer" }

  public init?(flowValue: FlowValue) {
    guard case .integer(let value) = flowValue else { return nil }
    self = value
  }

  public var flowValue: FlowValue { .integer(self) }
}

extension Int: FlowValueConvertible {
  public static var flowTypeName: String { "integer" }

  public init?(flowValue: FlowValue) {
    guard case .integer(let value) = flowValue else { return nil }
    self.init(exactly: value)
  }

  public var flowValue: FlowValue { .integer(Int64(self)) }
}

/// An integer of the bucket is a number too, as in Lua.
extension Double: FlowValueConvertible {
  public static var flowTypeName: String { "number" }

  public init?(flowValue: FlowValue) {
    switch flowValue {
    case .number(let value): self = value
    case .integer(let value): self = Double(value)
    default: return nil
    }
  }

  public var flowValue: FlowValue { .number(self) }
}

extension ByteString: FlowValueConvertible {
  public static var flowTypeName: String { "string" }

  public init?(flowValue: FlowValue) {
    guard case .bytes(let value) = flowValue else { return nil }
    self = value
  }

  /// The bytes as they are.
  public var flowValue: FlowValue { .bytes(self) }
}

/// Only bytes that are UTF-8 become a `String`; take a `ByteString` for others.
extension String: FlowValueConvertible {
  public static var flowTypeName: String { "string" }
  public static var flowWantedName: String { "string in UTF-8" }

  public init?(flowValue: FlowValue) {
    guard case .bytes(let value) = flowValue,
      let text = String(validating: value.bytes, as: UTF8.self)
    else { return nil }
    self = text
  }

  public var flowValue: FlowValue { .bytes(ByteString(self)) }
}

extension Array: FlowValueConvertible where Element: FlowValueConvertible {
  public static var flowTypeName: String { Element.flowTypeName + "[]" }
  public static var flowWantedName: String { Element.flowWantedName + "[]" }

  public init?(flowValue: FlowValue) {
    guard case .opaque(let list) = flowValue, let count = list.listCount() else { return nil }
    self = []
    reserveCapacity(count)
    for value in list.elements(0..<count) {
      guard let element = Element(flowValue: value) else { return nil }
      append(element)
    }
  }

  public var flowValue: FlowValue { .opaque(ListValue(map(\.flowValue))) }
}
