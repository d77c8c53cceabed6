internal import FlowEngine
internal import LuaVM

/// The ops in `flow.ops` that are part of flowlua, registered as by an embedding program.
extension ScriptHost {
  func registerBuiltInOps() {
    registerDescribed(
      OpClass("PrintOp", doc: "Logs its message.") { arguments in
        PrintOp(try arguments.text(1))
      })
    registerDescribed(
      OpClass("SleepOp", doc: "Waits for its seconds.") { arguments in
        SleepOp(try arguments.seconds(1))
      })
    register(ReadFileOp())
    register(WriteFileOp())
    registerHTTPOp()
    registerDescribed(
      OpClass("ExecOp", doc: "Runs a program: gives status, stdout and stderr.") {
        [unowned self] arguments in
        let (request, check) = try processRequest(arguments, canWrite: false)
        return ExecOp(request, check: check)
      })
  }

  /// Registers a class whose ops know the form of their code.
  func registerDescribed(_ opClass: OpClass) {
    opClass.knowsCodeForm = true
    register(opClass)
  }
}
