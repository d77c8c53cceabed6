internal import FlowEngine
internal import FlowScripting
internal import LuaVM

/// Runs one script to its end, as the stand-alone interpreter does, and then what it has started.
struct Interpreter {
  let arguments: CommandLineArguments

  /// Returns the exit status.
  func run() -> Int32 {
    do {
      let deferred = try DeferredScriptHost(vm: try LuaVM())
      let status = run(on: deferred)
      // An error of the script leaves what it started.
      EventLoop.endPrograms()
      deferred.close()
      return status
    } catch {
      Output.error(program: arguments.program, ByteString(String(describing: error)))
      return 1
    }
  }

  private func run(on deferred: DeferredScriptHost) -> Int32 {
    do {
      try setArguments(deferred.vm)
      let chunk: LuaReference
      switch arguments.source {
      case .file(let path): chunk = try deferred.vm.loadFile(LuaString(path.bytes))
      case .standardInput: chunk = try deferred.vm.loadFile(nil)
      }
      let values = arguments.scriptArguments.map { LuaValue.string(LuaString($0.bytes)) }
      _ = try deferred.vm.call(chunk, values, traceback: true)
    } catch {
      report(error, deferred.host)
      if let host = deferred.host { _ = reportFailures(host) }
      return 1
    }
    guard let host = deferred.host else { return 0 }
    host.runToEnd()
    return reportFailures(host) ? 1 : 0
  }

  private func report(_ error: any Error, _ host: ScriptHost?) {
    let text: ByteString
    if let host {
      text = host.report(of: error)
    } else if let error = error as? LuaError {
      text = ByteString(error.message.bytes)
    } else {
      text = ByteString(String(describing: error))
    }
    Output.error(program: arguments.program, text)
  }

  private func setArguments(_ vm: LuaVM) throws {
    let table = try vm.makeTable()
    for (index, text) in arguments.argPairs {
      try vm.set(.string(LuaString(text.bytes)), at: index, in: table)
    }
    try vm.setGlobal("arg", .reference(table))
  }

  /// Tells of every failure that nobody looked at; false when there is none.
  private func reportFailures(_ host: ScriptHost) -> Bool {
    let failures = host.unobservedFailures()
    for failure in failures {
      Output.error(
        program: arguments.program, "\(failure.name) failed: \(host.report(of: failure.error))")
    }
    return !failures.isEmpty
  }
}
