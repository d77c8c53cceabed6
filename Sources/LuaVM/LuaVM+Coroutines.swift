internal import CFlowLua
internal import CLua
internal import Glibc

/// A coroutine that the scheduler runs. It stays valid until `LuaVM.release`.
public struct LuaCoroutine {
  let raw: OpaquePointer
  /// Tells a use after the release.
  let generation: UInt32

  init(raw: OpaquePointer) {
    self.raw = raw
    generation = flowlua_coroutine_generation(raw)
  }
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
  /// Starts a function in a coroutine of the pool, with a `deadline` watched from its first
  /// instruction on; see `watch`.
  public func start(
    _ function: LuaReference, _ arguments: [LuaValue] = [], deadline: Int64 = 0, grace: Int64 = 0
  ) throws -> LuaStep {
    try enter()
    checkHome(function)
    return try start(function.id, arguments, deadline, grace)
  }

  /// The same with a function that is used up.
  public func start(
    _ function: consuming LuaUniqueReference, _ arguments: [LuaValue], deadline: Int64 = 0,
    grace: Int64 = 0
  ) throws -> LuaStep {
    try enter()
    let id = function.take(for: self)
    // The coroutine has it on its stack from the start on; while it runs, one reference more is held.
    defer { release(reference: id) }
    return try start(id, arguments, deadline, grace)
  }

  private func start(
    _ function: Int32, _ arguments: [LuaValue], _ deadline: Int64, _ grace: Int64
  ) throws -> LuaStep {
    guard let raw = flowlua_coroutine_take(host) else {
      throw LuaError(.memory, "not enough memory")
    }
    let lua = flowlua_coroutine_state(raw)
    let room = flowlua_make_room(host, lua, Int32(clamping: arguments.count) + 6)
    guard room == LUA_OK else {
      flowlua_coroutine_release(host, raw, flowlua_coroutine_generation(raw), true)
      throw takeError(room)
    }
    flowlua_coroutine_push_body(raw)
    flowlua_push_reference(host, lua, function)
    for argument in arguments {
      // Strings need memory, so each goes over the running coroutine, protected.
      let status = withRawValues(of: self, [argument]) { flowlua_push_protected(host, $0) }
      guard status == LUA_OK else {
        let error = takeError(status)
        // Class 'e' only for variables to be closed, which it has none of.
        lua_settop(lua, 0)
        flowlua_coroutine_release(host, raw, flowlua_coroutine_generation(raw), true)
        throw error
      }
      lua_xmove(running, lua, 1)
    }
    if deadline != 0, !flowlua_watch(host, raw, deadline, grace) {
      lua_settop(lua, 0)
      flowlua_coroutine_release(host, raw, flowlua_coroutine_generation(raw), true)
      throw LuaError(.memory, "not enough memory")
    }
    return run(LuaCoroutine(raw: raw), Int32(arguments.count) + 2)
  }

  /// Goes on with a parked coroutine whose wait is ready.
  /// After the state was closed the coroutine counts as failed.
  public func resume(_ coroutine: LuaCoroutine) -> LuaStep {
    guard isUsable(coroutine) else {
      return LuaStep(coroutine: coroutine, outcome: .failed, resultCount: 0)
    }
    if !flowlua_coroutine_is_parked(coroutine.raw) {
      misuse("a coroutine that wasn't parked was resumed")
    }
    return run(coroutine, 0)
  }

  /// Whether a coroutine still stands for what it was made for; false after the state was closed.
  func isUsable(_ coroutine: LuaCoroutine) -> Bool {
    guard (try? enter()) != nil else { return false }
    if flowlua_coroutine_generation(coroutine.raw) != coroutine.generation {
      misuse("a coroutine was used after its release")
    }
    return true
  }

  private func run(_ coroutine: LuaCoroutine, _ count: Int32) -> LuaStep {
    var results: Int32 = 0
    let status = flowlua_coroutine_run(host, coroutine.raw, count, &results)
    return step(coroutine, status, results)
  }

  func step(_ coroutine: LuaCoroutine, _ status: Int32, _ results: Int32) -> LuaStep {
    let outcome: LuaStep.Outcome
    switch Int(status) {
    case FLOWLUA_FINISHED: outcome = .finished
    case FLOWLUA_FAILED: outcome = .failed
    case FLOWLUA_PARKED: outcome = .parked
    case FLOWLUA_YIELDED: outcome = .yielded
    default: outcome = .stopped
    }
    if outcome == .parked, let wait = begunWait {
      // Given back by C once the coroutine has gone on or is released: C knows its address.
      flowlua_coroutine_keep_wait(coroutine.raw, Unmanaged.passRetained(wait).toOpaque())
    }
    return LuaStep(coroutine: coroutine, outcome: outcome, resultCount: Int(results))
  }

  /// The wait of the coroutine that has just parked.
  public func parkedWait() -> LuaWait? { takeParkedWait() }

  /// The first result of a finished coroutine.
  public func firstResult(_ step: LuaStep) throws -> LuaValue {
    try enter()
    guard step.resultCount > 0, isUsable(step.coroutine) else { return .nil }
    return try value(in: flowlua_coroutine_state(step.coroutine.raw), at: Int32(-step.resultCount))
  }

  /// What a failed coroutine raised, with where: the position is that of its innermost Lua function at
  /// that time.
  public func failure(
    _ coroutine: LuaCoroutine
  ) -> (error: any Error, position: LuaString, traceback: LuaString) {
    guard isUsable(coroutine) else {
      return (LuaError(.closed, "the Lua state is closed"), "", "")
    }
    let lua = flowlua_coroutine_state(coroutine.raw)
    // An error outside the function itself, such as lack of memory for its frame, isn't noted.
    let noted = flowlua_coroutine_error_status(coroutine.raw)
    let code = noted != LUA_OK ? noted : lua_status(lua)
    return (
      takeError(code, from: lua), text(flowlua_coroutine_position(coroutine.raw)),
      text(flowlua_coroutine_traceback(coroutine.raw))
    )
  }

  /// Where a coroutine was that was stopped while it was busy, as text; empty when that isn't known.
  public func stopTraceback(_ coroutine: LuaCoroutine) -> LuaString {
    isUsable(coroutine) ? text(flowlua_coroutine_traceback(coroutine.raw)) : ""
  }

  /// A text of C as it is; nothing for NULL.
  private func text(_ bytes: UnsafePointer<CChar>?) -> LuaString {
    guard let bytes else { return "" }
    return LuaString(Array(UnsafeRawBufferPointer(start: bytes, count: strlen(bytes))))
  }

  /// Gives a coroutine back: to the pool after a normal end, else it is closed (pending `__close`s
  /// run) and dropped.
  public func release(_ coroutine: LuaCoroutine, finished: Bool) {
    guard (try? enter()) != nil else { return }
    switch Int(
      flowlua_coroutine_release(host, coroutine.raw, coroutine.generation, finished))
    {
    case FLOWLUA_RELEASED: break
    case FLOWLUA_STALE: misuse("a coroutine was used after its release")
    default: misuse("a coroutine was released while it ran")
    }
  }

  // MARK: Stopping

  /// Has a watchdog stop the coroutine when it is still busy at `deadline` (nanoseconds of the
  /// monotonic clock; negative counts from now); its cleanups then have `grace` nanoseconds.
  public func watch(_ coroutine: LuaCoroutine, deadline: Int64, grace: Int64) {
    guard isUsable(coroutine) else { return }
    _ = flowlua_watch(host, coroutine.raw, deadline, grace)
  }

  /// Watches an operation that was started with this handle and hasn't returned from its start, which
  /// whoever calls this knows; see `watch`. It ends with the start.
  public func watchOperation(
    slot: UInt32, generation: UInt64, deadline: Int64, grace: Int64
  ) {
    guard (try? enter()) != nil else { return }
    _ = flowlua_watch_operation(host, slot, generation, deadline, grace)
  }

  /// Watches the innermost coroutine that executes now, below whatever runs now; see `watch`. The
  /// watch ends with its present stretch.
  public func watchActivity(deadline: Int64, grace: Int64) {
    guard (try? enter()) != nil else { return }
    _ = flowlua_watch_activity(host, deadline, grace)
  }

  /// Whether the coroutine is the innermost of the scheduler's that execute.
  public func isInnermost(_ coroutine: LuaCoroutine) -> Bool {
    isUsable(coroutine) && flowlua_activity(host) == coroutine.raw
  }

  /// Whether the innermost coroutine that executes has been asked to stop by the watchdog. Its wait
  /// in place has to end then: it stops once its code continues.
  public var isAskedToStop: Bool { flowlua_is_activity_stopped(host) }

  /// Whether code of a `__close` may continue although the innermost coroutine that executes was asked
  /// to stop: until the grace of its watch is over, which begins now unless it has begun. Never where it
  /// isn't watched.
  public var sparesClose: Bool { flowlua_spares_close(host) }

  /// Runs what belongs to the innermost coroutine that executes, until `body` returns: when that is asked
  /// to stop, so is what runs in there.
  public func enclose<Result>(_ body: () -> Result) -> Result {
    let enclosing = flowlua_begin_enclosure(host)
    defer { if let enclosing { flowlua_end_enclosure(host, enclosing) } }
    return body()
  }

  /// Whether what encloses the code that runs has been asked to stop, so that all in there has to end,
  /// within its grace; see `enclose`.
  public var isEnclosureStopped: Bool { flowlua_is_enclosure_stopped(host) }

  /// Ends the watch.
  public func unwatch(_ coroutine: LuaCoroutine) {
    guard isUsable(coroutine) else { return }
    flowlua_unwatch(coroutine.raw)
  }
}
