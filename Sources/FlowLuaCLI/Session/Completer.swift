internal import FlowScripting
internal import LuaVM

/// Finds completions for the cursor. No code of a script is run: fields are found in tables and in
/// the tables of `__index`.
struct Completer {
  private let host: ScriptHost
  private let locals: SessionLocals?
  private var vm: LuaVM { host.vm }
  private static let limit = 1000

  init(_ host: ScriptHost, _ locals: SessionLocals?) {
    self.host = host
    self.locals = locals
  }

  /// The words that may replace the word at `wordStart`, sorted.
  ///
  /// - Parameters:
  ///   - before: The line up to the cursor.
  ///   - wordStart: The start of the word, for the library.
  ///   - pending: The earlier lines of the chunk.
  /// - Returns: Words without zero bytes.
  func matches(_ before: [UInt8], wordStart: Int, after pending: [UInt8]) -> [[UInt8]] {
    let context = CodeContext(pending + before)
    if context.isInComment { return [] }
    let start: Int
    var found: [[UInt8]]
    if let stringStart = context.stringStart {
      // A string that began in an earlier line isn't a file name.
      guard stringStart >= pending.count else { return [] }
      start = stringStart - pending.count
      let typed = Array(before[start...])
      switch context.functionOfString {
      case "require": found = moduleNames(typed)
      case "dofile", "loadfile", "open", "lines", "ReadFileOp":
        found = FileNames.startingWith(typed)
      default: return []
      }
    } else {
      start = CodeContext.nameStart(before)
      found = NameCompletion(host, locals, before: pending + before).names()
    }
    found = found.filter { !$0.contains(0) }
    guard wordStart != start else { return Self.sorted(found) }
    // The library has other rules for the start of a word.
    guard wordStart > start else {
      return Self.sorted(found.map { Array(before[wordStart..<start]) + $0 })
    }
    return Self.sorted(found.map { Array($0.dropFirst(wordStart - start)) })
  }

  private static func sorted(_ words: [[UInt8]]) -> [[UInt8]] {
    Array(Set(words)).sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// Modules that `require` would find: in `package.path`, loaded, or preloaded.
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
