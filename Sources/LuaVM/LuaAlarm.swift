internal import CFlowLua

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
