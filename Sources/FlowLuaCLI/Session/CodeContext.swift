internal import FlowScripting

/// The place of the cursor in a chunk of Lua, as far as completion needs it.
struct CodeContext {
  /// The start of the string at the cursor, after its quote; nil outside of strings.
  let stringStart: Int?
  let isInComment: Bool
  /// The name of the function whose first argument is the string; nil if there is none.
  let functionOfString: String?

  /// - Parameter bytes: The text before the cursor.
  init(_ bytes: [UInt8]) {
    let tokens = LuaLexer.tokens(bytes, withComments: true)
    guard let last = tokens.last, last.isOpen else {
      (stringStart, isInComment, functionOfString) = (nil, false, nil)
      return
    }
    isInComment = last.kind == .comment
    let isString = last.kind == .string
    let isLong = isString && bytes[last.range.lowerBound] == UInt8(ascii: "[")
    stringStart =
      isString
      ? isLong ? bytes.count : last.range.lowerBound + 1 : nil
    let before = tokens.dropLast().filter { $0.kind != .comment }
    let name =
      before.last.map { bytes[$0.range].elementsEqual([UInt8(ascii: "(")]) } == true
      ? before.dropLast().last : before.last
    functionOfString =
      isString && !isLong && name?.kind == .name
      ? name.map { String(decoding: bytes[$0.range], as: Unicode.ASCII.self) } : nil
  }

  var isInString: Bool { stringStart != nil }

  /// The start of the name that ends at the cursor; the end if there is none.
  static func nameStart(_ bytes: [UInt8]) -> Int {
    var start = bytes.count
    while start > 0, LuaLexer.isNamePart(bytes[start - 1]) { start -= 1 }
    return start
  }
}
