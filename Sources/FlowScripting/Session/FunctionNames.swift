@_spi(Scripting) internal import LuaVM

/// The names by which a script can reach functions: through loaded modules and global variables.
struct FunctionNames {
  private var names: [UInt: [UInt8]] = [:]
  private let vm: LuaVM

  init(_ vm: LuaVM) {
    self.vm = vm
    guard let globals = try? vm.globals() else { return }
    addFunctions(of: globals, prefix: [])
    var modules: [LuaReference] = [globals]
    if case .reference(let package)? = try? vm.rawGet("package", in: globals),
      case .reference(let loaded)? = try? vm.rawGet("loaded", in: package)
    {
      modules.append(loaded)
    }
    for table in modules {
      for case (.string(let name), .reference(let module)) in (try? vm.pairs(of: table)) ?? []
      where module.kind == .table && name != "_G" && LuaLexer.isName(name.bytes) {
        addFunctions(of: module, prefix: name.bytes + [UInt8(ascii: ".")])
      }
    }
  }

  private mutating func addFunctions(of table: LuaReference, prefix: [UInt8]) {
    for case (.string(let name), .reference(let function)) in (try? vm.pairs(of: table)) ?? []
    where function.kind == .function && LuaLexer.isName(name.bytes) && name != "_" {
      let identity = vm.identity(of: function)
      if names[identity] == nil { names[identity] = prefix + name.bytes }
    }
  }

  subscript(function: LuaReference) -> [UInt8]? { names[vm.identity(of: function)] }
}
