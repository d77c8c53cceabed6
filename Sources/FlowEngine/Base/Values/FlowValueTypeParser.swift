/// Parses the text of a `FlowValueType`.
struct ValueTypeParser {
  /// The most `[]` after a name: limits how deep `mismatch` recurses, whatever a script has
  /// written.
  private static let maximumListDepth = 16

  /// Names from other languages that people write for a built-in type out of habit.
  private static let habits: [String: String] = [
    "int": "integer", "long": "integer", "uint": "integer", "bool": "boolean", "str": "string",
    "text": "string", "double": "float", "num": "number", "nil": "any", "null": "any",
    "func": "function", "fn": "function", "closure": "function", "list": "table",
    "array": "table", "dict": "table", "dictionary": "table", "map": "table", "object": "table",
    "coroutine": "thread",
  ]

  private let text: ByteString
  private let bytes: [UInt8]
  private var offset = 0

  init(_ text: ByteString) {
    self.text = text
    bytes = text.bytes
  }

  mutating func parse() throws(TypeSyntaxError) -> FlowValueType {
    var members: [FlowValueType] = []
    var isOptional = false
    repeat {
      members.append(try member())
      if consume("?") {
        guard !isOptional else { throw malformed("'?' stands twice") }
        isOptional = true
      }
    } while consume("|")
    skipSpaces()
    guard offset == bytes.count else {
      throw malformed("'\(ByteString([bytes[offset]]))' isn't expected there")
    }
    let shape: FlowValueType.Shape = members.count == 1 ? members[0].shape : .union(members)
    return FlowValueType(name: trimmed(), isOptional: isOptional, shape: shape)
  }

  /// Parses one member of a union: a name and any number of `[]`.
  private mutating func member() throws(TypeSyntaxError) -> FlowValueType {
    skipSpaces()
    let start = offset
    while offset < bytes.count, Self.isNameByte(bytes[offset], isFirst: offset == start) {
      offset += 1
    }
    guard offset > start else { throw malformed("a type's name is missing") }
    let name = ByteString(Array(bytes[start..<offset]))
    var type = FlowValueType(name: name, isOptional: false, shape: try Self.shape(of: name))
    var depth = 0
    while consume("[") {
      guard consume("]") else { throw malformed("'[' without ']'") }
      depth += 1
      guard depth <= Self.maximumListDepth else { throw malformed("too many '[]'") }
      type = FlowValueType(name: type.nameBytes + "[]", isOptional: false, shape: .list(type))
    }
    return type
  }

  private static func shape(of name: ByteString) throws(TypeSyntaxError) -> FlowValueType.Shape {
    let text = name.description
    if text == "any" { return .any }
    if let builtin = FlowValueType.Builtin(rawValue: text) { return .builtin(builtin) }
    if let meant = nearBuiltin(text) {
      throw TypeSyntaxError("unknown type '\(name)' (did you mean '\(meant)'?)")
    }
    return .named(name)
  }

  /// The built-in type that `name` most likely meant.
  private static func nearBuiltin(_ name: String) -> String? {
    let lower = name.lowercased()
    if let meant = habits[lower] { return meant }
    guard lower.utf8.count >= 3, lower.utf8.count <= 12 else { return nil }
    var best: (distance: Int, name: String)?
    // Names of metatables such as `FILE*` are near `file`.
    for builtin in ["any"] + FlowValueType.Builtin.allCases.map(\.rawValue) where builtin != "file"
    {
      let distance = editDistance(Array(lower.utf8), Array(builtin.utf8))
      // With two changes, almost any name of three letters would be near `any`.
      let allowed = builtin.utf8.count > 3 ? 2 : 1
      if distance <= allowed, distance < best?.distance ?? .max { best = (distance, builtin) }
    }
    return best?.name
  }

  private static func editDistance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let change = diagonal + (a == b ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(change, row[j] + 1, diagonal + 1)
      }
    }
    return row[right.count]
  }

  /// Names of metatables look like identifiers, `FILE*`, `socket.tcp` or `a::b`.
  private static func isNameByte(_ byte: UInt8, isFirst: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "_"), 0x80...0xFF:
      true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: ":"),
      UInt8(ascii: "*"), UInt8(ascii: "-"):
      !isFirst
    default: false
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 32 || byte == 9 }

  private mutating func skipSpaces() {
    while offset < bytes.count, Self.isSpace(bytes[offset]) { offset += 1 }
  }

  private mutating func consume(_ character: Unicode.Scalar) -> Bool {
    skipSpaces()
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  /// The text without the spaces around it.
  private func trimmed() -> ByteString {
    let text = bytes.drop(while: Self.isSpace)
    return ByteString(
      Array(text.prefix(text.count - text.reversed().prefix(while: Self.isSpace).count)))
  }

  private func malformed(_ reason: ByteString) -> TypeSyntaxError {
    TypeSyntaxError("malformed type '\(text)': \(reason)")
  }
}
