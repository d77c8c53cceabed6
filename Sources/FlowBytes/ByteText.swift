// Texts of bytes, with the functions that `String` has. All of them work by bytes: letters are those of ASCII. They are
// inlinable, because a generic function of another module would call one for each byte.

extension UInt8 {
  /// Whether the byte is a decimal digit.
  @inlinable package var isDigit: Bool { (48...57).contains(self) }
  /// Whether the byte is a letter of ASCII.
  @inlinable package var isLetter: Bool { (65...90).contains(self) || (97...122).contains(self) }
  /// Whether the byte is a space or a tab.
  @inlinable package var isBlank: Bool { self == 32 || self == 9 }
  /// Whether the byte is a space, a tab, or a part of a line end.
  @inlinable package var isSpace: Bool { isBlank || self == 13 || self == 10 }
  /// The byte; of a letter of ASCII, that in lower case.
  @inlinable package var lowercased: UInt8 { (65...90).contains(self) ? self + 32 : self }

  /// The value of a hexadecimal digit in upper or lower case; nil for others.
  @inlinable package var hexadecimalDigit: UInt8? {
    switch self {
    case 48...57: self - 48
    case 65...70: self - 55
    case 97...102: self - 87
    default: nil
    }
  }
}

// For `ByteString`, for its parts, and for arrays of bytes.
extension BidirectionalCollection<UInt8> {
  /// Whether the bytes begin with a text.
  @inlinable package func hasPrefix(_ text: some FlowText) -> Bool {
    text.withUTF8Bytes { starts(with: $0) }
  }

  /// Whether the bytes end with a text.
  @inlinable package func hasSuffix(_ text: some FlowText) -> Bool {
    text.withUTF8Bytes { suffix($0.count).elementsEqual($0) }
  }

  /// Whether the bytes are those of a literal, without the copy that a text would be.
  @inlinable package func equals(_ literal: StaticString) -> Bool {
    elementsEqual(
      UnsafeBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount))
  }

  /// The parts between separators; an empty part counts.
  ///
  /// - Parameters:
  ///   - separator: A character of ASCII.
  ///   - maxSplits: How many separators count at most.
  /// - Returns: The parts, at least one.
  @inlinable package func split(at separator: Unicode.Scalar, maxSplits: Int = .max)
    -> [SubSequence]
  {
    split(
      separator: UInt8(ascii: separator), maxSplits: maxSplits, omittingEmptySubsequences: false)
  }

  /// The decimal number that the bytes are; nil for any others, and beyond 64 bits.
  @inlinable package var decimal: Int64? {
    if isEmpty { return nil }
    var number: Int64 = 0
    for byte in self {
      guard byte.isDigit else { return nil }
      let (product, isTooLarge) = number.multipliedReportingOverflow(by: 10)
      let (sum, isBeyond) = product.addingReportingOverflow(Int64(byte - 48))
      if isTooLarge || isBeyond { return nil }
      number = sum
    }
    return number
  }

  /// The last part of a path: the name of a file in its folder.
  @inlinable package var fileName: SubSequence {
    self[(lastIndex(of: UInt8(ascii: "/")).map { index(after: $0) } ?? startIndex)...]
  }

  /// The bytes without those at both ends that are to be left out, by default spaces, tabs and line ends.
  @inlinable package func trimmed(_ isLeftOut: (UInt8) -> Bool = \.isSpace) -> SubSequence {
    let rest = drop(while: isLeftOut)
    guard let last = rest.lastIndex(where: { !isLeftOut($0) }) else { return rest }
    return rest[...last]
  }
}

extension ByteString {
  /// Whether the text begins with another one.
  public func hasPrefix(_ text: some FlowText) -> Bool { bytes.hasPrefix(text) }

  /// Whether the text ends with another one.
  package func hasSuffix(_ text: some FlowText) -> Bool { bytes.hasSuffix(text) }

  /// The decimal number that the text is; nil for any other, and beyond 64 bits.
  package var decimal: Int64? { bytes.decimal }

  /// The last part of a path: the name of a file in its folder.
  package var fileName: ByteString { ByteString(bytes.fileName) }

  /// The text with letters of ASCII in lower case.
  @inlinable package var lowercased: ByteString { ByteString(bytes.map(\.lowercased)) }

  /// The text with letters of ASCII in upper case.
  @inlinable package var uppercased: ByteString {
    ByteString(bytes.map { (97...122).contains($0) ? $0 - 32 : $0 })
  }

  /// Whether a text is a part of this one.
  public func contains(_ text: some FlowText) -> Bool {
    bytes.place(of: text.byteString) != nil
  }
}

extension Sequence where Element: Sequence<UInt8> {
  /// The texts one after another, with another text between each two.
  @inlinable package func joined(separator: ByteString = "") -> ByteString {
    var bytes: [UInt8] = []
    var isFirst = true
    for text in self {
      if !isFirst { bytes += separator.bytes }
      isFirst = false
      bytes += text
    }
    return ByteString(bytes)
  }
}
