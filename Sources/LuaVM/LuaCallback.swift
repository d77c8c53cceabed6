internal import CFlowLua

/// A function that is called over and over with a few values and, if it is to get one, a handle behind
/// them, each time as a coroutine of the pool, for its first result.
public final class LuaCallback {
  /// How a call went.
  public enum Progress {
    /// It returned; its coroutine is back in the pool.
    case returned(LuaValue)
    /// It returned the table that it was given as its argument of this index, from 0.
    case returnedArgument(Int)
    /// It returned something else than a scalar or a table, failed, waits, or was stopped.
    case step(LuaStep)
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
    var result = flowlua_value.empty
    let status = flowlua_call_back(
      host, functionID, arguments, count, getsHandle, slot, generation, deadline, grace, &coroutine,
      &results, &result)
    if status == FLOWLUA_DONE { return returned(result) }
    guard let coroutine else { return .refused(LuaError(.memory, "not enough memory")) }
    return .step(vm.step(LuaCoroutine(raw: coroutine), status, results))
  }

  @inline(__always)
  private func returned(_ result: flowlua_value) -> Progress {
    switch Int(result.kind) {
    case FLOWLUA_BOOLEAN: return .returned(.boolean(result.integer != 0))
    case FLOWLUA_INTEGER: return .returned(.integer(result.integer))
    case FLOWLUA_NUMBER: return .returned(.number(result.number))
    case FLOWLUA_ARGUMENT: return .returnedArgument(Int(result.reference))
    case FLOWLUA_REFERENCE:
      guard result.reference > 0 else { return .refused(LuaError(.memory, "not enough memory")) }
      return .returned(.reference(LuaReference(vm: vm, id: result.reference, kind: .table)))
    default: return .returned(.nil)
    }
  }
}
