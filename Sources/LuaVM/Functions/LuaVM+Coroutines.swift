internal import CFlowLua
internal import CLua
internal import FlowSystem

extension LuaVM {
  /// Starts a function and runs it up to its first wait. With a `deadline` the watchdog watches it
  /// from its first instruction; see `watch`.
  package func start(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: Int64 = 0, grace: Int64 = 0
  ) -> LuaOutcome {
    do { try enter() } catch { return .refused(error) }
    checkHome(function)
    return withRawValues(of: self, arguments) { values in
      var start = flowlua_start(function: function.id, deadline: deadline, grace: grace)
      start.arguments = UnsafePointer(values)
      start.count = Int32(clamping: arguments.count)
      return self.start(&start)
    }
  }

  /// Starts a function that is used up.
  package func start(
    _ function: consuming LuaUniqueReference, _ arguments: [LuaValue], deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaOutcome {
    do { try enter() } catch { return .refused(error) }
    let id = function.take(for: self)
    return withRawValues(of: self, arguments) { values in
      var start = flowlua_start(function: id, deadline: deadline, grace: grace)
      start.is_used_up = true
      start.arguments = UnsafePointer(values)
      start.count = Int32(clamping: arguments.count)
      return self.start(&start)
    }
  }

  /// Starts a function that is used up, with one argument.
  package func start(
    _ function: consuming LuaUniqueReference, _ argument: LuaValue, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaOutcome {
    do { try enter() } catch { return .refused(error) }
    let id = function.take(for: self)
    return withRawValue(of: self, argument) { value in
      var start = flowlua_start(function: id, deadline: deadline, grace: grace)
      start.is_used_up = true
      start.arguments = value
      start.count = 1
      return self.start(&start)
    }
  }

  /// Continues a parked coroutine whose wait is ready.
  package func resume(_ coroutine: RunningCoroutine) -> LuaOutcome {
    guard isUsable(coroutine) else {
      return .refused(LuaError(.closed, "the Lua state is closed"))
    }
    if !flowlua_coroutine_is_parked(coroutine.raw) {
      misuse("a coroutine that wasn't parked was resumed")
    }
    var results: Int32 = 0
    let status = flowlua_coroutine_run(state, coroutine.raw, 0, &results)
    return outcome(coroutine, status, results)
  }

  /// Whether a coroutine still belongs to its original call; false after the state was closed.
  func isUsable(_ coroutine: RunningCoroutine) -> Bool {
    guard (try? enter()) != nil else { return false }
    if flowlua_coroutine_generation(coroutine.raw) != coroutine.generation {
      misuse("a coroutine was used after its release")
    }
    return true
  }

  /// The wait of the coroutine that has just parked.
  package func parkedWait() -> LuaWait? { takeParkedWait() }

  /// The error of a failed coroutine with its place: the position of its innermost Lua function at
  /// that time. The message of an error that isn't a string says only its type: the host has a text of its own
  /// for it, and a `__tostring` takes as long as ten ops.
  package func failure(
    _ coroutine: RunningCoroutine
  ) -> (error: any Error, position: ByteString, traceback: ByteString) {
    guard isUsable(coroutine) else {
      return (LuaError(.closed, "the Lua state is closed"), "", "")
    }
    let lua = flowlua_coroutine_state(coroutine.raw)
    // The place of an error outside the function itself, such as lack of memory for its frame,
    // isn't recorded.
    let noted = flowlua_coroutine_error_status(coroutine.raw)
    let code = noted != LUA_OK ? noted : lua_status(lua)
    return (
      takeError(code, from: lua, isDescribed: false),
      text(flowlua_coroutine_position(coroutine.raw)),
      text(flowlua_coroutine_traceback(coroutine.raw))
    )
  }

  /// The place of a coroutine that was stopped while busy, as text; empty if it isn't known.
  package func stopTraceback(_ coroutine: RunningCoroutine) -> ByteString {
    isUsable(coroutine) ? text(flowlua_coroutine_traceback(coroutine.raw)) : ""
  }

  /// A text of C unchanged; empty for NULL.
  private func text(_ bytes: UnsafePointer<CChar>?) -> ByteString {
    bytes.map { ByteString(cString: $0) } ?? ""
  }

  /// Releases a coroutine: to the pool after a normal end; otherwise it is closed (pending
  /// `__close`s run) and dropped.
  package func release(_ coroutine: RunningCoroutine, finished: Bool) {
    guard (try? enter()) != nil else { return }
    switch Int(
      flowlua_coroutine_release(state, coroutine.raw, coroutine.generation, finished))
    {
    case FLOWLUA_RELEASED: break
    case FLOWLUA_STALE: misuse("a coroutine was used after its release")
    default: misuse("a coroutine was released while it ran")
    }
  }

  // MARK: Stopping

  /// Tells the watchdog to stop the coroutine if it is still busy at `deadline` (nanoseconds of the
  /// monotonic clock; negative counts from now). Its cleanups then have `grace` nanoseconds. Of several
  /// deadlines the earliest counts.
  package func watch(_ coroutine: RunningCoroutine, deadline: Int64, grace: Int64) {
    guard isUsable(coroutine) else { return }
    _ = flowlua_watch(state, coroutine.raw, deadline, grace)
  }

  /// Watches an operation that was started with this handle and hasn't returned from its start; the
  /// caller has to make sure of that; see `watch`. The watch ends with the start.
  package func watchOperation(
    slot: UInt32, generation: UInt64, deadline: Int64, grace: Int64
  ) {
    guard (try? enter()) != nil else { return }
    _ = flowlua_watch_operation(state, slot, generation, deadline, grace)
  }

  /// Watches the innermost coroutine of the scheduler that is executing, below the running code; see `watch`. The
  /// watch ends when that coroutine waits or ends. The coroutine of a call with a deadline isn't the scheduler's: its
  /// code belongs to the caller, and stops with it.
  package func watchActivity(deadline: Int64, grace: Int64) {
    guard (try? enter()) != nil else { return }
    _ = flowlua_watch_activity(state, deadline, grace)
  }

  /// Whether the coroutine is the innermost one that the scheduler is executing.
  package func isInnermost(_ coroutine: RunningCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_activity(state) == coroutine.raw
  }

  /// Whether the watchdog has stopped the innermost executing coroutine. A wait in place must then
  /// end: the coroutine stops once its code continues.
  package var isAskedToStop: Bool { flowlua_is_activity_stopped(state) }

  /// Whether code of a `__close` may continue although the innermost executing coroutine, or one that encloses
  /// it, was stopped: until the grace of its watch is over, which begins now unless it has begun. Always
  /// false if it isn't watched.
  package var sparesClose: Bool { flowlua_spares_close(state) }

  /// Makes everything that runs until `body` returns part of the innermost executing coroutine:
  /// when that coroutine is stopped, so is the code in `body`.
  package func enclose<Result>(_ body: () -> Result) -> Result {
    let enclosing = flowlua_begin_enclosure(state)
    defer { if let enclosing { flowlua_end_enclosure(state, enclosing) } }
    return body()
  }

  /// Whether the code that encloses the running code has been stopped, so that everything inside
  /// has to end, within its grace; see `enclose`.
  package var isEnclosureStopped: Bool { flowlua_is_enclosure_stopped(state) }

  /// Makes room for the errors of code that is about to be stopped, also at the limit of memory.
  package func beginStop() { if isOpen { flowlua_begin_stop(state) } }

  /// Ends the watch.
  package func unwatch(_ coroutine: RunningCoroutine) {
    guard isUsable(coroutine) else { return }
    flowlua_unwatch(coroutine.raw)
  }
}
