/// The types of the standard library that are encoded by their own code, although they are
/// `FlowValueConvertible`: that has other rules for their elements.
protocol StandardCodable {}

extension Array: StandardCodable {}
extension ArraySlice: StandardCodable {}
extension ContiguousArray: StandardCodable {}
extension Set: StandardCodable {}
extension Dictionary: StandardCodable {}
extension Optional: StandardCodable {}
extension Int8: StandardCodable {}
extension Int16: StandardCodable {}
extension Int32: StandardCodable {}
extension Int64: StandardCodable {}
extension Int: StandardCodable {}
extension UInt8: StandardCodable {}
extension UInt16: StandardCodable {}
extension UInt32: StandardCodable {}
extension UInt64: StandardCodable {}
extension UInt: StandardCodable {}
extension Float: StandardCodable {}
extension Double: StandardCodable {}
extension Bool: StandardCodable {}
extension String: StandardCodable {}

/// Any `Optional`.
protocol StandardOptional {
  static var absent: Any { get }
  var anyContent: Any? { get }
}

extension Optional: StandardOptional {
  static var absent: Any { Self.none as Any }
  var anyContent: Any? { self }
}
