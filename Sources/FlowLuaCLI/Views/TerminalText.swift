internal import FlowEngine

/// Texts of scripts on a terminal.
enum TerminalText {
  /// The number of columns of a character.
  static func width(of scalar: Unicode.Scalar) -> Int {
    if scalar.isASCII { return 1 }
    // The soft hyphen, and the signs that enclose digits, are shown.
    switch scalar.value {
    case 0xAD, 0x0600...0x0605, 0x06DD, 0x070F: return 1
    default: break
    }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    if scalar.properties.isEmojiPresentation { return 2 }
    // East Asian wide characters, and pictures: too many columns do less harm than too few.
    switch scalar.value {
    case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
      0xF900...0xFAFF,
      0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x1B2FF,
      0x1F000...0x1FAFF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}

/// A line of a terminal, made of parts with colours.
struct TerminalLine {
  /// A colour as the number in an escape sequence.
  enum Style: String {
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
  }

  private var parts: [(text: String, style: Style?)] = []

  mutating func add(_ text: String, _ style: Style? = nil) {
    if !text.isEmpty { parts.append((text, style)) }
  }

  /// The number of its columns.
  var width: Int {
    parts.reduce(0) { $1.text.unicodeScalars.reduce($0) { $0 + TerminalText.width(of: $1) } }
  }

  /// The line, cut where it doesn't fit, between words if possible.
  func text(columns: Int, hasColors: Bool) -> String {
    let end = width < columns ? Int.max : endOfWords(columns: columns)
    var text: String = ""
    var count = 0
    for part in parts {
      let scalars = part.text.unicodeScalars.prefix(max(0, end - count))
      count += part.text.unicodeScalars.count
      if scalars.isEmpty { break }
      if hasColors, let style = part.style {
        text += "\u{1B}[\(style.rawValue)m\(String(scalars))\u{1B}[0m"
      } else {
        text += String(scalars)
      }
    }
    return text
  }

  /// The number of the characters that fit.
  private func endOfWords(columns: Int) -> Int {
    var (count, width, lastWord) = (0, 0, 0)
    for part in parts {
      for scalar in part.text.unicodeScalars {
        width += TerminalText.width(of: scalar)
        // The last column stays empty: some terminals move to the next line there.
        guard width < columns else {
          return scalar == " " || lastWord * 2 < count ? count : lastWord
        }
        if scalar == " " { lastWord = count }
        count += 1
      }
    }
    return count
  }
}
