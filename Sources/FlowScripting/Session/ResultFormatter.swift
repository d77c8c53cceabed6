package import FlowEngine
@_spi(Scripting) package import LuaVM

/// Shows values as Lua code: strings quoted, tables with their keys in order, as wide as the
/// terminal, which no text of a value can change. Long, deep or endless values are cut, with `…` and the number of elements left out.
package struct ResultFormatter {
  private let host: ScriptHost
  private let columns: Int
  private let hasColors: Bool
  /// The number of values that may still be shown.
  private var left = 500
  private var functionNames: FunctionNames?
  private var vm: LuaVM { host.vm }
  private static let deepest = 5
  private static let mostEntries = 100
  private static let longestString = 200
  private static let longestText = 10_000
  /// A list of fewer values has a line for each, if it doesn't fit on one.
  private static let fewestInColumns = 7

  /// - Parameters:
  ///   - host: The host of the values.
  ///   - columns: The maximum width of a line.
  ///   - hasColors: Whether values are coloured by their kind, for terminals.
  package init(_ host: ScriptHost, columns: Int, hasColors: Bool) {
    self.host = host
    self.columns = max(columns, 2)
    self.hasColors = hasColors
  }

  /// Its number in an escape sequence.
  private enum Color: String {
    case string = "32"
    case number = "33"
    case constant = "35"
    case function = "36"
  }

  private indirect enum Node {
    case text([UInt8], Color?)
    case table(Table)
  }

  private struct Table {
    let title: [UInt8]
    /// The list, then the values with keys, each of which ends in ` = `.
    var entries: [(key: [UInt8], value: Node)] = []
    var listCount = 0
    /// The number of entries left out.
    var omitted = 0
  }

  /// A text on the screen.
  private struct Shown {
    var bytes: [UInt8]
    var width: Int

    init(_ bytes: [UInt8], width: Int) {
      self.bytes = bytes
      self.width = width
    }

    init(_ plain: [UInt8]) { self.init(plain, width: ResultFormatter.width(plain)) }

    static func + (left: Self, right: Self) -> Self {
      Shown(left.bytes + right.bytes, width: left.width + right.width)
    }
  }

  private static let more = "…".bytes

  /// The text of a value. For a settled task it shows the result or the error, which counts as
  /// observing it.
  package func text(of value: LuaValue) -> ByteString {
    var formatter = self
    if case .string(let string) = value {
      if let lines = Self.lines(string) { return lines }
      let node = Node.text(Self.quoted(string.bytes, limit: Self.longestText), .string)
      return ByteString(formatter.flat(node).bytes)
    }
    if let text = formatter.outcome(of: value) ?? formatter.error(value) { return text }
    let node = formatter.node(value, [])
    return ByteString(formatter.lines(node, indent: 0, before: 0))
  }

  // MARK: Values shown in detail

  /// A task with its outcome; nil for anything else.
  private mutating func outcome(of value: LuaValue) -> ByteString? {
    // Checking whether it has settled doesn't count as observing it.
    guard let name = host.className(of: value), ["run", "task", "exectask"].contains(name),
      case .reference(let task) = value,
      case .boolean(true)? = try? vm.get("completed", in: task),
      case .string(let state)? = try? vm.get("state", in: task)
    else { return nil }
    let begin = plain(value)
    var result: LuaValue = .nil
    switch state {
    case "succeeded": result = (try? vm.get("result", in: task)) ?? .nil
    case "failed", "cancelled": result = (try? vm.get("error", in: task)) ?? .nil
    default: break
    }
    result = (try? vm.shown(by: result)) ?? result
    // A run without data, or a task without a value, has nothing to show.
    if result.isNil || isEmpty(result) { return ByteString(begin) }
    let node = node(result, [])
    return ByteString(
      begin + ": ".bytes + lines(node, indent: 0, before: Self.width(begin) + 2))
  }

  private func isEmpty(_ value: LuaValue) -> Bool {
    guard case .reference(let table) = value, table.kind == .table,
      !vm.hasMetafield("__tostring", table)
    else { return false }
    return vm.pairCount(of: table) == 0
  }

  /// An error of the host with its fields; nil for anything else.
  private mutating func error(_ value: LuaValue) -> ByteString? {
    guard host.isError(value), case .reference(let table) = value,
      let found = try? vm.entries(of: table, limit: Self.mostEntries)
    else { return nil }
    var fields = Table(title: [])
    for (key, value) in found.keyed {
      if case .string(let name) = key, name == "message" || name == "traceback" { continue }
      fields.entries.append((self.key(key) + " = ".bytes, node(value, [])))
    }
    let begin = plain(value) + [UInt8(ascii: " ")]
    return ByteString(
      begin + lines(.table(fields), indent: 0, before: Self.width(begin)))
  }

  // MARK: Values

  private mutating func node(_ value: LuaValue, _ enclosing: [UInt]) -> Node {
    left -= 1
    let value = (try? vm.shown(by: value)) ?? value
    switch value {
    case .string(let string):
      return .text(Self.quoted(string.bytes, limit: Self.longestString), .string)
    case .integer, .number: return .text(plain(value), .number)
    case .nil, .boolean: return .text(plain(value), .constant)
    case .reference(let reference) where reference.kind == .function:
      return .text(function(reference), .function)
    case .reference(let reference) where reference.kind == .table:
      let metatable = vm.metatable(of: value)
      let own = metatable.flatMap { try? vm.rawGet("__tostring", in: $0) } ?? .nil
      guard own.isNil else { return .text(plain(value), nil) }
      var title: [UInt8] = []
      if let metatable, case .string(let name)? = try? vm.rawGet("__name", in: metatable) {
        title = Self.shortened(name.onOneLine.bytes, limit: 40) + [UInt8(ascii: " ")]
      }
      return table(reference, title, enclosing)
    default: return .text(plain(value), nil)
    }
  }

  /// `function name (file:line)`, as far as it is known.
  private mutating func function(_ function: LuaReference) -> [UInt8] {
    let names = functionNames ?? FunctionNames(vm)
    functionNames = names
    let name = names[function].map { [UInt8(ascii: " ")] + $0 } ?? []
    let place = vm.place(of: function)?.onOneLine.bytes ?? "C".bytes
    return "function".bytes + name + " (".bytes + place + [UInt8(ascii: ")")]
  }

  private mutating func table(
    _ table: LuaReference, _ title: [UInt8], _ enclosing: [UInt]
  ) -> Node {
    let identity = vm.identity(of: table)
    let count = vm.pairCount(of: table)
    guard !enclosing.contains(identity), enclosing.count < Self.deepest || count == 0,
      let found = try? vm.entries(of: table, limit: max(min(Self.mostEntries, left), 1))
    else { return .text(title + "{…}".bytes, nil) }
    let inner = enclosing + [identity]
    var shown = Table(title: title)
    for value in found.list where left > 0 { shown.entries.append(([], node(value, inner))) }
    shown.listCount = shown.entries.count
    for (key, value) in found.keyed where left > 0 {
      shown.entries.append((self.key(key) + " = ".bytes, node(value, inner)))
    }
    shown.omitted = max(0, count - shown.entries.count)
    return .table(shown)
  }

  private func key(_ key: LuaValue) -> [UInt8] {
    guard case .string(let name) = key else {
      return [UInt8(ascii: "[")] + plain(key) + [UInt8(ascii: "]")]
    }
    if LuaLexer.isName(name.bytes) { return name.bytes }
    return [UInt8(ascii: "[")] + Self.quoted(name.bytes, limit: Self.longestString)
      + [UInt8(ascii: "]")]
  }

  /// `tostring` of a value, which may call a script's `__tostring`.
  private func plain(_ value: LuaValue) -> [UInt8] {
    do {
      let text = try vm.tostring(value).forTerminal
      return Self.shortened(text.bytes, limit: Self.longestText)
    } catch {
      let problem = (error as? LuaError)?.message ?? ByteString(describing: error)
      let name = vm.typeName(of: value).onOneLine.bytes
      return name + " (its __tostring failed: ".bytes
        + Self.shortened(problem.forTerminal.bytes, limit: Self.longestString) + [UInt8(ascii: ")")]
    }
  }

  // MARK: Layout

  private static let opening = UInt8(ascii: "{")
  private static let closing = UInt8(ascii: "}")

  private func colored(_ text: [UInt8], _ color: Color?) -> Shown {
    guard hasColors, let color else { return Shown(text) }
    let bytes = "\u{1B}[\(color.rawValue)m".bytes + text + "\u{1B}[0m".bytes
    return Shown(bytes, width: Self.width(text))
  }

  private static func omission(_ count: Int) -> [UInt8] { more + " \(count) more".bytes }

  private func flat(_ node: Node) -> Shown {
    switch node {
    case .text(let text, let color): return colored(text, color)
    case .table(let table):
      var all = Shown(table.title + [Self.opening])
      let parts =
        table.entries.map { Shown($0.key) + flat($0.value) }
        + (table.omitted > 0 ? [Shown(Self.omission(table.omitted))] : [])
      for (index, part) in parts.enumerated() {
        all = index == 0 ? all + part : all + Shown(", ".bytes) + part
      }
      return all + Shown([Self.closing])
    }
  }

  /// A text of several lines as it prints, without its last line end; nil for other strings, and for those that a
  /// terminal wouldn't show whole.
  private static func lines(_ string: ByteString) -> ByteString? {
    let end = UInt8(ascii: "\n")
    let text = string.bytes.last == end ? string.bytes.dropLast() : string.bytes[...]
    guard text.contains(end), text.count <= longestText, string == string.forTerminal else {
      return nil
    }
    return ByteString(text)
  }

  /// On one line if it fits after `before` columns, else with a line for each entry, indented by
  /// `indent`.
  private func lines(_ node: Node, indent: Int, before: Int) -> [UInt8] {
    let flat = flat(node)
    guard case .table(let table) = node, !table.entries.isEmpty,
      indent + before + flat.width > columns
    else { return flat.bytes }
    let inner = indent + 2
    let margin = [UInt8(ascii: "\n")] + [UInt8](repeating: UInt8(ascii: " "), count: inner)
    var text = table.title + [Self.opening]
    var entries = table.entries[...]
    if let rows = rows(entries.prefix(table.listCount).map(\.value), within: columns - inner) {
      for row in rows { text += margin + row }
      entries = entries.dropFirst(table.listCount)
    }
    for entry in entries {
      let key = Self.width(entry.key)
      text += margin + entry.key + lines(entry.value, indent: inner, before: key + 1)
      text.append(UInt8(ascii: ","))
    }
    if table.omitted > 0 { text += margin + Self.omission(table.omitted) }
    return text + margin.dropLast(2) + [Self.closing]
  }

  /// A list of short values in columns, numbers to the right; nil if there is no room for two.
  private func rows(_ list: [Node], within width: Int) -> [[UInt8]]? {
    guard list.count >= Self.fewestInColumns else { return nil }
    var cells: [(shown: Shown, isNumber: Bool)] = []
    for node in list {
      guard case .text(_, let color) = node else { return nil }
      cells.append((flat(node), color == .number))
    }
    // With the comma after it, and a space between two.
    let longest = cells.map(\.shown.width).max() ?? 0
    let count = (width + 1) / (longest + 2)
    guard count > 1 else { return nil }
    return stride(from: 0, to: cells.count, by: count).map { start in
      var row: [UInt8] = []
      for (shown, isNumber) in cells[start..<min(start + count, cells.count)] {
        let padding = [UInt8](repeating: UInt8(ascii: " "), count: longest - shown.width)
        if !row.isEmpty { row.append(UInt8(ascii: " ")) }
        row += isNumber ? padding + shown.bytes : shown.bytes
        row.append(UInt8(ascii: ","))
        if !isNumber { row += padding }
      }
      while row.last == UInt8(ascii: " ") { row.removeLast() }
      return row
    }
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

  /// A string as Lua code.
  private static func quoted(_ bytes: [UInt8], limit: Int) -> [UInt8] {
    var text = [UInt8(ascii: "\"")]
    var parser = Unicode.UTF8.ForwardParser()
    var iterator = bytes.makeIterator()
    var index = 0
    var count = 0
    while true {
      if count == limit, index < bytes.count {
        return text + [UInt8(ascii: "\"")] + more + " \(bytes.count - index) more bytes".bytes
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
          text += "\\x\(digits.utf8.count < 2 ? "0" : "")\(digits)".bytes
        }
        index += length
      }
    }
  }

  private static func escaped(_ scalar: Unicode.Scalar, _ bytes: [UInt8]) -> [UInt8] {
    switch scalar {
    case "\"": return "\\\"".bytes
    case "\\": return "\\\\".bytes
    case "\n": return "\\n".bytes
    case "\r": return "\\r".bytes
    case "\t": return "\\t".bytes
    case "\u{0}"..."\u{1F}", "\u{7F}":
      let digits = String(scalar.value)
      return "\\\(String(repeating: "0" as Character, count: 3 - digits.utf8.count))\(digits)".bytes
    default: return ByteString(bytes).onOneLine.bytes
    }
  }
}
