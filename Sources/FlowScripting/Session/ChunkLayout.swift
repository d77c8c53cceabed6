/// The indentation of a chunk that is being typed.
package struct ChunkLayout {
  /// Brackets and blocks that are open so far, the outermost first: the line of each.
  private var openLines: [Int] = []
  /// Whether the text ends within a string or a comment.
  private let isInText: Bool

  private static let openers: Set<String> = ["function", "if", "do", "repeat", "{", "(", "["]
  private static let closers: Set<String> = ["end", "until", "}", ")", "]"]

  /// - Parameter text: The lines so far.
  package init(_ text: [UInt8]) {
    let tokens = LuaLexer.tokens(text, withComments: true)
    isInText =
      tokens.last.map { $0.isOpen && !Self.isLineComment($0, text) } ?? false
    var line = 0
    var counted = 0
    for token in tokens {
      line += text[counted..<token.range.lowerBound].count { $0 == UInt8(ascii: "\n") }
      counted = token.range.lowerBound
      guard token.kind == .keyword || token.kind == .symbol else { continue }
      let word = String(decoding: text[token.range], as: Unicode.ASCII.self)
      if Self.openers.contains(word) {
        openLines.append(line)
      } else if Self.closers.contains(word), !openLines.isEmpty {
        openLines.removeLast()
      }
    }
  }

  private static func isLineComment(_ token: LuaLexer.Token, _ text: [UInt8]) -> Bool {
    guard token.kind == .comment else { return false }
    let begin = text[token.range]
    return !begin.starts(with: Array("--[[".utf8)) && !begin.starts(with: Array("--[=".utf8))
  }

  /// The beginning of the next line: two spaces for each line that opens something.
  package var indentation: [UInt8] {
    isInText ? [] : [UInt8](repeating: 32, count: 2 * Set(openLines).count)
  }

  /// The next line, typed after the indentation: a line that closes a block is indented like the
  /// line that opened it.
  package func placed(_ line: [UInt8]) -> [UInt8] {
    let indentation = indentation
    guard !indentation.isEmpty, line.starts(with: indentation) else { return line }
    let rest = Array(line[indentation.count...])
    guard let first = LuaLexer.tokens(rest).first, first.range.lowerBound == 0 else { return line }
    let word = String(decoding: rest[first.range], as: Unicode.ASCII.self)
    if word == "else" || word == "elseif" { return Array(indentation.dropLast(2)) + rest }
    guard Self.closers.contains(word) else { return line }
    // Closers of the same line belong together: `end)` closes what `f(function()` has opened.
    var left = openLines
    for token in LuaLexer.tokens(rest) {
      let word = String(decoding: rest[token.range], as: Unicode.ASCII.self)
      guard Self.closers.contains(word), !left.isEmpty else { break }
      left.removeLast()
    }
    return [UInt8](repeating: 32, count: 2 * Set(left).count) + rest
  }
}
