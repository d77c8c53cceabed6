package import FlowEngine

/// A value of JSON, as the API of JetStream has it.
///
/// A reader of our own: the decoder of Foundation would load that library at the start of each program, and
/// the one for scripts belongs to Lua, which this target doesn't know. It is strict, limits the depth, and
/// returns an error for anything else, as a reply may come from any program.
package indirect enum NATSJSON: Equatable, Sendable {
  /// A member of an object.
  package struct Member: Equatable, Sendable {
    package let name: ByteString
    package let value: NATSJSON

    package init(_ name: ByteString, _ value: NATSJSON) {
      self.name = name
      self.value = value
    }
  }

  case null
  case bool(Bool)
  case integer(Int64)
  /// A number with a fraction or an exponent, or one that is too large for an integer.
  case number(Double)
  case string(ByteString)
  case list([NATSJSON])
  /// The members in their order.
  case object([Member])

  // MARK: Access

  /// The value of a member; nil for one that isn't there, and if this is no object.
  package subscript(name: StaticString) -> NATSJSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.equals(name) }?.value
  }

  package var asBytes: ByteString? {
    if case .string(let text) = self { text } else { nil }
  }

  package var asInteger: Int64? { asNumber() }

  /// A number that isn't negative. Larger ones than `Int64.max` are exact only as far as `Double` is.
  package var asUnsigned: UInt64? { asNumber() }

  private func asNumber<Number: FixedWidthInteger>() -> Number? {
    switch self {
    case .integer(let number): Number(exactly: number)
    case .number(let number): Number(exactly: number)
    default: nil
    }
  }

  package var asBool: Bool? {
    if case .bool(let flag) = self { flag } else { nil }
  }

  /// The names of the members; none if this is no object.
  var names: [ByteString] {
    if case .object(let members) = self { members.map(\.name) } else { [] }
  }

  // MARK: Reading

  /// Reads a text, which must be one value and nothing else.
  ///
  /// - Throws: A `FlowError` that says where the text stops being JSON.
  package init(reading text: ByteString) throws(FlowError) {
    guard String(validating: text.bytes, as: UTF8.self) != nil else {
      throw FlowError(.error, "not JSON: the text isn't UTF-8")
    }
    var reader = NATSJSONReader(text.bytes)
    self = try reader.document()
  }

  // MARK: Writing

  /// The text, without spaces.
  package var text: ByteString {
    var bytes: [UInt8] = []
    write(to: &bytes)
    return ByteString(bytes)
  }

  private func write(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes += "null".bytes
    case .bool(let flag): bytes += (flag ? "true" : "false").bytes
    case .integer(let number): bytes += String(number).utf8
    case .number(let number): bytes += (number.isFinite ? String(number) : "null").utf8
    case .string(let text): Self.write(text, to: &bytes)
    case .list(let items):
      bytes.append(UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        item.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.write(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.write(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// Writes a string; bytes that are no UTF-8 become U+FFFD, because JSON can't have them.
  private static func write(_ text: ByteString, to bytes: inout [UInt8]) {
    let digits = "0123456789abcdef".bytes
    bytes.append(UInt8(ascii: "\""))
    for byte in text.description.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0x0A: bytes += "\\n".bytes
      case ..<0x20:
        bytes += "\\u00".bytes
        bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      default: bytes.append(byte)
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }
}

extension NATSJSON {
  /// An object without the members that are nil.
  static func members(_ members: [(ByteString, NATSJSON?)]) -> NATSJSON {
    .object(members.compactMap { name, value in value.map { Member(name, $0) } })
  }

  /// The object with other values for some members; those that it lacks are added unless they are false.
  func replacing(_ changes: [Member]) -> NATSJSON {
    guard case .object(var members) = self else { return self }
    for change in changes {
      if let place = members.firstIndex(where: { $0.name == change.name }) {
        members[place] = change
      } else if change.value != .bool(false) {
        members.append(change)
      }
    }
    return .object(members)
  }

  /// A duration in nanoseconds, as the API has it.
  static func nanoseconds(_ duration: Duration) -> NATSJSON {
    .integer(duration.clampedNanoseconds)
  }

  static func integer(_ number: Int) -> NATSJSON { .integer(Int64(number)) }
}

/// Reads a text of JSON from its start to its end.
struct NATSJSONReader {
  private var rest: ArraySlice<UInt8>
  /// The deepest nesting that is read: each level takes some of the thread's stack.
  private static let deepest = 64

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  mutating func document() throws(FlowError) -> NATSJSON {
    let value = try value(depth: 0)
    skipSpace()
    if !rest.isEmpty { throw problem("more follows the value") }
    return value
  }

  private func problem(_ text: ByteString) -> FlowError {
    FlowError(.error, "not JSON: \(text) (at byte \(rest.startIndex + 1))")
  }

  private mutating func skipSpace() {
    rest = rest.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }
  }

  /// Moves past a text if it comes next.
  private mutating func skip(_ wanted: StaticString) -> Bool {
    guard rest.hasPrefix(wanted) else { return false }
    rest = rest.dropFirst(wanted.utf8CodeUnitCount)
    return true
  }

  private mutating func value(depth: Int) throws(FlowError) -> NATSJSON {
    skipSpace()
    if depth > Self.deepest { throw problem("it is nested too deeply") }
    if skip("\"") { return .string(try string()) }
    if skip("true") { return .bool(true) }
    if skip("false") { return .bool(false) }
    if skip("null") { return .null }
    if skip("[") {
      var items: [NATSJSON] = []
      try sequence(to: "]") { reader throws(FlowError) in
        items.append(try reader.value(depth: depth + 1))
      }
      return .list(items)
    }
    guard skip("{") else { return try number() }
    var members: [NATSJSON.Member] = []
    try sequence(to: "}") { reader throws(FlowError) in
      guard reader.skip("\"") else { throw reader.problem("a name is expected") }
      let name = try reader.string()
      reader.skipSpace()
      if !reader.skip(":") { throw reader.problem("':' is expected") }
      members.append(NATSJSON.Member(name, try reader.value(depth: depth + 1)))
    }
    return .object(members)
  }

  /// Reads what is before a bracket, with commas.
  private mutating func sequence(
    to end: StaticString, _ item: (inout Self) throws(FlowError) -> Void
  ) throws(FlowError) {
    skipSpace()
    if skip(end) { return }
    repeat {
      skipSpace()
      try item(&self)
      skipSpace()
      if skip(end) { return }
    } while skip(",")
    throw problem("',' or '\(ByteString(end))' is expected")
  }

  // MARK: Numbers

  private mutating func skipDigits() throws(FlowError) {
    guard rest.first?.isDigit == true else { throw problem("a value or a digit is expected") }
    rest = rest.drop(while: \.isDigit)
  }

  private mutating func number() throws(FlowError) -> NATSJSON {
    let start = rest
    _ = skip("-")
    if !skip("0") { try skipDigits() }
    let isFraction = skip(".")
    if isFraction { try skipDigits() }
    let hasExponent = skip("e") || skip("E")
    if hasExponent {
      _ = skip("+") || skip("-")
      try skipDigits()
    }
    let text = String(decoding: start[..<rest.startIndex], as: UTF8.self)
    if !isFraction, !hasExponent, let number = Int64(text) { return .integer(number) }
    guard let number = Double(text), number.isFinite else {
      throw problem("the number is too large")
    }
    return .number(number)
  }

  // MARK: Strings

  /// The bytes of escapes that are one letter.
  private static let escapes: [UInt8: UInt8] = [
    0x22: 0x22, 0x5C: 0x5C, 0x2F: 0x2F, UInt8(ascii: "b"): 0x08, UInt8(ascii: "f"): 0x0C,
    UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09,
  ]

  /// Reads a string after its quote.
  private mutating func string() throws(FlowError) -> ByteString {
    var text: [UInt8] = []
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "\"") { return ByteString(text) }
      if byte < 0x20 { throw problem("a control character in a string") }
      if byte != UInt8(ascii: "\\") {
        text.append(byte)
      } else if skip("u") {
        text += UTF8.encode(try escapedScalar()).map { Array($0) } ?? []
      } else if let escaped = rest.popFirst().flatMap({ Self.escapes[$0] }) {
        text.append(escaped)
      } else {
        throw problem("an unknown escape in a string")
      }
    }
    throw problem("a string has no end")
  }

  private mutating func escapedScalar() throws(FlowError) -> Unicode.Scalar {
    let first = try unit()
    if let scalar = Unicode.Scalar(first) { return scalar }
    // The first half of a pair, or a half that is alone.
    guard first < 0xDC00, skip("\\u") else { throw problem("half a character") }
    let second = try unit()
    guard second >= 0xDC00, second < 0xE000,
      let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
    else { throw problem("half a character") }
    return scalar
  }

  private mutating func unit() throws(FlowError) -> UInt32 {
    let digits = rest.prefix(4).compactMap(\.hexadecimalDigit)
    if digits.count < 4 { throw problem("four hexadecimal digits are expected") }
    rest = rest.dropFirst(4)
    return digits.reduce(0) { $0 << 4 | UInt32($1) }
  }
}
