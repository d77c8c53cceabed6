internal import CFlowLua
internal import CLua

/// A coroutine that the scheduler runs. It stays valid until `LuaVM.release`.
package struct LuaCoroutine {
  let raw: OpaquePointer
  /// Detects a use after the release.
  let generation: UInt32

  init(raw: OpaquePointer) {
    self.raw = raw
    generation = flowlua_coroutine_generation(raw)
  }
}

/// The outcome of starting or continuing a function of a script as a coroutine of the pool. A
/// coroutine that comes with it has to be released by the caller.
package enum LuaOutcome {
  /// It returned; its coroutine is back in the pool. The value is its first result, or nil if
  /// there is none or it isn't wanted; it was taken out of its mark, unless that is 0 (see
  /// `LuaCallback.Result`).
  case returned(LuaValue, mark: Int32)
  /// The same, with the table that was its argument at this index, from 0.
  case returnedArgument(Int, mark: Int32)
  /// It raised an error; see `LuaVM.failure`.
  case failed(LuaCoroutine)
  /// It waits; see `LuaVM.parkedWait`.
  case parked(LuaCoroutine)
  /// The script yielded although nobody had resumed it.
  case yielded(LuaCoroutine)
  /// It was busy and has been stopped; all its coroutines are closed.
  case stopped(LuaCoroutine)
  /// It couldn't be started or continued, or there was no memory for its result.
  case refused(any Error)
}

extension LuaVM {
  /// Starts a function of a script; see `flowlua_start`.
  @inline(__always)
  func start(_ start: inout flowlua_start) -> LuaOutcome {
    let status = flowlua_start_function(state, &start)
    guard status == FLOWLUA_RETURNED else { return outcome(status, start) }
    switch Int(start.result.kind) {
    case FLOWLUA_NIL: return .returned(.nil, mark: start.mark)
    case FLOWLUA_ARGUMENT: return .returnedArgument(Int(start.result.reference), mark: start.mark)
    case FLOWLUA_REFERENCE: return table(start.result.reference, mark: start.mark)
    default: return .returned(start.result.scalar, mark: start.mark)
    }
  }

  private func table(_ id: Int32, mark: Int32) -> LuaOutcome {
    if id == 0 { return .refused(LuaError(.memory, "not enough memory")) }
    return .returned(.reference(LuaReference(vm: self, id: id, kind: .table)), mark: mark)
  }

  @inline(never)
  private func outcome(_ status: Int32, _ start: flowlua_start) -> LuaOutcome {
    guard status >= 0, let raw = start.coroutine else { return .refused(takeError(status)) }
    return outcome(LuaCoroutine(raw: raw), status, start.result_count, mark: start.mark)
  }

  /// The outcome of a coroutine that has run.
  func outcome(
    _ coroutine: LuaCoroutine, _ status: Int32, _ results: Int32, mark: Int32 = 0
  ) -> LuaOutcome {
    switch Int(status) {
    case FLOWLUA_FINISHED:
      defer { release(coroutine, finished: true) }
      if results == 0 { return .returned(.nil, mark: mark) }
      do {
        let lua = flowlua_coroutine_state(coroutine.raw)
        return .returned(try value(in: lua, at: -results), mark: mark)
      } catch {
        return .refused(error)
      }
    case FLOWLUA_PARKED:
      if let wait = begunWait {
        // C returns this reference once the coroutine has continued or is released: C has its
        // address.
        flowlua_coroutine_keep_wait(coroutine.raw, Unmanaged.passRetained(wait).toOpaque())
      }
      return .parked(coroutine)
    case FLOWLUA_FAILED: return .failed(coroutine)
    case FLOWLUA_YIELDED: return .yielded(coroutine)
    default: return .stopped(coroutine)
    }
  }
}
