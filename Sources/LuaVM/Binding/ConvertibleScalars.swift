// The conversions of scalars and strings.

extension LuaValue: LuaValueConvertible {
  public static var luaTypeName: String { "value" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { self }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> LuaValue? { value }
}

extension Bool: LuaValueConvertible {
  public static var luaTypeName: String { "boolean" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .boolean(self) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Bool? {
    if case .boolean(let flag) = value { flag } else { nil }
  }
}

extension LuaValueConvertible where Self: FixedWidthInteger {
  public static var luaTypeName: String {
    Self.bitWidth == 64 && Self.isSigned ? "integer" : "integer from \(Self.min) to \(Self.max)"
  }

  /// - Throws: A `LuaError` for a number that is larger than Lua's integers.
  @inlinable
  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    guard let integer = Int64(exactly: self) else {
      throw LuaError(.argument, "\(self) is larger than Lua's integers" as String)
    }
    return .integer(integer)
  }

  /// A float with an integral value is accepted, as everywhere in Lua.
  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Self? {
    switch value {
    case .integer(let integer): Self(exactly: integer)
    case .number(let number): Self(exactly: number)
    default: nil
    }
  }
}

extension Int: LuaValueConvertible {}
extension Int8: LuaValueConvertible {}
extension Int16: LuaValueConvertible {}
extension Int32: LuaValueConvertible {}
extension Int64: LuaValueConvertible {}
extension UInt: LuaValueConvertible {}
extension UInt8: LuaValueConvertible {}
extension UInt16: LuaValueConvertible {}
extension UInt32: LuaValueConvertible {}
extension UInt64: LuaValueConvertible {}

extension Double: LuaValueConvertible {
  public static var luaTypeName: String { "number" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .number(self) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Double? {
    switch value {
    case .integer(let integer): Double(integer)
    case .number(let number): number
    default: nil
    }
  }
}

extension Float: LuaValueConvertible {
  public static var luaTypeName: String { "number" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .number(Double(self)) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Float? {
    Double.fromLuaValue(value, in: vm).map { Float($0) }
  }
}

/// Strings of Swift are text: a Lua string that isn't UTF-8 is refused, and `ByteString` takes any.
extension String: LuaValueConvertible {
  public static var luaTypeName: String { "string of UTF-8" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .string(ByteString(self)) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> String? {
    guard case .string(let string) = value else { return nil }
    return String(validating: string.bytes, as: UTF8.self)
  }

  @inlinable
  public static func fromArgument(_ index: Int, of call: LuaCall) throws -> String {
    if let text = call.withBytes(index, { String(validating: $0, as: UTF8.self) }) ?? nil {
      return text
    }
    throw try call.mismatch(index, luaTypeName)
  }
}

extension ByteString: LuaValueConvertible {
  public static var luaTypeName: String { "string" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .string(self) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> ByteString? {
    if case .string(let string) = value { string } else { nil }
  }
}

/// A table, function, userdata or coroutine; `kind` tells which.
extension LuaReference: LuaValueConvertible {
  public static var luaTypeName: String { "table, function, userdata or thread" }

  @inlinable
  public func luaValue(in vm: LuaVM) -> LuaValue { .reference(self) }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) -> Self? {
    guard case .reference(let reference) = value else { return nil }
    // The class is final.
    return reference as? Self
  }
}

extension Optional: LuaResult where Wrapped: LuaValueConvertible {}

extension Optional: LuaValueConvertible where Wrapped: LuaValueConvertible {
  public static var luaTypeName: String { "\(Wrapped.luaTypeName) or nil" }

  @inlinable
  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    try self?.luaValue(in: vm) ?? .nil
  }

  @inlinable
  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> Wrapped?? {
    if value.isNil { return .some(nil) }
    return try Wrapped.fromLuaValue(value, in: vm).map { .some($0) }
  }

  @inlinable
  public static func fromArgument(_ index: Int, of call: LuaCall) throws -> Wrapped? {
    if call.isNil(index) { return nil }
    return try Wrapped.fromArgument(index, of: call)
  }

  @inlinable
  public func addResult(to call: LuaCall) throws {
    if let self { try self.addResult(to: call) } else { call.addResult(.nil) }
  }
}
