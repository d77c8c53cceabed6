internal import Glibc

/// A string of bytes, in any encoding or none.
///
/// Lua's strings are bytes; Swift's `String` compares by canonical equivalence and would merge
/// strings that Lua keeps apart. Equality, order and hash are those of the bytes.
///
/// ```swift
/// let name = "Ada" as ByteString
/// let line = "hello, \(name)!" as ByteString
/// print(line.count, line == "hello, Ada!", String(line))
/// ```
@frozen
public struct ByteString: Hashable, Comparable, Sendable {
  /// The bytes.
  public let bytes: [UInt8]

  /// Makes a string of these bytes.
  @inlinable
  public init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Copies bytes, such as a part of others.
  @inlinable
  public init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes)
  }

  /// Copies a C string.
  package init(cString: UnsafePointer<CChar>) {
    bytes = Array(UnsafeRawBufferPointer(start: cString, count: strlen(cString)))
  }

  /// The UTF-8 form of `string`.
  public init(_ string: String) {
    bytes = Array(string.utf8)
  }

  /// The bytes of a literal.
  package init(_ literal: StaticString) {
    bytes = literal.withUTF8Buffer { Array($0) }
  }

  /// Gives a hasher all bytes at once.
  // An array of bytes would give them one by one.
  public func hash(into hasher: inout Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    hasher.combine(UInt8.max)
  }

  public static func < (left: ByteString, right: ByteString) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }

  /// Whether the bytes are those of a literal, which `==` would copy first.
  package func equals(_ literal: StaticString) -> Bool {
    let count = literal.utf8CodeUnitCount
    return bytes.count == count
      && bytes.withUnsafeBufferPointer { bytes in
        guard let start = bytes.baseAddress else { return true }
        return memcmp(start, literal.utf8Start, count) == 0
      }
  }

  /// The bytes of both, the right ones after the left ones.
  public static func + (left: ByteString, right: ByteString) -> ByteString {
    ByteString(left.bytes + right.bytes)
  }

  /// Lends the bytes to `body`; the pointer must not be used after `body` returns.
  @inlinable
  package func withUnsafeBytes<Result, Failure: Error>(
    _ body: (UnsafeBufferPointer<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try bytes.withUnsafeBufferPointer(body)
  }

  /// The number of characters, as `truncated` counts them.
  package var characterCount: Int {
    var counter = CharacterCounter()
    return bytes.reduce(0) { counter.begins($1) ? $0 + 1 : $0 }
  }

  /// The text within `limit` characters; when it is cut, the last one is `…`.
  ///
  /// A character is a UTF-8 sequence; a byte that continues none counts as a character.
  package func truncated(to limit: Int) -> ByteString {
    // No text has more characters than bytes.
    if bytes.count <= limit { return self }
    var characters = 0
    var cut = 0
    var counter = CharacterCounter()
    for (offset, byte) in bytes.enumerated() where counter.begins(byte) {
      characters += 1
      if characters == limit { cut = offset }
      if characters > limit {
        return limit > 0 ? ByteString(bytes[..<cut] + "…".bytes) : ByteString([])
      }
    }
    return self
  }
}

extension ByteString: RandomAccessCollection {
  public typealias SubSequence = ArraySlice<UInt8>

  @inlinable
  public var startIndex: Int { 0 }
  @inlinable
  public var endIndex: Int { bytes.count }

  @inlinable
  public subscript(index: Int) -> UInt8 { bytes[index] }

  /// A part of the bytes, without a copy.
  @inlinable
  public subscript(range: Range<Int>) -> ArraySlice<UInt8> { bytes[range] }

  @inlinable
  public func withContiguousStorageIfAvailable<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result? {
    try bytes.withContiguousStorageIfAvailable(body)
  }
}

/// A text of any of these types, as functions take names, keys and messages: a `String`, a part of one, a literal, or the
/// bytes that a script has given.
///
/// ```swift
/// func greet(_ name: some FlowText) -> ByteString { "hello, \(name.byteString)" }
/// print(greet("Ada"), greet("Grace" as ByteString))
/// ```
public protocol FlowText: Sendable {
  /// The text, in UTF-8 if it was a string of Swift.
  var byteString: ByteString { get }
  /// Lends its bytes to `body`, without a copy where it can; the pointer must not be used after `body` returns.
  func withUTF8Bytes<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows
    -> Result
}

extension FlowText {
  @inlinable
  public func withUTF8Bytes<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    try byteString.bytes.withUnsafeBufferPointer(body)
  }
}

extension ByteString: FlowText {
  @inlinable
  public var byteString: ByteString { self }
}

extension String: FlowText {
  public var byteString: ByteString { ByteString(self) }

  public func withUTF8Bytes<Result>(
    _ body: (UnsafeBufferPointer<UInt8>) throws -> Result
  ) rethrows -> Result {
    var text = self
    return try text.withUTF8(body)
  }

  /// The text, with U+FFFD instead of bytes that are no UTF-8.
  public init(_ text: ByteString) { self.init(decoding: text.bytes, as: UTF8.self) }
}

extension Substring: FlowText {
  public var byteString: ByteString { ByteString(utf8) }
}

extension StaticString: FlowText {
  public var byteString: ByteString { ByteString(self) }
}

/// Within this package a literal is bytes where nothing says otherwise: a text of a script that is put into a message for
/// a parameter of any `FlowText` keeps its bytes. Programs that embed it aren't concerned.
package typealias StringLiteralType = ByteString
/// The type of a literal of one character.
package typealias ExtendedGraphemeClusterType = ByteString
/// The type of a literal of one code point.
package typealias UnicodeScalarType = ByteString

// Comparisons with strings. None is disfavored: Swift would rather compare two values as `AnyHashable`, which are never equal.

extension ByteString {
  /// Whether the bytes are the UTF-8 form of a string.
  public static func == (left: ByteString, right: some StringProtocol) -> Bool {
    left.bytes.elementsEqual(right.utf8)
  }

  /// Whether the UTF-8 form of a string is these bytes.
  package static func == (left: some StringProtocol, right: ByteString) -> Bool { right == left }

  /// Whether the bytes aren't the UTF-8 form of a string.
  public static func != (left: ByteString, right: some StringProtocol) -> Bool { !(left == right) }

  /// Whether the UTF-8 form of a string isn't these bytes.
  package static func != (left: some StringProtocol, right: ByteString) -> Bool { !(right == left) }
}

/// Whether there is a text, and its bytes are the UTF-8 form of a string.
package func == (left: ByteString?, right: some StringProtocol) -> Bool {
  left.map { $0 == right } ?? false
}

/// Whether there is a text, and the UTF-8 form of a string is its bytes.
package func == (left: some StringProtocol, right: ByteString?) -> Bool { right == left }

/// Whether there is no text, or its bytes aren't the UTF-8 form of a string.
package func != (left: ByteString?, right: some StringProtocol) -> Bool { !(left == right) }

/// Whether there is no text, or the UTF-8 form of a string isn't its bytes.
package func != (left: some StringProtocol, right: ByteString?) -> Bool { !(right == left) }

/// The value of a variable of the environment; nil without one, and for an empty one, which means the same.
package func environment(_ name: String) -> ByteString? {
  guard let value = getenv(name), value.pointee != 0 else { return nil }
  return ByteString(cString: value)
}

/// A text, or none, in a `switch` over literals: `switch text.cases { case "name": … }`. As it can't be compared with a
/// text, a literal is none there, which would be an array for each case that is tried.
package struct TextCases {
  fileprivate let text: ByteString?

  package static func ~= (literal: StaticString, cases: TextCases) -> Bool {
    cases.text?.equals(literal) ?? false
  }
}

extension ByteString {
  /// The text for a `switch`.
  package var cases: TextCases { TextCases(text: self) }
}

extension ByteString? {
  /// The text for a `switch`.
  package var cases: TextCases { TextCases(text: self) }
}

/// Distinguishes the bytes that start a character from those that continue one.
package struct CharacterCounter {
  /// How many bytes the current character may still have.
  private var rest = 0

  package init() {}

  package mutating func begins(_ byte: UInt8) -> Bool {
    if byte & 0xC0 == 0x80, rest > 0 {
      rest -= 1
      return false
    }
    rest = byte < 0xC0 ? 0 : byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3
    return true
  }
}

extension ByteString: CustomStringConvertible {
  /// The text, with U+FFFD instead of bytes that are no UTF-8.
  public var description: String {
    String(decoding: bytes, as: UTF8.self)
  }
}

extension ByteString: CustomDebugStringConvertible {
  /// The text in quotation marks, with escapes.
  public var debugDescription: String { description.debugDescription }
}

extension ByteString: ExpressibleByStringInterpolation {
  /// Collects bytes, so that an interpolated `ByteString` isn't decoded in between.
  public struct StringInterpolation: StringInterpolationProtocol {
    var bytes: [UInt8] = []

    public init(literalCapacity: Int, interpolationCount: Int) {
      bytes.reserveCapacity(literalCapacity + interpolationCount * 16)
    }

    public mutating func appendLiteral(_ literal: String) {
      bytes.append(contentsOf: literal.utf8)
    }

    /// Puts bytes into the text.
    public mutating func appendInterpolation(_ value: ByteString) {
      bytes.append(contentsOf: value.bytes)
    }

    /// Puts a string into the text, as UTF-8.
    public mutating func appendInterpolation(_ value: String) {
      bytes.append(contentsOf: value.utf8)
    }

    /// Puts an integer into the text, in decimal.
    public mutating func appendInterpolation(_ value: some BinaryInteger) {
      bytes.append(contentsOf: String(value).utf8)
    }
  }

  public init(stringLiteral value: String) {
    self.init(value)
  }

  public init(stringInterpolation: StringInterpolation) {
    self.init(stringInterpolation.bytes)
  }
}

/// Coded as a string if the bytes are UTF-8, else as a list of bytes. The coders for values of flows
/// take the bytes as they are.
extension ByteString: Codable {
  public init(from decoder: any Decoder) throws {
    if let container = try? decoder.singleValueContainer(),
      let text = try? container.decode(String.self)
    {
      self.init(text)
    } else {
      self.init(try Array(from: decoder))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      return try bytes.encode(to: encoder)
    }
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }
}

// The standard library's `firstRange(of:)`, `contains(_:)` and `replacing(_:with:)` are a part of its regular
// expressions, which would add 1.4 MB to the program.

extension RandomAccessCollection<UInt8> where Index == Int {
  /// Where these bytes first are, one after another; nil for nowhere.
  package func place(of wanted: ByteString) -> Range<Int>? {
    let offset = withContiguousStorageIfAvailable { bytes in bytes.offset(of: wanted) }
    // Arrays and parts of them are contiguous.
    return (offset ?? Array(self).withUnsafeBufferPointer { $0.offset(of: wanted) })
      .map { startIndex + $0..<startIndex + $0 + wanted.count }
  }
}

extension UnsafeBufferPointer<UInt8> {
  fileprivate func offset(of wanted: ByteString) -> Int? {
    guard let first = wanted.bytes.first else { return 0 }
    guard let start = UnsafeRawPointer(baseAddress) else { return nil }
    var offset = 0
    while wanted.count <= count - offset,
      let found = memchr(start + offset, Int32(first), count - offset - wanted.count + 1)
    {
      offset = UnsafeRawPointer(found) - start
      if wanted.withUnsafeBytes({ equals($0, at: offset) }) { return offset }
      offset += 1
    }
    return nil
  }

  private func equals(_ part: UnsafeBufferPointer<UInt8>, at offset: Int) -> Bool {
    guard let start = baseAddress, let other = part.baseAddress else { return part.isEmpty }
    return memcmp(start + offset, other, part.count) == 0
  }
}
