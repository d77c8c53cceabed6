internal import CFlowLua

/// A limit of the memory that a part of a state's code allocates, such as a request of a host. Thread of the state only.
///
/// While it is in use, each block of Lua that is allocated, or grows, counts in it until it is freed, whenever that is.
/// At the limit Lua collects its garbage; if that doesn't help, the code gets the error of lack of memory.
package final class LuaAccount {
  fileprivate let raw: OpaquePointer

  /// Makes an account.
  ///
  /// - Parameter limit: The bytes that its blocks may have together.
  /// - Throws: A `LuaError` without memory for it.
  package init(limit: Int) throws {
    guard let made = flowlua_make_account(max(0, limit)) else {
      throw LuaError(.memory, LuaVM.memoryError)
    }
    raw = made
  }

  deinit { flowlua_release_account(raw) }

  /// The bytes of its blocks.
  package var used: Int { flowlua_account_used(raw) }

  /// Whether a block was refused because of the limit.
  package var hasRefused: Bool { flowlua_account_has_refused(raw) }
}

extension LuaVM {
  /// Lets what is allocated from now on count in an account; nil for none. The caller keeps it until the next call.
  package func use(_ account: LuaAccount?) {
    if isOpen { flowlua_use_account(state, account?.raw) }
  }

  /// Called by `onHostAttention`: the running coroutine of the scheduler waits for `wait`, which is ready, before its next
  /// instruction, so that others run. It doesn't where it can't yield, in a `__close`, and in code that something below
  /// on the stack waits for.
  package func pause(at wait: LuaWait) {
    hold(wait)
    flowlua_pause(state, Unmanaged.passUnretained(wait).toOpaque())
  }
}
