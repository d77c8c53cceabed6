internal import FlowEngine
internal import LuaVM

/// Keys by which servers recognize a repeated request.
///
/// The n-th key of an op is the same in each of its attempts, so that a retried op doesn't do twice what a
/// server has done already.
struct IdempotencyKeys {
  private let seed = UInt64.random(in: 0 ... .max)

  /// The number that the keys of an op's execution are made from, in all its attempts.
  func base(of context: OpContext) -> UInt64 {
    if let body = context.op.body as? StandInBody { return body.keyBase }
    return Self.mix(seed ^ Self.mix(context.firstGeneration))
  }

  /// The next key of an op's attempt, or one of its own.
  func make(for context: OpContext?) -> ByteString {
    guard let context else { return Self.text(.random(in: 0 ... .max), .random(in: 0 ... .max)) }
    let base = base(of: context)
    return Self.text(base, Self.mix(base ^ Self.mix(UInt64(context.nextKeyNumber()))))
  }

  /// SplitMix64: spreads the bits of a number.
  private static func mix(_ number: UInt64) -> UInt64 {
    var mixed = number &+ 0x9E37_79B9_7F4A_7C15
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
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
  func makeIdempotencyKey() -> ByteString { idempotencyKeys.make(for: currentOp) }
}
