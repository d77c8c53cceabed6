internal import FlowEngine

/// The layout of `help`'s texts.
enum HelpText {
  /// Wraps each line to a width; a wrapped line continues two columns further to the right.
  static func wrapped(_ text: ByteString, columns: Int) -> ByteString {
    let lines = text.split(at: "\n")
    let broken = lines.map { wrapped(line: Array($0), max(columns, 20)) }
    return ByteString(broken.joined(separator: [UInt8(ascii: "\n")]))
  }

  private static func wrapped(line: [UInt8], _ columns: Int) -> [UInt8] {
    guard width(line) > columns else { return line }
    let indentation = line.prefix { $0 == 32 }.count
    // A sentence continues at the same indentation, an entry of a list further in.
    let hanging = [UInt8](repeating: 32, count: indentation == 0 ? 0 : indentation + 2)
    var shown = [UInt8](repeating: 32, count: indentation)
    var column = indentation
    var isFirst = true
    for word in line.dropFirst(indentation).split(separator: 32, omittingEmptySubsequences: false) {
      let length = width(Array(word))
      if !isFirst, column + 1 + length > columns {
        shown += [UInt8(ascii: "\n")] + hanging
        column = hanging.count
      } else if !isFirst {
        shown.append(32)
        column += 1
      }
      shown += word
      column += length
      isFirst = false
    }
    return shown
  }

  private static func width(_ text: [UInt8]) -> Int { text.count { $0 & 0xC0 != 0x80 } }

  /// Joins the lines of a comment to one line per paragraph, because the source's line ends have no
  /// meaning. Indented lines are paragraphs.
  static func joined(_ lines: [String]) -> [String] {
    var joined: [String] = []
    for line in lines {
      if let last = joined.last, !last.isEmpty, !line.isEmpty, !last.hasPrefix(" "),
        !line.hasPrefix(" ")
      {
        joined[joined.count - 1] = last + " " + line
      } else {
        joined.append(line)
      }
    }
    return joined
  }

  /// The first sentence of a paragraph.
  static func sentence(_ text: Substring) -> Substring {
    let bytes = text.utf8
    var index = bytes.startIndex
    while index < bytes.endIndex {
      let next = bytes.index(after: index)
      if bytes[index] == UInt8(ascii: "."), next < bytes.endIndex, bytes[next] == 32 {
        return text[..<next]
      }
      index = next
    }
    return text
  }

  /// `an integer`, `a string`.
  static func withArticle(_ noun: String) -> String {
    // `userdata` begins with a consonant in speech.
    let isVowel = noun.utf8.first.map { "aeioAEIO".contains($0) } ?? false
    return (isVowel ? "an " : "a ") + noun
  }
}
