internal import FlowEngine
internal import FlowScripting
internal import FlowSystem
internal import LuaVM

/// The effect of Ctrl-C, SIGTERM and SIGHUP: the first one is a request to the script, the second
/// one ends the process.
///
/// SIGTERM and SIGHUP are caught only once there can be runs to cancel; before, they end the
/// process at once.
/// Signals that this program doesn't handle have their default effect.
struct Signals {
  private let vm: LuaVM

  /// The state must live until `stopAsking`, or as long as the process.
  init(_ vm: LuaVM) {
    self.vm = vm
  }

  /// Makes the next Ctrl-C interrupt the running code.
  ///
  /// - Parameter repeatedly: Whether each Ctrl-C does so, not only the next one, unless the
  ///   previous one had no effect.
  func catchInterruption(repeatedly: Bool = false) {
    flowsystem_catch_interruption(
      LuaVM.interrupter, vm.requestContext, repeatedly ? LuaVM.interruptionQuestion : nil)
  }

  /// Makes SIGTERM and SIGHUP cancel the runs of a host, and all signals wake its loop. The process
  /// ends after `report`.
  func catchTermination(_ host: ScriptHost, report: @escaping () -> Void) {
    host.events.onTerminationRequest = { flowsystem_begin_termination() }
    host.events.onCancellation = { flowsystem_note_cleanups($0) }
    host.events.onTermination = {
      report()
      Self.end(by: flowsystem_termination_signal())
    }
    flowsystem_catch_termination(
      LuaVM.terminator, vm.requestContext, false, host.loop.mailbox.descriptor)
    host.events.onLoopChange = { flowsystem_wake_by_signals($0.mailbox.descriptor) }
  }

  /// Makes both end the process from now on.
  func stopAsking() { flowsystem_end_requests() }

  /// The signal by which a process ends instead of with the status 1; 0 for none.
  // Unsafe: used on the main thread only, also while the process exits.
  nonisolated(unsafe) static var failing: Int32 = 0

  /// Ends a process that exits with a status, if a signal is to end it; returns the status otherwise.
  static func end(withStatus status: Int32) -> Int32 {
    if failing != 0, status == EXIT_FAILURE { flowsystem_end_by_signal(failing) }
    return status
  }

  /// Ends the process as the signal would have done, but with all buffered output.
  static func end(by signal: Int32) -> Never {
    flowsystem_begin_termination()
    fflush(nil)
    flowsystem_end_by_signal(signal)
  }
}
