// Integers of every width: a number out of range is of another type.

extension FlowValueConvertible where Self: FixedWidthInteger {
  public static var flowTypeName: String { "integer" }
  public static var flowWantedName: String { String(describing: Self.self) }

  public init?(flowValue: FlowValue) {
    guard case .integer(let value) = flowValue else { return nil }
    self.init(exactly: value)
  }

  /// The integer; one above `Int64.max` becomes the nearest float.
  public var flowValue: FlowValue {
    Int64(exactly: self).map { .integer($0) } ?? .number(Double(self))
  }
}

extension Int8: FlowValueConvertible {}
extension Int16: FlowValueConvertible {}
extension Int32: FlowValueConvertible {}
extension UInt8: FlowValueConvertible {}
extension UInt16: FlowValueConvertible {}
extension UInt32: FlowValueConvertible {}
extension UInt64: FlowValueConvertible {}
extension UInt: FlowValueConvertible {}

/// Rounded to the nearest `Float`. An integer of the bucket is a number too.
extension Float: FlowValueConvertible {
  public static var flowTypeName: String { "number" }

  public init?(flowValue: FlowValue) {
    guard let value = Double(flowValue: flowValue) else { return nil }
    self.init(value)
  }

  public var flowValue: FlowValue { .number(Double(self)) }
}
