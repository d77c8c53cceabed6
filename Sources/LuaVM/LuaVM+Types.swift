internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Makes a Swift function callable from Lua.
  public func makeFunction(_ function: @escaping LuaFunction) throws -> LuaReference {
    try enter()
    try check(flowlua_make_function(host, add(function: function)))
    return try popReference(running, .function)
  }

  /// Makes Swift functions callable from Lua, as fields of a table.
  public func set(functions: LuaFields<LuaFunction>, in table: LuaReference) throws {
    try enter()
    checkHome(table)
    try withNamed(functions.mapValues { LuaMethod($0) }) { names, list, count in
      try check(flowlua_set_functions(host, table.id, names, list, count))
    }
  }

  /// Methods as C wants them: all names in a row, and what there is to know of each.
  private func withNamed(
    _ methods: LuaFields<LuaMethod>,
    _ body: (UnsafePointer<CChar>, UnsafePointer<flowlua_named_function>, Int32) throws -> Void
  ) throws {
    var names: [CChar] = []
    var list: [flowlua_named_function] = []
    names.reserveCapacity(methods.list.count * 16)
    list.reserveCapacity(methods.list.count)
    for (name, method) in methods.list {
      let kind =
        method.keyed != nil
        ? FLOWLUA_KEYED_FUNCTION
        : method.direct != nil ? FLOWLUA_OBJECT_FUNCTION : FLOWLUA_PLAIN_FUNCTION
      let length = names.count
      for byte in name.utf8 { names.append(CChar(bitPattern: byte)) }
      list.append(
        flowlua_named_function(
          number: add(method: method), name_length: Int32(names.count - length),
          kind: Int32(kind)))
    }
    try names.withUnsafeBufferPointer { names in
      try list.withUnsafeBufferPointer { list in
        guard let names = names.baseAddress, let list = list.baseAddress else { return }
        try body(names, list, Int32(methods.list.count))
      }
    }
  }

  /// Makes the objects of a Swift class usable by scripts.
  ///
  /// - Parameters:
  ///   - name: what messages call it; the metatable's `__name`.
  ///   - type: the class.
  ///   - methods: what `object:name(…)` finds; each checks its own first argument.
  ///   - getter: what `object.key` finds beyond the methods; called with object and key.
  ///   - metamethods: further fields of the metatable, such as `__call`, made with the type.
  /// - Returns: The type, by which objects are pushed and recognized.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  public func defineObjectType<Object: AnyObject>(
    _ name: String, of type: Object.Type, methods: LuaFields<LuaMethod>,
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> LuaFields<LuaMethod> = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    let metatable = try makeMetatable(name, methods: methods, getter: getter)
    let type = LuaObjectType<Object>(name: name, id: flowlua_define_type(host, metatable.id))
    guard type.id > 0 else { throw LuaError(.memory, "not enough memory") }
    try withNamed(metamethods(type)) { names, list, count in
      try check(flowlua_set_functions(host, metatable.id, names, list, count))
    }
    metatable.keepForever()
    return type
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  public func defineObjectType<Object: AnyObject>(
    _ name: String, of type: Object.Type, methods: LuaFields<LuaFunction>,
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> LuaFields<LuaFunction> = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    try defineObjectType(
      name, of: type, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: { type in metamethods(type).mapValues { LuaMethod($0) } })
  }

  /// Makes a kind of handle, like `defineObjectType`.
  public func defineHandleType(
    _ name: String, methods: LuaFields<LuaMethod>, getter: LuaFunction? = nil,
    metamethods: LuaFields<LuaMethod> = [:]
  ) throws -> LuaHandleType {
    let metatable = try makeMetatable(name, methods: methods, getter: getter)
    let type = LuaHandleType(name: name, id: flowlua_define_type(host, metatable.id))
    guard type.id > 0 else { throw LuaError(.memory, "not enough memory") }
    try withNamed(metamethods) { names, list, count in
      try check(flowlua_set_functions(host, metatable.id, names, list, count))
    }
    metatable.keepForever()
    flowlua_set_handle_type(host, type.id)
    return type
  }

  /// A Swift object as a Lua value: always the same userdata while Lua has it.
  public func value<Object>(
    of object: Object, _ type: LuaObjectType<Object>
  ) throws -> LuaValue {
    try enter()
    var value = flowlua_value.empty
    value.kind = Int32(FLOWLUA_OBJECT)
    value.reference = type.id
    // Given back by C, or when the userdata is gone.
    value.pointer = UnsafeRawPointer(Unmanaged<AnyObject>.passRetained(object).toOpaque())
    try check(flowlua_push_protected(host, &value))
    return .reference(try popReference(running, .userdata))
  }

  /// The Swift object in a value, if it is one of this type.
  public func object<Object>(
    in value: LuaValue, _ type: LuaObjectType<Object>
  ) -> Object? {
    guard case .reference(let reference) = value, reference.kind == .userdata,
      (try? enter()) != nil, lua_checkstack(running, 2) != 0
    else { return nil }
    checkHome(reference)
    flowlua_push_reference(host, running, reference.id)
    defer { flowlua_pop(running, 1) }
    guard let pointer = flowlua_object(host, running, -1, type.id) else { return nil }
    let object = Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue()
    // The type's number was only ever given to objects of this class.
    return unsafeDowncast(object, to: Object.self)
  }

  private func makeMetatable(
    _ name: String, methods: LuaFields<LuaMethod>, getter: LuaFunction?
  ) throws -> LuaReference {
    try enter()
    if methods.isEmpty {
      try check(flowlua_make_functions(host, "", [flowlua_named_function()], 0))
    } else {
      try withNamed(methods) { names, list, count in
        try check(flowlua_make_functions(host, names, list, count))
      }
    }
    let table = try popReference(running, .table)
    try check(
      flowlua_make_metatable(host, name, table.id, getter.map { add(function: $0) } ?? -1))
    return try popReference(running, .table)
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  public func defineHandleType(
    _ name: String, methods: LuaFields<LuaFunction>, getter: LuaFunction? = nil,
    metamethods: LuaFields<LuaFunction> = [:]
  ) throws -> LuaHandleType {
    try defineHandleType(
      name, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: metamethods.mapValues { LuaMethod($0) })
  }
}
