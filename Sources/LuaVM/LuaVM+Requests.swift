internal import CFlowLua

/// Requests of signal handlers to a state: an interruption, or the end of the process.
extension LuaVM {
  /// Makes a request from a signal handler on the owner thread; its argument is the state's
  /// `requestContext`.
  package typealias RequestFunction = @convention(c) (UnsafeMutableRawPointer?) -> Void

  /// Makes the running coroutine raise `interrupted!`, as the stand-alone interpreter does for
  /// Ctrl-C. If none runs, the waiting code has to take the request; see `takeInterruption`.
  package static var interrupter: RequestFunction { flowlua_interrupter() }

  /// Returns whether there is a request for an interruption that hasn't been taken, also in a
  /// signal handler.
  package typealias QuestionFunction = @convention(c) (UnsafeMutableRawPointer?) -> Bool

  /// See `QuestionFunction`.
  package static var interruptionQuestion: QuestionFunction { flowlua_interruption_question() }

  /// Requests the end of the process; see `onTermination` and `takeTermination`.
  package static var terminator: RequestFunction { flowlua_terminator() }

  /// The argument of the functions above; valid as long as the state object lives.
  package var requestContext: UnsafeMutableRawPointer { UnsafeMutableRawPointer(state) }

  /// Whether there is a request that hasn't been taken.
  package var hasRequest: Bool { flowlua_has_request(state) }

  /// Whether there is a request for an interruption.
  package var isAskedToInterrupt: Bool { flowlua_has_requested(state, UInt8(FLOWLUA_INTERRUPT)) }

  /// Whether there is a request for the end of the process.
  package var isAskedToEnd: Bool { flowlua_has_requested(state, UInt8(FLOWLUA_TERMINATE)) }

  /// Takes the request for an interruption; false if there is none.
  package func takeInterruption() -> Bool {
    flowlua_take_request(state, UInt8(FLOWLUA_INTERRUPT))
  }

  /// Takes the request for the end of the process; false if there is none.
  package func takeTermination() -> Bool {
    flowlua_take_request(state, UInt8(FLOWLUA_TERMINATE))
  }

  /// Requests the end of the process again as soon as no coroutine of the scheduler executes: the
  /// code below them may never wait.
  package func repeatTerminationAfterActivity() { flowlua_owe_termination(state) }

  /// Requests the end of the process, as a signal does.
  package func requestTermination() { flowlua_terminator()(requestContext) }

  /// Raises a value in the code that runs now, as an interruption does.
  package func interrupt(raising value: LuaReference) {
    checkOwner()
    checkHome(value)
    // Kept until it has been raised.
    interruptionValue = value
    flowlua_interrupt_with(state, value.id)
  }

  /// Takes the attention request of another thread; false if there is none.
  package func takeAttention() -> Bool { flowlua_take_request(state, UInt8(FLOWLUA_ATTEND)) }

  /// The means by which other threads get the attention of this state while it is busy.
  package var attention: LuaAttention { LuaAttention(state: state) }

  /// Delivers other threads' attention requests to this thread, the owner.
  package func acceptAttention() {
    checkOwner()
    flowlua_take_signal(state)
  }

  /// Whether a coroutine of the scheduler is executing, below the running code.
  package var runsScheduledCoroutine: Bool { flowlua_runs_scheduled(state) }
}

/// Makes a state call `onAttention`, even while it is busy; see `LuaVM.attention`.
// Unchecked: C's part of it is made for any thread, while the state object lives.
package struct LuaAttention: @unchecked Sendable {
  fileprivate let state: OpaquePointer

  /// Requests attention, from any thread. The state object must live. A request just before Lua
  /// code begins isn't noticed before that code waits or ends, so a caller that needs attention has
  /// to repeat it.
  package func call() { flowlua_call_attention(state) }
}
