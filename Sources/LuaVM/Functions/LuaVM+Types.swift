internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Makes a Swift function callable from Lua.
  public func makeFunction(_ function: @escaping LuaFunction) throws -> LuaReference {
    try enter()
    try check(flowlua_make_function(state, add(function: function)))
    return try popReference(running, .function)
  }

  /// Makes Swift functions callable from Lua, as fields of a table.
  package func set(functions: LuaFields<LuaFunction>, in table: LuaReference) throws {
    try enter()
    checkHome(table)
    try withNamed(functions.mapValues { LuaMethod($0) }) { names, list, count in
      try check(flowlua_set_functions(state, table.id, names, list, count))
    }
  }

  /// Methods in C's form: all names in a row, and the data of each.
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
        switch method.direct?.takesKey {
        case nil: FLOWLUA_GENERAL_FUNCTION
        case false?: FLOWLUA_DIRECT_FUNCTION
        case true?: FLOWLUA_KEYED_FUNCTION
        }
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
  ///   - name: The name in messages; the metatable's `__name`.
  ///   - type: The class.
  ///   - methods: The methods, for `object:name(…)`; each checks its own first argument.
  ///   - getter: The function for `object.key` where no method has that name; called with object
  ///     and key.
  ///   - metamethods: Further fields of the metatable, such as `__call`, made with the type.
  /// - Returns: The type, by which objects are pushed and recognized.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func defineObjectType<Object: AnyObject>(
    _ name: String, of type: Object.Type, methods: LuaFields<LuaMethod>,
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> LuaFields<LuaMethod> = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    let (metatable, id) = try defineType(name, methods: methods, getter: getter)
    let type = LuaObjectType<Object>(name: name, id: id)
    try complete(metatable, metamethods(type))
    return type
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  package func defineObjectType<Object: AnyObject>(
    _ name: String, of type: Object.Type, methods: LuaFields<LuaFunction>,
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> LuaFields<LuaFunction> = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    try defineObjectType(
      name, of: type, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: { type in metamethods(type).mapValues { LuaMethod($0) } })
  }

  /// Makes a kind of handle, like `defineObjectType`.
  package func defineHandleType(
    _ name: String, methods: LuaFields<LuaMethod>, getter: LuaFunction? = nil,
    metamethods: LuaFields<LuaMethod> = [:]
  ) throws -> LuaHandleType {
    let (metatable, id) = try defineType(name, methods: methods, getter: getter)
    try complete(metatable, metamethods)
    flowlua_set_handle_type(state, id)
    return LuaHandleType(name: name, id: id)
  }

  /// A Swift object as a Lua value: always the same userdata while Lua has it.
  @_spi(Scripting) public func value<Object>(
    of object: Object, _ type: LuaObjectType<Object>
  ) throws -> LuaValue {
    try enter()
    var value = flowlua_value(object, type)
    try check(flowlua_push_protected(state, &value))
    return .reference(try popReference(running, .userdata))
  }

  /// The Swift object in a value, if it has this type.
  @_spi(Scripting) public func object<Object>(
    in value: LuaValue, _ type: LuaObjectType<Object>
  ) -> Object? {
    guard case .reference(let reference) = value, reference.kind == .userdata,
      (try? enter()) != nil, lua_checkstack(running, 2) != 0
    else { return nil }
    checkHome(reference)
    flowlua_push_reference(state, running, reference.id)
    defer { flowlua_pop(running, 1) }
    guard let pointer = flowlua_object(state, running, -1, type.id) else { return nil }
    let object = Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue()
    // Only objects of this class ever got the type's number.
    return unsafeDowncast(object, to: Object.self)
  }

  /// Makes the metatable of a type, and the type's number.
  func defineType(
    _ name: String, methods: LuaFields<LuaMethod>, getter: LuaFunction?
  ) throws -> (metatable: LuaReference, id: Int32) {
    try enter()
    if methods.isEmpty {
      try check(flowlua_make_functions(state, "" as String, [flowlua_named_function()], 0))
    } else {
      try withNamed(methods) { names, list, count in
        try check(flowlua_make_functions(state, names, list, count))
      }
    }
    let table = try popReference(running, .table)
    try check(
      flowlua_make_metatable(state, name, table.id, getter.map { add(function: $0) } ?? -1))
    let metatable = try popReference(running, .table)
    let id = flowlua_define_type(state, metatable.id)
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return (metatable, id)
  }

  /// Adds the metamethods of a type to its metatable, which the state keeps.
  func complete(
    _ metatable: LuaReference, _ metamethods: LuaFields<LuaMethod>
  ) throws {
    try withNamed(metamethods) { names, list, count in
      try check(flowlua_set_functions(state, metatable.id, names, list, count))
    }
    metatable.keepForever()
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  package func defineHandleType(
    _ name: String, methods: LuaFields<LuaFunction>, getter: LuaFunction? = nil,
    metamethods: LuaFields<LuaFunction> = [:]
  ) throws -> LuaHandleType {
    try defineHandleType(
      name, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: metamethods.mapValues { LuaMethod($0) })
  }
}
