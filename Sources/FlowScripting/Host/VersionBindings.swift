internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.requires`, beside the field `flow.version`.
extension ScriptHost {
  func installVersion() {
    define("requires") { host, call in
      let arguments = Arguments(host, call, "requires")
      let text = try arguments.string(1)
      guard let wanted = FlowLuaVersion(text) else {
        throw arguments.wrong(1, "a version such as '1.2' expected, got '\(text)'")
      }
      if !FlowLuaVersion.present.satisfies(wanted) {
        throw host.usage(
          call,
          "the script needs flowlua \(text), or a later \(wanted.major).x, but this is "
            + "\(FlowLuaVersion.number)")
      }
      return call.answer()
    }
  }
}
