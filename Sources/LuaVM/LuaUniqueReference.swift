internal import CFlowLua
internal import CLua

/// A Lua value with exactly one owner: a `LuaReference` without an object of its own. It is
/// released when it is used up or when its owner releases it, whichever comes first.
///
/// Unlike a `LuaReference` it doesn't keep its state: the owner does, and releases the value first.
/// Otherwise the same rules apply: it may be released on any thread, and is void once the state is
/// closed.
package struct LuaUniqueReference: ~Copyable {
  // Unmanaged, for the reason above: counting would cost more than the rest.
  private let vm: Unmanaged<LuaVM>
  private let id: Int32

  /// Takes ownership of a reference in C's table.
  init(vm: Unmanaged<LuaVM>, id: Int32) {
    self.vm = vm
    self.id = id
  }

  deinit { vm._withUnsafeGuaranteedRef { $0.release(reference: id) } }

  /// Passes the reference in C's table to the caller, who uses it with this state.
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
  package func uniqueFunction(_ index: Int) throws -> LuaUniqueReference? {
    guard kind(index) == .function else { return nil }
    try vm.check(flowlua_make_room(raw.pointee.state, lua, 2))
    let id = flowlua_share(raw.pointee.state, lua, Int32(index))
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return LuaUniqueReference(vm: .fromOpaque(raw.pointee.context), id: id)
  }
}

extension LuaVM {
  /// One more reference to a value, for one owner.
  ///
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func uniqueReference(to reference: LuaReference) throws -> LuaUniqueReference {
    try enter()
    checkHome(reference)
    try check(flowlua_make_room(state, running, 2))
    flowlua_push_reference(state, running, reference.id)
    let id = flowlua_reference(state, running)
    guard id > 0 else { throw LuaError(.memory, "not enough memory") }
    return LuaUniqueReference(vm: .passUnretained(self), id: id)
  }
}
