/// A property of type `FlowValue` takes part of any form: `FlowValue(encoding:)` and `decoded(as:)` pass it on
/// unchanged, other coders encode its content.
extension FlowValue: Codable {
  public init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: FieldKey.self) {
      let fields = try container.allKeys.map {
        (ByteString($0.stringValue), try container.decode(Value.self, forKey: $0))
      }
      self = .opaque(MapValue(fields))
    } else if let elements = try? [Value](from: decoder) {
      self = .opaque(ListValue(elements))
    } else {
      self = try Self.scalar(in: try decoder.singleValueContainer())
    }
  }

  private static func scalar(in container: any SingleValueDecodingContainer) throws -> FlowValue {
    if container.decodeNil() { return .jsonNull }
    if let flag = try? container.decode(Bool.self) { return .boolean(flag) }
    if let integer = try? container.decode(Int64.self) { return .integer(integer) }
    if let number = try? container.decode(Double.self) { return .number(number) }
    return .bytes(ByteString(try container.decode(String.self)))
  }

  /// Encodes the content. Encoders of other formats write a table at each place that refers to it, so a
  /// few shared tables may become any amount of output.
  ///
  /// - Throws: An `EncodingError` for a value that has no such form, and for tables nested deeper than 200 levels. Also
  ///   as soon as the content exceeds the limit `CodingUserInfoKey.flowValueSizeLimit`.
  public func encode(to encoder: any Encoder) throws {
    if encoder is ValueEncoding {
      var container = encoder.singleValueContainer()
      return try container.encode(self)
    }
    try EncodedPart(
      value: self, depth: encoder.codingPath.count, budget: EncodingBudget(of: encoder)
    ).encode(to: encoder)
  }
}

extension CodingUserInfoKey {
  /// The limit of the content of one `FlowValue` that is encoded, an `Int` in the `userInfo` of the encoder.
  ///
  /// Each element and field counts 16 bytes, a string and the name of a field their length. The default is
  /// 16 MiB.
  ///
  /// ```swift
  /// let encoder = JSONEncoder()
  /// encoder.userInfo[.flowValueSizeLimit] = 1 << 20
  /// ```
  ///
  /// `FlowValue(encoding:)` stores values as they are, and needs no limit.
  public static let flowValueSizeLimit: CodingUserInfoKey = {
    guard let key = CodingUserInfoKey(rawValue: "flowValueSizeLimit") else {
      misuse("a key has a name")
    }
    return key
  }()
}

/// A value within the one that is encoded: all its parts share a budget.
private struct EncodedPart: Encodable {
  let value: FlowValue
  /// The count of the encoder's path, which some encoders make at each call.
  let depth: Int
  let budget: EncodingBudget

  func encode(to encoder: any Encoder) throws {
    if case .opaque(let table) = value, !value.isSecret, table.matches(typeName: "table") {
      return try encode(table, to: encoder)
    }
    var container = encoder.singleValueContainer()
    switch value {
    case .null: try container.encodeNil()
    case .boolean(let flag): try container.encode(flag)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .bytes(let bytes):
      try budget.spend(bytes.count, on: value, encoder)
      try container.encode(bytes)
    case .opaque where value.isJSONNull: try container.encodeNil()
    case .opaque(let object): throw value.problem("a value of type \(object.typeName)", encoder)
    }
  }

  private func encode(_ table: any OpaqueValue, to encoder: any Encoder) throws {
    guard depth < CodingPath.depthLimit else {
      throw value.problem("a table nested deeper than \(CodingPath.depthLimit) levels", encoder)
    }
    if !(table is MapValue), let count = table.listCount() {
      try budget.spend(count, 16, on: value, encoder)
      var container = encoder.unkeyedContainer()
      for element in table.elements(0..<count) {
        try container.encode(part(element))
      }
      return
    }
    let entries = table.entries() ?? []
    try budget.spend(entries.count, 16, on: value, encoder)
    var container = encoder.container(keyedBy: FieldKey.self)
    for (key, value) in entries {
      let name = key.logText
      try budget.spend(name.count, on: self.value, encoder)
      try container.encode(part(value), forKey: FieldKey(name.description))
    }
  }

  private func part(_ value: FlowValue) -> Self {
    Self(value: value, depth: depth + 1, budget: budget)
  }
}

/// The part of the limit of an encoding that is left.
private final class EncodingBudget {
  private let limit: Int
  private var rest: Int

  init(of encoder: any Encoder) {
    limit = encoder.userInfo[.flowValueSizeLimit] as? Int ?? 16 << 20
    rest = limit
  }

  /// Spends `count` times `size`. The encoder has written nothing of it yet.
  func spend(_ count: Int, _ size: Int = 1, on value: FlowValue, _ encoder: any Encoder) throws {
    guard count <= rest / size else {
      throw value.problem("content beyond the limit of \(limit) (flowValueSizeLimit)", encoder)
    }
    rest -= count * size
  }
}

extension FlowValue {
  fileprivate func problem(_ what: String, _ encoder: any Encoder) -> EncodingError {
    .invalidValue(
      self, .init(codingPath: encoder.codingPath, debugDescription: "can't encode \(what)"))
  }
}

/// The key of any field.
private struct FieldKey: CodingKey {
  let stringValue: String

  init(_ name: String) {
    stringValue = name
  }

  init?(stringValue: String) {
    self.stringValue = stringValue
  }

  init?(intValue: Int) {
    stringValue = String(intValue)
  }

  var intValue: Int? { nil }
}

/// The place of a value that is encoded or decoded: the keys and indices that lead to it.
///
/// Each place refers to the one around it, so a container costs no copy of the path.
final class CodingPath: Sendable {
  /// The place of the whole value.
  static let root = CodingPath(nil, nil)

  /// Swift types recurse, with some KiB of stack for each level.
  static let depthLimit = 200

  private let parent: CodingPath?
  private let key: (any CodingKey)?
  let depth: Int

  private init(_ parent: CodingPath?, _ key: (any CodingKey)?) {
    self.parent = parent
    self.key = key
    depth = parent.map { $0.depth + 1 } ?? 0
  }

  /// The place of a part.
  func appending(_ key: some CodingKey) -> CodingPath { CodingPath(self, key) }

  /// The place of an element.
  func appending(index: Int) -> CodingPath { appending(IndexKey(index)) }

  var keys: [any CodingKey] {
    var keys: [any CodingKey] = []
    var next: CodingPath? = self
    while let place = next {
      if let key = place.key { keys.append(key) }
      next = place.parent
    }
    return keys.reversed()
  }

  /// `.items[2].n`: the path as code would write it, with indices from 1, as scripts count, and integer
  /// keys as they are.
  static func text(of keys: [any CodingKey]) -> ByteString {
    keys.reduce(into: ByteString("")) { text, key in
      text =
        switch key {
        case let key as IndexKey: "\(text)[\(key.index + 1)]"
        case is NumberKey: "\(text)[\(key.stringValue)]"
        default: "\(text).\(key.stringValue)"
        }
    }
  }
}

/// The 0-based index of an element, as a key.
struct IndexKey: CodingKey {
  let index: Int

  init(_ index: Int) {
    self.index = index
  }

  init?(stringValue: String) { nil }

  init?(intValue: Int) {
    index = intValue
  }

  var intValue: Int? { index }
  /// As Swift's own errors show it.
  var stringValue: String { "Index \(index)" }
}

/// The integer key of a table.
struct NumberKey: CodingKey {
  let number: Int64

  init(_ number: Int64) {
    self.number = number
  }

  init?(stringValue: String) {
    guard let number = Int64(stringValue) else { return nil }
    self.number = number
  }

  init?(intValue: Int) {
    number = Int64(intValue)
  }

  var intValue: Int? { Int(exactly: number) }
  var stringValue: String { String(number) }
}

/// The key of the part of a class that its superclass encodes.
struct SuperKey: CodingKey {
  init() {}
  init?(stringValue: String) { nil }
  init?(intValue: Int) { nil }

  var intValue: Int? { nil }
  var stringValue: String { "super" }
}

// Dictionaries with integer keys: tables with integer keys. By their own code they would be encoded as tables with
// the texts of the keys, or, for other types than `Int`, as lists.

extension Dictionary: EncodableByNumber where Key: FixedWidthInteger, Value: Encodable {
  func encoded(by encoding: ValueEncoding) throws -> FlowValue {
    let map = MapValue()
    for (key, content) in self {
      guard case .integer(let number) = try encoding.integer(key) else { continue }
      map.set(number, try encoding.part(NumberKey(number)).value(of: content))
    }
    return .opaque(map)
  }
}

extension Dictionary: DecodableByNumber where Key: FixedWidthInteger, Value: Decodable {
  /// Integers as texts are keys, too. Where both are there, the integer counts.
  init(decodedBy decoding: ValueDecoding) throws {
    self = [:]
    let entries = try decoding.entries()
    reserveCapacity(entries.count)
    var numbers: [(number: Int64, content: FlowValue)] = []
    for (key, content) in entries {
      switch key {
      case .integer(let number): numbers.append((number, content))
      case .bytes(let name):
        guard let number = Int64(name.description), String(number) == name.description else {
          throw decoding.wrongKey(Key.self, "string")
        }
        self[try decoding.key(number)] = try decoding.content(content, NumberKey(number))
      default: throw decoding.wrongKey(Key.self, key.typeName)
      }
    }
    for (number, content) in numbers {
      self[try decoding.key(number)] = try decoding.content(content, NumberKey(number))
    }
  }
}

extension ValueDecoding {
  fileprivate func key<Key: FixedWidthInteger>(_ number: Int64) throws -> Key {
    guard let key = Key(exactly: number) else { throw wrongKey(Key.self, "integer") }
    return key
  }

  fileprivate func content<Content: Decodable>(
    _ value: FlowValue, _ key: NumberKey
  ) throws -> Content {
    try part(value, key, of: Content.self).decode(Content.self)
  }

  fileprivate func wrongKey(_ type: Any.Type, _ got: ByteString) -> DecodingError {
    .typeMismatch(
      type,
      .init(
        codingPath: path.keys,
        debugDescription: "\(type) expected as key, got \(got == "integer" ? "another " : "")\(got)"
      ))
  }
}

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

/// The types of Foundation whose own form isn't the one that scripts expect.
///
/// They are recognized by their names, because the engine is independent of Foundation; and only where a
/// type has encoded itself as one of these types does, so that others cost nothing.
enum FoundationForms {
  /// `Date` encodes itself as the seconds since 2001. Values have those since 1970, as scripts get them from
  /// `os.time`.
  static let secondsTo2001: Double = 978_307_200

  /// `URL` encodes itself as a table with this field. Values have the text alone.
  static let linkField: ByteString = "relative"

  static func isDate(_ type: Any.Type) -> Bool { has(type, "Date") }

  static func isLink(_ type: Any.Type) -> Bool { has(type, "URL") }

  private static func has(_ type: Any.Type, _ name: String) -> Bool {
    let full = String(reflecting: type)
    return full == "Foundation.\(name)" || full == "FoundationEssentials.\(name)"
  }
}
