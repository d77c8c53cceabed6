extension LuaValue: Equatable {
  /// Whether two values are equal as `rawequal` of Lua compares them: an integer and a float by their
  /// mathematical values, strings by their bytes, tables, functions and objects by identity. No
  /// metamethod is called.
  public static func == (left: LuaValue, right: LuaValue) -> Bool {
    switch (left, right) {
    case (.nil, .nil): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.integer(let integer), .number(let number)),
      (.number(let number), .integer(let integer)):
      Int64(exactly: number) == integer
    case (.string(let left), .string(let right)): left == right
    case (.reference(let left), .reference(let right)):
      left === right || left.vm === right.vm && left.vm.areSame(left, right)
    default: false
    }
  }
}

extension LuaValue: ExpressibleByIntegerLiteral {
  /// A number of subtype integer.
  public init(integerLiteral value: Int64) {
    self = .integer(value)
  }
}

extension LuaValue: ExpressibleByFloatLiteral {
  /// A number of subtype float.
  public init(floatLiteral value: Double) {
    self = .number(value)
  }
}

extension LuaValue: ExpressibleByBooleanLiteral {
  /// A boolean.
  public init(booleanLiteral value: Bool) {
    self = .boolean(value)
  }
}

// `nil` is no literal of a value: in `isThere ? value : nil` as a `LuaValue?` it would become a value.

extension LuaValue: ExpressibleByStringInterpolation {
  /// A string.
  public init(stringLiteral value: String) {
    self = .string(ByteString(value))
  }
}
