/// A Swift type that can be stored in a data bucket and read from it.
///
/// ```swift
/// struct Euros: FlowValueConvertible {
///   static let flowTypeName = "integer"
///   let cents: Int64
///   init?(flowValue: FlowValue) {
///     guard case .integer(let cents) = flowValue else { return nil }
///     self.cents = cents
///   }
///   var flowValue: FlowValue { .integer(cents) }
/// }
/// ```
public protocol FlowValueConvertible {
  /// The name of the type in declarations: such as `integer` or `string[]`.
  static var flowTypeName: String { get }
  /// Converts a value to this type; nil when it is of another type.
  init?(flowValue: FlowValue)
  var flowValue: FlowValue { get }
}

/// A type with values of its `flowTypeName` that it doesn't take.
package protocol NarrowType {
  /// The name of the expected type in a line.
  static var narrowName: String { get }
}

extension FlowValueConvertible {
  /// The name of the expected type in a line, when a value of `flowTypeName` still isn't one of this Swift type.
  package static var flowWantedName: String {
    if let narrow = Self.self as? any NarrowType.Type { return narrow.narrowName }
    let isNarrow = Self.self is any RawRepresentable.Type || Self.self is any FixedWidthInteger.Type
    return isNarrow && Self.self != Int.self && Self.self != Int64.self
      ? String(describing: Self.self) : flowTypeName
  }
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

/// An integer of the bucket is a number too, as Lua has it.
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
extension String: FlowValueConvertible, NarrowType {
  public static var flowTypeName: String { "string" }
  package static var narrowName: String { "string in UTF-8" }

  public init?(flowValue: FlowValue) {
    guard case .bytes(let value) = flowValue,
      let text = String(validating: value.bytes, as: UTF8.self)
    else { return nil }
    self = text
  }

  public var flowValue: FlowValue { .bytes(ByteString(self)) }
}

extension Array: FlowValueConvertible, NarrowType where Element: FlowValueConvertible {
  public static var flowTypeName: String { Element.flowTypeName + "[]" }
  package static var narrowName: String { Element.flowWantedName + "[]" }

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

// Types composed of others.

/// nil represents an absent value; the null of JSON is read as nil, too.
extension Optional: FlowValueConvertible, NarrowType where Wrapped: FlowValueConvertible {
  public static var flowTypeName: String { Wrapped.flowTypeName + "?" }
  package static var narrowName: String { Wrapped.flowWantedName + "?" }

  public init?(flowValue: FlowValue) {
    if flowValue.isNull || (flowValue.isJSONNull && Wrapped(flowValue: flowValue) == nil) {
      self = .none
    } else if let value = Wrapped(flowValue: flowValue) {
      self = .some(value)
    } else {
      return nil
    }
  }

  public var flowValue: FlowValue { self?.flowValue ?? .null }
}

/// A table with string keys, read as a copy; a table with other keys is of another type.
extension Dictionary: FlowValueConvertible
where Key: FlowKeyConvertible, Value: FlowValueConvertible {
  public static var flowTypeName: String { "table" }

  public init?(flowValue: FlowEngine.FlowValue) {
    guard case .opaque(let opaque) = flowValue, let map = MapValue(copying: opaque) else {
      return nil
    }
    self = [:]
    for (name, value) in map.fields {
      guard let key = Key(flowKey: name), let value = Value(flowValue: value) else { return nil }
      self[key] = value
    }
  }

  public var flowValue: FlowEngine.FlowValue {
    .opaque(MapValue(map { ($0.flowKey, $1.flowValue) }))
  }
}

/// A Swift type that can name a field of a table.
///
/// ```swift
/// enum Currency: String, FlowKeyConvertible {
///   case euro, pound
///
///   init?(flowKey: ByteString) { self.init(rawValue: flowKey.description) }
///   var flowKey: ByteString { ByteString(rawValue) }
/// }
/// let prices = run.data.value("prices", as: [Currency: Int].self)
/// ```
public protocol FlowKeyConvertible: Hashable {
  /// nil when the bytes name nothing.
  init?(flowKey: ByteString)
  /// The key of this value.
  var flowKey: ByteString { get }
}

extension String: FlowKeyConvertible {
  public init?(flowKey: ByteString) { self.init(flowValue: .bytes(flowKey)) }
  public var flowKey: ByteString { ByteString(self) }
}

extension ByteString: FlowKeyConvertible {
  public init?(flowKey: ByteString) { self = flowKey }
  /// The bytes as they are.
  public var flowKey: ByteString { self }
}

/// An enum with raw values only has to declare it: `enum Plan: String, FlowValueConvertible`.
extension FlowValueConvertible where Self: RawRepresentable, RawValue: FlowValueConvertible {
  public static var flowTypeName: String { RawValue.flowTypeName }

  public init?(flowValue: FlowValue) {
    guard let rawValue = RawValue(flowValue: flowValue) else { return nil }
    self.init(rawValue: rawValue)
  }

  public var flowValue: FlowValue { rawValue.flowValue }
}

/// A copy of any value that can be copied; tables keep their cycles and shared parts.
extension PlainValue: FlowValueConvertible, NarrowType {
  public static var flowTypeName: String { "any" }
  package static var narrowName: String { "a value that can be copied" }

  public init?(flowValue: FlowValue) {
    guard let copy = flowValue.plainCopy() else { return nil }
    self = copy
  }

  /// The copy as a value of the engine. Keys that are neither strings nor integers become their texts.
  public var flowValue: FlowValue {
    let made: [any OpaqueValue] = tables.map { table in
      let isEmptyObject = table.list.isEmpty && table.mark == .object
      if table.entries.isEmpty && !isEmptyObject { return ListValue([], jsonMark: table.mark) }
      return MapValue(jsonMark: table.mark)
    }
    func value(_ atom: Atom) -> FlowValue {
      switch atom {
      case .null: .null
      case .jsonNull: .jsonNull
      case .boolean(let value): .boolean(value)
      case .integer(let value): .integer(value)
      case .number(let value): .number(value)
      case .bytes(let value): .bytes(value)
      case .table(let index): made.indices.contains(index) ? .opaque(made[index]) : .null
      case .secret(let atom): .secret(value(atom))
      }
    }
    for (table, object) in zip(tables, made) {
      if let list = object as? ListValue {
        for atom in table.list { list.append(value(atom)) }
      } else if let map = object as? MapValue {
        for (index, atom) in table.list.enumerated() { map.set(Int64(index + 1), value(atom)) }
        for entry in table.entries {
          if case .integer(let number) = entry.key {
            map.set(number, value(entry.value))
          } else {
            map.set(value(entry.key).logText, value(entry.value))
          }
        }
      }
    }
    return value(root)
  }
}

// Integers of every width: a number out of range is of another type.

extension FlowValueConvertible where Self: FixedWidthInteger {
  public static var flowTypeName: String { "integer" }

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
