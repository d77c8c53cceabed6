internal import CFlowLua
internal import CLua

/// Calls of Lua functions that have to end in time.
extension LuaVM {
  /// Calls a function and stops it at a deadline, also if it is busy or catches errors.
  ///
  /// ```swift
  /// let results = try vm.call(function, [.integer(7)], deadline: .now.advanced(by: .seconds(2)))
  /// ```
  ///
  /// The function runs as a coroutine. No `pcall` or message handler notices the stop; its `__close`s run within
  /// the grace. The state can be used afterwards. A function of C, such as a pattern match, and code of a finalizer
  /// (`__gc`) are stopped only when they return.
  ///
  /// The function can't wait: `await` raises an error in it. `ScriptHost.call(_:_:deadline:)` of `FlowScripting`
  /// calls functions that wait. Thread of the state only.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments.
  ///   - deadline: When it has to have ended. With one that has passed it isn't called.
  ///   - grace: The time that its `__close`s have after a stop.
  /// - Returns: All its results.
  /// - Throws: A `LuaError` of code `timeout` at the deadline; of code `stopped` if code that encloses the call was
  ///   stopped before; the error of a cancellation of its host; otherwise the raised error, as
  ///   `call(_:_:traceback:)`.
  public func call(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: ContinuousClock.Instant,
    grace: Duration = .seconds(1)
  ) throws -> [LuaValue] {
    try enter()
    checkHome(function)
    let time = ContinuousClock.now.duration(to: deadline).clampedNanoseconds
    guard time > 0 else { throw Self.timeout }
    let (end, isOver) = Self.monotonicTime.addingReportingOverflow(time)
    var start = flowlua_start(
      function: function.id, deadline: isOver ? .max : end,
      grace: max(0, grace.clampedNanoseconds))
    start.wanted = UInt8(FLOWLUA_WANTS_ALL)
    start.is_call = true
    let result = Result { try finish(&start, arguments) }
    // The outermost call throws the error, whatever its code has made of the stop.
    if flowlua_activity(state) == nil, let error = callStopError.take() { throw error }
    return try result.get()
  }

  /// Stops the calls with a deadline whose code runs, if it belongs to no coroutine of the scheduler: the outermost
  /// call throws `error`. Returns false if there is none.
  package func stopCalls(throwing error: any Error) -> Bool {
    guard flowlua_stop_calls(state) else { return false }
    callStopError = error
    return true
  }

  /// The end of a call in place.
  package enum CallInPlace {
    case returned([LuaValue])
    /// As of a coroutine that was started and didn't return.
    case ended(LuaOutcome)
  }

  /// Calls a function as a coroutine of the scheduler, and stays until it has ended: its waits run the loop in place.
  /// A stop of the code that has made this call stops the function, too.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments.
  ///   - executes: Called with the coroutine before it executes, and with nil when it waits: it has to be watched as long
  ///     as it executes.
  /// - Returns: All results, or the outcome.
  package func callInPlace(
    _ function: LuaReference, _ arguments: [LuaValue], executes: (RunningCoroutine?) -> Void
  ) -> CallInPlace {
    do { try enter() } catch { return .ended(.refused(error)) }
    checkHome(function)
    var start = flowlua_start(function: function.id, deadline: 0, grace: 0)
    start.wanted = UInt8(FLOWLUA_WANTS_ALL)
    let (status, count) = run(&start, arguments) {
      executes($0)
    } wait: { coroutine, begun in
      unwatch(coroutine)
      executes(nil)
      pump(begun)
      executes(coroutine)
    }
    guard status >= 0, let raw = start.coroutine else { return .ended(.refused(takeError(status))) }
    let coroutine = RunningCoroutine(raw: raw)
    guard Int(status) == FLOWLUA_FINISHED else {
      return .ended(outcome(coroutine, status, count))
    }
    defer { release(coroutine, finished: true) }
    do { return .returned(try results(of: coroutine, count)) } catch {
      return .ended(.refused(error))
    }
  }

  /// Starts a function, and runs it until it has ended; returns its status, and how many results it has. A stop of the
  /// code that has made the call stops the function. `begin` is called before it, and `wait` at each wait; other code that
  /// runs meanwhile isn't a part of the call.
  private func run(
    _ start: inout flowlua_start, _ arguments: [LuaValue],
    begin: (RunningCoroutine) -> Void, wait: (RunningCoroutine, LuaWait) -> Void
  ) -> (status: Int32, count: Int32) {
    var status = withRawValues(of: self, arguments) { values in
      start.arguments = UnsafePointer(values)
      start.count = Int32(clamping: arguments.count)
      return flowlua_prepare_function(state, &start)
    }
    guard status == LUA_OK, let raw = start.coroutine else { return (status, 0) }
    begin(RunningCoroutine(raw: raw))
    let pushed = start.pushed
    var count: Int32 = 0
    status = enclose { flowlua_coroutine_run(state, raw, pushed, &count) }
    while status == FLOWLUA_PARKED, let begun = takeParkedWait() {
      wait(RunningCoroutine(raw: raw), begun)
      // C has the address of the wait until the coroutine has continued.
      status = withExtendedLifetime(begun) {
        enclose { flowlua_coroutine_run(state, raw, 0, &count) }
      }
    }
    return (status, count)
  }

  /// The results of a coroutine that has finished.
  private func results(of coroutine: RunningCoroutine, _ count: Int32) throws -> [LuaValue] {
    let lua = flowlua_coroutine_state(coroutine.raw)
    let first = lua_gettop(lua) - count + 1
    return try (0..<count).map { try value(in: lua, at: first + $0) }
  }

  /// Starts a function, and reads its results once it has ended.
  private func finish(
    _ start: inout flowlua_start, _ arguments: [LuaValue]
  ) throws -> [LuaValue] {
    let (status, count) = run(&start, arguments) { _ in
    } wait: { _, wait in
      if !wait.isReady {
        wait.fail(LuaError(.runtime, "attempt to await in a call with a deadline"))
      }
    }
    guard status >= 0, let raw = start.coroutine else { throw takeError(status) }
    let coroutine = RunningCoroutine(raw: raw)
    defer { release(coroutine, finished: Int(status) == FLOWLUA_FINISHED) }
    switch Int(status) {
    case FLOWLUA_FINISHED: return try results(of: coroutine, count)
    case FLOWLUA_FAILED:
      throw failure(coroutine).error
    case FLOWLUA_STOPPED:
      giveUpBegunWait()
      throw Self.monotonicTime >= start.deadline
        ? Self.timeout : LuaError(.stopped, "the call was stopped before its deadline")
    default:
      throw LuaError(.runtime, "attempt to yield from outside a coroutine")
    }
  }

  private static var timeout: LuaError { LuaError(.timeout, "the deadline of the call has passed") }
}

extension Duration {
  /// The nanoseconds, at most those that an `Int64` has.
  fileprivate var clampedNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }
}
