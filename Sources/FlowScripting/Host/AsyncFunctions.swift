internal import FlowEngine
@_spi(Scripting) public import LuaVM

// Async closures as functions for scripts.
//
// They aren't `nonisolated(nonsending)`, as those of ops are: Swift 6.3's compiler crashes on such a closure
// with a pack of parameters.

extension ScriptHost {
  /// Makes an `async` closure callable from Lua. The script waits at the call, while its other code
  /// continues; the closure itself always runs on the loop's thread, whatever it awaits in between.
  ///
  /// Stopping the waiting code, by a cancel or a timeout, cancels the closure's Swift task, and the
  /// script's code ends. A closure that throws raises an error table with the description of the Swift
  /// error as its `message`; `FlowError.underlying` is that error.
  ///
  /// ```swift
  /// let fetch = try host.makeAsyncFunction("fetch") { (id: Int) in
  ///   try await store.name(of: id)
  /// }
  /// try host.vm.setGlobal("fetch", .reference(fetch))
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name in messages about arguments.
  ///   - body: The closure; it returns the result, or several as `LuaResults`.
  /// - Returns: The function.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  public func makeAsyncFunction<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String,
    _ body: @escaping (repeat each Argument) async throws -> Result
  ) throws -> LuaReference {
    try vm.makeFunction { call in
      var signature = Signature(name, of: call)
      let arguments = (repeat try signature.argument((each Argument).self))
      return try Self.wait(call) { try await body(repeat each arguments) }
    }
  }

  /// Makes a function of a closure without a result.
  public func makeAsyncFunction<each Argument: LuaValueConvertible>(
    _ name: String,
    _ body: @escaping (repeat each Argument) async throws -> Void
  ) throws -> LuaReference {
    try makeAsyncFunction(name) { (arguments: repeat each Argument) in
      try await body(repeat each arguments)
      return LuaResults()
    }
  }

  /// Runs async code while the calling script waits, and returns its result.
  static func wait<Result: LuaResult>(
    _ call: LuaCall, _ body: @escaping () async throws -> Result
  ) throws -> LuaAnswer {
    guard let host = call.vm.scheduler as? ScriptHost else {
      throw LuaError(.closed, "async functions need a script host, which is closed")
    }
    // Safe: the task has the loop's executor, so that the code runs on the loop's thread like all that
    // uses its values.
    nonisolated(unsafe) let body = body
    let task = host.withTaskContext { host.loop.task { try await body() } }
    // Its error is raised here.
    task.markObserved()
    if task.isConcluded { return try host.answer(call, resultOf: task) }
    return try call.wait(
      AsyncWait(task, for: host.waitingTask, deadline: nil) { [unowned host] call in
        try host.answer(call, resultOf: task)
      })
  }

  /// The error of async code as the loop's mapper makes it.
  private func mapped(_ error: FlowError) -> FlowError {
    guard error.kind == .error, let thrown = error.underlying else { return error }
    return .from(thrown, on: loop)
  }

  /// Calls code with the task-local values of the caller that the running code of the script works for.
  private func withTaskContext<Result>(_ code: () -> Result) -> Result {
    let context = currentTask?.taskContext ?? currentOp?.run.taskContext ?? currentRun?.taskContext
    return if let context { context.run(code) } else { code() }
  }

  private func answer<Result: LuaResult>(
    _ call: LuaCall, resultOf task: FlowTask<Result>
  ) throws -> LuaAnswer {
    guard let result = task.result else {
      let error = mapped(task.error ?? .cancelled())
      throw raise(error.with { $0.traceback = vm.traceback(level: 1) })
    }
    try result.addResult(to: call)
    return call.answer()
  }
}

/// Waits for a closure, which only this wait is for: it is stopped with the waiting code, also by a
/// timeout.
private final class AsyncWait: TaskWait {
  override var subject: String { "async function" }

  override func abandon() {
    super.abandon()
    stopTarget(.cancelled())
  }
}

extension LuaClass {
  /// Adds a method whose code is `async`, in the states of script hosts; see
  /// `ScriptHost.makeAsyncFunction`.
  ///
  /// - Parameters:
  ///   - name: Its name.
  ///   - body: Gets the object and the arguments, and returns the result; `LuaResults` are several.
  public func asyncMethod<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String,
    _ body: @escaping (Object, repeat each Argument) async throws -> Result
  ) {
    let label: String = "\(self.name):\(name)"
    method(
      name,
      function: { call in
        var signature = Signature(label, of: call)
        let object: Object = try signature.object()
        let arguments = (repeat try signature.argument((each Argument).self))
        return try ScriptHost.wait(call) { try await body(object, repeat each arguments) }
      })
  }

  /// Adds a method without a result.
  public func asyncMethod<each Argument: LuaValueConvertible>(
    _ name: String,
    _ body: @escaping (Object, repeat each Argument) async throws -> Void
  ) {
    asyncMethod(name) { (object: Object, arguments: repeat each Argument) in
      try await body(object, repeat each arguments)
      return LuaResults()
    }
  }
}
