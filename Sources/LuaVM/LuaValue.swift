internal import CFlowLua

/// A Lua value in Swift. Integers and floats stay apart, strings are bytes, and whatever has identity
/// (tables, functions, userdata, coroutines) is a reference to the very same value.
public enum LuaValue {
  /// Lua's nil.
  case `nil`
  /// A boolean.
  case boolean(Bool)
  /// A number of subtype integer.
  case integer(Int64)
  /// A number of subtype float.
  case number(Double)
  /// A string.
  case string(LuaString)
  /// Anything else.
  case reference(LuaReference)

  /// Whether it is nil.
  public var isNil: Bool {
    if case .nil = self { return true }
    return false
  }

  /// Whether it counts as true in a condition.
  public var isTruthy: Bool {
    switch self {
    case .nil, .boolean(false): return false
    default: return true
    }
  }
}

/// A Lua value that is no more than its bits: copying it counts nothing.
public enum LuaScalar {
  /// Lua's nil.
  case `nil`
  /// A boolean.
  case boolean(Bool)
  /// A number of subtype integer.
  case integer(Int64)
  /// A number of subtype float.
  case number(Double)
}

extension LuaValue: ExpressibleByStringLiteral {
  /// A string.
  public init(stringLiteral value: String) {
    self = .string(LuaString(value))
  }
}

/// The basic type of a Lua value.
public enum LuaKind: Int32, Sendable {
  /// No value at all, such as an absent argument.
  case none = -1
  /// The value nil.
  case `nil` = 0
  /// A boolean.
  case boolean = 1
  /// A bare pointer of C.
  case lightUserdata = 2
  /// An integer or float.
  case number = 3
  /// A string of bytes.
  case string = 4
  /// A table.
  case table = 5
  /// A function, of Lua or C.
  case function = 6
  /// An object with a metatable.
  case userdata = 7
  /// A coroutine.
  case thread = 8

  /// Lua's name of the type.
  public var name: String {
    switch self {
    case .none: return "no value"
    case .nil: return "nil"
    case .boolean: return "boolean"
    case .lightUserdata, .userdata: return "userdata"
    case .number: return "number"
    case .string: return "string"
    case .table: return "table"
    case .function: return "function"
    case .thread: return "thread"
    }
  }
}

extension flowlua_value {
  static var empty: flowlua_value {
    flowlua_value(
      kind: Int32(FLOWLUA_NIL), reference: 0, integer: 0, number: 0, pointer: nil)
  }

  /// Nil, a boolean or a number; nil for anything else.
  init(scalar: LuaValue) {
    self = .empty
    switch scalar {
    case .boolean(let flag):
      kind = Int32(FLOWLUA_BOOLEAN)
      integer = flag ? 1 : 0
    case .integer(let exact):
      kind = Int32(FLOWLUA_INTEGER)
      integer = exact
    case .number(let float):
      kind = Int32(FLOWLUA_NUMBER)
      number = float
    default: break
    }
  }

  init(_ scalar: LuaScalar) {
    self = .empty
    switch scalar {
    case .nil: break
    case .boolean(let flag):
      kind = Int32(FLOWLUA_BOOLEAN)
      integer = flag ? 1 : 0
    case .integer(let exact):
      kind = Int32(FLOWLUA_INTEGER)
      integer = exact
    case .number(let float):
      kind = Int32(FLOWLUA_NUMBER)
      number = float
    }
  }

  /// The scalar that it holds; nil for anything else.
  var plainScalar: LuaScalar {
    switch Int(kind) {
    case FLOWLUA_BOOLEAN: .boolean(integer != 0)
    case FLOWLUA_INTEGER: .integer(integer)
    case FLOWLUA_NUMBER: .number(number)
    default: .nil
    }
  }

  /// The same as a value.
  var scalar: LuaValue {
    switch Int(kind) {
    case FLOWLUA_BOOLEAN: .boolean(integer != 0)
    case FLOWLUA_INTEGER: .integer(integer)
    case FLOWLUA_NUMBER: .number(number)
    default: .nil
    }
  }

  static func reference(_ id: Int32) -> flowlua_value {
    flowlua_value(
      kind: Int32(FLOWLUA_REFERENCE), reference: id, integer: 0, number: 0, pointer: nil)
  }
}

/// Runs `body` with the C form of values. Strings are lent for the time of the call.
func withRawValues<Result>(
  of vm: LuaVM, _ values: [LuaValue], _ body: (UnsafeMutablePointer<flowlua_value>) -> Result
) -> Result {
  // All strings in one block, so that no pointer outlives what it points into.
  var total = 0
  for case .string(let string) in values { total += string.bytes.count }
  return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(total, 1)) { bytes in
    withUnsafeTemporaryAllocation(of: flowlua_value.self, capacity: max(values.count, 1)) { raw in
      var used = 0
      for (index, value) in values.enumerated() {
        var plain = flowlua_value.empty
        switch value {
        case .nil: break
        case .boolean(let flag):
          plain.kind = Int32(FLOWLUA_BOOLEAN)
          plain.integer = flag ? 1 : 0
        case .integer(let integer):
          plain.kind = Int32(FLOWLUA_INTEGER)
          plain.integer = integer
        case .number(let number):
          plain.kind = Int32(FLOWLUA_NUMBER)
          plain.number = number
        case .string(let string):
          plain.kind = Int32(FLOWLUA_STRING)
          plain.integer = Int64(string.bytes.count)
          _ = UnsafeMutableBufferPointer(rebasing: bytes[used...])
            .update(fromContentsOf: string.bytes)
          plain.pointer = bytes.baseAddress.map { UnsafeRawPointer($0 + used) }
          used += string.bytes.count
        case .reference(let reference):
          vm.checkHome(reference)
          plain = .reference(reference.id)
        }
        raw.initializeElement(at: index, to: plain)
      }
      guard let base = raw.baseAddress else { misuse("no memory for \(values.count) values") }
      return body(base)
    }
  }
}
