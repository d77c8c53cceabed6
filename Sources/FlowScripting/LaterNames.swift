internal import LuaVM

/// Names of the API that this version doesn't have yet. Using one says so; a nil would go unnoticed
/// where a script only tests it.
enum LaterNames {
  /// Of the module.
  static let module: Set<String> = []

  /// Of ops.
  static let op: Set<String> = []

  /// Of flows.
  static let flow: Set<String> = []

  /// Of `ctx`.
  static let context: Set<String> = []
}

extension ScriptHost {
  /// Answers for a field that nothing has: nil, as everywhere in Lua, unless it is to come.
  func missingField(_ call: LuaCall, later: Set<String>) throws -> LuaAnswer {
    guard let name = call.string(2)?.description, later.contains(name) else {
      return call.answer(.nil)
    }
    throw usage(call, "'\(name)' isn't supported in this version")
  }

  /// What `flow.name` gives for a name that the module doesn't have.
  static func moduleProperty(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    if host.isWorker { return try host.mainName(call) }
    return try host.missingField(call, later: LaterNames.module)
  }
}
