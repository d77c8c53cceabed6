internal import FlowEngine
internal import LuaVM

/// Keys by which servers recognize a repeated request.
///
/// The n-th key of an op is the same in each of its attempts, so that a retried op doesn't do twice what a
/// server has done already.
struct IdempotencyKeys {
  private let seed = UInt64.random(in: 0 ... .max)
  /// The attempt of an op and the number of its keys, by the number of the op's execution.
  private var given: [UInt64: (attempt: Int, count: Int)] = [:]
  private static let limit = 1000

  /// The next key of an op's attempt.
  mutating func make(for op: (execution: UInt64, attempt: Int)?) -> ByteString {
    guard let op else { return Self.text(.random(in: 0 ... .max), .random(in: 0 ... .max)) }
    // Executions that have ended: their numbers don't come again.
    if given.count > Self.limit {
      given = given.filter { $0.key + UInt64(Self.limit) > op.execution }
    }
    var last = given[op.execution] ?? (op.attempt, 0)
    if last.attempt != op.attempt { last = (op.attempt, 0) }
    last.count += 1
    given[op.execution] = last
    let first = Self.mix(seed ^ Self.mix(op.execution))
    return Self.text(first, Self.mix(first ^ Self.mix(UInt64(last.count))))
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
  func makeIdempotencyKey() -> ByteString {
    idempotencyKeys.make(for: currentOp.map { ($0.generation, $0.attempt) })
  }
}
