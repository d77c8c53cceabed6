internal import CFlowLua
internal import CLua
internal import FlowSystem

/// The result of a function that Lua called. Made by the `answer`s of `LuaCall`.
///
/// ```swift
/// func sort(_ call: LuaCall) throws -> LuaAnswer {
///   let names = try (0..<call.count).map { "\(try call.value($0 + 1))" }
///   return call.answer(names.sorted().map { .string(ByteString($0)) })
/// }
/// try vm.setGlobal("sort", .reference(vm.makeFunction(sort)))
/// ```
public struct LuaAnswer {
  let outcome: Int32
}

/// A function of the host.
///
/// It may throw: a `LuaError` raises its value, or its message after the script's `file:line:`; any
/// other Swift error passes through Lua unchanged, and `LuaVM.call` throws it again.
public typealias LuaFunction = (LuaCall) throws -> LuaAnswer

/// A function of the host in a collection. (A bare closure in a collection is wrapped again at each
/// access, which would slow down calls.)
package struct LuaMethod {
  /// The function.
  package let function: LuaFunction
  /// The way to try first when it is called as a `LuaDirectCall`.
  let direct: LuaDirectMethod?

  /// A function to put into a collection, with a faster way for calls of the kind of
  /// `LuaDirectCall`, if there is one.
  package init(_ function: @escaping LuaFunction, direct: LuaDirectMethod? = nil) {
    self.function = function
    self.direct = direct
  }
}

/// One call from Lua to Swift: arguments in, results out. Valid only until the function returns.
///
/// ```swift
/// let join = try vm.makeFunction { call in
///   call.answer([.integer(Int64(call.count))])
/// }
/// ```
public struct LuaCall {
  let raw: UnsafeMutablePointer<flowlua_call>

  /// The calling state.
  public var vm: LuaVM {
    // The state is alive while it calls, and C's context is its address. It isn't stored, so that a
    // call is plain data and passing it costs no reference counting.
    Unmanaged<LuaVM>.fromOpaque(raw.pointee.context).takeUnretainedValue()
  }

  var lua: OpaquePointer { raw.pointee.L }

  // MARK: Arguments, counted from 1

  /// The number of arguments.
  public var count: Int { Int(raw.pointee.argument_count) }

  /// The basic type of an argument.
  package func kind(_ index: Int) -> LuaKind {
    guard index >= 1, index <= count else { return .none }
    return LuaKind(rawValue: lua_type(lua, Int32(index))) ?? .none
  }

  /// Whether an argument is absent or nil.
  @usableFromInline package func isNil(_ index: Int) -> Bool {
    let kind = kind(index)
    return kind == .none || kind == .nil
  }

  /// An argument that is a boolean.
  package func boolean(_ index: Int) -> Bool? {
    kind(index) == .boolean ? lua_toboolean(lua, Int32(index)) != 0 : nil
  }

  /// An argument that is a number of subtype integer.
  package func integer(_ index: Int) -> Int64? {
    guard index >= 1, index <= count, lua_isinteger(lua, Int32(index)) != 0 else { return nil }
    return lua_tointegerx(lua, Int32(index), nil)
  }

  /// An argument that is a number of either subtype.
  package func number(_ index: Int) -> Double? {
    kind(index) == .number ? lua_tonumberx(lua, Int32(index), nil) : nil
  }

  /// An argument that is a string in UTF-8; nil for anything else.
  package func string(_ index: Int) -> String? {
    bytes(index).flatMap { String(validating: $0.bytes, as: UTF8.self) }
  }

  /// An argument that is a string of any bytes; nil for anything else.
  package func bytes(_ index: Int) -> ByteString? {
    withBytes(index) { vm.copiedText($0) }
  }

  /// Lends the bytes of an argument that is a string; nil if it is none.
  @usableFromInline package func withBytes<Result>(
    _ index: Int, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result? {
    guard index >= 1, index <= count else { return nil }
    var length = 0
    guard let bytes = flowlua_bytes(lua, Int32(index), &length) else { return nil }
    return try body(UnsafeRawBufferPointer(start: bytes, count: length))
  }

  /// An argument of any type.
  public func value(_ index: Int) throws -> LuaValue {
    guard index >= 1, index <= count else { return .nil }
    return try vm.value(in: lua, at: Int32(index))
  }

  /// The Swift object in an argument, if it has this type. The check looks at the contents of the
  /// userdata, so it is safe with any value from a script, also when the script calls a method by
  /// hand.
  @_spi(Scripting) public func object<Object>(_ index: Int, _ type: LuaObjectType<Object>)
    -> Object?
  {
    guard index >= 1, index <= count,
      let pointer = flowlua_object(raw.pointee.state, lua, Int32(index), type.id)
    else { return nil }
    let object = Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue()
    // Only objects of this class ever got the type's number.
    return unsafeDowncast(object, to: Object.self)
  }

  /// The Swift object in an argument, and the number of its type; nil if it is none.
  @usableFromInline
  func anyObject(_ index: Int) -> (object: AnyObject, type: Int32)? {
    guard index >= 1, index <= count else { return nil }
    var type: Int32 = 0
    guard let pointer = flowlua_any_object(raw.pointee.state, lua, Int32(index), &type) else {
      return nil
    }
    return (Unmanaged<AnyObject>.fromOpaque(pointer).takeUnretainedValue(), type)
  }

  /// The slot and generation in an argument that is a handle of this type.
  package func handle(_ index: Int, _ type: LuaHandleType) -> (slot: UInt32, generation: UInt64)? {
    var slot: UInt32 = 0
    var generation: UInt64 = 0
    guard index >= 1, index <= count,
      flowlua_handle(raw.pointee.state, lua, Int32(index), type.id, &slot, &generation)
    else { return nil }
    return (slot, generation)
  }

  /// The name of an argument's type, for messages.
  package func typeName(_ index: Int) -> String {
    guard index >= 1, index <= count else { return "no value" }
    var length = 0
    let name = flowlua_type_name(raw.pointee.state, lua, Int32(index), &length)
    return ByteString(UnsafeRawBufferPointer(start: name, count: length)).description
  }

  /// The integer that `intern` keeps for a string argument.
  package func interned(_ index: Int) -> Int64? {
    let found = flowlua_interned(raw.pointee.state, lua, Int32(index))
    return found >= 0 ? found : nil
  }

  /// Keeps an integer for a string argument, for `interned`.
  package func intern(_ index: Int, as integer: Int64) throws {
    try vm.check(flowlua_intern(raw.pointee.state, lua, Int32(index), integer))
  }

  /// `file:line: ` of the script; if no Lua function is calling, of the code that has started this one, if that is known.
  package var position: ByteString { position(level: 1) }

  /// The position of the innermost Lua function at a level of the stack or above: 1 is the caller of this function,
  /// and 2 is the caller of that one.
  package func position(level: Int32) -> ByteString {
    let position = vm.position(in: lua, level: level)
    return position.isEmpty ? vm.positionOfStart?() ?? "" : position
  }

  /// The script's place, in the form for `LuaVM.text(ofOrigin:)`; cheaper than `position`. 0 if no
  /// Lua function is calling.
  package var origin: UInt64 { flowlua_origin(raw.pointee.state, lua) }

  // MARK: Results

  /// No results.
  @usableFromInline package func answer() -> LuaAnswer {
    LuaAnswer(outcome: Int32(FLOWLUA_RETURN))
  }

  /// One result.
  package func answer(_ value: LuaValue) -> LuaAnswer {
    append(value)
    return answer()
  }

  /// Several results.
  public func answer(_ values: [LuaValue]) -> LuaAnswer {
    for value in values { append(value) }
    return answer()
  }

  /// Bytes as one result.
  package func answer(bytes: UnsafeRawBufferPointer) -> LuaAnswer {
    append(bytes: bytes)
    return answer()
  }

  /// One of the arguments as the result, without conversion.
  package func answer(argument index: Int) -> LuaAnswer {
    guard index >= 1, index <= count else { return answer(.nil) }
    append(argument: Int32(index))
    return answer()
  }

  /// Returns the value on top of the stack as the result.
  func answerTop() -> LuaAnswer {
    append(argument: lua_gettop(lua))
    return answer()
  }

  /// A Swift object as the result: always the same userdata for the same object.
  @_spi(Scripting) public func answer<Object>(_ object: Object, _ type: LuaObjectType<Object>)
    -> LuaAnswer
  {
    addResult(object, type)
    return answer()
  }

  /// Waits; the results are those of `wait.finish`.
  package func wait(_ wait: LuaWait) throws -> LuaAnswer {
    if wait.isReady {
      // A second waiter would never be notified.
      if let problem = wait.problem { throw problem }
      return try wait.finish(self)
    }
    // Without the retain of `vm`.
    Unmanaged<LuaVM>.fromOpaque(raw.pointee.context)._withUnsafeGuaranteedRef { $0.hold(wait) }
    raw.pointee.wait = Unmanaged.passUnretained(wait).toOpaque()
    return LuaAnswer(outcome: Int32(FLOWLUA_WAIT))
  }

  /// Fills in an error, which is raised once Swift has returned.
  func raise(_ error: any Error) -> Int32 {
    dropResults()
    if let error = error as? LuaError {
      if let value = error.value {
        append(value)
      } else if error.code == .instructions {
        // As it came: no message handler is called, and the caller gets an error of the limit.
        append(.string(LuaVM.memoryError))
      } else if error.code == .memory || error.code == .overflow {
        append(.string(error.message))
      } else {
        append(.string(ByteString(position.bytes + error.message.bytes)))
      }
    } else {
      var value = flowlua_value.empty
      value.kind = Int32(FLOWLUA_FAILURE)
      // C returns this reference, also when the userdata is collected.
      value.pointer = UnsafeRawPointer(
        Unmanaged<AnyObject>.passRetained(LuaFailureBox(vm.onThrownError?(error) ?? error))
          .toOpaque())
      raw.pointee.heavy = true
      append(value)
    }
    return Int32(FLOWLUA_RAISE)
  }

  /// Discards results that were added before an error.
  private func dropResults() {
    let count = Int(raw.pointee.result_count)
    let results = raw.pointee.many_results ?? flowlua_call_results(raw)
    for index in 0..<count { flowlua_dispose(raw.pointee.state, &results[index]) }
    // Class 'e' occurs only for variables to be closed, and a C function has none.
    lua_settop(lua, raw.pointee.argument_count)
    raw.pointee.result_count = 0
    raw.pointee.inline_used = 0
    raw.pointee.heavy = false
    raw.pointee.overflow = LUA_OK
    free(raw.pointee.many_results)
    raw.pointee.many_results = nil
  }

  /// Adds a result to those that `answer()` returns.
  @usableFromInline
  func addResult(_ value: LuaValue) { append(value) }

  /// Adds an object to them.
  func addResult<Object>(_ object: Object, _ type: LuaObjectType<Object>) {
    raw.pointee.heavy = true
    append(flowlua_value(object, type))
  }

  private func append(_ value: LuaValue) {
    switch value {
    case .string(let string): string.bytes.withUnsafeBytes { append(bytes: $0) }
    case .reference(let reference):
      // It is pushed on the stack now, because the reference may be released before C reads the
      // results.
      vm.checkHome(reference)
      let room = flowlua_make_room(raw.pointee.state, lua, 4)
      guard room == LUA_OK else {
        raw.pointee.overflow = room
        return
      }
      flowlua_push_reference(raw.pointee.state, lua, reference.id)
      append(argument: lua_gettop(lua))
    default: append(flowlua_value(scalar: value) ?? .empty)
    }
  }

  /// Appends what stands at an index of the stack.
  private func append(argument index: Int32) {
    var value = flowlua_value.empty
    value.kind = Int32(FLOWLUA_ARGUMENT)
    value.reference = index
    append(value)
  }

  private func append(bytes: UnsafeRawBufferPointer) {
    var value = flowlua_value(lending: bytes)
    let used = Int(raw.pointee.inline_used)
    if bytes.count <= Int(FLOWLUA_INLINE_BYTES) - used {
      let room = flowlua_call_bytes(raw) + used
      if bytes.count > 0, let base = bytes.baseAddress { memcpy(room, base, bytes.count) }
      value.pointer = UnsafeRawPointer(room)
      raw.pointee.inline_used += UInt32(bytes.count)
      append(value)
    } else {
      // A long string is pushed on the stack now, so that it is copied once.
      let status = flowlua_push_protected(raw.pointee.state, &value)
      guard status == LUA_OK else {
        // Raised once Swift has returned.
        flowlua_discard_error(raw.pointee.state, status)
        raw.pointee.overflow = Int32(
          status == FLOWLUA_NO_ROOM ? FLOWLUA_NO_ROOM : FLOWLUA_NO_MEMORY)
        return
      }
      append(argument: lua_gettop(lua))
    }
  }

  private func append(_ value: flowlua_value) {
    let index = Int(raw.pointee.result_count)
    let inline = Int(FLOWLUA_INLINE_RESULTS)
    raw.pointee.result_count += 1
    if index < inline {
      flowlua_call_results(raw)[index] = value
      return
    }
    // Once the inline results are full, all of them move to a block that doubles.
    if index & (index - 1) == 0 || index == inline {
      let capacity = index < 16 ? 16 : index * 2
      let size = capacity * MemoryLayout<flowlua_value>.stride
      guard
        let grown = flowlua_resize_own(raw.pointee.many_results, size)?
          .assumingMemoryBound(to: flowlua_value.self)
      else {
        // Raised once Swift has returned. The references in the value can't be returned to anyone.
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

/// A coroutine that the scheduler runs. It stays valid until `LuaVM.release`.
package struct RunningCoroutine {
  let raw: OpaquePointer
  /// Detects a use after the release.
  let generation: UInt32

  init(raw: OpaquePointer) {
    self.raw = raw
    generation = flowlua_coroutine_generation(raw)
  }
}

/// The outcome of starting or continuing a function of a script as a coroutine of the pool. A
/// coroutine that comes with it has to be released by the caller.
package enum LuaOutcome {
  /// It returned; its coroutine is back in the pool. The value is its first result, or nil if
  /// there is none or it isn't wanted; it was taken out of its mark, unless that is 0 (see
  /// `LuaCallback.Result`).
  case returned(LuaValue, mark: Int32)
  /// It returned the table that was its argument at this index, from 0.
  case returnedArgument(Int, mark: Int32)
  /// It raised an error; see `LuaVM.failure`.
  case failed(RunningCoroutine)
  /// It waits; see `LuaVM.parkedWait`.
  case parked(RunningCoroutine)
  /// The script yielded although nobody had resumed it.
  case yielded(RunningCoroutine)
  /// It was busy and has been stopped; all its coroutines are closed.
  case stopped(RunningCoroutine)
  /// It couldn't be started or continued, or there was no memory for its result.
  case refused(any Error)
}

extension LuaVM {
  /// Starts a function of a script; see `flowlua_start`.
  @inline(__always)
  func start(_ start: inout flowlua_start) -> LuaOutcome {
    let status = flowlua_start_function(state, &start)
    guard status == FLOWLUA_RETURNED else { return outcome(status, start) }
    switch Int(start.result.kind) {
    case FLOWLUA_NIL: return .returned(.nil, mark: start.mark)
    case FLOWLUA_ARGUMENT: return .returnedArgument(Int(start.result.reference), mark: start.mark)
    case FLOWLUA_REFERENCE: return table(start.result.reference, mark: start.mark)
    default: return .returned(start.result.scalar, mark: start.mark)
    }
  }

  private func table(_ id: Int32, mark: Int32) -> LuaOutcome {
    if id == 0 { return .refused(LuaError(.memory, "not enough memory")) }
    return .returned(.reference(LuaReference(vm: self, id: id, kind: .table)), mark: mark)
  }

  @inline(never)
  private func outcome(_ status: Int32, _ start: flowlua_start) -> LuaOutcome {
    guard status >= 0, let raw = start.coroutine else { return .refused(takeError(status)) }
    return outcome(RunningCoroutine(raw: raw), status, start.result_count, mark: start.mark)
  }

  /// The outcome of a coroutine that has run.
  func outcome(
    _ coroutine: RunningCoroutine, _ status: Int32, _ results: Int32, mark: Int32 = 0
  ) -> LuaOutcome {
    switch Int(status) {
    case FLOWLUA_FINISHED:
      defer { release(coroutine, finished: true) }
      if results == 0 { return .returned(.nil, mark: mark) }
      do {
        let lua = flowlua_coroutine_state(coroutine.raw)
        return .returned(try value(in: lua, at: -results), mark: mark)
      } catch {
        return .refused(error)
      }
    case FLOWLUA_PARKED:
      if let wait = begunWait {
        // C returns this reference once the coroutine has continued or is released: C has its
        // address.
        flowlua_coroutine_keep_wait(coroutine.raw, Unmanaged.passRetained(wait).toOpaque())
      }
      return .parked(coroutine)
    case FLOWLUA_FAILED: return .failed(coroutine)
    case FLOWLUA_YIELDED: return .yielded(coroutine)
    default:
      giveUpBegunWait()
      return .stopped(coroutine)
    }
  }
}
