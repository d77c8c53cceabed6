internal import FlowEngine
@_spi(Scripting) package import LuaVM

extension ScriptHost {
  /// The effects that functions of the API have outside of the script.
  package enum Effect: String { case files, requests, programs }

  /// Whether the host allows an effect.
  func allows(_ effect: Effect) -> Bool {
    let permissions = vm.configuration.permissions
    return switch effect {
    case .files: permissions.contains(.files)
    case .requests: permissions.contains(.requests)
    case .programs: permissions.contains(.programs)
    }
  }

  /// Refuses a function whose effect the host doesn't allow.
  package func checkAllowed(_ effect: Effect, _ call: LuaCall, _ function: String) throws {
    if allows(effect) { return }
    throw usage(
      call, "bad use of '\(function)' (the host of the script allows no \(effect.rawValue))")
  }

  /// Refuses an effect that the host doesn't allow, and any while flows are only checked.
  func check(_ effect: Effect, _ call: LuaCall, _ function: String) throws {
    try checkAllowed(effect, call, function)
    try refuseWhileChecking(call, function)
  }

  /// The name of the module itself among its parts: in messages, `flow` is the name of its flows.
  static let modulePart: String = "module"

  /// Whether the host allows what a function of the module, or of a part of it, does.
  func allows(_ name: String, of part: String) -> Bool {
    switch (part, name) {
    case ("fs", _), (Self.modulePart, "fs"), (Self.modulePart, "read"),
      ("json", "read"),
      ("json", "write"):
      allows(.files)
    case ("http", _), (Self.modulePart, "http"): allows(.requests)
    case (Self.modulePart, "exec"): allows(.programs)
    default: true
    }
  }

  /// The ops of flowlua that do something outside of the script.
  static let restrictedOps: [(name: ByteString, effect: Effect)] = [
    ("ReadFileOp", .files), ("WriteFileOp", .files), ("HTTPOp", .requests), ("ExecOp", .programs),
  ]

  /// The reason why nothing can run in workers; nil if it can.
  var problemOfWorkers: ByteString? {
    if !vm.configuration.permissions.contains(.workers) {
      return "the host of the script allows no workers"
    }
    return workerLimit > 0
      ? nil : "the host of the script has workerLimit 0, so that there are no workers"
  }
}
