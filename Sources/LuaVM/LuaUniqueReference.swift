internal import CFlowLua
internal import CLua

/// A Lua value that exactly one owner holds on to: a `LuaReference` without an object of its own. It is
/// given back when it is used up or its owner lets go of it, whichever is first.
///
/// Unlike a `LuaReference` it doesn't keep its state: the owner does, and lets go of the value first.
/// Else the same holds: it may be released on any thread, and is void once the state is closed.
public struct LuaUniqueReference: ~Copyable {
  // Unmanaged, as said above: counting would cost more than the rest.
  private let vm: Unmanaged<LuaVM>
  private let id: Int32

  /// Takes over a reference of C's table.
  init(vm: Unmanaged<LuaVM>, id: Int32) {
    self.vm = vm
    self.id = id
  }

  deinit { vm._withUnsafeGuaranteedRef { $0.release(reference: id) } }

  /// Gives the reference of C's table to the caller, who uses it with this state.
  consuming func take(for user: LuaVM) -> Int32 {
    if vm.toOpaque() != Unmanaged.passUnretained(user).toOpaque() {
      misuse("a value of one Lua state was used with another")
    }
    let id = id
    discard self
    return id
  }
}

extension LuaCall {
  /// An argument that is a function, for one owner.
  ///
  /// - Returns: The function; nil if the argument is none.
  /// - Throws: A `LuaError` when memory runs out.
  public func uniqueFunction(_ index: Int) throws -> LuaUniqueReference? {
    guard kind(index) == .function else { return nil }
    try vm.check(flowlua_make_room(raw.pointee.host, state, 2))
    let id = flowlua_share(raw.pointee.host, state, Int32(index))
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return LuaUniqueReference(vm: .fromOpaque(raw.pointee.context), id: id)
  }
}

extension LuaVM {
  /// One more reference to a value, for one owner.
  ///
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  public func uniqueReference(to reference: LuaReference) throws -> LuaUniqueReference {
    try enter()
    checkHome(reference)
    try check(flowlua_make_room(host, running, 2))
    flowlua_push_reference(host, running, reference.id)
    let id = flowlua_reference(host, running)
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return LuaUniqueReference(vm: .passUnretained(self), id: id)
  }
}

/// How a function went that was run with `LuaVM.run`.
// None of its cases holds anything that is counted.
public enum LuaProgress {
  /// It returned a scalar, or nothing; its coroutine is back in the pool.
  case returned(LuaScalar)
  /// It returned something else, failed, waits, or was stopped.
  case step(LuaStep)
  /// It couldn't be started; see `LuaVM.refusal`.
  case refused
}

extension LuaVM {
  /// Runs a function as a coroutine of the pool up to its first wait, with a `deadline` watched from
  /// its first instruction on; see `watch`.
  ///
  /// - Parameters:
  ///   - function: The function, which is used up.
  ///   - argument: Its only argument.
  ///   - deadline: When it is to be stopped; 0 for never.
  ///   - grace: How long its cleanups may take then, in nanoseconds.
  /// - Returns: How far it got.
  public func run(
    _ function: consuming LuaUniqueReference, _ argument: LuaValue, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaProgress {
    do { try enter() } catch { return .refused }
    let id = function.take(for: self)
    var value = flowlua_value.empty
    switch argument {
    case .string(let string):
      return string.bytes.withUnsafeBytes { bytes in
        value.kind = Int32(FLOWLUA_STRING)
        value.integer = Int64(bytes.count)
        value.pointer = bytes.baseAddress
        return run(id, &value, deadline, grace)
      }
    case .reference(let reference):
      checkHome(reference)
      value = .reference(reference.id)
      return withExtendedLifetime(reference) { run(id, &value, deadline, grace) }
    default:
      value = flowlua_value(scalar: argument)
      return run(id, &value, deadline, grace)
    }
  }

  /// The same with a scalar as the argument.
  public func run(
    _ function: consuming LuaUniqueReference, scalar: LuaScalar, deadline: Int64 = 0,
    grace: Int64 = 0
  ) -> LuaProgress {
    do { try enter() } catch { return .refused }
    let id = function.take(for: self)
    var value = flowlua_value(scalar)
    return run(id, &value, deadline, grace)
  }

  /// Why a function couldn't be started just now: memory ran out, or the state is closed.
  public var refusal: LuaError {
    isOpen
      ? LuaError(.memory, "not enough memory") : LuaError(.closed, "the Lua state is closed")
  }

  private func run(
    _ function: Int32, _ value: inout flowlua_value, _ deadline: Int64, _ grace: Int64
  ) -> LuaProgress {
    var coroutine: OpaquePointer?
    var results: Int32 = 0
    let status = flowlua_run_function(
      host, function, &value, deadline, grace, &coroutine, &results)
    if status == FLOWLUA_DONE { return .returned(value.plainScalar) }
    guard let coroutine else { return .refused }
    return .step(step(LuaCoroutine(raw: coroutine), status, results))
  }
}
