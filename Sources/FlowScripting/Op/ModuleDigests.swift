package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A module in Lua.
package struct ModuleSource: Sendable, Equatable {
  package let name: ByteString
  /// Its file, for messages.
  package let path: ByteString
  package let text: ByteString
}

/// Digests of the modules that scripts require: of a module's file and of the files of the modules that its
/// text requires, so that a change of any of them changes the digest.
///
/// The files are those that `require` would find now. Files that haven't changed are read once.
package final class ModuleDigests: HostService {
  /// A file that was read.
  private struct File {
    let device: UInt64
    let inode: UInt64
    let size: Int64
    let modified: Double
    let digest: ByteString
    /// The modules that its text requires.
    let required: [ByteString]
  }

  /// How `require` finds a module.
  private enum Source {
    /// A library of Lua or of this program.
    case library
    case lua(ByteString)
    /// A shared library.
    case native(ByteString)
    /// It was loaded in another way, or isn't there.
    case none
  }

  // The host, which has this object, keeps it.
  private unowned let vm: LuaVM
  private var files: [ByteString: File] = [:]

  /// The libraries of Lua and of this program.
  static let libraries: Set<ByteString> = Set(
    ["_G", "coroutine", "debug", "io", "math", "os", "package", "string", "table", "utf8"]
      + ScriptHost.moduleNames.map { ByteString($0) })

  init(_ vm: LuaVM) {
    self.vm = vm
  }

  /// Those of a host, which reads no file twice.
  package static func of(_ host: ScriptHost) -> ModuleDigests {
    host.service { ModuleDigests(host.vm) }
  }

  /// How the content of a module counts.
  func content(of name: ByteString) throws -> LuaModuleContent {
    let source = try source(of: name)
    switch source {
    case .library: return .name
    case .none: return .values
    case .lua, .native: if try file(of: source) == nil { return .unreadable }
    }
    var lines: [ByteString] = []
    var open = [name]
    var seen: Set<ByteString> = [name]
    while let name = open.popLast() {
      let source = try self.source(of: name)
      if case .library = source { continue }
      let file = try file(of: source)
      lines.append(name + " " + (file?.digest ?? "?"))
      for required in file?.required ?? [] where seen.insert(required).inserted {
        open.append(required)
      }
    }
    let text = lines.sorted().reduce(into: [UInt8]()) { $0 += $1.bytes + [UInt8(ascii: "\n")] }
    let digest = try FileHash.sha256.digest(of: ByteString(text), Cancellation())
    return .digest(digest.bytes.pairsOfHexadecimalDigits)
  }

  /// The modules of this name, and those that their texts require: those in Lua with their texts, and the names of
  /// the others. Modules without a file are left out, as libraries of Lua are.
  package func sources(of names: [ByteString]) throws -> (lua: [ModuleSource], native: [ByteString])
  {
    var lua: [ModuleSource] = []
    var native: [ByteString] = []
    var open = names
    var seen = Set(names)
    while let name = open.popLast() {
      switch try source(of: name) {
      case .library, .none: break
      case .native: native.append(name)
      case .lua(let path):
        guard let text = try? Files.read(path, Cancellation()) else { continue }
        lua.append(ModuleSource(name: name, path: path, text: text))
        for required in Self.required(in: text.bytes) where seen.insert(required).inserted {
          open.append(required)
        }
      }
    }
    lua.sort { $0.name < $1.name }
    return (lua, native.sorted())
  }

  // MARK: Finding files

  private func source(of name: ByteString) throws -> Source {
    if Self.libraries.contains(name) { return .library }
    guard case .reference(let package) = try vm.rawGet("package", in: vm.globals()),
      package.kind == .table,
      case .reference(let search) = try vm.rawGet("searchpath", in: package),
      search.kind == .function
    else { return .none }
    if case .reference(let preload) = try vm.rawGet("preload", in: package), preload.kind == .table,
      case .reference = try vm.rawGet(.string(name), in: preload)
    {
      return .none
    }
    func find(_ name: ByteString, _ field: LuaValue) throws -> ByteString? {
      guard case .string(let path) = try vm.rawGet(field, in: package),
        case .string(let file)? = try vm.call(search, [.string(name), .string(path)]).first
      else { return nil }
      return file
    }
    if let file = try find(name, "path") { return .lua(file) }
    if let file = try find(name, "cpath") { return .native(file) }
    // A library may have several modules, whose names begin with its own.
    if let dot = name.bytes.firstIndex(of: UInt8(ascii: ".")),
      let file = try find(ByteString(name.bytes[..<dot]), "cpath")
    {
      return .native(file)
    }
    return .none
  }

  /// The file of a module with its digest; nil when it has none, or one that can't be read.
  private func file(of source: Source) throws -> File? {
    let path: ByteString
    var isLua = false
    switch source {
    case .library, .none: return nil
    case .lua(let file): (path, isLua) = (file, true)
    case .native(let file): path = file
    }
    guard let status = try? FileStatus.read(path, follows: true) else { return nil }
    if let known = files[path], known.device == status.device, known.inode == status.inode,
      known.size == status.size, known.modified == status.modified
    {
      return known
    }
    guard let content = try? Files.read(path, Cancellation()) else { return nil }
    let file = File(
      device: status.device, inode: status.inode, size: status.size, modified: status.modified,
      digest: try FileHash.sha256.digest(of: content, Cancellation()),
      required: isLua ? Self.required(in: content.bytes) : [])
    files[path] = file
    return file
  }

  // MARK: The modules that a text requires

  /// The names after `require`, also in `require("x")` and `pcall(require, "x")`. Names that are computed
  /// aren't known.
  package static func required(in text: [UInt8]) -> [ByteString] {
    let tokens = LuaLexer.tokens(text)
    var names: [ByteString] = []
    for (index, token) in tokens.enumerated()
    where token.kind == .name && text[token.range].equals("require") {
      var next = index + 1
      if next < tokens.count, tokens[next].kind == .symbol,
        (["(", ","] as [StaticString]).contains(where: { text[tokens[next].range].equals($0) })
      {
        next += 1
      }
      if next < tokens.count, let name = content(of: tokens[next], in: text) { names.append(name) }
    }
    return names
  }

  /// The content of a string without escapes; nil for any other token.
  private static func content(of token: LuaLexer.Token, in text: [UInt8]) -> ByteString? {
    guard token.kind == .string, !token.isOpen else { return nil }
    var bytes = text[token.range]
    if bytes.first == UInt8(ascii: "[") {
      let level = bytes.dropFirst().prefix { $0 == UInt8(ascii: "=") }.count
      bytes = bytes.dropFirst(level + 2).dropLast(level + 2)
    } else {
      bytes = bytes.dropFirst().dropLast()
      if bytes.contains(UInt8(ascii: "\\")) { return nil }
    }
    return ByteString(bytes)
  }
}

extension [UInt8] {
  /// The bytes that hexadecimal digits stand for.
  fileprivate var pairsOfHexadecimalDigits: [UInt8] {
    func digit(_ byte: UInt8) -> UInt8 { byte < 58 ? byte &- 48 : byte &- 87 }
    return stride(from: 0, to: count - 1, by: 2).map { digit(self[$0]) << 4 | digit(self[$0 + 1]) }
  }
}
