internal import FlowScripting
internal import FlowSystem
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

/// Finds files by the beginning of their path.
enum FileNames {
  private static let limit = 1000

  /// Paths with this prefix; those of folders end in a slash. Hidden files are found if the dot was
  /// typed.
  static func startingWith(_ typed: [UInt8]) -> [[UInt8]] {
    let slash = typed.lastIndex(of: UInt8(ascii: "/"))
    let folder = slash.map { Array(typed[...$0]) } ?? []
    let start = Array(typed[(slash.map { $0 + 1 } ?? 0)...])
    guard let stream = opendir(cString(folder.isEmpty ? "./".bytes : folder)) else {
      return []
    }
    defer { closedir(stream) }
    var found: [[UInt8]] = []
    while found.count < limit, let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      guard name.starts(with: start), name != ".".bytes, name != "..".bytes,
        !start.isEmpty || name.first != UInt8(ascii: ".")
      else { continue }
      let path = folder + name
      found.append(isFolder(path) ? path + [UInt8(ascii: "/")] : path)
    }
    return found
  }

  static func exists(_ path: [UInt8]) -> Bool { access(cString(path), F_OK) == 0 }

  private static func isFolder(_ path: [UInt8]) -> Bool {
    var information = stat()
    return stat(cString(path), &information) == 0 && information.st_mode & S_IFMT == S_IFDIR
  }

  private static func cString(_ bytes: [UInt8]) -> [CChar] {
    bytes.map { CChar(bitPattern: $0) } + [0]
  }
}
