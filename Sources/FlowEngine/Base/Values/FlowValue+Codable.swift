/// A property of type `FlowValue` takes part of any form: `FlowValueEncoder` and `FlowValueDecoder` pass it on
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

  /// Encodes the content. Other encoders than `FlowValueEncoder` write a table at each place that refers to it, so a
  /// few shared tables may become any amount of output.
  ///
  /// - Throws: An `EncodingError` for a value that has no such form, for tables nested deeper than 200 levels, and for
  ///   content beyond the limit `CodingUserInfoKey.flowValueSizeLimit`, as soon as the encoder reaches the limit.
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
  /// `FlowValueEncoder` stores values as they are, and needs no limit.
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
      let name = key.logTextBytes
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
