internal import FlowEngine
internal import LuaVM

/// Shows values as one would write them: strings quoted, tables with their keys in order, as wide as the
/// terminal. Whatever is long, deep or endless is cut, with `…` in its place.
struct ResultFormatter {
  private let vm: LuaVM
  private let columns: Int
  /// How many values are still shown.
  private var left = 500
  private static let deepest = 5
  private static let mostEntries = 100
  private static let longestString = 200
  private static let longestText = 10_000

  init(_ vm: LuaVM, columns: Int) {
    self.vm = vm
    self.columns = max(columns, 2)
  }

  private indirect enum Node {
    case text([UInt8])
    /// Each entry is the text of its key, ` = ` included, and its value.
    case table(title: [UInt8], entries: [(key: [UInt8], value: Node)], isCut: Bool)
  }

  private static let more = Array("…".utf8)

  /// The text of a value.
  func text(of value: LuaValue) -> ByteString {
    if case .string(let string) = value {
      return ByteString(Self.quoted(string.bytes, limit: Self.longestText))
    }
    var formatter = self
    let node = formatter.node(value, [])
    return ByteString(formatter.lines(node, indent: 0, before: 0))
  }

  // MARK: Values

  private mutating func node(_ value: LuaValue, _ enclosing: [UInt]) -> Node {
    left -= 1
    switch value {
    case .string(let string):
      return .text(Self.quoted(string.bytes, limit: Self.longestString))
    case .reference(let reference) where reference.kind == .table:
      let metatable = vm.metatable(of: value)
      let own = metatable.flatMap { try? vm.rawGet("__tostring", in: $0) } ?? .nil
      guard own.isNil else { return .text(plain(value)) }
      var title: [UInt8] = []
      if let metatable, case .string(let name)? = try? vm.rawGet("__name", in: metatable) {
        title = Self.shortened(name.bytes, limit: 40) + [UInt8(ascii: " ")]
      }
      return table(reference, title, enclosing)
    default: return .text(plain(value))
    }
  }

  private mutating func table(
    _ table: LuaReference, _ title: [UInt8], _ enclosing: [UInt]
  ) -> Node {
    let identity = vm.identity(of: table)
    let hidden = Node.text(title + Array("{…}".utf8))
    guard !enclosing.contains(identity), enclosing.count < Self.deepest,
      let found = try? vm.entries(of: table, limit: max(min(Self.mostEntries, left), 1))
    else { return hidden }
    let inner = enclosing + [identity]
    var entries: [(key: [UInt8], value: Node)] = []
    var isCut = found.isCut
    for value in found.list {
      if left <= 0 {
        isCut = true
        break
      }
      entries.append(([], node(value, inner)))
    }
    for (key, value) in found.keyed {
      if left <= 0 {
        isCut = true
        break
      }
      entries.append((self.key(key) + Array(" = ".utf8), node(value, inner)))
    }
    return .table(title: title, entries: entries, isCut: isCut)
  }

  private func key(_ key: LuaValue) -> [UInt8] {
    guard case .string(let name) = key else {
      return [UInt8(ascii: "[")] + plain(key) + [UInt8(ascii: "]")]
    }
    if CodeContext.isName(name.bytes) { return name.bytes }
    return [UInt8(ascii: "[")] + Self.quoted(name.bytes, limit: Self.longestString)
      + [UInt8(ascii: "]")]
  }

  /// `tostring` of a value, which a script may have a say in.
  private func plain(_ value: LuaValue) -> [UInt8] {
    do {
      return Self.shortened(try vm.tostring(value).bytes, limit: Self.longestText)
    } catch {
      let problem = (error as? LuaError)?.message ?? LuaString("\(error)")
      let name = vm.typeName(of: value).bytes
      return name + Array(" (its __tostring failed: ".utf8)
        + Self.shortened(problem.bytes, limit: Self.longestString) + [UInt8(ascii: ")")]
    }
  }

  // MARK: Layout

  private static let opening = UInt8(ascii: "{")
  private static let closing = UInt8(ascii: "}")

  private func flat(_ node: Node) -> [UInt8] {
    guard case .table(let title, let entries, let isCut) = node else {
      guard case .text(let text) = node else { return [] }
      return text
    }
    var parts = entries.map { $0.key + flat($0.value) }
    if isCut { parts.append(Self.more) }
    return title + [Self.opening] + parts.joined(separator: Array(", ".utf8)) + [Self.closing]
  }

  /// On one line where that fits behind `before` columns, else with a line for each entry, indented below
  /// `indent`.
  private func lines(_ node: Node, indent: Int, before: Int) -> [UInt8] {
    let flat = flat(node)
    guard case .table(let title, let entries, let isCut) = node, !entries.isEmpty,
      indent + before + Self.width(flat) > columns
    else { return flat }
    let inner = indent + 2
    let margin = [UInt8(ascii: "\n")] + [UInt8](repeating: UInt8(ascii: " "), count: inner)
    var text = title + [Self.opening]
    for entry in entries {
      let key = Self.width(entry.key)
      text += margin + entry.key + lines(entry.value, indent: inner, before: key + 1)
      text.append(UInt8(ascii: ","))
    }
    if isCut { text += margin + Self.more }
    return text + margin.dropLast(2) + [Self.closing]
  }

  private static func width(_ text: [UInt8]) -> Int {
    text.reduce(0) { $1 & 0xC0 == 0x80 ? $0 : $0 + 1 }
  }

  /// A text within so many characters.
  private static func shortened(_ text: [UInt8], limit: Int) -> [UInt8] {
    guard text.count > limit, width(text) > limit else { return text }
    var count = 0
    let end = text.firstIndex { byte in
      if byte & 0xC0 != 0x80 { count += 1 }
      return count >= limit
    }
    return Array(text[..<(end ?? text.count)]) + more
  }

  /// A string as one would write it in Lua.
  private static func quoted(_ bytes: [UInt8], limit: Int) -> [UInt8] {
    var text = [UInt8(ascii: "\"")]
    var parser = Unicode.UTF8.ForwardParser()
    var iterator = bytes.makeIterator()
    var index = 0
    var count = 0
    while true {
      if count == limit, index < bytes.count {
        return text + [UInt8(ascii: "\"")] + more
      }
      count += 1
      switch parser.parseScalar(from: &iterator) {
      case .emptyInput: return text + [UInt8(ascii: "\"")]
      case .valid(let encoded):
        index += encoded.count
        text += escaped(Unicode.UTF8.decode(encoded), Array(encoded))
      case .error(let length):
        for byte in bytes[index..<min(index + length, bytes.count)] {
          let digits = String(byte, radix: 16, uppercase: true)
          text += Array("\\x\(digits.utf8.count < 2 ? "0" : "")\(digits)".utf8)
        }
        index += length
      }
    }
  }

  private static func escaped(_ scalar: Unicode.Scalar, _ bytes: [UInt8]) -> [UInt8] {
    switch scalar {
    case "\"": return Array("\\\"".utf8)
    case "\\": return Array("\\\\".utf8)
    case "\n": return Array("\\n".utf8)
    case "\r": return Array("\\r".utf8)
    case "\t": return Array("\\t".utf8)
    case "\u{0}"..."\u{1F}", "\u{7F}":
      let digits = String(scalar.value)
      return Array("\\\(String(repeating: "0", count: 3 - digits.utf8.count))\(digits)".utf8)
    case "\u{80}"..."\u{9F}":
      return Array("\\u{\(String(scalar.value, radix: 16, uppercase: true))}".utf8)
    default: return bytes
    }
  }
}
