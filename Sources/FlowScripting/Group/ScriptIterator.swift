@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// An iterator of a script, whose items a group executes: a task whose function is called for each of them.
final class ScriptIterator: ScriptTask {
  private let function: LuaCallback
  private let takeLate: (FlowValue) -> Void
  /// Whether the function is running, or waits.
  @exclusivity(unchecked) private var isCalled = false

  fileprivate init(
    _ host: ScriptHost, _ function: LuaReference, _ take: @escaping (FlowValue) -> Void
  ) {
    self.function = LuaCallback(function, result: .value)
    takeLate = take
    super.init(host, nil, .immediate, nil)
  }

  /// Begins, as one of an owner's tasks.
  fileprivate func begin(in owner: OwnedTasks) {
    owner.add(self)
    begin()
    hold()
  }

  /// Calls the function, at most until a deadline; nil when the item comes later, and when none follows.
  fileprivate func next(_ deadline: Int64) -> FlowValue? {
    isCalled = true
    return host.call(function, of: self, deadline: deadline).flatMap { item($0) }
  }

  /// The item that the function has returned; nil at the end.
  private func item(_ value: LuaValue) -> FlowValue? {
    isCalled = false
    if let stopError {
      failed(stopError)
      return nil
    }
    if value.isNil {
      returned()
      return nil
    }
    if case .string = value, host.vm.isBeyondMemoryLimit() {
      failed(FlowError(.memory, "not enough memory"))
      return nil
    }
    return FlowValue(value)
  }

  override func take(_ value: LuaValue) {
    if let item = item(value) { takeLate(item) }
  }

  override func stopCode(_ error: FlowError) {
    if isCalled { super.stopCode(error) } else { failed(error) }
  }
}

extension ScriptValue: ItemSequence {
  func calls(
    of owner: OwnedTasks, on loop: FlowEventLoop, _ take: @escaping (FlowValue) -> Void
  ) -> (task: AnyFlowTask, call: ItemCall)? {
    guard reference.kind == .function || reference.vm.hasMetafield("__call", reference),
      let host = reference.vm.scheduler as? ScriptHost
    else { return nil }
    let iterator = ScriptIterator(host, reference, take)
    iterator.begin(in: owner)
    return (iterator, { iterator.next($0) })
  }
}
