internal import CFlowLua
internal import CLua

/// A Lua value that a Swift program holds on to. While it exists the value isn't collected.
///
/// It may be released on any thread: a release elsewhere than on the owner thread is queued to it.
/// It keeps its state: a function of the host that keeps references of its own state, which in turn
/// keeps the function, makes a ring that only `LuaVM.close()` opens.
/// Once the state is closed the reference is void: using it is a `LuaError` of code `closed`,
/// releasing it does nothing.
// Unchecked: it carries a number that only means something to its state, whose every entry checks
// the thread; the release queue has a lock.
public final class LuaReference: @unchecked Sendable {
  /// The state that the value lives in.
  public let vm: LuaVM

  /// The basic type of the value.
  public let kind: LuaKind

  private(set) var id: Int32

  /// Takes over a reference of C's table.
  init(vm: LuaVM, id: Int32, kind: LuaKind) {
    self.vm = vm
    self.id = id
    self.kind = kind
  }

  /// Whether the value can still be used.
  public var isValid: Bool { vm.isOpen }

  /// Lets the value live as long as its state.
  func keepForever() { id = 0 }

  deinit {
    if id != 0 { vm.release(reference: id) }
  }
}
