internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Scripts whose runs are checked or rehearsed instead of executed: they end where they need the outcome of a
/// run.
extension ScriptHost {
  /// Reports that a script uses the outcome of a task; returns if there is one.
  ///
  /// - Parameters:
  ///   - task: The task. Every task has an outcome, except a run that was only checked.
  ///   - call: The caller.
  /// - Throws: An error of use, unless the embedding program ends the script.
  func needOutcome(of task: AnyFlowTask, _ call: LuaCall) throws {
    guard let onNeedOfOutcome, let run = task as? Run, !run.hasOutcome else { return }
    onNeedOfOutcome(run, Self.place(call.position))
    throw usage(call, Self.problem(of: run))
  }

  /// The same for a task that settles like another one, with the place where it was made.
  func outcomeProblem(of task: AnyFlowTask, madeAt origin: UInt64) -> FlowError? {
    guard let onNeedOfOutcome, let run = task as? Run, !run.hasOutcome else { return nil }
    onNeedOfOutcome(run, origin == 0 ? "" : vm.text(ofOrigin: origin))
    return .usage(ByteString(Self.problem(of: run)))
  }

  /// Refuses functions with effects outside flows while flows are only checked.
  func refuseWhileChecking(_ call: LuaCall, _ function: String) throws {
    if isChecking { throw usage(call, "bad use of '\(function)' (not while checking)") }
  }

  private static func problem(of run: Run) -> String {
    "the outcome of '\(run.nameBytes)' isn't known while checking"
  }

  /// `file:line` of `file:line: `.
  private static func place(_ position: ByteString) -> ByteString {
    ByteString(Array(position.bytes.dropLast(2)))
  }
}
