/// Where in a line of Lua the cursor stands, as far as completion wants to know.
struct CodeContext {
  /// Where the string begins that the cursor is in, behind its quote; nil outside of strings.
  private(set) var stringStart: Int?
  private(set) var isInComment = false
  private let bytes: [UInt8]

  /// - Parameter bytes: What stands before the cursor.
  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var index = 0
    var quote: UInt8?
    while index < bytes.count {
      let byte = bytes[index]
      if let open = quote {
        if byte == UInt8(ascii: "\\") {
          index += 1
        } else if byte == open || byte == UInt8(ascii: "\n") {
          quote = nil
          stringStart = nil
        }
      } else if isInComment {
        isInComment = byte != UInt8(ascii: "\n")
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
        stringStart = index + 1
      } else if byte == UInt8(ascii: "-"), index + 1 < bytes.count,
        bytes[index + 1] == UInt8(ascii: "-")
      {
        isInComment = true
      }
      index += 1
    }
  }

  var isInString: Bool { stringStart != nil }

  /// The name of the function that the string is the first argument of; nil when there is none.
  var functionOfString: String? {
    guard let stringStart else { return nil }
    var end = Self.skipSpaces(bytes, before: stringStart - 1)
    if end > 0, bytes[end - 1] == UInt8(ascii: "(") {
      end = Self.skipSpaces(bytes, before: end - 1)
    }
    let start = Self.nameStart(bytes, before: end)
    return start < end ? String(decoding: bytes[start..<end], as: Unicode.ASCII.self) : nil
  }

  /// Where the name begins that ends before an index; the index itself when there is none.
  static func nameStart(_ bytes: [UInt8], before end: Int) -> Int {
    var start = end
    while start > 0, isNamePart(bytes[start - 1]) { start -= 1 }
    return start
  }

  static func skipSpaces(_ bytes: [UInt8], before end: Int) -> Int {
    var end = end
    while end > 0, [9, 10, 13, 32].contains(bytes[end - 1]) { end -= 1 }
    return end
  }

  static func isNamePart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Whether bytes can be written as a name.
  static func isName(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first, !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first) else {
      return false
    }
    return bytes.allSatisfy(isNamePart)
      && !keywords.contains { $0.utf8.elementsEqual(bytes) }
  }

  static let keywords = [
    "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "goto", "if", "in",
    "local", "nil", "not", "or", "repeat", "return", "then", "true", "until", "while",
  ]
}
