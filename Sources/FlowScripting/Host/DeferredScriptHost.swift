package import FlowEngine
@_spi(Scripting) package import LuaVM

/// A script host that is made when a script first requires `flow`, so that scripts without flows
/// start as fast as possible.
package final class DeferredScriptHost {
  /// The Lua state.
  package let vm: LuaVM
  /// The host; nil as long as no script has required `flow`.
  package private(set) var host: ScriptHost?
  /// Called once, when the host has been made.
  package var onMake: ((ScriptHost) -> Void)?

  private let makeLoop: () -> FlowEventLoop

  /// Lets `require "flow"` or `require "flowlua"` make the host.
  ///
  /// - Parameters:
  ///   - vm: The state, which must not have a host yet.
  ///   - makeLoop: Makes the loop of the host.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package init(
    vm: LuaVM, loop makeLoop: @escaping () -> FlowEventLoop = { FlowEventLoop() }
  ) throws {
    self.vm = vm
    self.makeLoop = makeLoop
    // The state keeps this function, and the function this object, until the state is closed.
    try vm.preload(ScriptHost.moduleNames) { [self] call in
      try makeHost().requiredModule(call)
    }
    try vm.addToMissingModules { name in
      ScriptHost.moduleNear(name.description).map { "did you mean '\($0)'?" }
    }
  }

  /// The host, which is made if there is none yet.
  package func makeHost() throws -> ScriptHost {
    if let host { return host }
    let host = try ScriptHost(vm: vm, loop: makeLoop())
    self.host = host
    onMake?(host)
    return host
  }

  /// Closes the Lua state and the host, if there is one, for a process that ends next.
  package func closeAtExit() {
    if let host { host.closeAtExit() } else { vm.close() }
  }
}
