internal import FlowSystem

/// A value of a data bucket. Confined to the thread of its event loop.
///
/// ```swift
/// let order: FlowValue = ["article": "pears", "amounts": [3, 4.5], "note": .null]
/// print(order["amounts"]?[0] == 3)
/// ```
///
/// Tables and objects are further cases, which literals, subscripts and conversions make and read: a `switch` has a `default`.
public enum FlowValue {
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
  /// A value that the engine passes on without reading it, held by reference.
  @_spi(Scripting) case opaque(any OpaqueValue)
}

/// A value that the engine holds by reference, for example a Lua table.
///
/// All its methods are called on the thread of the value's event loop.
@_spi(Scripting) public protocol OpaqueValue: AnyObject {
  /// The name of the type in log lines: `table`, `function`, or a name of its own.
  var typeName: ByteString { get }
  /// The text for a log line, of at most `limit` characters; the last one is `…` when it is cut.
  func logText(limit: Int) -> ByteString
  /// Whether the value counts as `typeName`; its base type counts too.
  func matches(typeName: ByteString) -> Bool
  /// The number of elements, nil when the value isn't a list without holes.
  func listCount() -> Int?
  /// The element at a 0-based `index` below `listCount()`; `.null` when there is none.
  func element(at index: Int) -> FlowValue
  /// The elements at a range of indices, as `element(at:)` returns them; the default calls it for
  /// each.
  func elements(_ range: Range<Int>) -> ContiguousArray<FlowValue>
  /// The keys of a table with their values, in no particular order; nil for anything else. By
  /// default they are those of a copy.
  func entries() -> [(key: FlowValue, value: FlowValue)]?
  /// The value in a field of a table; nil when there is none. By default it is searched in the
  /// entries.
  func field(_ name: ByteString) -> FlowValue?
  /// The values in a table, without its keys: those directly in it, or those at any depth but for the tables around them.
  /// Empty for anything else. By default they are those of the entries.
  func parts() -> [FlowValue]
  /// A copy without references, nil when the value can't be copied.
  func plainCopy() -> PlainValue?
  /// The Swift value that `Value.object(as:)` returns, for a value that holds one; nil, the default, for
  /// any other.
  func swiftObject() -> Any?
  /// Whether both stand for the same object; by default, whether they are the same Swift object.
  func isSame(as other: any OpaqueValue) -> Bool
  /// A number that is equal for values of which `isSame(as:)` holds, as long as both exist.
  var identity: UInt { get }
  /// The value for a new run, when the data of the run's flow contains this one. For a table it is
  /// a deep copy, so that no run sees the changes of another; for anything else, and by default, it
  /// is the value itself.
  ///
  /// - Parameter copies: The copies that this run has so far: a table that occurs twice is copied
  ///   once.
  /// - Returns: The copy, or the value itself.
  /// - Throws: When there is no memory for a copy.
  func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue
}

/// A table that scripts change, and that is one and the same for all that hold it.
package protocol RefillableValue: OpaqueValue {
  /// Gives it the content of another table. Tables within it stay the same where only their content has changed.
  func refill(from other: any OpaqueValue) throws
}

/// The copies of tables for a new run. Confined to the thread of the run's loop.
@_spi(Scripting) public final class ValueCopies {
  /// A record that a front end keeps of its own tables.
  package var record: AnyObject?
  /// The copies by the engine's tables. These are held so that no other object gets their
  /// identities.
  private var made: [ObjectIdentifier: (original: any OpaqueValue, copy: any OpaqueValue)] = [:]

  init() {}

  /// The copy of a table of the engine's own; nil when it hasn't been copied yet.
  fileprivate func copy(of table: any OpaqueValue) -> (any OpaqueValue)? {
    made[ObjectIdentifier(table)]?.copy
  }

  fileprivate func record(_ copy: any OpaqueValue, of table: any OpaqueValue) {
    made[ObjectIdentifier(table)] = (table, copy)
  }
}

extension OpaqueValue {
  package func elements(_ range: Range<Int>) -> ContiguousArray<FlowValue> {
    ContiguousArray(range.map { element(at: $0) })
  }

  package func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue { self }

  package func swiftObject() -> Any? { nil }

  package func isSame(as other: any OpaqueValue) -> Bool { self === other }

  package var identity: UInt { UInt(bitPattern: ObjectIdentifier(self)) }

  package func entries() -> [(key: FlowValue, value: FlowValue)]? {
    guard let copy = plainCopy(), case .table(let root) = copy.root else { return nil }
    let table = copy.tables[root]
    func value(_ atom: PlainValue.Atom) -> FlowValue {
      PlainValue(atom, tables: copy.tables).flowValue
    }
    return table.list.enumerated().map { (.integer(Int64($0 + 1)), value($1)) }
      + table.entries.map { (value($0.key), value($0.value)) }
  }

  package func parts() -> [FlowValue] { entries()?.map(\.value) ?? [] }

  package func field(_ name: ByteString) -> FlowValue? {
    entries()?.first { $0.key == .bytes(name) }?.value
  }
}

/// A table of the engine's own.
protocol EngineTable: OpaqueValue {
  /// Makes an empty table of the same kind.
  func makeEmpty() -> any EngineTable
  /// Adds the content of `other`, a table of the same kind, with each value converted by `convert`.
  func fill(from other: any EngineTable, _ convert: (FlowValue) throws -> FlowValue) rethrows
}

extension EngineTable {
  /// Also copies the nested tables, in a loop, so that no depth of nesting recurses.
  package func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue {
    if let known = copies.copy(of: self) { return known }
    var open: [(original: any EngineTable, copy: any EngineTable)] = []
    func begin(_ table: any EngineTable) -> any EngineTable {
      let copy = table.makeEmpty()
      copies.record(copy, of: table)
      open.append((table, copy))
      return copy
    }
    let root = begin(self)
    while let (original, copy) = open.popLast() {
      try copy.fill(from: original) { value in
        guard case .opaque(let opaque) = value else { return value }
        if let known = copies.copy(of: opaque) { return .opaque(known) }
        if let table = opaque as? any EngineTable { return .opaque(begin(table)) }
        return .opaque(try opaque.copyForRun(copies))
      }
    }
    return root
  }
}

extension FlowValue {
  /// The value for a new run; see `OpaqueValue.copyForRun`.
  @inline(__always)
  func copyForRun(_ copies: inout ValueCopies?) throws -> Value {
    guard case .opaque(let opaque) = self else { return self }
    let shared = copies ?? ValueCopies()
    copies = shared
    return .opaque(try opaque.copyForRun(shared))
  }
}

extension FlowValue {
  /// The most characters that a log line shows of an opaque value.
  package static let logLimit = 120

  /// Whether it is `.null`, the absence of a value.
  package var isNull: Bool {
    if case .null = self { true } else { false }
  }

  /// The name that log lines and errors use for the value's type.
  package var typeName: ByteString {
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
  package var logText: ByteString {
    switch self {
    case .null: "nil"
    case .boolean(let value): value ? "true" : "false"
    case .integer(let value): ByteString(String(value))
    case .number(let value): Value.text(of: value)
    case .bytes(let value): value
    case .opaque(let value): value.logText(limit: Value.logLimit)
    }
  }

  /// A copy without references; nil when a part of the value can't be copied.
  package func plainCopy() -> PlainValue? {
    switch self {
    case .null: PlainValue(.null)
    case .boolean(let value): PlainValue(.boolean(value))
    case .integer(let value): PlainValue(.integer(value))
    case .number(let value): PlainValue(.number(value))
    case .bytes(let value): PlainValue(.bytes(value))
    case .opaque(let value): value.plainCopy()
    }
  }

  /// A float as Lua prints it: `%.14g`, with `.0` after a text that looks like an integer.
  static func text(of number: Double) -> ByteString {
    var text = generalText(of: number, precision: 14)
    if text.allSatisfy({ $0 == UInt8(ascii: "-") || $0.isDigit }) {
      text += [UInt8(ascii: "."), UInt8(ascii: "0")]
    }
    return ByteString(text)
  }

  /// A duration in seconds as the log shows it: `%g`.
  package static func text(ofSeconds seconds: Double) -> ByteString {
    ByteString(generalText(of: seconds, precision: 6))
  }

  /// A duration as the log shows it: `0.5s`.
  package static func text(of duration: Duration) -> ByteString {
    text(ofSeconds: duration.inSeconds) + "s"
  }

  private static func generalText(of number: Double, precision: Int32) -> [UInt8] {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { buffer in
      guard let base = buffer.baseAddress else { return [] }
      let length = flowsystem_format_g(base, 64, precision, number)
      return buffer.prefix(length).map { UInt8(bitPattern: $0) }
    }
  }
}

/// A value in a text reads as its line in the log: `"\(run.data["email"] ?? .null)"`.
extension FlowValue: CustomStringConvertible {
  /// The text in log lines, of at most 120 characters for a table.
  public var description: String { logText.description }
}

// Values written in Swift: `let order: FlowValue = ["article": "apples", "amount": 3, "note": .null]`.
//
// `nil` is no literal of a value: in `isThere ? value : nil` as a `FlowValue?` it would become a value.

extension FlowValue {
  /// The form of a Swift value in a data bucket.
  public init(_ content: some FlowValueConvertible) { self = content.flowValue }
}

/// Each value is one of type `any`.
extension FlowValue: FlowValueConvertible {
  public static var flowTypeName: String { "any" }

  public init?(flowValue: Value) { self = flowValue }

  /// The value itself.
  public var flowValue: Value { self }
}

extension FlowValue: ExpressibleByBooleanLiteral {
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
}

/// `1` is an integer, `1.0` a float.
extension FlowValue: ExpressibleByIntegerLiteral {
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension FlowValue: ExpressibleByFloatLiteral {
  public init(floatLiteral value: Double) { self = .number(value) }
}

extension FlowValue: ExpressibleByStringInterpolation {
  public init(stringLiteral value: String) { self = .bytes(ByteString(value)) }
}

/// A list.
extension FlowValue: ExpressibleByArrayLiteral {
  public init(arrayLiteral elements: Value...) { self = .opaque(ListValue(elements)) }
}

/// A table with string keys. A later value replaces an earlier one under the same key.
extension FlowValue: ExpressibleByDictionaryLiteral {
  public init(dictionaryLiteral elements: (any FlowText, FlowValue)...) {
    self = .opaque(MapValue(elements.map { ($0.byteString, $1) }))
  }
}

extension FlowValue {
  /// The value in a field of a table; nil when there is none, or this isn't a table.
  public subscript(name: some FlowText) -> Value? {
    guard case .opaque(let table) = self else { return nil }
    return table.field(name.byteString)
  }

  /// The value under an integer key of a table, where lists have the keys from 1 on; nil when there is none,
  /// or this isn't a table.
  package subscript(number number: Int64) -> FlowValue? {
    guard case .opaque(let table) = self else { return nil }
    if let map = table as? MapValue { return map[number].flatMap { $0.isNull ? nil : $0 } }
    if let count = table.listCount() {
      return number >= 1 && number <= Int64(count) ? table.element(at: Int(number - 1)) : nil
    }
    return table.entries()?.first { $0.key == .integer(number) }?.value
  }

  /// The element at a 0-based index of a list; nil when there is none, or this isn't a list.
  public subscript(index: Int) -> Value? {
    guard case .opaque(let list) = self, let count = list.listCount(), index >= 0, index < count
    else { return nil }
    return list.element(at: index)
  }
}

extension FlowValue: Equatable {
  /// Whether both are of the same type and equal.
  ///
  /// An integer never equals a float, and NaN equals nothing. Tables, also those of scripts, are
  /// equal if their contents are; the order of fields doesn't count. A secret equals a secret with
  /// an equal value. Anything else, such as a function, equals only itself.
  public static func == (left: FlowValue, right: FlowValue) -> Bool {
    switch (left, right) {
    case (.null, .null): true
    case (.boolean(let left), .boolean(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.bytes(let left), .bytes(let right)): left == right
    case (.opaque(let left), .opaque(let right)): left.isEqual(to: right)
    default: false
    }
  }
}

extension OpaqueValue {
  fileprivate func isEqual(to other: any OpaqueValue) -> Bool {
    if isSame(as: other) { return true }
    if let secret = self as? SecretValue, let other = other as? SecretValue {
      return secret.plain == other.plain
    }
    guard matches(typeName: "table"), other.matches(typeName: "table"),
      let copy = plainCopy(), let otherCopy = other.plainCopy()
    else { return false }
    return copy.hasContent(of: otherCopy)
  }
}

extension PlainValue {
  private struct Pair: Hashable {
    let left: Int
    let right: Int
  }

  /// Whether both have the same content. Neither the order of entries, nor marks, nor whether a
  /// table is shared, count. No depth of nesting recurses, and tables may contain themselves.
  fileprivate func hasContent(of other: PlainValue) -> Bool {
    var compared: Set<Pair> = []
    var open: [Pair] = []
    func areEqual(_ left: Atom, _ right: Atom) -> Bool {
      switch (left, right) {
      case (.table(let left), .table(let right)):
        let pair = Pair(left: left, right: right)
        if compared.insert(pair).inserted { open.append(pair) }
        return true
      case (.number(let left), .number(let right)): return left == right
      case (.secret(let left), .secret(let right)): return areEqual(left, right)
      default: return left == right
      }
    }
    guard areEqual(root, other.root) else { return false }
    while let pair = open.popLast() {
      let (left, right) = (tables[pair.left], other.tables[pair.right])
      guard left.list.count == right.list.count, left.entries.count == right.entries.count else {
        return false
      }
      for (left, right) in zip(left.list, right.list) where !areEqual(left, right) {
        return false
      }
      for (left, right) in zip(left.sortedEntries, right.sortedEntries) {
        // A table as a key equals only itself, so none of another copy.
        if case .table = left.key { return false }
        if left.key != right.key || !areEqual(left.value, right.value) { return false }
      }
    }
    return true
  }
}

extension PlainValue.Table {
  fileprivate var sortedEntries: [PlainValue.Entry] {
    entries.sorted { $0.key.precedes($1.key) }
  }
}
