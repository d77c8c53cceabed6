/// The iterators of a run whose items groups take, or have taken without executing all: the items come once, so that another
/// group would leave out some.
struct IteratorUses {
  private var uses: [ObjectIdentifier: (iterator: any OpaqueValue, problem: ByteString)] = [:]

  /// Why a group can't take the items of a value; nil when it can.
  func problem(of value: FlowValue) -> ByteString? {
    guard !uses.isEmpty, case .opaque(let iterator) = value else { return nil }
    return uses[ObjectIdentifier(iterator)]?.problem
  }

  /// A group begins to take the items.
  mutating func begin(_ value: FlowValue, _ key: ByteString, of op: ByteString) {
    note(
      value,
      "<\(key)> is an iterator whose items the group of [\(op)] takes: each group needs an iterator of its own"
    )
  }

  /// A group that has failed has taken items.
  mutating func fail(_ value: FlowValue, _ key: ByteString, count: Int) {
    note(
      value,
      "<\(key)> is an iterator of which an attempt that failed has taken \(count) items: set a new one in a step that is tried again, too"
    )
  }

  /// A group has taken all that it wanted.
  mutating func end(_ value: FlowValue) {
    if case .opaque(let iterator) = value { uses[ObjectIdentifier(iterator)] = nil }
  }

  private mutating func note(_ value: FlowValue, _ problem: ByteString) {
    if case .opaque(let iterator) = value {
      uses[ObjectIdentifier(iterator)] = (iterator, problem)
    }
  }
}
