/// Makes anything `Decodable` of a `FlowValue`, such as a table of a script; see `FlowValueEncoder` for the
/// forms.
///
/// Nothing is rounded or converted: a float isn't an integer, not even `3.0`, a number isn't a
/// string, and an integer that a type can't have is an error. A `Double` may be an integer that it
/// can have exactly. The nearest `Float` is taken. A property that is optional may be absent, nil or
/// the null of JSON. Fields that no property has are ignored, as are values under other keys. A
/// string can also be read as a list of bytes, and a dictionary with integer keys from a table whose keys are
/// their texts.
// A decoder of its own for the same reason as the encoder: see FlowValueEncoder.swift.
public struct FlowValueDecoder {
  /// What the types that are decoded may ask the decoder for.
  public var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes a decoder.
  public init() {}

  /// The Swift value of a value.
  ///
  /// - Throws: A `DecodingError` with the path of the part that isn't as the type wants it, what was
  ///   expected and the type of what is there, or an error of the type itself. It shows no content
  ///   of the value.
  public func decode<Content: Decodable>(
    _ type: Content.Type = Content.self, from value: FlowValue
  ) throws -> Content {
    try ValueDecoding(value, at: .root, userInfo, of: type).decode(type)
  }
}

extension FlowValue {
  /// This value as anything `Decodable`; see `FlowValueDecoder`.
  public func decoded<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    try FlowValueDecoder().decode(type, from: self)
  }
}

extension DataBucket {
  /// All readable data, also of the buckets it reads through to, as anything `Decodable` with named
  /// properties: each is a key.
  ///
  /// - Throws: A `DecodingError`, see `FlowValueDecoder.decode`, or an error of the type itself.
  public func decoded<Content: Decodable>(as type: Content.Type = Content.self) throws -> Content {
    let all = MapValue([])
    var next: DataBucket? = self
    while let bucket = next {
      for entry in bucket.entries {
        let name = keys.name(of: entry.key)
        if all[name] == nil { all.set(name, entry.value) }
      }
      next = bucket.parent
    }
    return try FlowValue.opaque(all).decoded(as: type)
  }

  /// The value under a name as anything `Decodable`; nil when there is none.
  ///
  /// - Throws: A `DecodingError`, see `FlowValueDecoder.decode`, or an error of the type itself.
  public func decoded<Content: Decodable>(
    _ name: String, as type: Content.Type = Content.self
  ) throws -> Content? {
    try self[name]?.decoded(as: type)
  }
}
