internal import FlowEngine
internal import FlowRemote
internal import FlowScripting
@_spi(Scripting) internal import LuaVM

/// The function of an op as other nodes get it: with the modules in Lua that it may require. It travels once, as an
/// object whose name is its digest.
final class RemoteCode {
  /// The SHA-256 of the bytes, in hexadecimal digits.
  let name: ByteString
  /// Sealed if there is a key.
  let bytes: [UInt8]

  /// The content of an object.
  struct Content: ByteRecord {
    let function: ByteString
    let modules: [ModuleSource]
    /// The modules that are shared libraries: they have to be installed there.
    let native: [ByteString]

    static let byteForm = ByteForm(Content.init) { ($0.function, $0.modules, $0.native) }
  }

  /// Collects the code of a packed function; throws an error of the system.
  init(
    _ function: LuaReference, _ package: CodePackage, of host: ScriptHost, _ seal: RemoteSeal?
  ) throws {
    let (lua, native) = try ModuleDigests.of(host).sources(
      of: ModuleCollector.modules(usedBy: function, of: host))
    let content = RemoteProtocol.message(
      Content(
        function: package.withUnsafeBytes { ByteString($0) }, modules: lua, native: native))
    bytes = try seal?.seal(code: content) ?? content
    name = try FileHash.sha256.digest(of: ByteString(bytes), Cancellation())
  }

  /// Reads an object; nil for anything else.
  static func read(_ bytes: [UInt8]) -> Content? {
    RemoteProtocol.read(bytes)
  }
}

extension WorkerFunction {
  /// The function with its modules, for other nodes. The seal has to be the same each time.
  func remoteCode(_ seal: RemoteSeal?) throws(FlowError) -> RemoteCode {
    if let made = travelling as? RemoteCode { return made }
    do {
      let made = try RemoteCode(function, code.package, of: host, seal)
      travelling = made
      return made
    } catch {
      throw host.flowError(unpacking: error)
    }
  }
}

/// Collects the names of the modules in a form of code.
private final class ModuleCollector: LuaCodeDescriber {
  private let describer: CodeDescriber
  private var names: Set<ByteString> = []

  /// The names of modules that a function refers to, or that the text of its chunk requires.
  static func modules(usedBy function: LuaReference, of host: ScriptHost) throws -> [ByteString] {
    let collector = ModuleCollector(host)
    _ = try host.vm.codeForm(of: function, describer: collector)
    var names = collector.names
    if let text = try chunkText(of: function, in: host.vm) {
      names.formUnion(ModuleDigests.required(in: text.bytes))
    }
    return names.sorted()
  }

  /// The text of the chunk that a function was made by, as it is now; nil if that isn't known.
  private static func chunkText(of function: LuaReference, in vm: LuaVM) throws -> ByteString? {
    guard case .reference(let debug) = try vm.rawGet("debug", in: vm.globals()),
      debug.kind == .table,
      case .reference(let inspect) = try vm.rawGet("getinfo", in: debug), inspect.kind == .function,
      case .reference(let info)? = try vm.call(inspect, [.reference(function), .string("S")]).first,
      case .string(let source) = try vm.rawGet("source", in: info)
    else { return nil }
    switch source.bytes.first {
    case UInt8(ascii: "@"):
      return try? Files.read(ByteString(source.bytes.dropFirst()), Cancellation())
    case UInt8(ascii: "="): return nil
    default: return source
    }
  }

  private init(_ host: ScriptHost) {
    describer = CodeDescriber(host)
  }

  func description(of object: AnyObject) throws -> LuaValue? {
    // An object that can't be compared names no module.
    try? describer.description(of: object)
  }

  func isLibrary(_ name: ByteString) -> Bool { describer.isLibrary(name) }

  func content(ofModule name: ByteString) throws -> LuaModuleContent {
    names.insert(name)
    return try describer.content(ofModule: name)
  }
}
