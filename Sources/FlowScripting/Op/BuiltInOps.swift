internal import FlowEngine

/// The ops in `flow.ops` that flowlua brings along, registered as an embedding program would.
extension ScriptHost {
  func registerBuiltInOps() {
    register(
      OpClass("PrintOp", doc: "Logs its message.") { arguments in
        PrintOp(try arguments.text(1))
      })
    register(
      OpClass("SleepOp", doc: "Waits for its seconds.") { arguments in
        SleepOp(try arguments.seconds(1))
      })
    register(ReadFileOp())
    register(WriteFileOp())
  }
}
