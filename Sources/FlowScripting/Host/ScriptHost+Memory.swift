@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// The part of the memory limit that is outside of the Lua state: texts that were copied from it, logs, outputs,
/// and keys.
extension ScriptHost {
  /// Counts what the host holds for its scripts into the limit of the state, if it has one.
  func countMemory() {
    guard vm.memoryLimit != nil, loop.memory == nil else { return }
    let account = MemoryAccount(
      limit: { [weak vm] in vm?.memoryLimit },
      // A run may log after its host was closed.
      onGrowth: { [weak vm] in vm?.noteMemoryOutside() },
      exceededLimit: { [weak vm] in
        // A program may write until it has ended, also after the host was closed.
        guard let vm, vm.isBeyondMemoryLimit() else { return nil }
        return vm.memoryLimit
      })
    loop.memory = account
    vm.memoryOutside = { account.held(within: $0) }
    vm.onCopiedText = { account.add($0) }
  }

  /// The state has another limit, or none: so do all workers together.
  func memoryLimitChanged() {
    countMemory()
    memoryBudget?.limit = vm.memoryLimit
    for pool in openPools { pool.memoryLimitChanged() }
  }

  /// Refuses bytes that a script gives away when the limit is exceeded.
  func checkMemory() throws {
    if vm.isBeyondMemoryLimit() { throw LuaError(.memory, "not enough memory") }
  }

  /// Refuses a new key when keys have taken a quarter of the limit. They are kept until the host is closed, so
  /// they must leave the rest to others. (The state keeps the names of keys too, another quarter.)
  func checkMemory(forKey name: ByteString) throws {
    guard let limit = vm.memoryLimit,
      loop.keys.counted + KeyTable.size(of: name) > limit / 4, !loop.keys.contains(name)
    else { return }
    throw LuaError(.memory, "not enough memory")
  }

  /// Refuses a new secret when secrets have taken a quarter of the limit: no line may ever show their texts,
  /// which are kept until the host is closed.
  func checkMemory(forSecret text: ByteString) throws {
    guard let limit = vm.memoryLimit, loop.secrets.byteCount + text.count > limit / 4
    else { return }
    throw LuaError(.memory, "not enough memory")
  }

  /// Stops counting a text that travels to another state, where it counts from now on.
  func handOver(_ text: ByteString) { loop.memory?.handOver(text) }
}
