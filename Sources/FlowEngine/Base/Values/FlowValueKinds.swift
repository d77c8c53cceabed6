/// Kinds of values, as far as a quick check distinguishes them.
struct ValueKinds: OptionSet {
  let rawValue: UInt8

  /// No value.
  static let absent = ValueKinds(rawValue: 1 << 0)
  static let boolean = ValueKinds(rawValue: 1 << 1)
  static let integer = ValueKinds(rawValue: 1 << 2)
  static let number = ValueKinds(rawValue: 1 << 3)
  static let bytes = ValueKinds(rawValue: 1 << 4)
  static let opaque = ValueKinds(rawValue: 1 << 5)
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
