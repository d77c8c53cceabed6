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

  /// The Swift value of an argument; by default the one of `fromLuaValue`.
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
///
/// ```swift
/// do {
///   let number = try vm.convert(.boolean(true), to: Int.self)
///   print(number)
/// } catch let error as LuaConversionError {
///   print(error)  // integer expected, got boolean
/// }
/// ```
public struct LuaConversionError: Error, CustomStringConvertible {
  /// The name of the expected type.
  package let expected: String
  /// The type of the value or, for a number, the number.
  package let got: String
  /// The place of the value within what was converted, such as `[2]`; empty for all of it.
  package let place: String
  /// The whole text, if it isn't made of the others.
  private let text: String?

  /// A mismatch of types.
  public init(expected: String, got: String, place: String = "") {
    self.expected = expected
    self.got = got
    self.place = place
    text = nil
  }

  /// A mismatch that a decoder has described.
  package init(_ text: String) {
    (expected, got, place) = ("", "", "")
    self.text = text
  }

  /// `[2]: integer expected, got string`.
  public var description: String {
    text ?? "\(place.isEmpty ? "" : "\(place): ")\(expected) expected, got \(got)"
  }

  /// The error, seen from a value that has the present one at a place.
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
    default: typeName(of: value).description
    }
  }
}

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

// The conversions of collections: they are copied, in both directions.

extension Array: LuaResult where Element: LuaValueConvertible {}
extension Dictionary: LuaResult where Key: LuaValueConvertible, Value: LuaValueConvertible {}

/// A list: a table with the keys 1 to n. No element may be nil.
extension Array: LuaValueConvertible where Element: LuaValueConvertible {
  public static var luaTypeName: String { "list" }

  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    .reference(try vm.makeList(count: count) { try self[$0].luaValue(in: vm) })
  }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> [Element]? {
    guard case .reference(let reference) = try vm.shown(by: value),
      let count = vm.listCount(reference)
    else { return nil }
    var list: [Element] = []
    list.reserveCapacity(count)
    for index in 0..<count {
      do {
        list.append(try vm.convert(try vm.element(index + 1, of: reference)))
      } catch let error as LuaConversionError {
        throw error.within("[\(index + 1)]")
      }
    }
    return list
  }
}

/// A table with keys and values of these types.
extension Dictionary: LuaValueConvertible
where Key: LuaValueConvertible, Value: LuaValueConvertible {
  public static var luaTypeName: String { "table" }

  public func luaValue(in vm: LuaVM) throws -> LuaValue {
    let table = try vm.makeTable()
    for (key, value) in self {
      try vm.set(try value.luaValue(in: vm), at: try key.luaValue(in: vm), in: table)
    }
    return .reference(table)
  }

  public static func fromLuaValue(_ value: LuaValue, in vm: LuaVM) throws -> [Key: Value]? {
    guard case .reference(let reference) = try vm.shown(by: value), reference.kind == .table
    else { return nil }
    var dictionary: [Key: Value] = [:]
    for (key, value) in try vm.pairs(of: reference) {
      let name: Key
      do { name = try vm.convert(key) } catch let error as LuaConversionError {
        throw error.within("a key")
      }
      do {
        dictionary[name] = try vm.convert(value)
      } catch let error as LuaConversionError {
        throw error.within("[\(vm.shownKey(key))]")
      }
    }
    return dictionary
  }
}

extension LuaVM {
  /// A key for messages, in one line.
  fileprivate func shownKey(_ key: LuaValue) -> String {
    (try? render(key, limit: 40).description) ?? "?"
  }
}
