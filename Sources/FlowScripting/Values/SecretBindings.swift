internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// `flow.secret(value)`: a value that prints as `<redacted>`.
///
/// If it is set under a key, the key is secret and `ctx:get` returns the plain value. Anywhere else
/// (in a table, as a bound argument, as a field of an error) it is an opaque object: it has no
/// fields, equals only itself, and joining, comparing, counting or calling it is Lua's own error,
/// which names the type.
struct SecretBindings {
  let host: ScriptHost

  func install() {
    host.define("secret") { host, call in
      if call.isNil(1) {
        throw Arguments(host, call, "secret").wrong(1, expected: "value")
      }
      // A secret of a secret is that secret.
      if call.object(1, host.types.secret) != nil { return call.answer(argument: 1) }
      let value = try call.engineValue(1)
      try host.checkMemory(forSecret: value)
      let secret = host.makeSecret(value)
      return call.answer(secret, host.types.secret)
    }
    // One from another state hides its text here as well. The state calls these only while its host
    // exists.
    host.vm.setSecretType(
      host.types.secret, unwrap: { [unowned host] secret in try? host.luaValue(secret.plain) },
      wrap: { [unowned host] value in host.makeSecret(FlowValue(value)) })
  }

  static var metamethods: LuaFields<BoundMethod> {
    [
      "__tostring": BoundMethod { host, call in
        if call.object(1, host.types.secret) != nil {
          return try host.answer(call, .bytes(SecretValue.mark))
        }
        let name = host.shownType(call, 1)
        if name.hasPrefix(host.types.secret.name) {
          return call.answer(.string("secret (released)"))
        }
        throw host.usage(call, "bad argument #1 to '__tostring' (secret expected, got \(name))")
      },
      "__newindex": BoundMethod { host, call in
        throw host.usage(call, "can't set \(host.shownField(call)) of a secret")
      },
    ]
  }

  /// A secret has no fields. Reading one raises: nil would be passed on unnoticed.
  static func property(_ host: ScriptHost, _ call: LuaCall) throws -> LuaAnswer {
    throw host.usage(
      call,
      "can't read \(host.shownField(call)) of a secret; set it under a key, and ctx:get(key) "
        + "gives the plain value")
  }
}

extension LuaReference {
  /// The host of the state of a userdata, the only kind of value that secrets are.
  var host: ScriptHost? {
    kind == .userdata ? vm.scheduler as? ScriptHost : nil
  }
}

extension ScriptValue: ErrorValue {
  func replaceTexts(_ replacement: (ByteString) -> ByteString) {
    let vm = reference.vm
    guard let host = vm.scheduler as? ScriptHost, host.isError(.reference(reference)) else {
      return
    }
    for name in ["message", "op", "path", "suggestion", "place", "traceback"] {
      // Without memory for it the table keeps its text, and the text is replaced in the run's
      // error.
      guard case .string(let string)? = try? vm.field(name, of: reference) else {
        continue
      }
      let text = string
      let replaced = replacement(text)
      if replaced != text { try? vm.set(.string(replaced), name, in: reference) }
    }
  }
}

/// `flow.setting(name, value)`: a value that only steers what an op does, and doesn't count as its code.
///
/// It is a table of both with a metatable of its own, which forms of code leave out, and which other states have, too.
struct SettingBindings {
  let host: ScriptHost

  func install() throws {
    let index = try host.vm.makeFunction(
      host.binder.bind { host, call in
        let name = call.bytes(2) ?? ""
        if name == "value" { return call.answer(.nil) }
        throw host.usage(call, "a setting has no field '\(name)': it has 'name' and 'value'")
      })
    let assign = try host.vm.makeFunction(
      host.binder.bind { host, call in
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
    for (name, function) in fields {
      try host.vm.set(function, at: .string(name), in: host.types.settingMetatable)
    }
    host.define("setting") { host, call in
      let arguments = Arguments(host, call, "setting")
      let name = try arguments.string(1)
      let value = try call.value(2)
      if case .reference(let reference) = value, reference.kind != .table {
        throw arguments.wrong(2, expected: "boolean, number, string, table or nil")
      }
      let setting = try host.vm.makeTable(
        fields: [("name", .string(name)), ("value", value)], metatable: host.types.settingMetatable)
      return call.answer(.reference(setting))
    }
  }
}
