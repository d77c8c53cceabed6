internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The ops in `flow.ops` that are part of flowlua, registered as by an embedding program.
extension ScriptHost {
  func registerBuiltInOps() {
    let ops = availableOps
    if ops.contains(.print) {
      registerDescribed(
        OpClass("PrintOp", doc: PrintOp.docText) { arguments in
          PrintOp(bytes: try arguments.textBytes(1))
        })
    }
    if ops.contains(.sleep) {
      registerDescribed(
        OpClass("SleepOp", doc: SleepOp.docText) { arguments in
          SleepOp(try arguments.duration(1))
        })
    }
    if ops.contains(.readFile) { register(ReadFileOp()) }
    if ops.contains(.writeFile) { register(WriteFileOp()) }
    if ops.contains(.http) { registerHTTPOp() }
    guard ops.contains(.exec) else { return }
    registerDescribed(
      OpClass("ExecOp", doc: ExecOp.docText) {
        [unowned self] arguments in
        let (request, check) = try processRequest(arguments, canWrite: false)
        return ExecOp(request, check: check)
      })
  }

  /// Whether the host doesn't allow the op of flowlua with this name.
  func withholdsOp(_ name: ByteString) -> Bool {
    BuiltInOps.names.contains { $0.name == name && !availableOps.contains($0.op) }
  }

  /// Registers a class whose ops know the form of their code.
  func registerDescribed(_ opClass: OpClass) {
    opClass.knowsCodeForm = true
    register(opClass)
  }
}
