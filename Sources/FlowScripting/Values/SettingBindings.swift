internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.setting(name, value)`: a value that only steers what an op does, and doesn't count as its code.
///
/// It is a table of both with a metatable of its own, which forms of code leave out, and which other states have, too.
extension ScriptHost {
  func installSettings() throws {
    let index = try vm.makeFunction(
      binder.bind { host, call in
        let name = call.bytes(2) ?? ""
        if name == "value" { return call.answer(.nil) }
        throw host.usage(call, "a setting has no field '\(name)': it has 'name' and 'value'")
      })
    let assign = try vm.makeFunction(
      binder.bind { host, call in
        if call.bytes(2) != "value" {
          throw host.usage(call, "can't set \(host.shownField(call)) of a setting")
        }
        let setting = try Arguments(host, call, "setting").table(1)
        try host.vm.set(try call.value(3), at: .string("value"), in: setting)
        return call.answer()
      })
    let fields: [(ByteString, LuaValue)] = [
      ("__index", .reference(index)), ("__newindex", .reference(assign)),
    ]
    for (name, function) in fields { try vm.set(function, at: .string(name), in: settingMetatable) }
    define("setting") { host, call in
      let arguments = Arguments(host, call, "setting")
      let name = try arguments.string(1)
      let value = try call.value(2)
      if case .reference(let reference) = value, reference.kind != .table {
        throw arguments.wrong(2, expected: "boolean, number, string, table or nil")
      }
      let setting = try host.vm.makeTable(
        fields: [("name", .string(name)), ("value", value)], metatable: host.settingMetatable)
      return call.answer(.reference(setting))
    }
  }
}
