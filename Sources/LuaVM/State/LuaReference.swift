internal import CFlowLua
internal import CLua

/// A Lua value that a Swift program holds. While the reference exists the value isn't collected.
///
/// It may be released on any thread; a release on another thread is queued for the owner thread.
/// It keeps its state. If a function of the host keeps references of its own state, which in turn
/// keeps the function, they form a cycle that only `LuaVM.close()` breaks.
/// Once the state is closed the reference is void: using it is a `LuaError` of code `closed`,
/// releasing it does nothing.
///
/// ```swift
/// let chunk = try vm.load("return function(name) return 'hello, ' .. name end", name: "greet.lua")
/// let greet = try vm.call(chunk, as: LuaReference.self)
/// print(try vm.call(greet, "Ada", as: String.self))
/// ```
// Unchecked: it has a number that only means something to its state, whose every entry checks the
// thread; the release queue has a lock.
public final class LuaReference: @unchecked Sendable {
  /// The state of the value.
  package let vm: LuaVM

  /// The basic type of the value.
  package let kind: LuaKind

  private(set) var id: Int32

  /// Takes ownership of a reference in C's table.
  init(vm: LuaVM, id: Int32, kind: LuaKind) {
    self.vm = vm
    self.id = id
    self.kind = kind
  }

  /// Whether the value can still be used.
  package var isValid: Bool { vm.isOpen }

  /// Keeps the value alive as long as its state.
  func keepForever() { id = 0 }

  deinit {
    if id != 0 { vm.release(reference: id) }
  }
}

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
