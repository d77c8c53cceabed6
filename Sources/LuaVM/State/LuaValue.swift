internal import CFlowLua

/// A Lua value in Swift. Integers and floats are distinct, strings are bytes, and a value with
/// identity (table, function, userdata, coroutine) is a reference to the same value.
///
/// ```swift
/// let values: [LuaValue] = [1, 1.5, true, "text", .nil]
/// print(values[0] == .integer(1), values[4] == .nil)
/// ```
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
  case string(ByteString)
  /// Anything else.
  case reference(LuaReference)

  /// Whether it is nil.
  @usableFromInline package var isNil: Bool {
    if case .nil = self { return true }
    return false
  }

  /// Whether it counts as true in a condition.
  package var isTruthy: Bool {
    switch self {
    case .nil, .boolean(false): return false
    default: return true
    }
  }
}

/// The basic type of a Lua value.
package enum LuaKind: Int32, Sendable {
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
  package var name: String {
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

  /// Nil, a boolean or a number; no value for anything else.
  @inline(__always)
  init?(scalar: LuaValue) {
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
    case .string, .reference: return nil
    }
  }

  /// A scalar, or a reference; no value for a string, whose bytes would have to be lent.
  @inline(__always)
  init?(_ value: LuaValue, of vm: LuaVM) {
    guard case .reference(let reference) = value else {
      self.init(scalar: value)
      return
    }
    vm.checkHome(reference)
    self = .empty
    kind = Int32(FLOWLUA_REFERENCE)
    self.reference = reference.id
  }

  /// A Swift object. C returns the reference that it gets, also when the userdata is collected.
  @inline(__always)
  init<Object>(_ object: Object, _ type: LuaObjectType<Object>) {
    self = .empty
    kind = Int32(FLOWLUA_OBJECT)
    reference = type.id
    pointer = UnsafeRawPointer(Unmanaged<AnyObject>.passRetained(object).toOpaque())
  }

  /// A string, whose bytes are lent.
  init(lending bytes: UnsafeRawBufferPointer) {
    self = .empty
    kind = Int32(FLOWLUA_STRING)
    integer = Int64(bytes.count)
    pointer = bytes.baseAddress
  }

  /// The bytes of a string.
  var lentBytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: pointer, count: Int(integer))
  }

  /// The scalar that it holds; nil for anything else.
  var scalar: LuaValue {
    switch Int(kind) {
    case FLOWLUA_BOOLEAN: .boolean(integer != 0)
    case FLOWLUA_INTEGER: .integer(integer)
    case FLOWLUA_NUMBER: .number(number)
    default: .nil
    }
  }
}

extension flowlua_start {
  /// The start of a function without arguments, whose first result is wanted.
  init(function: Int32, deadline: Int64, grace: Int64) {
    self.init()
    self.function = function
    wanted = UInt8(FLOWLUA_WANTS_VALUE)
    self.deadline = deadline
    self.grace = grace
  }
}

/// Runs `body` with the C form of a value.
@inline(__always)
func withRawValue<Result>(
  of vm: LuaVM, _ value: LuaValue, _ body: (UnsafePointer<flowlua_value>) -> Result
) -> Result {
  if case .string(let string) = value {
    return string.bytes.withUnsafeBytes { withUnsafePointer(to: flowlua_value(lending: $0), body) }
  }
  return withExtendedLifetime(value) {
    withUnsafePointer(to: flowlua_value(value, of: vm) ?? .empty, body)
  }
}

/// Runs `body` with the C form of values. Strings are valid during the call.
func withRawValues<Result>(
  of vm: LuaVM, _ values: [LuaValue], _ body: (UnsafeMutablePointer<flowlua_value>) -> Result
) -> Result {
  // All strings in one block, so that no pointer outlives its target.
  var total = 0
  for case .string(let string) in values { total += string.bytes.count }
  return withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(total, 1)) { bytes in
    withUnsafeTemporaryAllocation(of: flowlua_value.self, capacity: max(values.count, 1)) { raw in
      var used = 0
      for (index, value) in values.enumerated() {
        if let plain = flowlua_value(value, of: vm) {
          raw.initializeElement(at: index, to: plain)
        } else if case .string(let string) = value {
          let room = UnsafeMutableBufferPointer(rebasing: bytes[used...].prefix(string.bytes.count))
          _ = room.update(fromContentsOf: string.bytes)
          raw.initializeElement(at: index, to: flowlua_value(lending: UnsafeRawBufferPointer(room)))
          used += string.bytes.count
        }
      }
      guard let base = raw.baseAddress else { misuse("no memory for \(values.count) values") }
      return body(base)
    }
  }
}

extension LuaValue: CustomStringConvertible {
  /// A text for logs: `nil`, `42`, `"text"`, and the type of anything that has an identity, such as `table`.
  public var description: String {
    switch self {
    case .nil: "nil"
    case .boolean(let boolean): "\(boolean)"
    case .integer(let integer): "\(integer)"
    case .number(let number): "\(number)"
    case .string(let text): text.debugDescription
    case .reference(let reference): reference.kind.name
    }
  }
}

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
