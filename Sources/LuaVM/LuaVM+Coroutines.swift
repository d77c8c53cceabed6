internal import CFlowLua
internal import CLua

/// A coroutine that the scheduler runs. It stays valid until `LuaVM.release`.
public struct LuaCoroutine {
  let raw: OpaquePointer
}

/// How far a coroutine got.
public struct LuaStep {
  /// What it did last.
  public enum Outcome: Sendable {
    /// It returned; its results stand ready.
    case finished
    /// It raised an error.
    case failed
    /// It waits.
    case parked
    /// The script yielded although nobody had resumed it.
    case yielded
    /// It was busy and has been stopped; all its coroutines are closed.
    case stopped
  }

  /// The coroutine.
  public let coroutine: LuaCoroutine
  /// What it did last.
  public let outcome: Outcome
  /// How many results stand ready.
  public let resultCount: Int
}

extension LuaVM {
  /// Starts an operation: a coroutine of the pool runs `function` with a fresh handle and the first
  /// `count` values of the table `arguments`. This is the hot path: one call into C.
  public func start(
    operation function: LuaReference, slot: UInt32, generation: UInt64,
    arguments: LuaReference?, count: Int
  ) throws -> LuaStep {
    guard isOpen else { throw LuaError(.closed, "the Lua state is closed") }
    var status: Int32 = 0
    var results: Int32 = 0
    guard
      let raw = flowlua_start_operation(
        host, function.id, slot, generation, arguments?.id ?? 0, Int32(count), &status,
        &results)
    else { throw LuaError(.memory, "not enough memory") }
    return step(LuaCoroutine(raw: raw), status, results)
  }

  /// Starts a function in a coroutine of the pool.
  public func start(_ function: LuaReference, _ arguments: [LuaValue] = []) throws -> LuaStep {
    try enter()
    guard let raw = flowlua_coroutine_take(host) else {
      throw LuaError(.memory, "not enough memory")
    }
    let L = flowlua_coroutine_state(raw)
    guard lua_checkstack(L, Int32(arguments.count) + 4) != 0 else {
      flowlua_coroutine_release(host, raw, true)
      throw LuaError(.overflow, "stack overflow")
    }
    flowlua_push_reference(host, L, function.id)
    for argument in arguments {
      // Strings need memory, so each goes over the running coroutine, protected.
      let status = withRawValues([argument]) { flowlua_push_protected(host, $0) }
      guard status == LUA_OK else {
        let error = takeError(status)
        lua_settop(L, 0)
        flowlua_coroutine_release(host, raw, true)
        throw error
      }
      lua_xmove(running, L, 1)
    }
    return run(LuaCoroutine(raw: raw), Int32(arguments.count))
  }

  /// Goes on with a parked coroutine whose wait is ready. Of a closed state it counts as stopped.
  public func resume(_ coroutine: LuaCoroutine) -> LuaStep {
    checkOwner()
    guard isOpen else { return LuaStep(coroutine: coroutine, outcome: .stopped, resultCount: 0) }
    flowlua_make_current(host)
    return run(coroutine, 0)
  }

  private func run(_ coroutine: LuaCoroutine, _ count: Int32) -> LuaStep {
    var results: Int32 = 0
    let status = flowlua_coroutine_run(host, coroutine.raw, count, &results)
    return step(coroutine, status, results)
  }

  private func step(_ coroutine: LuaCoroutine, _ status: Int32, _ results: Int32) -> LuaStep {
    let outcome: LuaStep.Outcome
    switch Int(status) {
    case FLOWLUA_FINISHED: outcome = .finished
    case FLOWLUA_FAILED: outcome = .failed
    case FLOWLUA_PARKED: outcome = .parked
    case FLOWLUA_YIELDED: outcome = .yielded
    default: outcome = .stopped
    }
    return LuaStep(coroutine: coroutine, outcome: outcome, resultCount: Int(results))
  }

  /// The wait of the coroutine that has just parked.
  public func parkedWait() -> LuaWait? { takeParkedWait() }

  /// The first result of a finished coroutine.
  public func firstResult(_ step: LuaStep) throws -> LuaValue {
    guard step.resultCount > 0 else { return .nil }
    guard isOpen else { throw LuaError(.closed, "the Lua state is closed") }
    return try value(in: flowlua_coroutine_state(step.coroutine.raw), at: Int32(-step.resultCount))
  }

  /// What a failed coroutine raised, with where: the position is that of its innermost Lua function.
  public func failure(
    _ coroutine: LuaCoroutine
  ) -> (error: any Error, position: LuaString, traceback: LuaString) {
    guard isOpen else { return (LuaError(.closed, "the Lua state is closed"), "", "") }
    let L = flowlua_coroutine_state(coroutine.raw)
    let place = position(in: L, level: 0)
    var stack = LuaString("")
    let status = flowlua_traceback(host, L, nil, 0)
    if status == LUA_OK, case .string(let text)? = try? popValue(running) {
      stack = text
    } else {
      flowlua_discard_error(host, status)
    }
    let code = lua_status(L)
    return (takeError(code, from: L), place, stack)
  }

  /// Gives a coroutine back: to the pool after a normal end, else it is closed (pending `__close`s
  /// run) and dropped.
  public func release(_ coroutine: LuaCoroutine, finished: Bool) {
    flowlua_coroutine_release(host, coroutine.raw, finished)
  }

  // MARK: Stopping

  /// Has a watchdog stop the coroutine when it is still busy at `deadline` (nanoseconds of the
  /// monotonic clock); its cleanups then have `grace` nanoseconds.
  public func watch(_ coroutine: LuaCoroutine, deadline: Int64, grace: Int64) {
    checkOwner()
    _ = flowlua_watch(host, coroutine.raw, deadline, grace)
  }

  /// Ends the watch.
  public func unwatch(_ coroutine: LuaCoroutine) {
    flowlua_unwatch(coroutine.raw)
  }
}
