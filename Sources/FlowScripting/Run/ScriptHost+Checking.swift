internal import FlowEngine
internal import LuaVM

/// Scripts whose runs are checked instead of executed: they end where they need the outcome of one.
extension ScriptHost {
  /// Says that a script asks what became of a task; returns if that is known.
  ///
  /// - Parameters:
  ///   - task: The task. Any but a run that was checked only has an outcome.
  ///   - call: What asks.
  /// - Throws: An error of use, unless the program that runs the script ends it.
  func needOutcome(of task: AnyFlowTask, _ call: LuaCall) throws {
    guard let onNeedOfOutcome, let run = task as? Run, run.isSkipped else { return }
    onNeedOfOutcome(run, Self.place(call.position))
    throw usage(call, Self.problem(of: run))
  }

  /// The same for a task that is to end as the other one does, and the place where it was made.
  func outcomeProblem(of task: AnyFlowTask, madeAt origin: UInt64) -> FlowError? {
    guard let onNeedOfOutcome, let run = task as? Run, run.isSkipped else { return nil }
    onNeedOfOutcome(run, origin == 0 ? "" : ByteString(vm.text(ofOrigin: origin)))
    return .usage(ByteString(Self.problem(of: run)))
  }

  /// Refuses functions with effects outside flows while flows are only checked.
  func refuseWhileChecking(_ call: LuaCall, _ function: String) throws {
    if isChecking { throw usage(call, "bad use of '\(function)' (not while checking)") }
  }

  private static func problem(of run: Run) -> String {
    "the outcome of '\(run.name)' isn't known while checking"
  }

  /// `file:line` of `file:line: `.
  private static func place(_ position: LuaString) -> ByteString {
    ByteString(Array(position.bytes.dropLast(2)))
  }
}
