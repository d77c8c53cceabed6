internal import FlowEngine
internal import LuaVM

/// `flow.exec`, and its common parts with `ExecOp`.
extension ScriptHost {
  func installPrograms() throws {
    define("exec") { host, call in
      try host.refuseWhileChecking(call, "exec")
      let (request, check) = try host.processRequest(OpArguments(Arguments(host, call, "exec")))
      let task = ProcessTask(request, check: check, on: host.loop)
      host.begin(task, call.origin)
      return call.answer(task, host.types.task)
    }
  }

  /// The parameters `(argv, { stdin, cwd, env, timeout, check, capture })`. `env` changes the
  /// environment: a string sets a variable, `false` removes it.
  func processRequest(_ arguments: OpArguments) throws -> (ProcessRequest, check: Bool) {
    var request = ProcessRequest(try arguments.strings(1))
    if let problem = request.problem { throw arguments.wrong(1, problem.description) }
    let options = try arguments.options(
      2, known: ["stdin", "cwd", "env", "timeout", "check", "capture"])
    request.owner = ObjectIdentifier(self)
    request.stdin = try options.string("stdin")
    request.cwd = try options.string("cwd")
    request.timeout = try options.seconds("timeout", orZero: false)
    request.capturesOutput = try options.boolean("capture") ?? true
    for (name, value) in try options.fields("env") ?? [] {
      switch value {
      case .string(let text): request.environment[name] = .some(text)
      case .boolean(false): request.environment[name] = .some(nil)
      default: throw options.wrong("env", "'\(name)': string or false expected")
      }
    }
    if let problem = request.problem { throw arguments.wrong(2, problem.description) }
    return (request, try options.boolean("check") ?? true)
  }

  /// The result of a program, as scripts see it.
  func fields(of result: ProcessResult) -> [(ByteString, LuaValue)] {
    var fields: [(ByteString, LuaValue)] = [("status", .integer(Int64(result.status)))]
    if let signal = result.signal { fields.append(("signal", .integer(Int64(signal)))) }
    if result.isCaptured {
      fields.append(("stdout", .string(result.stdout)))
      fields.append(("stderr", .string(result.stderr)))
    }
    return fields
  }

  /// `task.status`, `task.stdout`, … of a program: the fields of its result or its error; nil for
  /// another name.
  func programField(_ call: LuaCall, _ program: ProcessTask) throws -> LuaAnswer? {
    guard let name = call.string(2),
      ["status", "signal", "stdout", "stderr"].contains(name.description)
    else { return nil }
    if program.state == .pending {
      throw usage(call, "'\(name)' isn't there yet: await the task first")
    }
    guard let result = program.result ?? program.error?.process else { return call.answer(.nil) }
    return call.answer(fields(of: result).first { $0.0 == name }?.1 ?? .nil)
  }
}
