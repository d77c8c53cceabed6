/// Writes the text of a table in a line, within a number of characters: `{1, 2, a = 3}`.
///
/// The counterpart of CFlowLua's `render.c`, for tables without a Lua state; both write the same
/// text.
struct ValueRenderer {
  private let limit: Int
  private var bytes: [UInt8] = []
  private var characters = 0
  /// The place at which the text is cut if another character follows: after `limit - 1` characters.
  private var cut = 0
  private var counter = CharacterCounter()
  private var isFull: Bool
  /// The enclosing tables of the one that is being written, for cycles.
  private var lists: [ObjectIdentifier] = []
  private var indices: [Int] = []
  /// Deeper tables are omitted, whatever the limit: writing a table recurses.
  private static let deepest = 200

  init(limit: Int) {
    self.limit = limit
    isFull = limit <= 0
  }

  var text: ByteString { ByteString(bytes) }

  mutating func append(_ text: ByteString) {
    for byte in text.bytes {
      if isFull { return }
      if counter.begins(byte) {
        if characters == limit - 1 { cut = bytes.count }
        if characters == limit {
          isFull = true
          bytes.removeSubrange(cut...)
          bytes.append(contentsOf: "…".bytes)
          return
        }
        characters += 1
      }
      bytes.append(byte)
    }
  }

  mutating func append(_ list: ListValue) {
    let identity = ObjectIdentifier(list)
    if lists.contains(identity) || lists.count == Self.deepest {
      append("{…}")
      return
    }
    lists.append(identity)
    append("{")
    for (index, element) in list.elements.enumerated() {
      if isFull { break }
      if index > 0 { append(", ") }
      if case .opaque(let value) = element, let inner = value as? ListValue {
        append(inner)
      } else {
        append(element.logText)
      }
    }
    append("}")
    lists.removeLast()
  }

  mutating func append(_ value: PlainValue) {
    append(value.root, of: value)
  }

  private mutating func append(_ atom: PlainValue.Atom, of value: PlainValue) {
    guard case .table(let index) = atom else {
      append(atom.logText)
      return
    }
    guard value.tables.indices.contains(index), !indices.contains(index),
      indices.count < Self.deepest
    else {
      append("{…}")
      return
    }
    indices.append(index)
    let table = value.tables[index]
    var isFirst = true
    append("{")
    for element in table.list {
      if isFull { break }
      if !isFirst { append(", ") }
      isFirst = false
      append(element, of: value)
    }
    if !isFull {
      for entry in table.entries.sorted(by: { $0.key.comes(before: $1.key) }) {
        if isFull { break }
        if !isFirst { append(", ") }
        isFirst = false
        // As a key a table only shows its type, which doesn't distinguish it from others.
        if case .table = entry.key { append("table") } else { append(entry.key, of: value) }
        append(" = ")
        append(entry.value, of: value)
      }
    }
    append("}")
    indices.removeLast()
  }
}

extension PlainValue {
  /// The text of the value in a line: as `FlowValue.logText`, with at most `limit` characters for a
  /// table.
  package func logText(limit: Int = FlowValue.logLimit) -> ByteString {
    guard case .table = root else { return root.logText }
    var renderer = ValueRenderer(limit: limit)
    renderer.append(self)
    return renderer.text
  }
}

extension PlainValue: CustomStringConvertible {
  /// The text in log lines, of at most 120 characters for a table.
  public var description: String { logText().description }
}

extension PlainValue.Atom {
  /// The text of an atom that is no table.
  fileprivate var logText: ByteString {
    switch self {
    case .null, .table: FlowValue.null.logText
    case .jsonNull: "null"
    case .boolean(let value): FlowValue.boolean(value).logText
    case .integer(let value): FlowValue.integer(value).logText
    case .number(let value): FlowValue.number(value).logText
    case .bytes(let value): FlowValue.bytes(value).logText
    case .secret: FlowValue.bytes(SecretValue.mark).logText
    }
  }

  /// The order of keys: numbers, strings, then the rest by kind.
  fileprivate func comes(before other: Self) -> Bool {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): left < right
    case (.number(let left), .number(let right)): left < right
    // Exact, even when a float can't represent the integer.
    case (.integer(let left), .number(let right)):
      Int64(exactly: right).map { left < $0 } ?? (right >= 0x1p63 || Double(left) < right)
    case (.number(let left), .integer(let right)):
      Int64(exactly: left).map { $0 < right } ?? (left < Double(right))
    case (.bytes(let left), .bytes(let right)): left < right
    case (.boolean(let left), .boolean(let right)): !left && right
    default: rank < other.rank
    }
  }

  private var rank: Int {
    switch self {
    case .integer, .number: 0
    case .bytes: 1
    case .null, .jsonNull: 2
    case .boolean: 3
    case .table: 4
    case .secret: 5
    }
  }
}
