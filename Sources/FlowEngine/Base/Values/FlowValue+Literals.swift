// Values written in Swift: `let order: FlowValue = ["article": "apples", "amount": 3, "note": .null]`.
//
// `nil` is no literal of a value: in `isThere ? value : nil` as a `FlowValue?` it would become a value.

extension FlowValue {
  /// The form of a Swift value in a data bucket.
  public init(_ content: some FlowValueConvertible) { self = content.flowValue }
}

/// Each value is one of type `any`.
extension FlowValue: FlowValueConvertible {
  public static var flowTypeName: String { "any" }

  public init?(flowValue: Value) { self = flowValue }

  /// The value itself.
  public var flowValue: Value { self }
}

extension FlowValue: ExpressibleByBooleanLiteral {
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

/// `1` is an integer, `1.0` a float.
extension FlowValue: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension FlowValue: ExpressibleByFloatLiteral {
  public init(floatLiteral value: Double) { self = .number(value) }
}

extension FlowValue: ExpressibleByStringInterpolation {
  public init(stringLiteral value: String) { self = .bytes(ByteString(value)) }
}

/// A list: a `ListValue`.
extension FlowValue: ExpressibleByArrayLiteral {
  public init(arrayLiteral elements: Value...) { self = .opaque(ListValue(elements)) }
}

/// A table with string keys: a `MapValue`. A later value replaces an earlier one under the same key.
extension FlowValue: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (String, FlowValue)...) {
    self = .opaque(MapValue(elements.map { (ByteString($0), $1) }))
  }
}

extension FlowValue {
  /// The value in a field of a table; nil when there is none, or this isn't a table.
  public subscript(name: String) -> Value? { self[ByteString(name)] }

  /// The same for a name that may have any bytes.
  package subscript(name: ByteString) -> Value? {
    guard case .opaque(let table) = self else { return nil }
    return table.field(name)
  }

  /// The value under an integer key of a table, where lists have the keys from 1 on; nil when there is none,
  /// or this isn't a table.
  public subscript(number number: Int64) -> FlowValue? {
    guard case .opaque(let table) = self else { return nil }
    if let map = table as? MapValue { return map[number].flatMap { $0.isNull ? nil : $0 } }
    if let count = table.listCount() {
      return number >= 1 && number <= Int64(count) ? table.element(at: Int(number - 1)) : nil
    }
    return table.entries()?.first { $0.key == .integer(number) }?.value
  }

  /// The element at a 0-based index of a list; nil when there is none, or this isn't a list.
  public subscript(index: Int) -> Value? {
    guard case .opaque(let list) = self, let count = list.listCount(), index >= 0, index < count
    else { return nil }
    return list.element(at: index)
  }
}
