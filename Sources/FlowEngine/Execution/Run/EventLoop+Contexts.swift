extension EventLoop {
  /// Why a function that checks an op's declarations is to stop; nil when nothing stops it, or no
  /// function is checking.
  package var checkStopError: FlowError? {
    guard let execution = engine.checking?.takeUnretainedValue() else { return nil }
    return execution.codeStop ?? execution.starterStop
  }

  /// The context of a live execution; nil when that execution has settled.
  package func context(slot: UInt32, generation: UInt64) -> OpContext? {
    unmanagedContext(slot: slot, generation: generation)?.takeUnretainedValue()
  }

  /// Returns the context without a retain, for a use that can't end the op.
  package func unmanagedContext(slot: UInt32, generation: UInt64) -> Unmanaged<OpContext>? {
    // Safe: the loop holds its engine.
    unretained(engine) { engine in
      guard slot < engine.contexts.count, let context = engine.contexts[Int(slot)] else {
        return nil
      }
      // Safe: a context in this list is alive, and nothing here can release it.
      let isLive = context.lend { $0.generation == generation && $0.isOpen }
      return isLive ? context : nil
    }
  }
}
