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
    // A stop of the code that has made this call stops what it calls.
    let result = enclose { Result { try finish(&start, arguments) } }
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

  /// Starts a function, and reads its results once it has ended.
  private func finish(
    _ start: inout flowlua_start, _ arguments: [LuaValue]
  ) throws -> [LuaValue] {
    var status = withRawValues(of: self, arguments) { values in
      start.arguments = UnsafePointer(values)
      start.count = Int32(clamping: arguments.count)
      return flowlua_start_function(state, &start)
    }
    guard status >= 0, let raw = start.coroutine else { throw takeError(status) }
    let coroutine = RunningCoroutine(raw: raw)
    var count = start.result_count
    while status == FLOWLUA_PARKED, let wait = takeParkedWait() {
      if !wait.isReady {
        wait.fail(LuaError(.runtime, "attempt to await in a call with a deadline"))
      }
      // C has the address of the wait until the coroutine has continued.
      status = withExtendedLifetime(wait) { flowlua_coroutine_run(state, raw, 0, &count) }
    }
    defer { release(coroutine, finished: Int(status) == FLOWLUA_FINISHED) }
    switch Int(status) {
    case FLOWLUA_FINISHED:
      let lua = flowlua_coroutine_state(raw)
      let first = lua_gettop(lua) - count + 1
      return try (0..<count).map { try value(in: lua, at: first + $0) }
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
