/// Kinds of values, as far as a quick check distinguishes them.
package struct ValueKinds: OptionSet {
  /// A bit for each kind.
  package let rawValue: UInt8

  /// Makes a set of the kinds of these bits.
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// No value.
  package static let absent = ValueKinds(rawValue: 1 << 0)
  /// True and false.
  package static let boolean = ValueKinds(rawValue: 1 << 1)
  /// Integers.
  package static let integer = ValueKinds(rawValue: 1 << 2)
  /// Floats.
  package static let number = ValueKinds(rawValue: 1 << 3)
  /// Strings.
  package static let bytes = ValueKinds(rawValue: 1 << 4)
  /// Other values.
  package static let opaque = ValueKinds(rawValue: 1 << 5)
  /// Tables of a script; only a list distinguishes them from other opaque values.
  package static let table = ValueKinds(rawValue: 1 << 6)
  /// Functions of a script; only a list distinguishes them from other opaque values.
  package static let function = ValueKinds(rawValue: 1 << 7)
}

/// A list that tells the kinds of its elements faster than these can be read.
package protocol KindedList: OpaqueValue {
  /// The kinds of all elements; nil when the value isn't a list without holes.
  func elementKinds() -> ValueKinds?
}

extension FlowValue {
  /// The kind of the value; a secret is opaque.
  var kind: ValueKinds {
    @inline(__always) get {
      switch self {
      case .null: .absent
      case .boolean: .boolean
      case .integer: .integer
      case .number: .number
      case .bytes: .bytes
      case .opaque: .opaque
      }
    }
  }
}
