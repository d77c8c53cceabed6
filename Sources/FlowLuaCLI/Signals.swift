internal import CFlowSystem
internal import FlowEngine
internal import FlowScripting
internal import Glibc
internal import LuaVM

/// What Ctrl-C, SIGTERM and SIGHUP do: the first asks the script, the second ends the process.
///
/// SIGTERM and SIGHUP are caught only once there can be runs to cancel; until then they end the process
/// at once.
/// Signals that this program doesn't name do what they do by default.
struct Signals {
  private let vm: LuaVM

  /// The state must live until `stopAsking`, or as long as the process.
  init(_ vm: LuaVM) {
    self.vm = vm
  }

  /// Has the next Ctrl-C interrupt what runs.
  ///
  /// - Parameter repeatedly: Whether each one does, not only the next, unless nothing has come of the one
  ///   before.
  func catchInterruption(repeatedly: Bool = false) {
    flowsystem_catch_interruption(
      LuaVM.interrupter, vm.requestContext, repeatedly ? LuaVM.interruptionQuestion : nil)
  }

  /// Has SIGTERM and SIGHUP cancel the runs of a host, and all signals wake its loop. The process ends
  /// after `report`.
  func catchTermination(_ host: ScriptHost, report: @escaping () -> Void) {
    host.onTerminationRequest = { flowsystem_begin_termination() }
    host.onCancellation = { flowsystem_note_cleanups($0) }
    host.onTermination = {
      report()
      Self.end(by: flowsystem_termination_signal())
    }
    flowsystem_catch_termination(
      LuaVM.terminator, vm.requestContext, host.loop.mailbox.descriptor)
    host.onLoopChange = { flowsystem_wake_by_signals($0.mailbox.descriptor) }
  }

  /// Has both end the process from now on.
  func stopAsking() { flowsystem_end_requests() }

  /// Ends the process as the signal would have done, but with all that was printed.
  static func end(by signal: Int32) -> Never {
    flowsystem_begin_termination()
    fflush(nil)
    flowsystem_end_by_signal(signal)
  }
}
