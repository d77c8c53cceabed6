/// Finds the statements of a chunk that Lua has compiled: as much of a parser as is necessary for
/// the local variables at its top level.
package struct ChunkReader {
  /// A declaration at the top level.
  package struct Declaration: Equatable {
    package struct Name: Equatable {
      package let name: [UInt8]
      /// The range of `const` or `close`; nil without attribute.
      package let attribute: Range<Int>?
    }
    package let names: [Name]
    /// The end of the statement.
    package let end: Int
  }

  /// The target to which a chunk of one statement assigns its value.
  package enum Target: Equatable {
    /// `local name = value`; with `<const>` or `<close>` it can't be changed.
    case local(name: [UInt8], isConstant: Bool)
    /// `a.b[1] = value`: the text on the left.
    case place([UInt8])
  }

  package private(set) var declarations: [Declaration] = []
  /// nil for several statements, several values, or a value that isn't assigned.
  package private(set) var target: Target?
  /// The end of each statement; the last one is the end of the text if all of it was understood.
  package private(set) var ends: [Int] = []
  private let bytes: [UInt8]
  private let tokens: [LuaLexer.Token]
  private var index = 0
  private var depth = 0

  /// The text doesn't have the expected form: Lua would not have compiled it.
  private struct Unexpected: Error {}

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
    tokens = LuaLexer.tokens(bytes)
    // The statements found so far count even then.
    while index < tokens.count, (try? readStatement()) != nil {
      ends.append(tokens[index - 1].range.upperBound)
    }
    if index < tokens.count || ends.count != 1 { target = nil }
  }

  // MARK: Tokens

  private func text(_ offset: Int = 0) -> ArraySlice<UInt8>? {
    index + offset < tokens.count ? bytes[tokens[index + offset].range] : nil
  }

  private func isNext(_ word: StaticString, _ offset: Int = 0) -> Bool {
    guard index + offset < tokens.count, tokens[index + offset].kind != .string,
      let text = text(offset)
    else { return false }
    return word.withUTF8Buffer { text.elementsEqual($0) }
  }

  private var kind: LuaLexer.Kind? { index < tokens.count ? tokens[index].kind : nil }

  /// Skips a word, if it comes next.
  private mutating func skip(_ word: StaticString) -> Bool {
    guard isNext(word) else { return false }
    index += 1
    return true
  }

  private mutating func expect(_ word: StaticString) throws {
    guard skip(word) else { throw Unexpected() }
  }

  private mutating func name() throws -> [UInt8] {
    guard let text = text() else { throw Unexpected() }
    try skipName()
    return Array(text)
  }

  // A copy whose result is discarded must not stand here. In a loop such as `for _ in slice { _ = copy(slice) }`, with
  // `func copy(_ slice: ArraySlice<UInt8>) -> [UInt8] { Array(slice) }`, the optimiser of Swift 6.3.1 releases the
  // array before it copies the bytes into it: a write to freed memory.
  private mutating func skipName() throws {
    guard kind == .name else { throw Unexpected() }
    index += 1
  }

  // MARK: Statements

  private mutating func block() throws {
    depth += 1
    defer { depth -= 1 }
    let ends: [StaticString] = ["end", "else", "elseif", "until"]
    while index < tokens.count, !ends.contains(where: { isNext($0) }) { try readStatement() }
  }

  private mutating func readStatement() throws {
    if skip(";") { return }
    if skip("if") { return try conditional() }
    if skip("while") {
      try expression()
      try expect("do")
      return try blockToEnd()
    }
    if skip("do") { return try blockToEnd() }
    if skip("for") { return try loop() }
    if skip("repeat") {
      try block()
      try expect("until")
      return try expression()
    }
    if skip("function") {
      try skipName()
      while skip(".") || skip(":") { try skipName() }
      return try functionBody()
    }
    if skip("local") { return try declaration() }
    if skip("::") {
      try skipName()
      return try expect("::")
    }
    if skip("break") { return }
    if skip("goto") {
      try skipName()
      return
    }
    if skip("return") {
      if index < tokens.count, !isNext(";"), !isNext("end"), !isNext("else"), !isNext("elseif"),
        !isNext("until")
      {
        _ = try expressions()
      }
      _ = skip(";")
      return
    }
    try assignmentOrCall()
  }

  private mutating func blockToEnd() throws {
    try block()
    try expect("end")
  }

  private mutating func conditional() throws {
    try expression()
    try expect("then")
    try block()
    while skip("elseif") {
      try expression()
      try expect("then")
      try block()
    }
    if skip("else") { try block() }
    try expect("end")
  }

  private mutating func loop() throws {
    try skipName()
    while skip(",") { try skipName() }
    guard skip("=") || skip("in") else { throw Unexpected() }
    _ = try expressions()
    try expect("do")
    try blockToEnd()
  }

  private mutating func declaration() throws {
    if skip("function") {
      let name = Declaration.Name(name: try name(), attribute: nil)
      try functionBody()
      return addNames([name])
    }
    var names: [Declaration.Name] = []
    repeat {
      let name = try name()
      var attribute: Range<Int>?
      if skip("<") {
        attribute = index < tokens.count ? tokens[index].range : nil
        try skipName()
        try expect(">")
      }
      names.append(Declaration.Name(name: name, attribute: attribute))
    } while skip(",")
    var values = 0
    if skip("=") { values = try expressions() }
    if depth == 0, values == 1, names.count == 1 {
      target = .local(name: names[0].name, isConstant: names[0].attribute != nil)
    }
    addNames(names)
  }

  private mutating func addNames(_ names: [Declaration.Name]) {
    guard depth == 0, index > 0 else { return }
    declarations.append(Declaration(names: names, end: tokens[index - 1].range.upperBound))
  }

  private mutating func assignmentOrCall() throws {
    let start = index
    try suffixedExpression()
    let end = index
    var targets = 1
    while skip(",") {
      try suffixedExpression()
      targets += 1
    }
    guard skip("=") else { return }
    let values = try expressions()
    // A function that returns the target must not be called again.
    let isPlain = tokens[start..<end].allSatisfy { token in
      guard token.kind == .symbol else { return true }
      return [UInt8(ascii: "."), UInt8(ascii: "["), UInt8(ascii: "]")]
        .contains(bytes[token.range.lowerBound]) && token.range.count == 1
    }
    if depth == 0, targets == 1, values == 1, isPlain {
      target = .place(
        Array(bytes[tokens[start].range.lowerBound..<tokens[end - 1].range.upperBound]))
    }
  }

  // MARK: Expressions

  /// Returns the number of expressions.
  private mutating func expressions() throws -> Int {
    try expression()
    var count = 1
    while skip(",") {
      try expression()
      count += 1
    }
    return count
  }

  private static let unary: [StaticString] = ["not", "-", "#", "~"]
  private static let binary: [StaticString] = [
    "+", "-", "*", "/", "//", "^", "%", "..", "<", "<=", ">", ">=", "==", "~=", "and", "or", "&",
    "|", "~", "<<", ">>",
  ]

  private mutating func expression() throws {
    repeat {
      while Self.unary.contains(where: { isNext($0) }) { index += 1 }
      try simpleExpression()
    } while skipBinary()
  }

  private mutating func skipBinary() -> Bool {
    guard Self.binary.contains(where: { isNext($0) }) else { return false }
    index += 1
    return true
  }

  private mutating func simpleExpression() throws {
    if kind == .number || kind == .string {
      index += 1
      return
    }
    if skip("nil") || skip("true") || skip("false") || skip("...") { return }
    if isNext("{") { return try table() }
    if skip("function") { return try functionBody() }
    try suffixedExpression()
  }

  private mutating func functionBody() throws {
    try expect("(")
    while !skip(")") {
      guard index < tokens.count else { throw Unexpected() }
      index += 1
    }
    try blockToEnd()
  }

  private mutating func table() throws {
    try expect("{")
    while !skip("}") {
      if skip("[") {
        try expression()
        try expect("]")
        try expect("=")
      } else if kind == .name, isNext("=", 1) {
        index += 2
      }
      try expression()
      if !skip(","), !skip(";"), !isNext("}") { throw Unexpected() }
    }
  }

  private mutating func suffixedExpression() throws {
    if skip("(") {
      try expression()
      try expect(")")
    } else {
      try skipName()
    }
    while true {
      if skip(".") {
        try skipName()
      } else if skip("[") {
        try expression()
        try expect("]")
      } else if skip(":") {
        try skipName()
        try arguments()
      } else if isNext("(") || isNext("{") || kind == .string {
        try arguments()
      } else {
        return
      }
    }
  }

  private mutating func arguments() throws {
    if kind == .string {
      index += 1
    } else if isNext("{") {
      try table()
    } else {
      try expect("(")
      if skip(")") { return }
      _ = try expressions()
      try expect(")")
    }
  }
}

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
