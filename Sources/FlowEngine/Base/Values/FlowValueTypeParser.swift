/// Parses the text of a `FlowValueType`.
struct ValueTypeParser {
  /// The most `[]` after a name: limits how deep `mismatch` recurses, whatever a script has
  /// written.
  private static let maximumListDepth = 16
  /// The most types within one another.
  private static let maximumDepth = 16

  /// Names from other languages that people write for a built-in type out of habit.
  private static let habits: [String: String] = [
    "int": "integer", "long": "integer", "uint": "integer", "bool": "boolean", "str": "string",
    "text": "string", "double": "float", "num": "number", "null": "any",
    "func": "function", "fn": "function", "closure": "function", "list": "table",
    "array": "table", "dict": "table", "dictionary": "table", "map": "table", "object": "table",
    "coroutine": "thread",
  ]

  private let text: ByteString
  private let bytes: [UInt8]
  private var offset = 0
  private var depth = 0
  private var streams = 0

  init(_ text: ByteString) {
    self.text = text
    bytes = text.bytes
  }

  mutating func parse() throws(TypeSyntaxError) -> FlowValueType {
    let type = try union()
    skipSpaces()
    guard offset == bytes.count else {
      throw malformed("'\(ByteString([bytes[offset]]))' isn't expected there")
    }
    guard streams == (type.isStream ? 1 : 0) else {
      throw malformed("a stream isn't a part of another type")
    }
    return type
  }

  /// Parses members with `|` between them.
  private mutating func union() throws(TypeSyntaxError) -> FlowValueType {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.maximumDepth else { throw malformed("too many types within types") }
    skipSpaces()
    let start = offset
    var members: [FlowValueType] = []
    var isOptional = false
    var hasNil = false
    repeat {
      if consume(word: "nil") { hasNil = true } else { members.append(try member()) }
      if consume("?") {
        guard !isOptional else { throw malformed("'?' stands twice") }
        isOptional = true
      }
    } while consume("|")
    let text = ByteString(bytes[start..<offset].trimmed(\.isBlank))
    if members.count == 1, let first = members.first, !isOptional, !hasNil {
      return FlowValueType(name: text, isOptional: first.isOptional, shape: first.shape)
    }
    return FlowValueType(
      name: text, isOptional: isOptional || hasNil || members.contains(where: \.isOptional),
      shape: members.count == 1 ? members[0].shape : .union(members))
  }

  /// Parses one member of a union, and any number of `[]`.
  private mutating func member() throws(TypeSyntaxError) -> FlowValueType {
    skipSpaces()
    let start = offset
    var type = try single()
    var lists = 0
    while consume("[") {
      guard consume("]") else { throw malformed("'[' without ']'") }
      lists += 1
      guard lists <= Self.maximumListDepth else { throw malformed("too many '[]'") }
      type = FlowValueType(
        name: ByteString(bytes[start..<offset]), isOptional: false, shape: .list(type))
    }
    return type
  }

  /// Parses a name, a literal, or a form in brackets.
  private mutating func single() throws(TypeSyntaxError) -> FlowValueType {
    let start = offset
    func type(_ shape: FlowValueType.Shape) -> FlowValueType {
      FlowValueType(
        name: ByteString(bytes[start..<offset]), isOptional: false, shape: shape)
    }
    if consume("(") {
      let inner = try union()
      guard consume(")") else { throw malformed("'(' without ')'") }
      return FlowValueType(
        name: type(.any).name, isOptional: inner.isOptional, shape: inner.shape)
    }
    if consume("{") { return type(.record(try fields())) }
    if let literal = try literal() { return type(.literal(literal)) }
    if consume(word: "table"), consume("<") {
      let key = try union()
      guard consume(",") else { throw malformed("'table<' without two types") }
      let value = try union()
      guard consume(">") else { throw malformed("'<' without '>'") }
      return type(.map(key, value))
    }
    offset = start
    if consume(word: "stream"), consume("<") {
      let item = try union()
      guard consume(">") else { throw malformed("'<' without '>'") }
      guard !item.isOptional else { throw malformed("an item of a stream is never nil") }
      streams += 1
      return type(.stream(item))
    }
    offset = start
    if consume(word: "fun"), consume("(") {
      try skipFunction()
      return type(.builtin(.function))
    }
    offset = start
    while offset < bytes.count, Self.isNameByte(bytes[offset], isFirst: offset == start) {
      offset += 1
    }
    guard offset > start else { throw malformed("a type's name is missing") }
    return type(try Self.shape(of: ByteString(bytes[start..<offset])))
  }

  /// The fields of a table, after its `{`.
  private mutating func fields() throws(TypeSyntaxError) -> [(
    name: ByteString, type: FlowValueType
  )] {
    var fields: [(name: ByteString, type: FlowValueType)] = []
    while !consume("}") {
      skipSpaces()
      let name = bytes[offset...].prefix { $0 == UInt8(ascii: "_") || $0.isWordByte }
      offset += name.count
      let isOptional = consume("?")
      guard !name.isEmpty, consume(":") else { throw malformed("a field is 'name: type'") }
      let type = try union()
      fields.append(
        (
          ByteString(name),
          FlowValueType(
            name: type.name, isOptional: isOptional || type.isOptional, shape: type.shape)
        ))
      if !consume(","), !consume(";"), bytes[offset...].first != UInt8(ascii: "}") {
        throw malformed("'{' without '}'")
      }
    }
    return fields
  }

  /// Passes the parameters of a function, after `(`, and its results: no value tells them.
  private mutating func skipFunction() throws(TypeSyntaxError) {
    var open = 1
    while open > 0 {
      guard offset < bytes.count else { throw malformed("'(' without ')'") }
      if bytes[offset] == UInt8(ascii: "(") { open += 1 }
      if bytes[offset] == UInt8(ascii: ")") { open -= 1 }
      offset += 1
    }
    guard consume(":") else { return }
    repeat { _ = try union() } while consume(",")
  }

  /// A string in quotes or an integer.
  private mutating func literal() throws(TypeSyntaxError) -> FlowValue? {
    guard let first = bytes[offset...].first else { return nil }
    if first == UInt8(ascii: "\"") || first == UInt8(ascii: "'") {
      guard let end = bytes[(offset + 1)...].firstIndex(of: first) else {
        throw malformed("a quote has no end")
      }
      defer { offset = end + 1 }
      return .bytes(ByteString(bytes[(offset + 1)..<end]))
    }
    let digits = bytes[offset...].dropFirst(first == UInt8(ascii: "-") ? 1 : 0)
      .prefix(while: \.isDigit)
    guard !digits.isEmpty else { return nil }
    let text = String(decoding: bytes[offset..<digits.endIndex], as: UTF8.self)
    guard let number = Int64(text) else { throw malformed("'\(ByteString(text))' is too large") }
    offset = digits.endIndex
    return .integer(number)
  }

  /// Passes a whole word.
  private mutating func consume(word: StaticString) -> Bool {
    skipSpaces()
    let rest = bytes[offset...]
    let isThere = word.withUTF8Buffer { rest.starts(with: $0) }
    guard isThere else { return false }
    let end = offset + word.utf8CodeUnitCount
    if end < bytes.count, Self.isNameByte(bytes[end], isFirst: false) { return false }
    offset = end
    return true
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
    byte.isLetter || byte == UInt8(ascii: "_") || byte >= 0x80
      || !isFirst && (byte.isDigit || ".:*-".bytes.contains(byte))
  }

  private mutating func skipSpaces() {
    while offset < bytes.count, bytes[offset].isBlank { offset += 1 }
  }

  private mutating func consume(_ character: Unicode.Scalar) -> Bool {
    skipSpaces()
    guard offset < bytes.count, bytes[offset] == UInt8(ascii: character) else { return false }
    offset += 1
    return true
  }

  private func malformed(_ reason: ByteString) -> TypeSyntaxError {
    TypeSyntaxError("malformed type '\(text)': \(reason)")
  }
}

extension UInt8 {
  fileprivate var isWordByte: Bool {
    isLetter || isDigit || self >= 0x80
  }
}
