@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) public import LuaVM

/// Calls of Lua functions that have to end in time.
extension ScriptHost {
  /// Calls a Lua function, which may wait, and stops it at a deadline: also code that is busy, that waits,
  /// or that catches errors. What the function has started and waits for is stopped with it; a task that it
  /// doesn't wait for continues without the deadline.
  ///
  /// ```swift
  /// let results = try host.call(function, [.integer(7)], deadline: .now.advanced(by: .seconds(2)))
  /// ```
  ///
  /// The function runs as a coroutine: its cleanups have the loop's grace period after the stop. Only a
  /// function of C, such as a pattern match, isn't interrupted. On a loop with a virtual clock the deadline
  /// is so much later on that clock as it is later than the present time.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments.
  ///   - deadline: When it has to have ended.
  /// - Returns: All its results.
  /// - Throws: A `FlowError`: of kind `timeout` at the deadline, `stalled` when nothing can end the
  ///   function's wait, otherwise what the function has raised.
  public func call(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: ContinuousClock.Instant
  ) throws -> [LuaValue] {
    let limit = TimeLimit(ContinuousClock.now.duration(to: deadline), on: loop)
    defer { limit.end() }
    lastCall += 1
    let id = lastCall
    defer { callResults[id] = nil }
    let runner = try vm.uniqueReference(to: callRunner())
    let task = SpawnedTask(self, runner, [.integer(id), .reference(function)] + arguments)
    limit.tasks.add(task)
    limit.begin()
    // Code of a script may be running below: a stop of it stops the call, too.
    let code = CodeInPlace(self)
    vm.enclose {
      task.begin()
      runToEnd(task, for: code)
    }
    task.markObserved()
    if let error = task.error { throw error }
    guard let results = callResults[id] else {
      throw FlowError(.stalled, "stalled: nothing can end this wait")
    }
    return results
  }

  /// Runs the loop until a task has ended, or nothing can end it.
  private func runToEnd(_ task: AnyFlowTask, for code: CodeInPlace) {
    var isStopping = false
    while !task.isConcluded {
      let canContinue = loop.run(until: {
        task.isConcluded || vm.hasRequest
          || !isStopping && (vm.isEnclosureStopped || code.stopError != nil)
      })
      switch takeRequest() {
      case .termination: terminate()
      case .interruption: task.stop(.cancelled(reason: Self.interruption))
      case .cancellation(let error):
        stopTasks(error)
        task.stop(error)
      case nil: break
      }
      if !isStopping, vm.isEnclosureStopped || code.stopError != nil {
        isStopping = true
        task.stop((code.stopError ?? .cancelled()).asReason)
      }
      if !canContinue, !task.isConcluded, !task.stopStalled() { return }
    }
  }

  /// A Lua function that calls another one and passes all its results on.
  private func callRunner() throws -> LuaReference {
    if let openCallRunner { return openCallRunner }
    let note = try vm.makeFunction(
      bind { host, call in
        guard let id = call.integer(1) else { return call.answer() }
        host.callResults[id] = try (0..<max(0, call.count - 1)).map { try call.value($0 + 2) }
        return call.answer()
      })
    let maker = try vm.loadOwn(
      "local note = ... return function(id, f, ...) note(id, f(...)) end", name: "=[flow]")
    guard case .reference(let made)? = try vm.call(maker, [.reference(note)]).first else {
      throw LuaError(.runtime, "no function for calls was made")
    }
    openCallRunner = made
    return made
  }
}
