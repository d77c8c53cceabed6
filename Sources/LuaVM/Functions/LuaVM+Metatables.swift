internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Whether a value's metatable is this very table.
  package func has(metatable: LuaReference, _ value: LuaReference) -> Bool {
    guard (try? enter()) != nil, value.vm === self, lua_checkstack(running, 4) != 0 else {
      return false
    }
    let L = running
    flowlua_push_reference(state, L, value.id)
    defer { flowlua_pop(L, 1) }
    guard lua_getmetatable(L, -1) != 0 else { return false }
    flowlua_push_reference(state, L, metatable.id)
    defer { flowlua_pop(L, 2) }
    return lua_rawequal(L, -1, -2) != 0
  }

  /// Sets the metatable of the host's errors. `call(_:_:traceback:)` throws such an uncaught error
  /// unchanged; it throws any other object as the text of its `__tostring`.
  package func setErrorMetatable(_ metatable: LuaReference) {
    flowlua_set_error_metatable(state, metatable.id)
  }

  /// Sets the metatable of settings: their content doesn't count in forms of code, and they can go to other states.
  package func setSettingMetatable(_ metatable: LuaReference) {
    flowlua_set_setting_metatable(state, metatable.id)
  }

  /// Whether two references are to the same value.
  package func areSame(_ a: LuaReference, _ b: LuaReference) -> Bool {
    guard (try? enter()) != nil, a.vm === self, b.vm === self, lua_checkstack(running, 4) != 0
    else { return false }
    let L = running
    flowlua_push_reference(state, L, a.id)
    flowlua_push_reference(state, L, b.id)
    defer { flowlua_pop(L, 2) }
    return lua_rawequal(L, -1, -2) != 0
  }
}

extension LuaVM {
  /// Reads a field without metamethods.
  package func rawGet(_ key: LuaValue, in table: LuaReference) throws -> LuaValue {
    try enter()
    let L = running
    guard table.kind == .table, lua_checkstack(L, 6) != 0 else { return .nil }
    try check(flowlua_push_shown(state, table.id))
    defer { flowlua_pop(L, 1) }
    try check(withRawValues(of: self, [key]) { flowlua_push_protected(state, $0) })
    lua_rawget(L, -2)
    return try popValue(L)
  }

  /// Whether a value has a field in its metatable.
  package func hasMetafield(_ name: StaticString, _ reference: LuaReference) -> Bool {
    guard let value = try? metafield(name, of: reference) else { return false }
    return !value.isNil
  }

  /// A number that no other living value with identity has.
  package func identity(of value: LuaReference) -> UInt {
    guard (try? enter()) != nil, value.vm === self, lua_checkstack(running, 2) != 0 else {
      return 0
    }
    flowlua_push_reference(state, running, value.id)
    defer { flowlua_pop(running, 1) }
    return UInt(bitPattern: lua_topointer(running, -1))
  }
}

extension LuaVM {
  /// Sets an element of a table, without metamethods.
  package func set(_ value: LuaValue, at index: Int, in table: LuaReference) throws {
    try set(value, at: .integer(Int64(index)), in: table)
  }

  /// Sets the value of any key, without metamethods.
  package func set(_ value: LuaValue, at key: LuaValue, in table: LuaReference) throws {
    try enter()
    let status = withRawValues(of: self, [key, value]) { raw in
      flowlua_set_fields(state, table.id, raw, 1)
    }
    try check(status)
  }

  /// Sets a global variable, without metamethods.
  ///
  /// ```swift
  /// try vm.setGlobal("version", "1.2")
  /// ```
  public func setGlobal(_ name: String, _ value: LuaValue) throws {
    try set(value, name, in: try globals())
  }
}
