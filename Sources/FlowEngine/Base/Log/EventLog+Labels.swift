/// The place of an item in a log.
struct LabelPlace: Hashable {
  let scope: UInt32
  let position: UInt32
}

// The labels of a group's items: texts that tell the items apart in lines and paths. A log without
// labels only has an empty table.
extension EventLog {
  /// The most characters of a label.
  static let labelLimit = 40

  /// Sets the label of an item, without secrets, on one line, and cut at `labelLimit` characters.
  func setLabel(_ text: ByteString, scope: UInt32, position: UInt32) {
    let cut =
      secrets?.shownText(limit: Self.labelLimit) { text.truncated(to: $0) }
      ?? text.truncated(to: Self.labelLimit)
    let shown = cut.onOneLine.truncated(to: Self.labelLimit)
    if !shown.isEmpty { labels[LabelPlace(scope: scope, position: position)] = shown }
  }

  /// The label of an item, and of the ops that its op executes in its place; nil when it has none.
  func label(scope: UInt32, position: UInt32) -> ByteString? {
    if labels.isEmpty { return nil }
    var (scope, position) = (scope, position)
    while scopes[Int(scope)].kind == .inner {
      let inner = scopes[Int(scope)]
      (scope, position) = (inner.parent, inner.position)
    }
    return labels[LabelPlace(scope: scope, position: position)]
  }
}

extension ByteString {
  /// The text with escapes, as in a string of Lua, instead of what would end or reorder a line:
  /// control characters, separators of lines, marks of direction, and bytes that aren't UTF-8.
  package var onOneLine: ByteString {
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return self }
    var result: [UInt8] = []
    var rest = bytes[...]
    while let first = rest.first {
      guard let (scalar, length) = Self.firstScalar(of: rest) else {
        result += Self.escape(UInt32(first), isByte: true)
        rest = rest.dropFirst()
        continue
      }
      if Self.isShown(scalar) {
        result += rest.prefix(length)
      } else {
        result += Self.escape(scalar.value, isByte: scalar.isASCII)
      }
      rest = rest.dropFirst(length)
    }
    return ByteString(result)
  }

  /// The text for a terminal, of which it changes nothing: with escapes as in `onOneLine`, but for line ends and tabs.
  package var forTerminal: ByteString {
    func stays(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\t") }
    if bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || stays($0) }) { return self }
    var result: [UInt8] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      let part = rest.prefix { !stays($0) }
      result += ByteString(Array(part)).onOneLine.bytes
      rest = rest.dropFirst(part.count)
      result += rest.prefix(1)
      rest = rest.dropFirst()
    }
    return ByteString(result)
  }

  private static func firstScalar(
    of bytes: ArraySlice<UInt8>
  ) -> (scalar: Unicode.Scalar, length: Int)? {
    var decoder = Unicode.UTF8.ForwardParser()
    var iterator = bytes.prefix(4).makeIterator()
    guard case .valid(let encoded) = decoder.parseScalar(from: &iterator) else { return nil }
    return (Unicode.UTF8.decode(encoded), encoded.count)
  }

  private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    // The joiners of emoji are formats too, but only these change the direction.
    case .format: !scalar.properties.isBidiControl
    case .control, .lineSeparator, .paragraphSeparator: false
    default: true
    }
  }

  private static func escape(_ value: UInt32, isByte: Bool) -> [UInt8] {
    switch value {
    case 9: return Array("\\t".utf8)
    case 10: return Array("\\n".utf8)
    case 13: return Array("\\r".utf8)
    default:
      let digits = String(value, radix: 16, uppercase: true)
      if !isByte { return Array("\\u{\(digits)}".utf8) }
      return Array("\\x\(digits.utf8.count < 2 ? "0" : "")\(digits)".utf8)
    }
  }
}
