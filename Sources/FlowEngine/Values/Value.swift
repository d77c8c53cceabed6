internal import CFlowSystem

/// A value of a data bucket. Confined to the thread of its event loop.
public enum Value {
  /// No value. A bucket never holds it: setting it removes the key.
  case null
  /// A boolean.
  case boolean(Bool)
  /// An integer.
  case integer(Int64)
  /// A float.
  case number(Double)
  /// A string of bytes.
  case bytes(ByteString)
  /// A value the engine passes on without looking into it, held by reference.
  case opaque(any OpaqueValue)
}

/// A value that the engine holds by reference, for example a Lua table.
///
/// All calls come on the thread of the value's event loop.
public protocol OpaqueValue: AnyObject {
  /// What a log line calls the type: `table`, `function`, or a name of its own.
  var typeName: ByteString { get }
  /// The text for a log line, of at most `limit` characters; the last one is `…` when it is cut.
  func logText(limit: Int) -> ByteString
  /// Whether the value counts as `typeName`; its base type counts too.
  func matches(typeName: ByteString) -> Bool
  /// The number of elements, nil when the value isn't a list without holes.
  func listCount() -> Int?
  /// The element at a 0-based `index` below `listCount()`; `.null` when there is none.
  func element(at index: Int) -> Value
  /// The elements at a range of indices, as `element(at:)` has them; the default asks it for each.
  func elements(_ range: Range<Int>) -> ContiguousArray<Value>
  /// A copy without references, nil when the value can't be copied.
  func plainCopy() -> PlainValue?
}

extension OpaqueValue {
  public func elements(_ range: Range<Int>) -> ContiguousArray<Value> {
    ContiguousArray(range.map { element(at: $0) })
  }
}

extension Value {
  /// The most characters that a log line shows of an opaque value.
  public static let logLimit = 120

  /// Whether it is the absence of a value.
  public var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// The name that log lines and errors use for the value's type.
  public var typeName: ByteString {
    switch self {
    case .null: "nil"
    case .boolean: "boolean"
    case .integer: "integer"
    case .number: "float"
    case .bytes: "string"
    case .opaque(let value): value.typeName
    }
  }

  /// The value as Lua 5.4's `tostring` prints it; opaque values within `logLimit` characters.
  public var logText: ByteString {
    switch self {
    case .null: "nil"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let value): ByteString(String(value))
    case .number(let value): Value.text(of: value)
    case .bytes(let value): value
    case .opaque(let value): value.logText(limit: Value.logLimit)
    }
  }

  /// A copy without references, nil when the value holds something that can't be copied.
  public func plainCopy() -> PlainValue? {
    switch self {
    case .null: PlainValue(.null)
    case .boolean(let value): PlainValue(.boolean(value))
    case .integer(let value): PlainValue(.integer(value))
    case .number(let value): PlainValue(.number(value))
    case .bytes(let value): PlainValue(.bytes(value))
    case .opaque(let value): value.plainCopy()
    }
  }

  /// A float as Lua prints it: `%.14g`, and `.0` behind what looks like an integer.
  static func text(of number: Double) -> ByteString {
    var text = generalText(of: number, precision: 14)
    if text.allSatisfy({ $0 == UInt8(ascii: "-") || (48...57).contains($0) }) {
      text += [UInt8(ascii: "."), UInt8(ascii: "0")]
    }
    return ByteString(text)
  }

  /// A duration in seconds as the log shows it: `%g`.
  static func text(ofSeconds seconds: Double) -> ByteString {
    ByteString(generalText(of: seconds, precision: 6))
  }

  private static func generalText(of number: Double, precision: Int32) -> [UInt8] {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard let base = buffer.baseAddress else { return [] }
      let length = flowsystem_format_g(base, 64, precision, number)
      return buffer.prefix(length).map { UInt8(bitPattern: $0) }
    }
  }
}
