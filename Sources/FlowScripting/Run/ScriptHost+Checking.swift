package import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Scripts whose runs are checked or rehearsed instead of executed: they end where they need the outcome of a
/// run, and before a function has an effect outside of ops.
extension ScriptHost {
  /// How runs are checked: `flow.checking` is true, and programs aren't started.
  package struct Checking {
    /// Whether code outside of flows may have effects although runs may lack an outcome, because some ops are executed.
    package var allowsEffects: Bool
    /// Called when a script uses the outcome of a run that has none, see `Run.hasOutcome`, or calls a function that has
    /// effects; with `file:line` of the script, and a predicate that says what it needs or calls. It may end the
    /// process; if it returns, an error of use is raised in the script.
    package var onEnd: (_ place: ByteString, _ reason: ByteString) -> Void

    package init(
      allowsEffects: Bool = false,
      onEnd: @escaping (_ place: ByteString, _ reason: ByteString) -> Void = { _, _ in }
    ) {
      self.allowsEffects = allowsEffects
      self.onEnd = onEnd
    }
  }

  /// Whether there may be runs without an outcome.
  var mayLackOutcomes: Bool { checking != nil }

  /// Whether flows are only checked, so that nothing has an effect.
  var isChecking: Bool { checking?.allowsEffects == false }

  /// Reports that a script uses the outcome of a task; returns if there is one.
  ///
  /// - Parameters:
  ///   - task: The task. Every task has an outcome, except a run that was only checked.
  ///   - call: The caller.
  /// - Throws: An error of use, unless the embedding program ends the script.
  func needOutcome(of task: AnyFlowTask, _ call: LuaCall) throws {
    if let problem = problem(ofOutcomeOf: task, neededAt: { Self.place(call.position) }) {
      throw usage(call, problem)
    }
  }

  /// The problem of a task that settles like another one, with the place where it was made.
  func outcomeProblem(of task: AnyFlowTask, madeAt origin: UInt64) -> FlowError? {
    problem(ofOutcomeOf: task, neededAt: { origin == 0 ? "" : vm.text(ofOrigin: origin) })
      .map { .usage($0) }
  }

  private func problem(
    ofOutcomeOf task: AnyFlowTask, neededAt place: () -> ByteString
  ) -> ByteString? {
    guard mayLackOutcomes, let run = task as? Run, !run.hasOutcome else { return nil }
    endCheck(at: place(), because: "needs the outcome of '\(run.name)'")
    return "the outcome of '\(run.name)' isn't known while checking"
  }

  /// Ends the check before a function that has effects outside of ops.
  func refuseWhileChecking(_ call: LuaCall, _ function: String) throws {
    guard isChecking else { return }
    reportEffect(of: ByteString(function), at: call.position)
    throw usage(call, "bad use of '\(function)' (not while checking)")
  }

  private func reportEffect(of function: ByteString, at position: ByteString) {
    // Within a rehearsed run, for example in a condition, the error is a part of what is found.
    if loop.isExecuting { return }
    endCheck(at: Self.place(position), because: "calls '\(function)' (not while checking)")
  }

  private func endCheck(at place: ByteString, because reason: ByteString) {
    // Code that a failed script closes would end it as a success.
    if ending.isCancellingEverything { return }
    checking?.onEnd(loop.secrets.redacted(place), loop.secrets.redacted(reason))
  }

  /// `file:line` of `file:line: `.
  private static func place(_ position: ByteString) -> ByteString {
    ByteString(position.bytes.dropLast(2))
  }

  /// Replaces the functions of Lua's own library that change something outside of the script, so a script that is only
  /// checked deploys, writes and removes nothing: the check ends there; in workers, and in sessions, they raise an error.
  /// Files can be read, and `os.execute()` can still test whether there is a shell.
  package func installCheckedLibrary() throws {
    let report = try vm.makeFunction { [unowned self] call in
      reportEffect(of: call.bytes(1) ?? "", at: call.bytes(2) ?? "")
      return call.answer(.nil)
    }
    let install = try vm.load(Self.checkedLibrary, chunkName: "=[check]")
    _ = try vm.call(install, [.reference(report)])
  }

  private static let checkedLibrary: ByteString = """
    local report = ...
    local error, find, pcall, type = error, string.find, pcall, type
    local function always() return true end
    local function refuse(library, name, changes)
      local original = library[name]
      library[name] = function(...)
        if changes(...) then
          local _, position = pcall(error, "", 3)
          report(name, position)
          error("bad use of '" .. name .. "' (not while checking)", 2)
        end
        return original(...)
      end
    end
    refuse(io, "open", function(_, mode) return type(mode) == "string" and find(mode, "[wa+]") end)
    refuse(io, "output", function(file) return type(file) == "string" or type(file) == "number" end)
    refuse(io, "popen", always)
    refuse(os, "execute", function(command) return command ~= nil end)
    refuse(os, "remove", always)
    refuse(os, "rename", always)
    refuse(os, "tmpname", always)
    refuse(io, "tmpfile", always)
    """
}
