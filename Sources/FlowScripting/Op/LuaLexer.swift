@_spi(Scripting) internal import LuaVM

/// Splits Lua into tokens. Invalid text doesn't stop it, because the text may still be being typed.
package struct LuaLexer {
  package enum Kind: Equatable, Sendable {
    case name, keyword, number, string, symbol, comment
  }

  package struct Token: Equatable, Sendable {
    package let kind: Kind
    package let range: Range<Int>
    /// Whether its end is still missing: for a string, a long string or a comment at the end of the
    /// text.
    package let isOpen: Bool
  }

  package static let keywords: Set<String> = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
  ]

  private static let symbols = ["...", "..", "==", "~=", "<=", ">=", "//", "::", "<<", ">>"]
    .map(\.bytes)

  private let bytes: [UInt8]
  private var index: Int

  private init(_ bytes: [UInt8]) {
    self.bytes = bytes
    index = 0
  }

  /// The tokens of a text in order.
  ///
  /// - Parameters:
  ///   - bytes: The text.
  ///   - withComments: Whether comments are tokens, too.
  /// - Returns: The tokens.
  package static func tokens(_ bytes: [UInt8], withComments: Bool = false) -> [Token] {
    var lexer = LuaLexer(bytes)
    var tokens: [Token] = []
    while let token = lexer.next() {
      if withComments || token.kind != .comment { tokens.append(token) }
    }
    return tokens
  }

  private func byte(_ offset: Int = 0) -> UInt8? {
    index + offset < bytes.count ? bytes[index + offset] : nil
  }

  private mutating func next() -> Token? {
    while let space = byte(), space == 32 || (9...13).contains(space) { index += 1 }
    guard let first = byte() else { return nil }
    let start = index
    switch first {
    case UInt8(ascii: "-") where byte(1) == UInt8(ascii: "-"):
      index += 2
      if let level = longBracketLevel() { return long(.comment, from: start, level) }
      while let other = byte(), other != UInt8(ascii: "\n") { index += 1 }
      return Token(kind: .comment, range: start..<index, isOpen: index == bytes.count)
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return short(first, from: start)
    case UInt8(ascii: "["):
      if let level = longBracketLevel() { return long(.string, from: start, level) }
    case UInt8(ascii: "0")...UInt8(ascii: "9"): return number(from: start)
    case UInt8(ascii: "."):
      if let digit = byte(1), digit.isDigit { return number(from: start) }
    default:
      guard Self.isNamePart(first) else { break }
      while let part = byte(), Self.isNamePart(part) { index += 1 }
      let word = String(decoding: bytes[start..<index], as: Unicode.ASCII.self)
      let kind: Kind = Self.keywords.contains(word) ? .keyword : .name
      return Token(kind: kind, range: start..<index, isOpen: false)
    }
    let length = Self.symbols.first { bytes[start...].starts(with: $0) }?.count ?? 1
    index += length
    return Token(kind: .symbol, range: start..<index, isOpen: false)
  }

  /// The number of `=` in a long bracket that opens here; nil if none does.
  private func longBracketLevel() -> Int? {
    guard byte() == UInt8(ascii: "[") else { return nil }
    var level = 0
    while byte(level + 1) == UInt8(ascii: "=") { level += 1 }
    return byte(level + 1) == UInt8(ascii: "[") ? level : nil
  }

  private mutating func long(_ kind: Kind, from start: Int, _ level: Int) -> Token {
    index += level + 2
    let close =
      [UInt8(ascii: "]")] + [UInt8](repeating: UInt8(ascii: "="), count: level)
      + [UInt8(ascii: "]")]
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "]"), bytes[index...].starts(with: close) {
        index += close.count
        return Token(kind: kind, range: start..<index, isOpen: false)
      }
      index += 1
    }
    return Token(kind: kind, range: start..<index, isOpen: true)
  }

  private mutating func short(_ quote: UInt8, from start: Int) -> Token {
    index += 1
    while let next = byte() {
      index += 1
      if next == quote { return Token(kind: .string, range: start..<index, isOpen: false) }
      if next == UInt8(ascii: "\n") {
        // No string continues on the next line, unless the line's end is escaped.
        return Token(kind: .string, range: start..<(index - 1), isOpen: false)
      }
      guard next == UInt8(ascii: "\\"), let escaped = byte() else { continue }
      index += 1
      // `\z` skips the following white space, line ends too.
      if escaped == UInt8(ascii: "z") {
        while let space = byte(), space == 32 || (9...13).contains(space) { index += 1 }
      }
    }
    return Token(kind: .string, range: start..<index, isOpen: true)
  }

  private mutating func number(from start: Int) -> Token {
    let isHexadecimal =
      byte() == UInt8(ascii: "0") && (byte(1) ?? 0) | 0x20 == UInt8(ascii: "x")
    let exponent = UInt8(ascii: isHexadecimal ? "p" : "e")
    while let next = byte() {
      let isSign = next == UInt8(ascii: "+") || next == UInt8(ascii: "-")
      if isSign, index > start, bytes[index - 1] | 0x20 == exponent {
        index += 1
      } else if Self.isNamePart(next) || next == UInt8(ascii: ".") {
        index += 1
      } else {
        break
      }
    }
    return Token(kind: .number, range: start..<index, isOpen: false)
  }

  /// Whether a byte may be a part of a name.
  package static func isNamePart(_ byte: UInt8) -> Bool {
    byte.isLetter || byte.isDigit || byte == UInt8(ascii: "_")
  }

  /// Whether bytes can be written as a name.
  package static func isName(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first, !first.isDigit, bytes.allSatisfy(isNamePart) else {
      return false
    }
    return !keywords.contains(String(decoding: bytes, as: Unicode.ASCII.self))
  }
}

/// The names by which a script can reach functions: through loaded modules and global variables.
struct FunctionNames {
  private var names: [UInt: [UInt8]] = [:]
  private let vm: LuaVM

  init(_ vm: LuaVM) {
    self.vm = vm
    guard let globals = try? vm.globals() else { return }
    addFunctions(of: globals, prefix: [])
    var modules: [LuaReference] = [globals]
    if case .reference(let package)? = try? vm.rawGet("package", in: globals),
      case .reference(let loaded)? = try? vm.rawGet("loaded", in: package)
    {
      modules.append(loaded)
    }
    for table in modules {
      for case (.string(let name), .reference(let module)) in (try? vm.pairs(of: table)) ?? []
      where module.kind == .table && name != "_G" && LuaLexer.isName(name.bytes) {
        addFunctions(of: module, prefix: name.bytes + [UInt8(ascii: ".")])
      }
    }
  }

  private mutating func addFunctions(of table: LuaReference, prefix: [UInt8]) {
    for case (.string(let name), .reference(let function)) in (try? vm.pairs(of: table)) ?? []
    where function.kind == .function && LuaLexer.isName(name.bytes) && name != "_" {
      let identity = vm.identity(of: function)
      if names[identity] == nil { names[identity] = prefix + name.bytes }
    }
  }

  subscript(function: LuaReference) -> [UInt8]? { names[vm.identity(of: function)] }
}
