/// A pattern for names and paths.
///
/// `?` stands for one character, `*` for any number of them, `[a-z]` for one of a set, `[!a-z]` for
/// one that isn't in it; a character of the set may be quoted by `\`, as anywhere. None of them
/// stands for a slash. The part `**` of a pattern with slashes stands for any number of folders,
/// also none. A pattern without a slash is compared with the name, another one with the path.
///
/// The C library's `fnmatch` isn't used: it has no `**`, and whether its `?` is a character or a
/// byte depends on the locale of the process, which a script may change while another thread
/// compares. This one takes UTF-8 in any locale, and a byte that is none as a character. It needs
/// no more than the product of both lengths, whatever the pattern.
package struct Glob: Sendable {
  /// An element of a part.
  private enum Element {
    case character(UInt32)
    /// `?`
    case any
    /// `*`
    case many
    case set([ClosedRange<UInt32>], isInverted: Bool)
  }

  /// The text between two slashes.
  private enum Part {
    case elements([Element])
    /// `**`
    case folders
  }

  private let parts: [Part]
  /// Whether the pattern is for paths; otherwise it is for names.
  package let isForPaths: Bool

  /// A mistake in a pattern, as a sentence.
  package struct Mistake: Error {
    package let message: String
  }

  /// Reads a pattern.
  package init(_ pattern: ByteString) throws(Mistake) {
    if pattern.isEmpty { throw Mistake(message: "the pattern is empty") }
    let slash = UInt8(ascii: "/")
    isForPaths = pattern.bytes.contains(slash)
    var parts: [Part] = []
    for text in pattern.bytes.split(separator: slash, omittingEmptySubsequences: false) {
      let isDouble = text.equals("**")
      parts.append(isForPaths && isDouble ? .folders : .elements(try Self.elements(text)))
    }
    self.parts = parts
  }

  /// Whether an entry matches.
  ///
  /// - Parameters:
  ///   - path: The path of the entry, without the part that isn't compared.
  ///   - name: The last part of the path.
  /// - Returns: Whether it does.
  package func matches(
    path: @autoclosure () -> ArraySlice<UInt8>, name: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard isForPaths else {
      guard case .elements(let elements)? = parts.first else { return false }
      return Self.matches(elements, Self.characters(name))
    }
    // Most paths differ in their names, which are much shorter.
    if case .elements(let elements)? = parts.last,
      !Self.matches(elements, Self.characters(name))
    {
      return false
    }
    return matches(path: path())
  }

  private func matches(path: ArraySlice<UInt8>) -> Bool {
    let names = path.split(at: "/")
    return Self.matches(
      parts, names, isMany: { if case .folders = $0 { true } else { false } }
    ) { part, name in
      guard case .elements(let elements) = part else { return false }
      return Self.matches(elements, Self.characters(name))
    }
  }

  private static func matches(_ elements: [Element], _ characters: [UInt32]) -> Bool {
    matches(
      elements, characters, isMany: { if case .many = $0 { true } else { false } }
    ) { element, character in
      switch element {
      case .character(let own): own == character
      case .any, .many: true
      case .set(let ranges, let isInverted):
        ranges.contains { $0.contains(character) } != isInverted
      }
    }
  }

  /// Compares a row of units with a pattern in which some elements stand for any number of them.
  /// When the rest doesn't match, only the last such element takes one unit more: an earlier one
  /// couldn't help.
  private static func matches<Element, Unit>(
    _ pattern: [Element], _ units: [Unit], isMany: (Element) -> Bool,
    _ isMatch: (Element, Unit) -> Bool
  ) -> Bool {
    var (at, index) = (0, 0)
    var retry: (at: Int, index: Int)?
    while index < units.count {
      if at < pattern.count, isMany(pattern[at]) {
        at += 1
        retry = (at, index)
      } else if at < pattern.count, isMatch(pattern[at], units[index]) {
        at += 1
        index += 1
      } else if let last = retry {
        (at, index) = (last.at, last.index + 1)
        retry = (at, index)
      } else {
        return false
      }
    }
    return pattern[at...].allSatisfy(isMany)
  }

  // MARK: Reading

  private static func elements(_ text: ArraySlice<UInt8>) throws(Mistake) -> [Element] {
    let characters = characters(text)
    var elements: [Element] = []
    var index = 0
    while index < characters.count {
      let character = characters[index]
      index += 1
      switch character {
      case "?": elements.append(.any)
      case "*": elements.append(.many)
      case "[": elements.append(try set(characters, &index))
      case "\\":
        guard index < characters.count else {
          throw Mistake(message: "the pattern ends with '\\'")
        }
        elements.append(.character(characters[index]))
        index += 1
      default: elements.append(.character(character))
      }
    }
    return elements
  }

  /// Reads a set, after its `[`.
  private static func set(
    _ characters: [UInt32], _ index: inout Int
  ) throws(Mistake) -> Element {
    var isInverted = false
    if index < characters.count, characters[index] == "!" || characters[index] == "^" {
      isInverted = true
      index += 1
    }
    var ranges: [ClosedRange<UInt32>] = []
    var isFirst = true
    while index < characters.count {
      if characters[index] == "]", !isFirst {
        index += 1
        return .set(ranges, isInverted: isInverted)
      }
      isFirst = false
      guard let first = member(characters, &index) else { break }
      // A `-` at the end is a member.
      guard index + 1 < characters.count, characters[index] == "-", characters[index + 1] != "]"
      else {
        ranges.append(first...first)
        continue
      }
      index += 1
      guard let last = member(characters, &index) else { break }
      guard first <= last else { throw Mistake(message: "the pattern has a range that is empty") }
      ranges.append(first...last)
    }
    throw Mistake(message: "the pattern has a '[' without ']'")
  }

  private static func member(_ characters: [UInt32], _ index: inout Int) -> UInt32? {
    if characters[index] == "\\" { index += 1 }
    guard index < characters.count else { return nil }
    index += 1
    return characters[index - 1]
  }

  /// The characters of a text in UTF-8. A byte that belongs to none gets a number of its own beyond
  /// those of Unicode.
  private static func characters(_ text: some Collection<UInt8>) -> [UInt32] {
    var result: [UInt32] = []
    result.reserveCapacity(text.count)
    var index = text.startIndex
    while index != text.endIndex {
      let byte = text[index]
      if byte < 0x80 {
        result.append(UInt32(byte))
        text.formIndex(after: &index)
        continue
      }
      let length = byte < 0xC2 ? 0 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : byte < 0xF5 ? 4 : 0
      let end = text.index(index, offsetBy: max(length, 1), limitedBy: text.endIndex)
      if length > 0, let end,
        let scalar = String(validating: text[index..<end], as: UTF8.self)?.unicodeScalars.first
      {
        result.append(scalar.value)
        index = end
      } else {
        result.append(0x110000 + UInt32(byte))
        text.formIndex(after: &index)
      }
    }
    return result
  }
}

// Characters as literals.
private func == (character: UInt32, scalar: Unicode.Scalar) -> Bool { character == scalar.value }
private func != (character: UInt32, scalar: Unicode.Scalar) -> Bool { character != scalar.value }
private func ~= (scalar: Unicode.Scalar, character: UInt32) -> Bool { character == scalar.value }
