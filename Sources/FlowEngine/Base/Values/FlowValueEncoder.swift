/// Makes a `FlowValue` of anything `Encodable`.
///
/// ```swift
/// struct Order: Codable { var article: String; var amount: Int }
/// let value = try FlowValueEncoder().encode(Order(article: "apples", amount: 3))
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
// An encoder of its own: the standard library has the protocols only, and Foundation, which has
// encoders, would cost each start of a script.
public struct FlowValueEncoder {
  /// What the types that are encoded may ask the encoder for.
  public var userInfo: [CodingUserInfoKey: Any] = [:]

  /// Makes an encoder.
  public init() {}

  /// The value of an encodable one.
  ///
  /// - Throws: An `EncodingError` with the path of the part that has no form in a bucket or is nested
  ///   more than 200 levels deep, or an error of the type itself.
  public func encode(_ content: some Encodable) throws -> FlowValue {
    try ValueEncoding(at: .root, userInfo).value(of: content)
  }
}

extension FlowValue {
  /// The form of anything `Encodable` in a data bucket; see `FlowValueEncoder`.
  public init(encoding content: some Encodable) throws {
    self = try FlowValueEncoder().encode(content)
  }
}
