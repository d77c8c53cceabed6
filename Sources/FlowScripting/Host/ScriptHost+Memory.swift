@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The part of the memory limit that is outside of the Lua state: logs, values that ops have set, and outputs.
extension ScriptHost {
  /// Counts what runs hold into the limit of the state, if it has one.
  func countMemory() {
    guard vm.memoryLimit != nil, loop.memory == nil else { return }
    let account = MemoryAccount(
      // A run may log after its host was closed.
      onGrowth: { [weak vm] in vm?.noteMemoryOutside() },
      exceededLimit: { [weak vm] in
        // A program may write until it has ended, also after the host was closed.
        guard let vm, vm.isBeyondMemoryLimit() else { return nil }
        return vm.memoryLimit
      })
    loop.memory = account
    vm.memoryOutside = { account.held }
  }

  /// Refuses bytes that a script gives away when the limit is exceeded.
  func checkMemory() throws {
    if vm.isBeyondMemoryLimit() { throw LuaError(.memory, "not enough memory") }
  }
}
