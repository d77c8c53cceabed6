extension GroupDispatcher {
  /// Why a group of `op` is impossible; nil when it is possible. A run fails with this problem.
  package func problem(with op: Op) -> ByteString? {
    if maxConcurrent < 1 { return "max_concurrent is \(maxConcurrent), but must be 1 or more" }
    if itemKey ?? op.primaryInputBytes == nil {
      return "a group of [\(op.nameBytes)] has no key for its items: give 'as' or a primary input"
    }
    if output != nil, collect ?? op.primaryOutputBytes == nil {
      return
        "a group of [\(op.nameBytes)] has no key to collect: give 'collect' or a primary output"
    }
    if output == nil, absent != nil {
      return "a group of [\(op.nameBytes)] has a value for absent outputs, but no output"
    }
    return nil
  }
}

extension RateLimit {
  /// `10 per 1s`.
  var text: ByteString { "\(count) per \(FlowValue.text(of: period))" }
}

extension Op {
  /// Whether the op may succeed without a value under a key, because it declares the key optional.
  func mayLeaveOut(_ output: ByteString?) -> Bool {
    gives.contains { $0.nameBytes == output && $0.type.isOptional }
  }
}
