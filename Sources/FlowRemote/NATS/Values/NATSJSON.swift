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

  package var asInteger: Int64? {
    switch self {
    case .integer(let number): number
    case .number(let number): Int64(exactly: number)
    default: nil
    }
  }

  /// A number that isn't negative. Larger ones than `Int64.max` are exact only as far as `Double` is.
  package var asUnsigned: UInt64? {
    switch self {
    case .integer(let number): UInt64(exactly: number)
    case .number(let number): UInt64(exactly: number)
    default: nil
    }
  }

  package var asBool: Bool? {
    if case .bool(let flag) = self { flag } else { nil }
  }

  package var asList: [NATSJSON]? {
    if case .list(let items) = self { items } else { nil }
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
    case .null: bytes += "null".utf8
    case .bool(let flag): bytes += (flag ? "true" : "false").utf8
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
    let digits = Array("0123456789abcdef".utf8)
    bytes.append(UInt8(ascii: "\""))
    for byte in text.description.utf8 {
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes += [UInt8(ascii: "\\"), byte]
      case 0x0A: bytes += "\\n".utf8
      case ..<0x20:
        bytes += "\\u00".utf8
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
