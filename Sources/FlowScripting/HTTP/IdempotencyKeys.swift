internal import FlowEngine
internal import LuaVM

/// Keys by which servers recognize a repeated request.
///
/// The n-th key of an op is the same in each of its attempts, and in each attempt of the flows and ops that
/// enclose it, so that a retry doesn't do twice what a server has done already.
enum IdempotencyKeys {
  /// The next key of an op's attempt, or one of its own.
  static func make(for context: OpContext?) -> ByteString {
    guard let context else { return text(.random(in: 0 ... .max), .random(in: 0 ... .max)) }
    let base = context.lineage
    return text(base, (base ^ UInt64(context.nextKeyNumber()).spread).spread)
  }

  /// 26 digits of base 32.
  private static func text(_ high: UInt64, _ low: UInt64) -> ByteString {
    let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    var bits = (UInt128(high) << 64) | UInt128(low)
    var bytes: [UInt8] = []
    for _ in 0..<26 {
      bytes.append(digits[Int(bits & 31)])
      bits >>= 5
    }
    return ByteString(bytes)
  }
}

extension ScriptHost {
  /// A key for a request of the running code.
  func makeIdempotencyKey() -> ByteString { IdempotencyKeys.make(for: currentOp) }
}
