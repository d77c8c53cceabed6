internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Keys by which servers recognize a repeated request.
///
/// The n-th key of an op is the same in each of its attempts, and in each attempt of the flows and ops that
/// enclose it, so that a retry doesn't do twice what a server has done already.
enum IdempotencyKeys {
  /// The next key of an op's attempt, or one of its own.
  static func make(for context: OpContext?) -> ByteString {
    guard let context else {
      return ExecutionKey.text(.random(in: 0 ... .max), .random(in: 0 ... .max))
    }
    let number = UInt64(context.nextKeyNumber())
    if number == 1 { return context.key }
    let base = context.lineage
    return ExecutionKey.text(base, (base ^ number.spread).spread)
  }
}

extension ScriptHost {
  /// A key for a request of the running code.
  func makeIdempotencyKey() -> ByteString { IdempotencyKeys.make(for: currentOp) }
}
