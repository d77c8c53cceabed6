// Integers of every width: a number out of range is of another type.

extension ValueConvertible where Self: FixedWidthInteger {
  public static var flowTypeName: ByteString { "integer" }
  public static var flowWantedName: ByteString { ByteString(String(describing: Self.self)) }

  public init?(flowValue: Value) {
    guard case .integer(let value) = flowValue else { return nil }
    self.init(exactly: value)
  }

  /// The integer; one above `Int64.max` becomes the nearest float.
  public var flowValue: Value {
    Int64(exactly: self).map { .integer($0) } ?? .number(Double(self))
  }
}

extension Int8: ValueConvertible {}
extension Int16: ValueConvertible {}
extension Int32: ValueConvertible {}
extension UInt8: ValueConvertible {}
extension UInt16: ValueConvertible {}
extension UInt32: ValueConvertible {}
extension UInt64: ValueConvertible {}
extension UInt: ValueConvertible {}

/// Rounded to the nearest `Float`. An integer of the bucket is a number too.
extension Float: ValueConvertible {
  public static var flowTypeName: ByteString { "number" }

  public init?(flowValue: Value) {
    guard let value = Double(flowValue: flowValue) else { return nil }
    self.init(value)
  }

  public var flowValue: Value { .number(Double(self)) }
}
