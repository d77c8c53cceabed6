/// Markdown that a program writes itself. Names and messages come from scripts and servers, so that they are
/// put into code spans: nothing in them is a tag, a link, a mention or a cell of a table.
struct MarkdownText {
  private(set) var bytes: [UInt8] = []

  /// Appends what is Markdown already.
  mutating func append(_ text: ByteString) { bytes += text.bytes }

  /// Appends a row of a table.
  mutating func appendRow(_ cells: [ByteString]) {
    append("| \(ByteString(Array(cells.map(\.bytes).joined(separator: Array(" | ".utf8))))) |\n")
  }

  /// A text in a code span, on one line and with at most so many characters.
  ///
  /// - Parameters:
  ///   - text: Any bytes.
  ///   - limit: The number of characters before it is cut.
  ///   - isCell: Whether it is in a table, where a bar separates cells even in code.
  /// - Returns: The code span, with its marks.
  static func code(_ text: ByteString, limit: Int = 160, isCell: Bool = false) -> ByteString {
    var shown: [UInt8] = []
    var fence = 1
    var ticks = 0
    for byte in text.truncated(to: limit).onOneLine.truncated(to: limit).bytes {
      ticks = byte == UInt8(ascii: "`") ? ticks + 1 : 0
      fence = max(fence, ticks + 1)
      if byte == UInt8(ascii: "|"), isCell { shown.append(UInt8(ascii: "\\")) }
      shown.append(byte)
    }
    // A code span without anything to see isn't one; a space at both ends isn't shown.
    if shown.allSatisfy({ $0 == UInt8(ascii: " ") }) { shown = Array("\u{2423}".utf8) }
    let edges = [shown.first, shown.last]
    let isPadded =
      edges.contains(UInt8(ascii: "`")) || edges.allSatisfy { $0 == UInt8(ascii: " ") }
    let marks = ByteString(Array(repeating: UInt8(ascii: "`"), count: fence))
    let content = ByteString(shown)
    return isPadded ? "\(marks) \(content) \(marks)" : "\(marks)\(content)\(marks)"
  }
}
