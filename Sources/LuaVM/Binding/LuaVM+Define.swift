extension LuaVM {
  /// Defines a class in this state. Scripts then get objects of it from functions of the host and, if
  /// the class has initializers, make them.
  ///
  /// An object lives while Lua or Swift has it. Its userdata is collected some time after the script
  /// has dropped it, at the latest when the state is closed.
  ///
  /// ```swift
  /// try vm.define(LuaClass<Point>("Point") { $0.property("x", writable: \.x) })
  /// ```
  ///
  /// - Parameters:
  ///   - type: The class; one of the same Swift type mustn't be defined already.
  ///   - isGlobal: Whether the table of the class becomes the global variable of its name.
  ///   - file: The file that a message about wrong use names.
  ///   - line: The line that it names.
  /// - Returns: The table of the class: its initializers and functions.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  @discardableResult
  public func define<Object>(
    _ type: LuaClass<Object>, isGlobal: Bool = true, file: StaticString = #fileID,
    line: UInt = #line
  ) throws -> LuaReference {
    let name = type.name
    let members = type.members
    if boundClasses.exact(Object.self) != nil {
      misuse("a class for \(Object.self) was defined twice in a state", file: file, line: line)
    }
    let (metatable, number) = try defineType(
      name, methods: fields(members.methods), getter: getter(name, members))
    var metamethods = members.metamethods.mapValues { $0.function }
    metamethods["__newindex"] = setter(name, members)
    try complete(metatable, fields(metamethods))
    boundClasses.add(
      BoundClass(type: LuaObjectType(name: name, id: number), swiftType: Object.self))
    var classFields: [(ByteString, LuaValue)] = [
      ("__name", .string(ByteString("class \(name)"))),
      ("__newindex", .reference(try makeFunction(classSetter(name, members)))),
    ]
    if let initializer = members.initializer {
      classFields.append(("__call", .reference(try makeFunction(initializer.function))))
    }
    let table = try makeTable(
      fields: try members.functions.sorted { $0.key < $1.key }.map { name, member in
        (ByteString(name), .reference(try makeFunction(member.function)))
      },
      metatable: try makeTable(fields: classFields))
    if isGlobal { try setGlobal(name, .reference(table)) }
    return table
  }

  /// Makes a Swift closure callable from Lua, with its arguments and results converted.
  ///
  /// ```swift
  /// try vm.setGlobal("add", .reference(vm.makeFunction("add") { (a: Int, b: Int) in a + b }))
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name in messages about arguments.
  ///   - body: The closure; it returns the result, or several as `LuaResults`. An error that it throws
  ///     is raised.
  /// - Returns: The function.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  @inlinable
  public func makeFunction<each Argument: LuaValueConvertible, Result: LuaResult>(
    _ name: String, _ body: @escaping (repeat each Argument) throws -> Result
  ) throws -> LuaReference {
    try makeFunction(LuaMember.typed(name, firstArgument: 1, body).function)
  }

  /// Makes a function of a closure without a result.
  @inlinable
  public func makeFunction<each Argument: LuaValueConvertible>(
    _ name: String, _ body: @escaping (repeat each Argument) throws -> Void
  ) throws -> LuaReference {
    try makeFunction(name) { (arguments: repeat each Argument) in
      try body(repeat each arguments)
      return NoResult()
    }
  }

  private func fields(_ functions: [String: LuaFunction]) -> LuaFields<LuaMethod> {
    LuaFields(functions.sorted { $0.key < $1.key }.map { ($0.key, LuaMethod($0.value)) })
  }

  /// `__index` where no method has the name; nil for a class that has nothing else.
  private func getter(_ name: String, _ members: ClassMembers) -> LuaFunction? {
    if members.getters.isEmpty, members.index == nil, !members.refusesUnknown { return nil }
    let table = PropertyTable(members.getters)
    let (index, refuses) = (members.index, members.refusesUnknown)
    return { call in
      if let get = table.find(call) { return try get(call) }
      if let answer = try index?(call) { return answer }
      if refuses { throw LuaError(.argument, "\(name) has no member \(members.shownKey(call))") }
      return call.answer(.nil)
    }
  }

  /// `__newindex`.
  private func setter(_ name: String, _ members: ClassMembers) -> LuaFunction {
    let table = PropertyTable(members.setters)
    let (names, newIndex) = (members.names, members.newIndex)
    return { call in
      if let set = table.find(call) { return try set(call) }
      let key = call.bytes(2)?.description
      if let key, names.contains(key) {
        throw LuaError(.argument, "'\(name).\(key)' can't be set")
      }
      if let answer = try newIndex?(call) { return answer }
      throw LuaError(
        .argument,
        key.map { "\(name) has no property '\($0)' to set" }
          ?? "\(name) has no property of type \(call.typeName(2))")
    }
  }

  /// `__newindex` of the table of a class: objects have their members by Swift, so one that a script sets here would
  /// have no effect. Anything else becomes a field of the table.
  private func classSetter(_ name: String, _ members: ClassMembers) -> LuaFunction {
    let (methods, properties) = (Set(members.methods.keys), Set(members.getters.keys))
    return { call in
      if let key = call.bytes(2)?.description {
        if methods.contains(key) {
          throw LuaError(
            .argument, "'\(name):\(key)' is defined in Swift: a script can't replace it"
          )
        }
        if properties.contains(key) {
          throw LuaError(
            .argument,
            "'\(name).\(key)' is a property of objects: it can't be set for the class")
        }
      }
      guard case .reference(let table) = try call.value(1) else { return call.answer() }
      try call.vm.set(try call.value(3), at: try call.value(2), in: table)
      return call.answer()
    }
  }
}

extension ClassMembers {
  /// The names of methods and properties.
  fileprivate var names: Set<String> { Set(getters.keys).union(methods.keys) }

  /// A key that there isn't, with the name that was probably meant.
  fileprivate func shownKey(_ call: LuaCall) -> String {
    guard let key = call.bytes(2) else { return "of type \(call.typeName(2))" }
    let near = NearestName.of(key, in: names.sorted()).map { " (did you mean '\($0)'?)" } ?? ""
    return "'\(key)'\(near)"
  }
}

/// Finds properties by the second argument of a call.
// A list: there are few, and to hash a name takes longer than to compare it with some.
private struct PropertyTable {
  private var list: [(name: [UInt8], function: LuaFunction)]

  init(_ functions: [String: LuaFunction]) {
    list = functions.sorted { $0.key < $1.key }.map { (Array($0.key.utf8), $0.value) }
  }

  func find(_ call: LuaCall) -> LuaFunction? {
    let found = call.withBytes(2) { key in
      list.firstIndex { $0.name.count == key.count && $0.name.elementsEqual(key) }
    }
    return found.flatMap { $0 }.map { list[$0].function }
  }
}
