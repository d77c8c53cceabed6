import FlowEngine
import Glibc

/// A generator whose sequence a printed seed repeats.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// Which random flows are compared with their models.
enum RandomFlows {
  /// The first seed: the same in every run, unless `FLOWLUA_SEED` is a number or `random`.
  static let firstSeed: UInt64 = {
    guard let text = getenv("FLOWLUA_SEED").map({ String(cString: $0) }) else { return 1 }
    if let seed = UInt64(text) { return seed }
    let seed = UInt64.random(in: 0...(.max >> 1))
    print("FLOWLUA_SEED=\(seed)")
    return seed
  }()

  /// How many: as many as usual, unless `FLOWLUA_FLOWS` says otherwise; with a sanitizer a part.
  static func count(_ usual: UInt64) -> UInt64 {
    getenv("FLOWLUA_FLOWS").flatMap { UInt64(String(cString: $0)) } ?? usual / UInt64(Scale.part)
  }
}
