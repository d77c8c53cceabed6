internal import CFlowLua

/// Memory that several states share, each on a thread of its own: what they hold together, with what is held
/// outside of them for their scripts, stays within one limit.
///
/// A state with a limit of its own takes part. It takes room in steps of 64 KiB and returns what it doesn't
/// need, so that the sum of what the states have taken is at most a few steps more than what they hold.
// Unchecked: the C side is atomic.
package final class LuaMemoryBudget: @unchecked Sendable {
  let budget: OpaquePointer

  /// Makes a budget; a limit of nil is none. The result is nil when there is no memory for it.
  package init?(limit: Int?) {
    guard let made = flowlua_make_budget(max(0, limit ?? 0)) else { return nil }
    budget = made
  }

  deinit { flowlua_release_budget(budget) }

  /// The most bytes that the states may hold together; nil for no limit.
  package var limit: Int? {
    get {
      let limit = flowlua_budget_limit(budget)
      return limit == 0 ? nil : limit
    }
    set { flowlua_set_budget_limit(budget, max(0, newValue ?? 0)) }
  }

  /// The bytes that the states have taken.
  package var taken: Int { flowlua_budget_taken(budget) }
}

extension LuaVM {
  /// Shares a budget from now on, as long as the state has a limit of its own.
  package func share(_ budget: LuaMemoryBudget) {
    checkOwner()
    if isOpen { flowlua_share_budget(state, budget.budget) }
  }

  /// Returns room to the budget that the state doesn't use; first collects garbage if others need the room, or
  /// may: if one of them got less than it needed, or this state has taken much more than after the last time.
  /// Called where the state has nothing to do at the moment; `isBusy` says that it has unfinished work, for which
  /// it does this less often.
  ///
  /// - Returns: Whether garbage was collected, whose finalizers may have made something ready.
  @discardableResult
  package func settleBudget(isBusy: Bool = false) -> Bool {
    guard isOpen else { return false }
    var collects = flowlua_needs_settling(state, !isBusy)
    if collects {
      let began = Self.monotonicTime
      // Others may need room again and again: that must not take all the time of this state's own work.
      collects = !isBusy || began >= settlesFrom
      if collects {
        try? collectGarbage()
        let end = Self.monotonicTime
        settlesFrom = end.addingReportingOverflow((end - began) * 20).partialValue
      }
    }
    flowlua_settle(state, !isBusy, collects)
    return collects
  }
}
