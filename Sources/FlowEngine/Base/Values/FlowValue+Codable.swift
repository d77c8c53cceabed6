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

  public func encode(to encoder: any Encoder) throws {
    if case .opaque(let table) = self, !isSecret, table.matches(typeName: "table") {
      return try encode(table, to: encoder)
    }
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let flag): try container.encode(flag)
    case .integer(let integer): try container.encode(integer)
    case .number(let number): try container.encode(number)
    case .bytes(let bytes): try container.encode(bytes)
    case .opaque where isJSONNull: try container.encodeNil()
    case .opaque(let value): throw problem("a value of type \(value.typeName)", encoder)
    }
  }

  private func encode(_ table: any OpaqueValue, to encoder: any Encoder) throws {
    guard encoder.codingPath.count < CodingPath.depthLimit else {
      throw problem("a table nested deeper than \(CodingPath.depthLimit) levels", encoder)
    }
    if !(table is MapValue), let count = table.listCount() {
      var container = encoder.unkeyedContainer()
      for element in table.elements(0..<count) { try container.encode(element) }
      return
    }
    var container = encoder.container(keyedBy: FieldKey.self)
    for (key, value) in table.entries() ?? [] {
      try container.encode(value, forKey: FieldKey(key.logTextBytes.description))
    }
  }

  private func problem(_ what: String, _ encoder: any Encoder) -> EncodingError {
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
