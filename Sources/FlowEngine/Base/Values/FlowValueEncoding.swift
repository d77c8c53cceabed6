/// The encoder of one part of a value. Its containers write into the lists and tables that the
/// value consists of.
final class ValueEncoding: Encoder {
  let path: CodingPath
  let userInfo: [CodingUserInfoKey: Any]
  /// The type of the part.
  private let type: Any.Type?
  /// Called with the value of the part, as soon as its kind is known.
  private let store: ((FlowValue) -> Void)?
  private(set) var value: FlowValue?

  init(
    at path: CodingPath, _ userInfo: [CodingUserInfoKey: Any], of type: Any.Type? = nil,
    store: ((FlowValue) -> Void)? = nil
  ) {
    self.path = path
    self.userInfo = userInfo
    self.type = type
    self.store = store
  }

  var codingPath: [any CodingKey] { path.keys }

  private func set(_ new: FlowValue) {
    value = new
    store?(new)
  }

  // MARK: Containers

  func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(KeyedValueEncoding(into: map(), self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedValueEncoding(into: list(), self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  /// A subclass and its superclass may write into the same table.
  private func map() -> MapValue {
    if case .opaque(let known)? = value, let map = known as? MapValue { return map }
    checkEmpty()
    let map = MapValue()
    set(.opaque(map))
    return map
  }

  private func list() -> ListValue {
    if case .opaque(let known)? = value, let list = known as? ListValue { return list }
    checkEmpty()
    let list = ListValue([FlowValue]())
    set(.opaque(list))
    return list
  }

  private func checkEmpty() {
    if value != nil { misuse("a type encodes itself as two values at once") }
  }

  // MARK: Values

  /// The value of a part.
  func value<Content: Encodable>(of content: Content) throws -> FlowValue {
    if let value = Self.plainValue(of: content) { return value }
    if !(content is any StandardCodable) {
      if let convertible = content as? any FlowValueConvertible { return convertible.flowValue }
      if let bytes = content as? any Collection<UInt8> { return .bytes(ByteString(bytes)) }
    }
    guard path.depth < CodingPath.depthLimit else {
      throw problem(content, "nested deeper than \(CodingPath.depthLimit) levels")
    }
    if let map = content as? any EncodableByNumber { return try map.encoded(by: self) }
    let encoding = ValueEncoding(at: path, userInfo, of: Content.self)
    try content.encode(to: encoding)
    // A type without properties.
    guard let value = encoding.value else { return .opaque(MapValue()) }
    if case .opaque(let table) = value, let map = table as? MapValue, map.fields.count == 1,
      let link = map[FoundationForms.linkField], FoundationForms.isLink(Content.self)
    {
      return link
    }
    return value
  }

  /// The value of the commonest types.
  @inline(__always)
  private static func plainValue<Content>(of content: Content) -> FlowValue? {
    if Content.self == String.self, let text = content as? String {
      return .bytes(ByteString(text))
    }
    if Content.self == Int.self, let integer = content as? Int { return .integer(Int64(integer)) }
    if Content.self == Double.self, let number = content as? Double { return .number(number) }
    if Content.self == Bool.self, let flag = content as? Bool { return .boolean(flag) }
    return nil
  }

  func integer(_ number: some FixedWidthInteger) throws -> FlowValue {
    guard let integer = Int64(exactly: number) else {
      throw problem(number, "\(number) doesn't fit in an integer of 64 bits with a sign")
    }
    return .integer(integer)
  }

  func problem(_ content: Any, _ text: String) -> EncodingError {
    .invalidValue(content, .init(codingPath: path.keys, debugDescription: text))
  }

  /// The encoder of a part.
  func part(_ key: some CodingKey, store: ((FlowValue) -> Void)? = nil) -> ValueEncoding {
    ValueEncoding(at: path.appending(key), userInfo, store: store)
  }
}

extension ValueEncoding: SingleValueEncodingContainer {
  private func put(_ new: FlowValue) {
    checkEmpty()
    set(new)
  }

  func encodeNil() { put(.null) }
  func encode(_ content: Bool) { put(.boolean(content)) }
  func encode(_ content: String) { put(.bytes(ByteString(content))) }
  func encode(_ content: Float) { put(.number(Double(content))) }
  func encode(_ content: Int) { put(.integer(Int64(content))) }
  func encode(_ content: Int8) { put(.integer(Int64(content))) }
  func encode(_ content: Int16) { put(.integer(Int64(content))) }
  func encode(_ content: Int32) { put(.integer(Int64(content))) }
  func encode(_ content: Int64) { put(.integer(content)) }
  func encode(_ content: UInt8) { put(.integer(Int64(content))) }
  func encode(_ content: UInt16) { put(.integer(Int64(content))) }
  func encode(_ content: UInt32) { put(.integer(Int64(content))) }
  func encode(_ content: UInt) throws { put(try integer(content)) }
  func encode(_ content: UInt64) throws { put(try integer(content)) }
  func encode(_ content: Int128) throws { put(try integer(content)) }
  func encode(_ content: UInt128) throws { put(try integer(content)) }
  func encode(_ content: some Encodable) throws { put(try value(of: content)) }

  func encode(_ content: Double) {
    let isDate = type.map(FoundationForms.isDate) ?? false
    put(.number(isDate ? content + FoundationForms.secondsTo2001 : content))
  }
}

private struct KeyedValueEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  private let map: MapValue
  private let encoding: ValueEncoding

  init(into map: MapValue, _ encoding: ValueEncoding) {
    self.map = map
    self.encoding = encoding
  }

  var codingPath: [any CodingKey] { encoding.codingPath }

  private func put(_ value: FlowValue, _ key: some CodingKey) {
    map.set(ByteString(key.stringValue), value)
  }

  /// An absent field.
  func encodeNil(forKey key: Key) { put(.null, key) }
  func encode(_ content: Bool, forKey key: Key) { put(.boolean(content), key) }
  func encode(_ content: String, forKey key: Key) { put(.bytes(ByteString(content)), key) }
  func encode(_ content: Double, forKey key: Key) { put(.number(content), key) }
  func encode(_ content: Int, forKey key: Key) { put(.integer(Int64(content)), key) }

  func encode(_ content: some Encodable, forKey key: Key) throws {
    put(try encoding.part(key).value(of: content), key)
  }

  func nestedContainer<Nested>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    superEncoder(forKey: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    superEncoder(forKey: key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { partEncoder(SuperKey()) }

  func superEncoder(forKey key: Key) -> any Encoder { partEncoder(key) }

  private func partEncoder(_ key: some CodingKey) -> ValueEncoding {
    let map = map
    return encoding.part(key) { map.set(ByteString(key.stringValue), $0) }
  }
}

private struct UnkeyedValueEncoding: UnkeyedEncodingContainer {
  private let list: ListValue
  private let encoding: ValueEncoding

  init(into list: ListValue, _ encoding: ValueEncoding) {
    self.list = list
    self.encoding = encoding
  }

  var codingPath: [any CodingKey] { encoding.codingPath }
  var count: Int { list.elements.count }

  /// The null of JSON: a list without it would have a hole.
  func encodeNil() { list.append(.jsonNull) }
  func encode(_ content: Bool) { list.append(.boolean(content)) }
  func encode(_ content: String) { list.append(.bytes(ByteString(content))) }
  func encode(_ content: Double) { list.append(.number(content)) }
  func encode(_ content: Int) { list.append(.integer(Int64(content))) }

  func encode(_ content: some Encodable) throws {
    let value = try encoding.part(IndexKey(count)).value(of: content)
    list.append(value.isNull ? .jsonNull : value)
  }

  func nestedContainer<Nested>(
    keyedBy type: Nested.Type
  ) -> KeyedEncodingContainer<Nested> {
    superEncoder().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    superEncoder().unkeyedContainer()
  }

  func superEncoder() -> any Encoder {
    let (list, index) = (list, count)
    list.append(.jsonNull)
    return encoding.part(IndexKey(index)) { list.replace(at: index, with: $0) }
  }
}

/// A dictionary with integer keys that can be encoded.
protocol EncodableByNumber {
  func encoded(by encoding: ValueEncoding) throws -> FlowValue
}

/// Makes a `FlowValue` of anything `Encodable`; see `FlowValue.init(encoding:)`.
// An encoder of its own: the standard library has the protocols only, and Foundation, which has
// encoders, would cost each start of a script.
package struct FlowValueEncoder {
  /// Values for which the types that are encoded may ask the encoder.
  package var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes an encoder.
  package init() {}

  /// The value of an encodable one.
  ///
  /// - Throws: An `EncodingError` with the path of the part that has no form in a bucket or is nested
  ///   more than 200 levels deep, or an error of the type itself.
  package func encode(_ content: some Encodable) throws -> FlowValue {
    try ValueEncoding(at: .root, userInfo).value(of: content)
  }
}

extension FlowValue {
  /// The form of anything `Encodable` in a data bucket.
  ///
  /// ```swift
  /// struct Order: Codable { var article: String; var amount: Int }
  /// let value = try FlowValue(encoding: Order(article: "apples", amount: 3))
  /// ```
  ///
  /// | Swift | value, and what a script sees |
  /// |---|---|
  /// | `Bool`, `String` | boolean, string |
  /// | integers of any width | integer; one above `Int64.max` is an error |
  /// | `Double`, `Float` | float, with NaN and infinities |
  /// | `nil` | no field; in a list, the null of JSON |
  /// | arrays, sets | list |
  /// | structures, dictionaries | table with string keys |
  /// | dictionaries with integer keys | table with integer keys |
  /// | an enum with raw values | its raw value |
  /// | an enum with associated values | `{ circle = { radius = 1 } }` |
  /// | `ByteString`, Foundation's `Data`, any other collection of bytes but an array | string |
  /// | Foundation's `Date` | float: seconds since 1970, as `os.time` counts them |
  /// | Foundation's `URL` without a base, `UUID` | string |
  /// | `FlowValue`, and a type that is `FlowValueConvertible` by itself | as that defines it |
  ///
  /// - Throws: An `EncodingError` with the path of the part that has no form in a bucket or is nested
  ///   more than 200 levels deep, or an error of the type itself.
  public init(encoding content: some Encodable) throws {
    self = try FlowValueEncoder().encode(content)
  }
}
