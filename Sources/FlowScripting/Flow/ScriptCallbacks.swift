internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A `will_start` or `did_finish` written in Lua: a coroutine, so it may wait.
final class ScriptCallback: RunCallback {
  // A Swift program may keep the flow longer than the host. The cycle ends when the host is closed.
  private let host: ScriptHost
  private let function: LuaReference

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.host = host
    self.function = function
  }

  func call(_ run: Run, completion: CallbackCompletion) -> CallState {
    do {
      let argument = try host.vm.value(of: run, host.types.run)
      completion.state = host.runFiber(
        function, [argument], owner: .callback(run, completion))
    } catch {
      completion.finish(host.flowError(thrown: error, op: nil))
    }
    return .suspended
  }

  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    let fiber = completion.state as? Fiber
    if completion.isCut { fiber?.close(error) } else { fiber?.cancel(error) }
  }

  var place: ByteString? { host.vm.place(of: function).map { $0 } }
}

/// The predicate of a case, written in Lua: a coroutine, so it may wait.
final class ScriptPredicate: CasePredicate {
  private let host: ScriptHost
  private let function: LuaReference

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.host = host
    self.function = function
  }

  func matches(
    _ data: DataBucket, in run: Run, completion: CallbackCompletion
  ) -> CallState {
    do {
      let table = try host.table(ofAllIn: data)
      let arguments = [LuaValue.reference(table)]
      completion.state = host.runFiber(
        function, arguments, owner: .predicate(run, completion))
    } catch {
      completion.finish(host.flowError(thrown: error, op: nil))
    }
    return .suspended
  }

  func cancel(_ run: Run, completion: CallbackCompletion, _ error: FlowError) {
    (completion.state as? Fiber)?.cancel(error)
  }
}

extension ScriptCallback: LuaCode {
  func codeForm() throws -> CodeForm? { try host.codeForm(of: function) }

  var codeValues: [LuaValue] { [.reference(function)] }
}

extension ScriptPredicate: LuaCode {
  func codeForm() throws -> CodeForm? { try host.codeForm(of: function) }

  var codeValues: [LuaValue] { [.reference(function)] }
}

/// A function given to `ctx:defer`: a coroutine in which nothing is raised.
final class ScriptCleanup: OpCleanup {
  private let host: ScriptHost
  private let function: LuaReference

  init(_ host: ScriptHost, _ function: LuaReference) {
    self.host = host
    self.function = function
  }

  func cleanUp(_ context: OpContext, completion: CallbackCompletion) -> CallState {
    completion.state = host.runFiber(function, [], owner: .cleanup(context, completion))
    return .suspended
  }

  func cancel(
    _ context: OpContext, completion: CallbackCompletion, _ error: FlowError
  ) {
    if let fiber = completion.state as? Fiber {
      fiber.close(error)
    } else {
      completion.finish(error)
    }
  }

  var place: ByteString? { host.vm.place(of: function).map { $0 } }
}
