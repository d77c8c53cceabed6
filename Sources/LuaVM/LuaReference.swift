internal import CFlowLua
internal import CLua

/// A Lua value that a Swift program holds. While the reference exists the value isn't collected.
///
/// It may be released on any thread; a release on another thread is queued for the owner thread.
/// It keeps its state. If a function of the host keeps references of its own state, which in turn
/// keeps the function, they form a cycle that only `LuaVM.close()` breaks.
/// Once the state is closed the reference is void: using it is a `LuaError` of code `closed`,
/// releasing it does nothing.
// Unchecked: it has a number that only means something to its state, whose every entry checks the
// thread; the release queue has a lock.
public final class LuaReference: @unchecked Sendable {
  /// The state of the value.
  public let vm: LuaVM

  /// The basic type of the value.
  public let kind: LuaKind

  private(set) var id: Int32

  /// Takes ownership of a reference in C's table.
  init(vm: LuaVM, id: Int32, kind: LuaKind) {
    self.vm = vm
    self.id = id
    self.kind = kind
  }

  /// Whether the value can still be used.
  public var isValid: Bool { vm.isOpen }

  /// Keeps the value alive as long as its state.
  func keepForever() { id = 0 }

  deinit {
    if id != 0 { vm.release(reference: id) }
  }
}
