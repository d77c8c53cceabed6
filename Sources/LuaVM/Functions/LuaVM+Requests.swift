internal import CFlowLua
internal import FlowSystem

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

  /// Whether there is a request for either, which signals make.
  package var hasSignal: Bool { isAskedToInterrupt || isAskedToEnd }

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

  /// Whether the wait that a scheduler begins to make ready is one of a text that the host needs; asked once for each.
  package func takeTextWait() -> Bool { flowlua_take_text_wait(state) }

  /// Whether no such text may wait, because a signal has ended the wait of one, until one has ended by itself, or what the
  /// signal was for is over.
  package var refusesTextWaits: Bool { flowlua_refuses_text_waits(state) }
  package func refuseTextWaits() { flowlua_refuse_text_waits(state, true) }
  package func allowTextWaits() { flowlua_refuse_text_waits(state, false) }

  /// Requests an interruption, as Ctrl-C does.
  package func requestInterruption() { flowlua_interrupter()(requestContext) }

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

extension LuaVM {
  /// The monotonic clock, in nanoseconds, on which the deadlines of `watch` are given.
  package static var monotonicTime: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

/// A function that is called once at a time, on a thread that runs no script: busy code can't delay it.
///
/// The thread also stops code at its deadline, so the function has to be short. It is cancelled when the
/// alarm is released.
package final class LuaAlarm: Sendable {
  private final class Action: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  // C has the address of the action until the alarm is cancelled.
  private let action: Action
  // C's functions for it are made for any thread.
  private nonisolated(unsafe) let raw: OpaquePointer

  /// Sets an alarm.
  ///
  /// - Parameters:
  ///   - time: When the function is called, on the clock of `LuaVM.monotonicTime`. If it has passed, at once.
  ///   - body: The function.
  ///
  /// It is nil if the system gives no thread for it, or no memory.
  package init?(at time: Int64, _ body: @escaping @Sendable () -> Void) {
    let action = Action(body)
    let call: @convention(c) (UnsafeMutableRawPointer?) -> Void = { context in
      guard let context else { return }
      // It may release the alarm.
      withExtendedLifetime(Unmanaged<Action>.fromOpaque(context).takeUnretainedValue()) {
        $0.body()
      }
    }
    guard
      let raw = flowlua_set_alarm(time, call, Unmanaged.passUnretained(action).toOpaque())
    else { return nil }
    self.action = action
    self.raw = raw
  }

  deinit { flowlua_free_alarm(raw) }

  /// Cancels the alarm. When this returns, the function isn't called and doesn't run, unless it has called this
  /// itself. From any thread; without effect on one that has ended.
  package func cancel() { flowlua_cancel_alarm(raw) }
}

/// The thread that stops code at its deadline and rings alarms.
package enum LuaWatchdog {
  /// Ends the thread until `resume`: meanwhile no deadline takes effect, and no other thread may set one.
  package static func pause() { flowlua_pause_watchdog() }

  /// Starts it again, if it was there; returns false if alarms are lost, as the system gives no thread any more.
  package static func resume() -> Bool { flowlua_continue_watchdog() }
}
