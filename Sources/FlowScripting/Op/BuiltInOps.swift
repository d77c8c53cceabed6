internal import FlowEngine
internal import LuaVM

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
    register(
      OpClass("ExecOp", doc: "Runs a program: gives status, stdout and stderr.") { arguments in
        try Self.makeExecOp(arguments)
      })
  }

  /// `ExecOp(argv, { stdin, cwd, env, check })`. `env` changes the environment: strings are set,
  /// `false` removes a variable.
  private static func makeExecOp(_ arguments: OpArguments) throws -> Op {
    let options = try arguments.options(2, known: ["stdin", "cwd", "env", "check"])
    var request = ProcessRequest(try arguments.strings(1))
    if let problem = request.problem { throw arguments.wrong(1, problem.description) }
    request.stdin = try options.string("stdin")
    request.cwd = try options.string("cwd")
    for (name, value) in try options.fields("env") ?? [] {
      switch value {
      case .string(let text): request.environment[name] = .some(ByteString(text))
      case .boolean(false): request.environment[name] = .some(nil)
      default: throw options.wrong("env", "'\(name)': string or false expected")
      }
    }
    if let problem = request.problem { throw arguments.wrong(2, problem.description) }
    return ExecOp(request, check: try options.boolean("check") ?? true)
  }
}
