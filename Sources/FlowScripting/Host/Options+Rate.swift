internal import FlowEngine
@_spi(Scripting) internal import LuaVM

extension Options {
  /// A limit of starts: a number per second, or `{ n, per = seconds }`.
  func rate(_ name: ByteString) throws -> RateLimit? {
    let expected = "integer of at least 1, or { n, per = seconds },"
    switch kind(name) {
    case nil: return nil
    case .table?: break
    default: return try count(name, expected: expected).map { RateLimit($0) }
    }
    guard let table = try table(name) else { return nil }
    var pairs = try arguments.host.vm.pairs(of: table)
    // The number is at the index 1: a field of that name gives it the same messages.
    let first = pairs.firstIndex { pair in
      if case .integer(1) = pair.key { true } else { false }
    }
    guard let first else {
      throw arguments.wrong(
        self.index, "field '\(name)': \(expected) expected, got a table without a number at index 1"
      )
    }
    pairs[first].key = .string("1")
    let fields = try Options(arguments, index, pairs, ["1", "per"], of: name.description)
    let count = try fields.count("1") ?? 1
    return RateLimit(count, per: try fields.duration("per", orZero: false) ?? .seconds(1))
  }
}
