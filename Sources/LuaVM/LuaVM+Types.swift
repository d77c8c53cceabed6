internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Makes a Swift function callable from Lua.
  public func makeFunction(_ function: @escaping LuaFunction) throws -> LuaReference {
    try enter()
    try check(flowlua_make_function(host, add(function: function)))
    return try popReference(running, .function)
  }

  /// As above; with the faster way that the method has.
  private func makeFunction(_ method: LuaMethod) throws -> LuaReference {
    try enter()
    let number = add(method: method)
    if method.keyed != nil {
      try check(flowlua_make_keyed_function(host, number))
    } else if method.direct != nil {
      try check(flowlua_make_object_function(host, number))
    } else {
      try check(flowlua_make_function(host, number))
    }
    return try popReference(running, .function)
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
    _ name: String, of type: Object.Type, methods: [String: LuaMethod],
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> [String: LuaMethod] = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    let metatable = try makeMetatable(name, methods: methods, getter: getter, finalizer: true)
    let type = LuaObjectType<Object>(name: name, id: flowlua_define_type(host, metatable.id))
    guard type.id > 0 else { throw LuaError(.memory, "not enough memory") }
    for (key, function) in metamethods(type).sorted(by: { $0.key < $1.key }) {
      try set(LuaValue.reference(try makeFunction(function.function)), key, in: metatable)
    }
    metatable.keepForever()
    return type
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  public func defineObjectType<Object: AnyObject>(
    _ name: String, of type: Object.Type, methods: [String: LuaFunction],
    getter: LuaFunction? = nil,
    metamethods: (LuaObjectType<Object>) -> [String: LuaFunction] = { _ in [:] }
  ) throws -> LuaObjectType<Object> {
    try defineObjectType(
      name, of: type, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: { type in metamethods(type).mapValues { LuaMethod($0) } })
  }

  /// Makes a kind of handle, like `defineObjectType`.
  public func defineHandleType(
    _ name: String, methods: [String: LuaMethod], getter: LuaFunction? = nil,
    metamethods: [String: LuaMethod] = [:]
  ) throws -> LuaHandleType {
    let metatable = try makeMetatable(name, methods: methods, getter: getter, finalizer: false)
    let type = LuaHandleType(name: name, id: flowlua_define_type(host, metatable.id))
    guard type.id > 0 else { throw LuaError(.memory, "not enough memory") }
    for (key, function) in metamethods.sorted(by: { $0.key < $1.key }) {
      try set(LuaValue.reference(try makeFunction(function.function)), key, in: metatable)
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
    // Given back by C, or by the userdata's finalizer.
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
    _ name: String, methods: [String: LuaMethod], getter: LuaFunction?, finalizer: Bool
  ) throws -> LuaReference {
    try enter()
    let metatable = try makeTable(fields: [("__name", .string(LuaString(name)))])
    var fields: [(LuaString, LuaValue)] = []
    for (key, function) in methods.sorted(by: { $0.key < $1.key }) {
      fields.append((LuaString(key), .reference(try makeFunction(function))))
    }
    let table = try makeTable(fields: fields)
    if let getter {
      try check(flowlua_make_index(host, table.id, add(function: getter)))
      try set(.reference(try popReference(running, .function)), "__index", in: metatable)
    } else {
      try set(.reference(table), "__index", in: metatable)
    }
    try check(flowlua_prepare_metatable(host, metatable.id, finalizer))
    return metatable
  }

  /// As above, with bare closures.
  @_disfavoredOverload
  public func defineHandleType(
    _ name: String, methods: [String: LuaFunction], getter: LuaFunction? = nil,
    metamethods: [String: LuaFunction] = [:]
  ) throws -> LuaHandleType {
    try defineHandleType(
      name, methods: methods.mapValues { LuaMethod($0) }, getter: getter,
      metamethods: metamethods.mapValues { LuaMethod($0) })
  }
}
