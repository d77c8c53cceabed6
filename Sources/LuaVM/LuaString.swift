/// A Lua string: bytes, in no particular encoding, zeros included.
public struct LuaString: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  /// The bytes.
  public var bytes: [UInt8]

  /// A string of these bytes.
  public init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The UTF-8 form of a Swift string.
  public init(_ text: String) {
    bytes = Array(text.utf8)
  }

  /// The UTF-8 form of a literal.
  public init(stringLiteral value: String) {
    self.init(value)
  }

  /// The text; what isn't UTF-8 is shown as U+FFFD.
  public var description: String {
    // Deliberately lossy: for messages, never for comparing.
    String(decoding: bytes, as: UTF8.self)  // swift-format-ignore
  }
}
