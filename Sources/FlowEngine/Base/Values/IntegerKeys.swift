// Dictionaries with integer keys: tables with integer keys. By their own code they would be encoded as tables with
// the texts of the keys, or, for other types than `Int`, as lists.

extension Dictionary: EncodableByNumber where Key: FixedWidthInteger, Value: Encodable {
  func encoded(by encoding: ValueEncoding) throws -> FlowValue {
    let map = MapValue([])
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
      default: throw decoding.wrongKey(Key.self, key.typeNameBytes)
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
