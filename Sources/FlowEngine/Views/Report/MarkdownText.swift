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
    var shown = ""
    var fence = 1
    var ticks = 0
    for scalar in text.truncated(to: limit).description.unicodeScalars {
      ticks = scalar == "`" ? ticks + 1 : 0
      fence = max(fence, ticks + 1)
      if scalar == "\n" || scalar == "\t" {
        shown.unicodeScalars.append(" ")
      } else if isHidden(scalar) {
        shown.unicodeScalars.append("\u{FFFD}")
      } else {
        if scalar == "|", isCell { shown.unicodeScalars.append("\\") }
        shown.unicodeScalars.append(scalar)
      }
    }
    // A code span without anything to see isn't one; a space at both ends isn't shown.
    if shown.unicodeScalars.allSatisfy({ $0 == " " }) { shown = "\u{2423}" }
    let isPadded =
      shown.hasPrefix("`") || shown.hasSuffix("`") || shown.hasPrefix(" ") && shown.hasSuffix(" ")
    let marks = ByteString(String(repeating: "`", count: fence))
    return isPadded ? "\(marks) \(shown) \(marks)" : "\(marks)\(shown)\(marks)"
  }

  /// Whether a character is invisible or changes how others are shown: control characters, ends of lines,
  /// and marks of the direction of a text.
  private static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .lineSeparator, .paragraphSeparator: true
    case .format: scalar != "\u{200D}"
    default: false
    }
  }
}
