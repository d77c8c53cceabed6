/// The decoder of one part of a value.
final class ValueDecoding: Decoder {
  let value: FlowValue
  let path: CodingPath
  let userInfo: [CodingUserInfoKey: Any]
  /// The type that is decoded.
  private let type: Any.Type

  init(
    _ value: FlowValue, at path: CodingPath, _ userInfo: [CodingUserInfoKey: Any],
    of type: Any.Type
  ) {
    self.value = value
    self.path = path
    self.userInfo = userInfo
    self.type = type
  }

  var codingPath: [any CodingKey] { path.keys }

  /// The decoder of a part.
  func part(_ value: FlowValue, _ key: some CodingKey, of type: Any.Type) -> ValueDecoding {
    ValueDecoding(value, at: path.appending(key), userInfo, of: type)
  }

  // MARK: Containers

  func container<Key>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    if case .bytes = value, FoundationForms.isLink(self.type) {
      let entries = [(key: FlowValue.bytes(FoundationForms.linkField), value: value)]
      return KeyedDecodingContainer(KeyedValueDecoding(entries, self))
    }
    return KeyedDecodingContainer(KeyedValueDecoding(try entries(), self))
  }

  /// The keys of the table with their values.
  func entries() throws -> [(key: FlowValue, value: FlowValue)] {
    guard case .opaque(let table) = value, table.matches(typeName: "table"),
      let entries = table.entries()
    else { throw mismatch("table") }
    return entries
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if case .bytes(let string) = value {
      return UnkeyedValueDecoding(
        ContiguousArray(string.bytes.map { .integer(Int64($0)) }), self)
    }
    guard case .opaque(let list) = value, let count = list.listCount() else {
      throw mismatch("list")
    }
    return UnkeyedValueDecoding(list.elements(0..<count), self)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  // MARK: Values

  /// Decodes the value as a type.
  func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    if let content = plainContent(type) { return content }
    if !(type is any StandardCodable.Type), let convertible = type as? any FlowValueConvertible.Type
    {
      guard let content = convertible.init(flowValue: value) as? Content else {
        throw mismatch(ByteString(convertible.flowWantedName))
      }
      return content
    }
    // Foundation's `Data`, arrays of bytes: at once, as byte by byte 10 MB take seconds.
    if case .bytes(let text) = value,
      let bytes = type as? any RangeReplaceableCollection<UInt8>.Type,
      let content = Self.bytes(bytes, of: text) as? Content
    {
      return content
    }
    guard path.depth < CodingPath.depthLimit else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: path.keys,
          debugDescription: "nested deeper than \(CodingPath.depthLimit) levels"))
    }
    if let map = type as? any DecodableByNumber.Type,
      let content = try map.init(decodedBy: self) as? Content
    {
      return content
    }
    do {
      // An optional is decoded as its own type, and then as the wrapped one.
      return try Content(
        from: type == self.type ? self : ValueDecoding(value, at: path, userInfo, of: type))
    } catch let error as DecodingError {
      // An enum without such a raw value.
      guard type is any RawRepresentable.Type, case .dataCorrupted(let context) = error,
        context.underlyingError == nil, context.codingPath.count == path.depth
      else { throw error }
      throw mismatch(ByteString(String(describing: type)))
    }
  }

  private static func bytes<Bytes: RangeReplaceableCollection<UInt8>>(
    _ type: Bytes.Type, of text: ByteString
  ) -> Bytes {
    Bytes(text.bytes)
  }

  /// The content of the commonest types; nil for others, and for a value of another type.
  @inline(__always)
  private func plainContent<Content>(_ type: Content.Type) -> Content? {
    switch value {
    case .bytes(let bytes) where type == String.self:
      String(validating: bytes.bytes, as: UTF8.self) as? Content
    case .integer(let integer) where type == Int.self: Int(exactly: integer) as? Content
    case .number(let number) where type == Double.self: number as? Content
    case .boolean(let flag) where type == Bool.self: flag as? Content
    default: nil
    }
  }

  private func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
    guard case .integer(let integer) = value else { throw mismatch("integer") }
    guard let number = Number(exactly: integer) else {
      throw mismatch(ByteString(String(describing: type)))
    }
    return number
  }

  /// The error for a value that isn't of the wanted type.
  func mismatch(_ wanted: ByteString) -> DecodingError {
    let got = value.plain.typeName
    let isBroken = got == wanted || wanted.hasPrefix(got)
    return .typeMismatch(
      type,
      .init(
        codingPath: path.keys,
        debugDescription: value.isNull
          ? "\(wanted) expected, got nothing"
          : "\(wanted) expected, got \(isBroken ? "another " : "")\(got)",
        underlyingError: ValueMismatch(wanted: wanted)))
  }
}

/// The expectation of a decoding error of this decoder, for the lines of logs.
struct ValueMismatch: Error {
  let wanted: ByteString
}

extension ValueDecoding: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value.isNull || value.isJSONNull }

  func decode(_ type: Bool.Type) throws -> Bool {
    guard case .boolean(let flag) = value else { throw mismatch("boolean") }
    return flag
  }

  func decode(_ type: String.Type) throws -> String {
    guard let text = String(flowValue: value) else {
      throw mismatch(
        ByteString(flowValue: value) == nil ? "string" : ByteString(String.flowWantedName))
    }
    return text
  }

  func decode(_ type: Double.Type) throws -> Double {
    let number: Double
    switch value {
    case .number(let value): number = value
    case .integer(let integer):
      guard let exact = Double(exactly: integer) else { throw mismatch("Double") }
      number = exact
    default: throw mismatch("number")
    }
    return FoundationForms.isDate(self.type) ? number - FoundationForms.secondsTo2001 : number
  }

  func decode(_ type: Float.Type) throws -> Float {
    let number = try decode(Double.self)
    let nearest = Float(number)
    guard nearest.isFinite || !number.isFinite else { throw mismatch("Float") }
    return nearest
  }

  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }
}

private struct KeyedValueDecoding<Key: CodingKey>: KeyedDecodingContainerProtocol {
  private var named: [ByteString: FlowValue] = [:]
  private var numbered: [Int64: FlowValue] = [:]
  private let decoding: ValueDecoding

  init(_ entries: [(key: FlowValue, value: FlowValue)], _ decoding: ValueDecoding) {
    self.decoding = decoding
    named.reserveCapacity(entries.count)
    for (key, value) in entries {
      switch key {
      case .bytes(let name): named[name] = value
      case .integer(let number): numbered[number] = value
      default: break
      }
    }
  }

  var codingPath: [any CodingKey] { decoding.codingPath }

  var allKeys: [Key] {
    named.keys.compactMap { name in
      String(validating: name.bytes, as: UTF8.self).flatMap { Key(stringValue: $0) }
    }
      + numbered.keys.compactMap { number in
        Int(exactly: number).flatMap { Key(intValue: $0) }
      }
  }

  /// The value of a key, by its name or its number.
  private func found(_ key: some CodingKey) -> FlowValue {
    if let value = named[ByteString(key.stringValue)] { return value }
    return key.intValue.flatMap { numbered[Int64($0)] } ?? .null
  }

  private func part(_ key: some CodingKey, of type: Any.Type) -> ValueDecoding {
    decoding.part(found(key), key, of: type)
  }

  func contains(_ key: Key) -> Bool { !found(key).isNull }

  func decodeNil(forKey key: Key) -> Bool {
    let value = found(key)
    return value.isNull || value.isJSONNull
  }

  func decode<Content: Decodable>(_ type: Content.Type, forKey key: Key) throws -> Content {
    try part(key, of: type).decode(type)
  }

  func nestedContainer<Nested>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try part(key, of: Never.self).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try part(key, of: Never.self).unkeyedContainer()
  }

  func superDecoder() -> any Decoder { part(SuperKey(), of: Never.self) }

  func superDecoder(forKey key: Key) -> any Decoder { part(key, of: Never.self) }
}

private struct UnkeyedValueDecoding: UnkeyedDecodingContainer {
  private let elements: ContiguousArray<FlowValue>
  private let decoding: ValueDecoding
  private(set) var currentIndex = 0

  init(_ elements: ContiguousArray<FlowValue>, _ decoding: ValueDecoding) {
    self.elements = elements
    self.decoding = decoding
  }

  var codingPath: [any CodingKey] { decoding.codingPath }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  /// The decoder of the present element; the next one is the present one after `body` returns.
  private mutating func next<Result>(
    of type: Any.Type, _ body: (ValueDecoding) throws -> Result
  ) throws -> Result {
    let key = IndexKey(currentIndex)
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type,
        .init(
          codingPath: codingPath + [key],
          debugDescription: "another element expected, got a list of \(elements.count)"))
    }
    let result = try body(decoding.part(elements[currentIndex], key, of: type))
    currentIndex += 1
    return result
  }

  mutating func decodeNil() -> Bool {
    guard !isAtEnd else { return false }
    let element = elements[currentIndex]
    guard element.isNull || element.isJSONNull else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Content: Decodable>(_ type: Content.Type) throws -> Content {
    try next(of: type) { try $0.decode(type) }
  }

  mutating func nestedContainer<Nested>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    try next(of: Never.self) { try $0.container(keyedBy: type) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next(of: Never.self) { try $0.unkeyedContainer() }
  }

  mutating func superDecoder() throws -> any Decoder { try next(of: Never.self) { $0 } }
}

/// A dictionary with integer keys that can be decoded.
protocol DecodableByNumber {
  init(decodedBy decoding: ValueDecoding) throws
}

/// Makes anything `Decodable` of a `FlowValue`; see `FlowValue.decoded`.
// A decoder of its own for the same reason as the encoder: see FlowValueEncoding.swift.
package struct FlowValueDecoder {
  /// Values for which the types that are decoded may ask the decoder.
  package var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes a decoder.
  package init() {}

  /// The Swift value of a value.
  ///
  /// - Throws: A `DecodingError` with the path of the part that isn't as the type wants it, the expected
  ///   type and the type of the value there. It shows no content of the value. Or an error of the type
  ///   itself.
  package func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, from value: FlowValue
  ) throws -> Content {
    try ValueDecoding(value, at: .root, userInfo, of: type).decode(type)
  }
}

extension FlowValue {
  /// This value, such as a table of a script, as anything `Decodable`; see `init(encoding:)` for the forms.
  ///
  /// Nothing is rounded or converted: a float isn't an integer, not even `3.0`, a number isn't a
  /// string, and an integer that a type can't have is an error. A `Double` may be an integer that it
  /// can have exactly. The nearest `Float` is taken. A property that is optional may be absent, nil or
  /// the null of JSON. Fields that no property has are ignored, as are values under other keys. A
  /// string can also be read as a list of bytes, and a dictionary with integer keys from a table whose keys are
  /// their texts.
  ///
  /// ```swift
  /// struct Order: Codable { var article: String; var amount: Int }
  /// let value: FlowValue = ["article": "tea", "amount": 2]
  /// let order = try value.decoded(as: Order.self)
  /// ```
  ///
  /// - Throws: A `DecodingError` with the path of the part that isn't as the type wants it, the expected
  ///   type and the type of the value there. It shows no content of the value. Or an error of the type
  ///   itself.
  public func decoded<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try FlowValueDecoder().decode(type, from: self)
  }
}

extension FlowValue {
  /// A result of an op or a script as anything `Decodable`; the error names it.
  package func decoded<Content: Decodable>(
    as type: Content.Type = Content.self, of subject: ByteString
  ) throws(FlowError) -> Content {
    do { return try decoded() } catch {
      throw FlowError(
        .mismatchedOutput, "\(subject): \(FlowError.from(error).message)", underlying: error)
    }
  }
}

extension DataBucket {
  /// All readable data, also of the buckets it reads through to, as anything `Decodable` with named
  /// properties: each is a key.
  ///
  /// - Throws: A `FlowError` of kind `mismatchedOutput` with the path of the part that isn't as the type wants it; its
  ///   `underlying` is the `DecodingError`.
  public func decoded<Content: Decodable>(
    as type: Content.Type = Content.self
  ) throws(FlowError) -> Content {
    let all = MapValue()
    for (entry, _) in visibleEntries { all.set(keys.name(of: entry.key), entry.value) }
    return try FlowValue.opaque(all).decoded(as: type, of: "the data")
  }

  /// The value under a name as anything `Decodable`; nil when there is none.
  ///
  /// - Throws: A `FlowError`, as `decoded(as:)`.
  public func decoded<Content: Decodable>(
    _ name: some FlowText, as type: Content.Type = Content.self
  ) throws(FlowError) -> Content? {
    try self[name]?.decoded(as: type, of: "'\(name.byteString)' in the data")
  }
}
