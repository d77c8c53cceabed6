internal import CFlowLua
internal import CLua

extension LuaVM {
  /// Calls a function. Lua code in it can't yield to the scheduler, so a wait inside it runs the
  /// scheduler.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments.
  ///   - traceback: Whether a string error gets the traceback that the stand-alone interpreter adds.
  /// - Returns: All its results.
  /// - Throws: The raised error: a `LuaError` with the value, or the Swift error that passed
  ///   through Lua.
  public func call(
    _ function: LuaReference, _ arguments: [LuaValue] = [], traceback: Bool = false
  ) throws -> [LuaValue] {
    // Many at once take one protected call, few scalars none but the function's.
    if traceback || arguments.count > TypedCall.room {
      return try callWithFrame(function, arguments, traceback)
    }
    var call = try TypedCall(function, self)
    defer { call.end() }
    for argument in arguments { try call.add(argument) }
    try call.perform()
    return try call.results()
  }

  /// Calls a function with Swift values, and returns its results as Swift values; see
  /// `call(_:_:traceback:)`.
  ///
  /// An array is one argument here, a table. Numbers and booleans are passed without an allocation.
  ///
  /// ```swift
  /// let sum = try vm.call(add, 1, 2, as: Int.self)
  /// let (name, age) = try vm.call(find, "Ada", as: (String, Int).self)
  /// try vm.call(notify, as: Void.self)
  /// ```
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - arguments: The arguments, of any types that can be converted.
  ///   - type: The type of the first result, or a tuple of those of the first ones; further results
  ///     are dropped, and missing ones are nil.
  /// - Returns: The result.
  /// - Throws: The raised error, as `call(_:_:traceback:)`; a `LuaConversionError` for a result of
  ///   another type.
  @inlinable
  public func call<each Argument: LuaValueConvertible, Result: LuaValueConvertible>(
    _ function: LuaReference, _ arguments: repeat each Argument, as type: Result.Type
  ) throws -> Result {
    var call = try TypedCall(function, self)
    defer { call.end() }
    repeat try call.add(try (each arguments).luaValue(in: self))
    try call.perform()
    return try call.result(type)
  }

  /// Calls a function with Swift values, and drops its results.
  @inlinable
  public func call<each Argument: LuaValueConvertible>(
    _ function: LuaReference, _ arguments: repeat each Argument, as type: Void.Type
  ) throws {
    var call = try TypedCall(function, self)
    defer { call.end() }
    repeat try call.add(try (each arguments).luaValue(in: self))
    try call.perform()
  }

  /// Calls a function with Swift values, and returns several of its results.
  @inlinable
  public func call<
    each Argument: LuaValueConvertible, First: LuaValueConvertible, Second: LuaValueConvertible,
    each Other: LuaValueConvertible
  >(
    _ function: LuaReference, _ arguments: repeat each Argument,
    as type: (First, Second, repeat each Other).Type
  ) throws -> (First, Second, repeat each Other) {
    var call = try TypedCall(function, self)
    defer { call.end() }
    repeat try call.add(try (each arguments).luaValue(in: self))
    try call.perform()
    return (
      try call.result(First.self), try call.result(Second.self),
      repeat try call.result((each Other).self)
    )
  }

  /// Calls a function through one of C, which pushes the arguments and is in tracebacks.
  private func callWithFrame(
    _ function: LuaReference, _ arguments: [LuaValue], _ traceback: Bool
  ) throws -> [LuaValue] {
    try enter()
    checkHome(function)
    let before = lua_gettop(running)
    var count: Int32 = 0
    let status = withRawValues(of: self, arguments) { raw in
      flowlua_call_function(state, function.id, raw, Int32(arguments.count), traceback, &count)
    }
    if status != LUA_OK { throw takeError(status) }
    defer { flowlua_pop(running, count) }
    return try (0..<count).map { try value(in: running, at: before + 1 + $0) }
  }
}

/// A call whose arguments are pushed one by one, and whose results are read so.
// Generic code uses it in place: with types that it doesn't know, it would take twice as long.
@usableFromInline
struct TypedCall {
  /// So many arguments need no more room on the stack than there is.
  static let room = LUA_MINSTACK - 4

  // Unmanaged: the caller keeps it.
  private let vm: Unmanaged<LuaVM>
  private let lua: OpaquePointer
  /// How many values stand below the function.
  private let before: Int32
  private var argumentCount: Int32 = 0
  private var resultCount: Int32 = 0
  private var index: Int32 = 0

  @usableFromInline
  init(_ function: LuaReference, _ vm: LuaVM) throws {
    try vm.enter()
    vm.checkHome(function)
    self.vm = .passUnretained(vm)
    lua = vm.running
    before = lua_gettop(lua)
    try vm.check(flowlua_begin_call(vm.state, function.id))
    vm.openCalls += 1
  }

  /// Adds an argument.
  @usableFromInline
  mutating func add(_ value: LuaValue) throws {
    argumentCount += 1
    if argumentCount <= Self.room {
      switch value {
      case .nil: return lua_pushnil(lua)
      case .boolean(let flag): return lua_pushboolean(lua, flag ? 1 : 0)
      case .integer(let integer): return lua_pushinteger(lua, integer)
      case .number(let number): return lua_pushnumber(lua, number)
      case .string, .reference: break
      }
    }
    try addProtected(value)
  }

  @inline(never)
  private func addProtected(_ value: LuaValue) throws {
    let vm = vm.takeUnretainedValue()
    try vm.check(withRawValue(of: vm, value) { flowlua_push_protected(vm.state, $0) })
  }

  @usableFromInline
  mutating func perform() throws {
    let status = vm._withUnsafeGuaranteedRef {
      flowlua_finish_call($0.state, before, &resultCount)
    }
    if status != LUA_OK { throw vm.takeUnretainedValue().takeError(status) }
  }

  /// All results.
  func results() throws -> [LuaValue] {
    let vm = vm.takeUnretainedValue()
    if resultCount == 1 { return [try vm.value(in: lua, at: -1)] }
    var results: [LuaValue] = []
    results.reserveCapacity(Int(resultCount))
    for index in 0..<resultCount {
      results.append(try vm.value(in: lua, at: before + 1 + index))
    }
    return results
  }

  /// The next result.
  @inlinable
  mutating func result<Result: LuaValueConvertible>(_ type: Result.Type) throws -> Result {
    let value = try nextValue()
    if let result = try type.fromLuaValue(value, in: state) { return result }
    throw mismatch(type.luaTypeName, value)
  }

  @usableFromInline
  var state: LuaVM { vm.takeUnretainedValue() }

  @usableFromInline
  mutating func nextValue() throws -> LuaValue {
    index += 1
    guard index <= resultCount else { return .nil }
    return try vm._withUnsafeGuaranteedRef { try $0.value(in: lua, at: before + index) }
  }

  @usableFromInline
  func mismatch(_ expected: String, _ value: LuaValue) -> LuaConversionError {
    LuaConversionError(
      expected: expected, got: state.shownType(of: value), place: "result #\(index)")
  }

  /// Takes from the stack what the call has left there.
  @usableFromInline
  func end() {
    lua_settop(lua, before)
    vm._withUnsafeGuaranteedRef { $0.openCalls -= 1 }
  }
}
