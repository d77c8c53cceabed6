internal import FlowScripting
internal import LuaVM

/// Finds what may stand where the cursor is. No code of a script is run: fields are found in tables and
/// in the tables of `__index`.
struct Completer {
  private let host: ScriptHost
  private var vm: LuaVM { host.vm }
  private static let limit = 1000

  init(_ host: ScriptHost) {
    self.host = host
  }

  /// The words that may replace what begins at `wordStart`, sorted.
  ///
  /// - Parameters:
  ///   - before: The line up to the cursor.
  ///   - wordStart: Where the word begins, for the library.
  /// - Returns: Words without zero bytes.
  func matches(_ before: [UInt8], wordStart: Int) -> [[UInt8]] {
    let context = CodeContext(before)
    if context.isInComment { return [] }
    let start: Int
    var found: [[UInt8]]
    if let stringStart = context.stringStart {
      start = stringStart
      let typed = Array(before[stringStart...])
      switch context.functionOfString {
      case "require": found = moduleNames(typed)
      case "dofile", "loadfile", "open", "lines", "ReadFileOp":
        found = FileNames.startingWith(typed)
      default: return []
      }
    } else {
      start = CodeContext.nameStart(before, before: before.count)
      found = names(before, start)
    }
    found = found.filter { !$0.contains(0) }
    guard wordStart != start else { return Self.sorted(found) }
    // The library has other ideas of where the word begins.
    guard wordStart > start else {
      return Self.sorted(found.map { Array(before[wordStart..<start]) + $0 })
    }
    return Self.sorted(found.map { Array($0.dropFirst(wordStart - start)) })
  }

  private static func sorted(_ words: [[UInt8]]) -> [[UInt8]] {
    Array(Set(words)).sorted { $0.lexicographicallyPrecedes($1) }
  }

  private func names(_ before: [UInt8], _ start: Int) -> [[UInt8]] {
    let typed = Array(before[start...])
    let end = CodeContext.skipSpaces(before, before: start)
    guard end > 0, let separator = Self.separator(before, end) else {
      guard let globals = try? vm.globals() else { return [] }
      let keywords = CodeContext.keywords.map { Array($0.utf8) }.filter { $0.starts(with: typed) }
      return keywords + members(of: .reference(globals), typed, methodsOnly: false)
    }
    guard let object = value(before, CodeContext.skipSpaces(before, before: end - 1)) else {
      return []
    }
    return members(of: object, typed, methodsOnly: separator == UInt8(ascii: ":"))
  }

  /// The `.` or `:` that ends before an index; nil when there is none, or `..` or `::`.
  private static func separator(_ bytes: [UInt8], _ end: Int) -> UInt8? {
    let byte = bytes[end - 1]
    guard byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":") else { return nil }
    return end > 1 && bytes[end - 2] == byte ? nil : byte
  }

  /// The names of fields that begin like this, those of `__index` tables included.
  private func members(
    of object: LuaValue, _ typed: [UInt8], methodsOnly: Bool
  ) -> [[UInt8]] {
    var found: [[UInt8]] = []
    if let own = host.members(of: object, methodsOnly: methodsOnly) {
      found = own.map { Array($0.utf8) }.filter { $0.starts(with: typed) }
    }
    for table in tables(of: object) {
      let keys = (try? vm.stringKeys(of: table, startingWith: typed, limit: Self.limit)) ?? []
      for key in keys where CodeContext.isName(key.bytes) {
        if methodsOnly {
          guard case .reference(let value)? = try? vm.rawGet(.string(key), in: table),
            value.kind == .function
          else { continue }
        }
        found.append(key.bytes)
      }
    }
    return found
  }

  /// The tables that a field of a value is looked up in, as long as no function is to be called.
  private func tables(of object: LuaValue) -> [LuaReference] {
    var found: [LuaReference] = []
    var next = object
    // As many as Lua itself would try at most is too long to wait for.
    for _ in 0..<50 {
      if case .reference(let table) = next, table.kind == .table { found.append(table) }
      guard let metatable = vm.metatable(of: next),
        case .reference(let index)? = try? vm.rawGet("__index", in: metatable),
        index.kind == .table
      else { break }
      next = .reference(index)
    }
    return found
  }

  private func field(_ key: LuaValue, of object: LuaValue) -> LuaValue? {
    for table in tables(of: object) {
      if let value = try? vm.rawGet(key, in: table), !value.isNil { return value }
    }
    if case .string(let name) = key, host.members(of: object, methodsOnly: false) != nil,
      case .reference(let reference) = object, vm.typeName(of: .reference(reference)) == "ops"
    {
      return host.registeredOp(name)
    }
    return nil
  }

  /// The value of the expression that ends before an index: names and constant keys only.
  private func value(_ bytes: [UInt8], _ end: Int) -> LuaValue? {
    guard end > 0 else { return nil }
    switch bytes[end - 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .string("")
    case UInt8(ascii: ")"):
      // ("text"):method
      let inner = CodeContext.skipSpaces(bytes, before: end - 1)
      let isText = inner > 0 && [UInt8(ascii: "\""), UInt8(ascii: "'")].contains(bytes[inner - 1])
      return isText ? .string("") : nil
    case UInt8(ascii: "]"):
      guard let open = bytes[..<end].lastIndex(of: UInt8(ascii: "[")),
        let key = Self.constant(Array(bytes[(open + 1)..<(end - 1)])),
        let object = value(bytes, CodeContext.skipSpaces(bytes, before: open))
      else { return nil }
      return field(key, of: object)
    default:
      let start = CodeContext.nameStart(bytes, before: end)
      guard start < end else { return nil }
      let name = LuaValue.string(LuaString(Array(bytes[start..<end])))
      let before = CodeContext.skipSpaces(bytes, before: start)
      if before > 0, let separator = Self.separator(bytes, before) {
        guard separator == UInt8(ascii: "."),
          let object = value(bytes, CodeContext.skipSpaces(bytes, before: before - 1))
        else { return nil }
        return field(name, of: object)
      }
      guard let globals = try? vm.globals() else { return nil }
      return field(name, of: .reference(globals))
    }
  }

  /// `12`, `"key"`, `'key'`.
  private static func constant(_ bytes: [UInt8]) -> LuaValue? {
    let text = String(decoding: bytes, as: UTF8.self)  // swift-format-ignore
    if let number = Int64(text) { return .integer(number) }
    guard bytes.count >= 2, let quote = bytes.first, quote == bytes.last,
      quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
    else { return nil }
    return .string(LuaString(Array(bytes.dropFirst().dropLast())))
  }

  /// Modules that `require` would find, by `package.path` and what is loaded or preloaded.
  private func moduleNames(_ typed: [UInt8]) -> [[UInt8]] {
    guard let globals = try? vm.globals(),
      case .reference(let package)? = try? vm.rawGet("package", in: globals)
    else { return [] }
    var found: [[UInt8]] = []
    for name in ["loaded", "preload"] as [LuaValue] {
      guard case .reference(let table)? = try? vm.rawGet(name, in: package) else { continue }
      let keys = try? vm.stringKeys(of: table, startingWith: typed, limit: Self.limit)
      found += (keys ?? []).map(\.bytes)
    }
    guard case .string(let path)? = try? vm.rawGet("path", in: package) else { return found }
    // `a.b` is a file in the folder `a`.
    let folder = typed.lastIndex(of: UInt8(ascii: ".")).map { Array(typed[...$0]) } ?? []
    let slashed = typed.map { $0 == UInt8(ascii: ".") ? UInt8(ascii: "/") : $0 }
    for template in path.bytes.split(separator: UInt8(ascii: ";")) {
      guard let mark = template.firstIndex(of: UInt8(ascii: "?")) else { continue }
      let suffix = Array(template[(mark + 1)...])
      for file in FileNames.startingWith(Array(template[..<mark]) + slashed) {
        let name = Array(file[(file.lastIndex { $0 == UInt8(ascii: "/") }.map { $0 + 1 } ?? 0)...])
        if name.isEmpty {
          // A folder, which ends in a slash.
          let parts = file.split(separator: UInt8(ascii: "/"))
          guard let last = parts.last else { continue }
          let isModule = FileNames.exists(file + suffix.drop { $0 == UInt8(ascii: "/") })
          let inside = suffix.first == UInt8(ascii: "/") && isModule
          found.append(folder + last + (inside ? [] : [UInt8(ascii: ".")]))
        } else if suffix.first != UInt8(ascii: "/"), name.count > suffix.count,
          name.suffix(suffix.count).elementsEqual(suffix)
        {
          found.append(folder + name.dropLast(suffix.count))
        }
      }
    }
    return found
  }
}
