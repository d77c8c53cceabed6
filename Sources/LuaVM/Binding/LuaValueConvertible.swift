/// A Swift type whose values can be passed to Lua and back.
///
/// Numbers, booleans, strings, optionals, arrays, dictionaries, `LuaValue` and `LuaReference` are
/// convertible, and so are objects of a `LuaClass`. An enumeration with a raw value needs no more than
/// the conformance:
///
/// ```swift
/// enum Color: String, LuaValueConvertible { case red, green }
/// ```
public protocol LuaValueConvertible: LuaResult {
  /// The name of the type in error messages: `integer`.
  static var luaTypeName: String { get }

  /// The value for Lua.
  ///
  /// - Parameter vm: The state that gets it; called on its thread.
  /// - Returns: The value.
  /// - Throws: An error that the caller gets, or that is raised in the script.
  func luaValue(in vm: LuaVM) throws -> LuaValue

  /// The Swift value of a Lua value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - vm: The state that it is from; called on its thread.
  /// - Returns: The Swift value; nil for a Lua value of another type.
  /// - Throws: A `LuaConversionError` about a part of the value.
  static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> Self?

  /// The Swift value of an argument; by default that of `fromLuaValue`.
  ///
  /// - Parameters:
  ///   - index: The argument, from 1.
  ///   - call: The call.
  /// - Returns: The Swift value.
  /// - Throws: A `LuaConversionError` for an argument of another type.
  // No optional: code that doesn't know the type would look it up at each call.
  static func fromArgument(_ index: Int, of call: LuaCall) throws -> Self
}

extension LuaValueConvertible {
  public static var luaTypeName: String { String(describing: Self.self) }

  @inlinable
  public static func fromArgument(_ index: Int, of call: LuaCall) throws -> Self {
    if let value = try fromLuaValue(try call.value(index), in: call.vm) { return value }
    throw try call.mismatch(index, luaTypeName)
  }

  /// Adds the value to the results of a call, as `luaValue`.
  @inlinable
  public func addResult(to call: LuaCall) throws {
    call.addResult(try luaValue(in: call.vm))
  }
}

extension LuaValueConvertible where Self: RawRepresentable, RawValue: LuaValueConvertible {
  /// The value of the raw value.
  public func luaValue(in vm: LuaVM) throws -> LuaValue { try rawValue.luaValue(in: vm) }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> Self? {
    try RawValue.fromLuaValue(value, in: vm).flatMap { Self(rawValue: $0) }
  }
}

/// A Lua value had another type than the Swift code expected.
public struct LuaConversionError: Error, CustomStringConvertible {
  /// The name of the expected type.
  public let expected: String
  /// The type of the value or, for a number, the number.
  public let got: String
  /// The place of the value within what was converted, such as `[2]`; empty for all of it.
  public let place: String

  /// A mismatch of types.
  public init(expected: String, got: String, place: String = "") {
    self.expected = expected
    self.got = got
    self.place = place
  }

  /// `[2]: integer expected, got string`.
  public var description: String {
    "\(place.isEmpty ? "" : "\(place): ")\(expected) expected, got \(got)"
  }

  /// The same error, seen from a value that has the present one at a place.
  func within(_ outer: String) -> LuaConversionError {
    LuaConversionError(expected: expected, got: got, place: outer + place)
  }
}

extension LuaCall {
  /// The error about an argument of another type than expected.
  @usableFromInline
  func mismatch(_ index: Int, _ expected: String) throws -> LuaConversionError {
    let got =
      kind(index) == .number ? vm.shownType(of: try value(index)) : typeName(index)
    return LuaConversionError(expected: expected, got: got)
  }
}

extension LuaVM {
  /// A Lua value as a Swift value.
  ///
  /// - Parameters:
  ///   - value: The value.
  ///   - type: The Swift type.
  /// - Returns: The Swift value.
  /// - Throws: A `LuaConversionError` for a value of another type.
  public func convert<Result: LuaValueConvertible>(
    _ value: LuaValue, to type: Result.Type = Result.self
  ) throws -> Result {
    if let result = try type.fromLuaValue(value, in: self) { return result }
    throw LuaConversionError(expected: type.luaTypeName, got: shownType(of: value))
  }

  /// The type of a value for messages; of a number, the number, whose subtype or size may be what is
  /// wrong.
  func shownType(of value: LuaValue) -> String {
    switch value {
    case .integer(let integer): String(integer)
    case .number(let number): String(number)
    default: typeNameBytes(of: value).description
    }
  }
}
