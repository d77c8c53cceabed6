internal import CFlowLua
internal import CLua
internal import Glibc

/// What a function that Lua called answers. Made by the `answer`s of `LuaCall`.
public struct LuaAnswer {
  let outcome: Int32
}

/// A function of the host.
///
/// It may throw: a `LuaError` raises its value, or its message behind the script's `file:line:`; any
/// other Swift error passes through Lua as itself and comes out of `LuaVM.call` again.
public typealias LuaFunction = (LuaCall) throws -> LuaAnswer

/// A function of the host in a collection. (A bare closure in one is wrapped anew at each access, which
/// a call would pay for.)
public struct LuaMethod {
  /// The function.
  public let function: LuaFunction
  /// What is asked first when it is called as a `LuaKeyedCall`.
  let keyed: LuaKeyedMethod?
  /// What is asked first when it is called as a `LuaObjectCall`.
  let direct: LuaObjectMethod?

  /// A function to put into a collection, with at most one faster way.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - keyed: A faster way for calls of the kind of `LuaKeyedCall`.
  ///   - direct: A faster way for calls of the kind of `LuaObjectCall`.
  public init(
    _ function: @escaping LuaFunction, keyed: LuaKeyedMethod? = nil,
    direct: LuaObjectMethod? = nil
  ) {
    self.function = function
    self.keyed = keyed
    self.direct = direct
  }
}

/// One call from Lua to Swift: arguments in, results out. Valid only until the function returns.
public struct LuaCall {
  let raw: UnsafeMutablePointer<flowlua_call>

  /// The state that calls.
  public var vm: LuaVM {
    // The state is alive while it calls, and set its own address as C's context. Not stored, so that
    // a call is plain data and passing it costs no reference counting.
    Unmanaged<LuaVM>.fromOpaque(raw.pointee.context).takeUnretainedValue()
  }

  var state: OpaquePointer { raw.pointee.L }

  // MARK: Arguments, counted from 1

  /// How many arguments there are.
  public var count: Int { Int(raw.pointee.argument_count) }

  /// The basic type of an argument.
  public func kind(_ index: Int) -> LuaKind {
    guard index >= 1, index <= count else { return .none }
    return LuaKind(rawValue: lua_type(state, Int32(index))) ?? .none
  }

  /// Whether an argument is absent or nil.
  public func isNil(_ index: Int) -> Bool {
    let kind = kind(index)
    return kind == .none || kind == .nil
  }

  /// An argument that is a boolean.
  public func boolean(_ index: Int) -> Bool? {
    kind(index) == .boolean ? lua_toboolean(state, Int32(index)) != 0 : nil
  }

  /// An argument that is a number of subtype integer.
  public func integer(_ index: Int) -> Int64? {
    guard index >= 1, index <= count, lua_isinteger(state, Int32(index)) != 0 else { return nil }
    return lua_tointegerx(state, Int32(index), nil)
  }

  /// An argument that is a number of either subtype.
  public func number(_ index: Int) -> Double? {
    kind(index) == .number ? lua_tonumberx(state, Int32(index), nil) : nil
  }

  /// An argument that is a string.
  public func string(_ index: Int) -> LuaString? {
    withBytes(index) { LuaString(Array($0)) }
  }

  /// Lends the bytes of an argument that is a string; nil if it is none.
  public func withBytes<Result>(
    _ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result? {
    guard index >= 1, index <= count else { return nil }
    var length = 0
    guard let bytes = flowlua_bytes(state, Int32(index), &length) else { return nil }
    return try body(UnsafeRawBufferPointer(start: bytes, count: length))
  }

  /// An argument of any type.
  public func value(_ index: Int) throws -> LuaValue {
    guard index >= 1, index <= count else { return .nil }
    return try vm.value(in: state, at: Int32(index))
  }

  /// Appends an argument to a buffer, as `LuaVM.encode`.
  public func encode(_ index: Int, into buffer: TransferBuffer) throws {
    guard index >= 1, index <= count else { return try vm.encode(.nil, into: buffer) }
    try vm.encode(in: state, at: Int32(index), into: buffer)
  }

  /// The Swift object in an argument, if it is one of this type. It is checked by what the userdata
  /// holds, so it is safe with anything a script passes, also when it calls a method by hand.
  public func object<Object>(_ index: Int, _ type: LuaObjectType<Object>) -> Object? {
    guard index >= 1, index <= count,
      let pointer = flowlua_object(raw.pointee.host, state, Int32(index), type.id)
    else { return nil }
    let object = Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue()
    // The type's number was only ever given to objects of this class.
    return unsafeDowncast(object, to: Object.self)
  }

  /// The slot and generation in an argument that is a handle of this type.
  public func handle(_ index: Int, _ type: LuaHandleType) -> (slot: UInt32, generation: UInt64)? {
    var slot: UInt32 = 0
    var generation: UInt64 = 0
    guard index >= 1, index <= count,
      flowlua_handle(raw.pointee.host, state, Int32(index), type.id, &slot, &generation)
    else { return nil }
    return (slot, generation)
  }

  /// The name of an argument's type, for messages.
  public func typeName(_ index: Int) -> String {
    guard index >= 1, index <= count else { return "no value" }
    var length = 0
    let name = flowlua_type_name(raw.pointee.host, state, Int32(index), &length)
    return LuaString(Array(UnsafeRawBufferPointer(start: name, count: length))).description
  }

  /// The integer that `intern` keeps for a string argument.
  public func interned(_ index: Int) -> Int64? {
    let found = flowlua_interned(raw.pointee.host, state, Int32(index))
    return found >= 0 ? found : nil
  }

  /// Keeps an integer for a string argument, for `interned`.
  public func intern(_ index: Int, as integer: Int64) throws {
    try vm.check(flowlua_intern(raw.pointee.host, state, Int32(index), integer))
  }

  /// `file:line: ` of the script, or nothing when no Lua function is calling.
  public var position: LuaString { vm.position(in: state, level: 1) }

  /// Where the script is that calls, as `LuaVM.text(ofOrigin:)` understands it; cheaper than
  /// `position`. 0 when no Lua function is calling.
  public var origin: UInt64 { flowlua_origin(raw.pointee.host, state) }

  // MARK: Answers

  /// No results.
  public func answer() -> LuaAnswer {
    LuaAnswer(outcome: Int32(FLOWLUA_RETURN))
  }

  /// One result.
  public func answer(_ value: LuaValue) -> LuaAnswer {
    append(value)
    return answer()
  }

  /// Several results.
  public func answer(_ values: [LuaValue]) -> LuaAnswer {
    for value in values { append(value) }
    return answer()
  }

  /// Bytes as one result.
  public func answer(bytes: UnsafeRawBufferPointer) -> LuaAnswer {
    append(bytes: bytes)
    return answer()
  }

  /// One of the arguments as the result, without a detour.
  public func answer(argument index: Int) -> LuaAnswer {
    guard index >= 1, index <= count else { return answer(.nil) }
    var value = flowlua_value.empty
    value.kind = Int32(FLOWLUA_ARGUMENT)
    value.reference = Int32(index)
    append(value)
    return answer()
  }

  /// A Swift object as the result: always the same userdata for the same object.
  public func answer<Object>(_ object: Object, _ type: LuaObjectType<Object>) -> LuaAnswer {
    var value = flowlua_value.empty
    value.kind = Int32(FLOWLUA_OBJECT)
    value.reference = type.id
    // Given back by C, or when the userdata is gone.
    value.pointer = UnsafeRawPointer(Unmanaged<AnyObject>.passRetained(object).toOpaque())
    raw.pointee.heavy = true
    append(value)
    return answer()
  }

  /// Waits; the results are those of `wait.finish`.
  public func wait(_ wait: LuaWait) throws -> LuaAnswer {
    if wait.isReady {
      // Nobody would be told a second time.
      if let problem = wait.problem { throw problem }
      return try wait.finish(self)
    }
    // Without the retain of `vm`.
    Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.hold(wait) }
    raw.pointee.wait = Unmanaged.passUnretained(wait).toOpaque()
    return LuaAnswer(outcome: Int32(FLOWLUA_WAIT))
  }

  /// Fills in an error, to be raised once Swift has returned.
  func raise(_ error: any Error) -> Int32 {
    dropResults()
    if let error = error as? LuaError {
      if let value = error.value {
        append(value)
      } else if error.code == .memory || error.code == .overflow {
        append(.string(error.message))
      } else {
        append(.string(LuaString(position.bytes + error.message.bytes)))
      }
    } else {
      var value = flowlua_value.empty
      value.kind = Int32(FLOWLUA_FAILURE)
      // Given back by C, or when the userdata is gone.
      value.pointer = UnsafeRawPointer(
        Unmanaged<AnyObject>.passRetained(LuaFailureBox(error)).toOpaque())
      raw.pointee.heavy = true
      append(value)
    }
    return Int32(FLOWLUA_RAISE)
  }

  /// Forgets results of before an error.
  private func dropResults() {
    let count = Int(raw.pointee.result_count)
    let results = raw.pointee.many_results ?? flowlua_call_results(raw)
    for index in 0..<count { flowlua_dispose(raw.pointee.host, &results[index]) }
    // Class 'e' only for variables to be closed, which a C function has none of.
    lua_settop(state, raw.pointee.argument_count)
    raw.pointee.result_count = 0
    raw.pointee.inline_used = 0
    raw.pointee.heavy = false
    raw.pointee.overflow = LUA_OK
    free(raw.pointee.many_results)
    raw.pointee.many_results = nil
  }

  private func append(_ value: LuaValue) {
    var plain = flowlua_value.empty
    switch value {
    case .nil: break
    case .boolean(let flag):
      plain.kind = Int32(FLOWLUA_BOOLEAN)
      plain.integer = flag ? 1 : 0
    case .integer(let integer):
      plain.kind = Int32(FLOWLUA_INTEGER)
      plain.integer = integer
    case .number(let number):
      plain.kind = Int32(FLOWLUA_NUMBER)
      plain.number = number
    case .string(let string):
      string.bytes.withUnsafeBytes { append(bytes: $0) }
      return
    case .reference(let reference):
      // It goes on the stack now: the reference may be released before C comes to the results.
      vm.checkHome(reference)
      let room = flowlua_make_room(raw.pointee.host, state, 4)
      guard room == LUA_OK else {
        raw.pointee.overflow = room
        break
      }
      flowlua_push_reference(raw.pointee.host, state, reference.id)
      plain.kind = Int32(FLOWLUA_ARGUMENT)
      plain.reference = lua_gettop(state)
    }
    append(plain)
  }

  private func append(bytes: UnsafeRawBufferPointer) {
    var value = flowlua_value.empty
    value.kind = Int32(FLOWLUA_STRING)
    value.integer = Int64(bytes.count)
    let used = Int(raw.pointee.inline_used)
    if bytes.count <= Int(FLOWLUA_INLINE_BYTES) - used {
      let room = flowlua_call_bytes(raw) + used
      if bytes.count > 0, let base = bytes.baseAddress { memcpy(room, base, bytes.count) }
      value.pointer = UnsafeRawPointer(room)
      raw.pointee.inline_used += UInt32(bytes.count)
    } else {
      // A long one goes on the stack now, so that it is copied once.
      value.pointer = bytes.baseAddress
      let status = flowlua_push_protected(raw.pointee.host, &value)
      guard status == LUA_OK else {
        // Raised once Swift has returned.
        flowlua_discard_error(raw.pointee.host, status)
        raw.pointee.overflow = Int32(
          status == FLOWLUA_NO_ROOM ? FLOWLUA_NO_ROOM : FLOWLUA_NO_MEMORY)
        return
      }
      value.kind = Int32(FLOWLUA_ARGUMENT)
      value.reference = lua_gettop(state)
    }
    append(value)
  }

  private func append(_ value: flowlua_value) {
    let index = Int(raw.pointee.result_count)
    let inline = Int(FLOWLUA_INLINE_RESULTS)
    raw.pointee.result_count += 1
    if index < inline {
      flowlua_call_results(raw)[index] = value
      return
    }
    // Beyond the inline ones everything moves to a block that doubles.
    if index & (index - 1) == 0 || index == inline {
      let capacity = index < 16 ? 16 : index * 2
      let size = capacity * MemoryLayout<flowlua_value>.stride
      guard
        let grown = realloc(raw.pointee.many_results, size)?
          .assumingMemoryBound(to: flowlua_value.self)
      else {
        // Raised once Swift has returned. What the value holds has no place to be given back from.
        raw.pointee.result_count -= 1
        raw.pointee.overflow = Int32(FLOWLUA_NO_MEMORY)
        return
      }
      if index == inline {
        memcpy(grown, flowlua_call_results(raw), inline * MemoryLayout<flowlua_value>.stride)
      }
      raw.pointee.many_results = grown
    }
    raw.pointee.many_results?[index] = value
  }
}
