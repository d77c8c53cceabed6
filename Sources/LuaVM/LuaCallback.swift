internal import CFlowLua

/// A function that is called over and over with a few values and, if it is to get one, a handle behind
/// them, each time as a coroutine of the pool, for its first result.
public final class LuaCallback {
  /// How a call went.
  public enum Progress {
    /// It returned a scalar or a table, perhaps in a mark (see `LuaVM.makeMarker`; else 0); its
    /// coroutine is back in the pool.
    case returned(LuaValue, mark: Int32)
    /// The same with the table that it was given as its argument of this index, from 0.
    case returnedArgument(Int, mark: Int32)
    /// It returned something else, perhaps in a mark that it was taken out of; or it failed, waits, or
    /// was stopped.
    case step(LuaStep, mark: Int32)
    /// It couldn't be called: memory ran out, or the state is closed.
    case refused(LuaError)
  }

  /// The function.
  public let function: LuaReference
  // Unsafe: the reference keeps the state.
  private unowned(unsafe) let vm: LuaVM
  private let host: OpaquePointer
  private let functionID: Int32
  private let getsHandle: Bool

  /// A function to call.
  ///
  /// - Parameters:
  ///   - function: The function.
  ///   - getsHandle: Whether a handle is its last argument.
  public init(_ function: LuaReference, getsHandle: Bool = false) {
    vm = function.vm
    self.function = function
    host = vm.host
    functionID = function.id
    self.getsHandle = getsHandle
  }

  /// Where the function was defined, as `file:line: `; nothing for one of C.
  public var position: LuaString {
    guard (try? vm.enter()) != nil else { return "" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 160) { buffer in
      guard let base = buffer.baseAddress else { return "" }
      let length = flowlua_where_defined(host, functionID, base, 160)
      return LuaString(buffer.prefix(Int(length)).map { UInt8(bitPattern: $0) })
    }
  }

  /// Calls it, up to its first wait. Slot and generation make the handle; it is known by them also
  /// where it gets none. With a `deadline` it is watched from its first instruction on; see
  /// `LuaVM.watch`. Owner thread only.
  public func start(
    _ first: LuaValue, _ second: LuaValue?, slot: UInt32, generation: UInt64, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> Progress {
    do { try vm.enter() } catch {
      return .refused(LuaError(.closed, "the Lua state is closed"))
    }
    guard let plain = plain(first), let other = self.plain(second ?? .nil) else {
      return start(
        second.map { [first, $0] } ?? [first], slot: slot, generation: generation,
        deadline: deadline, grace: grace)
    }
    return withUnsafeTemporaryAllocation(of: flowlua_value.self, capacity: 2) { raw in
      raw.initializeElement(at: 0, to: plain)
      raw.initializeElement(at: 1, to: other)
      return run(raw.baseAddress, second == nil ? 1 : 2, slot, generation, deadline, grace)
    }
  }

  /// The same with any number of arguments.
  public func start(
    _ arguments: [LuaValue], slot: UInt32, generation: UInt64, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> Progress {
    do { try vm.enter() } catch {
      return .refused(LuaError(.closed, "the Lua state is closed"))
    }
    // Strings are lent for the time of the call.
    return withRawValues(of: vm, arguments) {
      run($0, Int32(clamping: arguments.count), slot, generation, deadline, grace)
    }
  }

  /// A value in the form of C; nil for a string.
  @inline(__always)
  private func plain(_ value: LuaValue) -> flowlua_value? {
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
    case .string: return nil
    case .reference(let reference):
      vm.checkHome(reference)
      plain = .reference(reference.id)
    }
    return plain
  }

  private func run(
    _ arguments: UnsafeMutablePointer<flowlua_value>?, _ count: Int32, _ slot: UInt32,
    _ generation: UInt64, _ deadline: Int64, _ grace: Int64
  ) -> Progress {
    guard let arguments else { return .refused(LuaError(.memory, "not enough memory")) }
    var coroutine: OpaquePointer?
    var results: Int32 = 0
    var mark: Int32 = 0
    var result = flowlua_value.empty
    let status = flowlua_call_back(
      host, functionID, arguments, count, getsHandle, slot, generation, deadline, grace, &coroutine,
      &results, &mark, &result)
    if status == FLOWLUA_DONE { return returned(result, mark) }
    guard let coroutine else { return .refused(LuaError(.memory, "not enough memory")) }
    return .step(vm.step(LuaCoroutine(raw: coroutine), status, results), mark: mark)
  }

  @inline(__always)
  private func returned(_ result: flowlua_value, _ mark: Int32) -> Progress {
    switch Int(result.kind) {
    case FLOWLUA_BOOLEAN: return .returned(.boolean(result.integer != 0), mark: mark)
    case FLOWLUA_INTEGER: return .returned(.integer(result.integer), mark: mark)
    case FLOWLUA_NUMBER: return .returned(.number(result.number), mark: mark)
    case FLOWLUA_ARGUMENT: return .returnedArgument(Int(result.reference), mark: mark)
    case FLOWLUA_REFERENCE:
      guard result.reference > 0 else { return .refused(LuaError(.memory, "not enough memory")) }
      let table = LuaReference(vm: vm, id: result.reference, kind: .table)
      return .returned(.reference(table), mark: mark)
    default: return .returned(.nil, mark: mark)
    }
  }
}

extension LuaVM {
  /// A function that puts its argument into a userdata with a mark: what functions of a script return
  /// when there is more to say than a value.
  ///
  /// - Parameters:
  ///   - mark: The mark, which isn't 0.
  ///   - metatable: The metatable of the userdata.
  /// - Returns: The function.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  public func makeMarker(_ mark: Int32, metatable: LuaReference) throws -> LuaReference {
    try enter()
    checkHome(metatable)
    try check(flowlua_make_marker(host, mark, metatable.id))
    return try popReference(running, .function)
  }

  /// The mark of a marked value, and the value in it; mark 0, and the value itself, for any other.
  public func unmark(_ value: LuaValue) throws -> (mark: Int32, value: LuaValue) {
    guard case .reference(let reference) = value, reference.kind == .userdata else {
      return (0, value)
    }
    try enter()
    checkHome(reference)
    let lua = running
    try check(flowlua_make_room(host, lua, 4))
    flowlua_push_reference(host, lua, reference.id)
    let mark = flowlua_unmark(host, lua)
    return (mark, try popValue(lua))
  }
}
