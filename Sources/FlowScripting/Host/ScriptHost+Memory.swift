@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The part of the memory limit that is outside of the Lua state: logs, and values that ops have set.
extension ScriptHost {
  /// Counts what runs hold into the limit of the state, if it has one.
  func countMemory() {
    guard vm.memoryLimit != nil, loop.memory == nil else { return }
    let account = MemoryAccount { [unowned vm] in vm.noteMemoryOutside() }
    loop.memory = account
    vm.memoryOutside = { account.held }
  }

  /// Refuses bytes that a script gives away when the limit is exceeded.
  func checkMemory() throws {
    if vm.isBeyondMemoryLimit() { throw LuaError(.memory, "not enough memory") }
  }
}
