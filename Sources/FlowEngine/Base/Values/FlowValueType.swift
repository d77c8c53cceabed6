/// A declared type of a value, as LuaCATS writes it: `string`, `integer?`, `string[]`, `A|B`, `(A|B)[]`, `"a"|"b"`, `1|2`,
/// `table<string, integer>`, `{ name: string, age: integer? }`, `fun(a: string): boolean`.
///
/// `?`, and `nil` among others, bind to the whole union. Names that aren't built in are those of metatables (`__name`).
/// Confined to one thread when it holds a predicate.
public final class FlowValueType {
  enum Shape {
    case any
    case builtin(Builtin)
    /// The `__name` of a metatable.
    case named(ByteString)
    case list(FlowValueType)
    /// A string or an integer.
    case literal(FlowValue)
    /// A table whose keys and values are of types.
    case map(FlowValueType, FlowValueType)
    /// A table with fields.
    case record([(name: ByteString, type: FlowValueType)])
    case union([FlowValueType])
    /// nil when the value matches, else the name of the expected type in the line.
    case predicate((FlowValue) -> ByteString?)
  }

  enum Builtin: String, CaseIterable {
    case boolean, string, number, integer, float, table, function, userdata, thread
    /// The path of a file that exists.
    case file
  }

  /// Whether the value may be absent.
  public let isOptional: Bool
  /// The type as it was written.
  public var name: String { nameBytes.description }
  /// The bytes of `name`.
  package let nameBytes: ByteString
  /// An object that belongs to a type with a predicate, such as the predicate's function.
  public let source: AnyObject?
  let shape: Shape
  /// The kinds whose values all match; for other kinds only `mismatch` can decide.
  let kinds: ValueKinds
  /// Whether values of the type may be paths of files whose content counts, or lists of such paths.
  package let hasFiles: Bool

  init(name: ByteString, isOptional: Bool, shape: Shape, source: AnyObject? = nil) {
    self.nameBytes = name
    self.source = source
    self.isOptional = isOptional
    self.shape = shape
    kinds = Self.kinds(shape).union(isOptional ? .absent : [])
    hasFiles = Self.hasFiles(shape)
  }

  private static func kinds(_ shape: Shape) -> ValueKinds {
    switch shape {
    case .any: [.boolean, .integer, .number, .bytes, .opaque, .table, .function]
    case .builtin(.boolean): .boolean
    case .builtin(.string): .bytes
    case .builtin(.integer): .integer
    case .builtin(.float): .number
    case .builtin(.number): [.integer, .number]
    case .builtin(.table): .table
    case .builtin(.function): .function
    case .union(let members):
      members.reduce(into: ValueKinds()) { $0.formUnion($1.kinds.subtracting(.absent)) }
    case .builtin, .named, .list, .literal, .map, .record, .predicate: []
    }
  }

  /// Any present value.
  public static var any: FlowValueType {
    FlowValueType(name: "any", isOptional: false, shape: .any)
  }

  /// Any value, or an absent one.
  package static var anything: FlowValueType {
    FlowValueType(name: "any", isOptional: true, shape: .any)
  }

  /// Whether a function of the program decides it, or a part of it: such a type has no text to
  /// parse.
  package var isTested: Bool {
    switch shape {
    case .predicate: true
    case .union(let members): members.contains { $0.isTested }
    case .list(let element): element.isTested
    case .any, .builtin, .named, .literal, .map, .record: false
    }
  }

  /// A type that `test` decides: the function returns nil for a value that matches, else the
  /// reason, which replaces the type's name in the line.
  package static func predicate(
    name: ByteString, source: AnyObject? = nil, _ test: @escaping (FlowValue) -> ByteString?
  ) -> FlowValueType {
    FlowValueType(name: name, isOptional: false, shape: .predicate(test), source: source)
  }

  /// Parses a type; throws an error with a sentence that describes the problem of the text.
  package static func parse(_ text: ByteString) throws(TypeSyntaxError) -> FlowValueType {
    var parser = ValueTypeParser(text)
    return try parser.parse()
  }

  /// nil when `value` is of this type, else the name of the expected type to show.
  ///
  /// `.null` represents an absent value, and matches an optional type and `any`.
  package func mismatch(_ value: FlowValue) -> ByteString? {
    if value.isNull, isOptional { return nil }
    switch shape {
    case .predicate(let test): return test(value)
    case .union(let members):
      if members.contains(where: { $0.mismatch(value) == nil }) { return nil }
    default: if matches(value) { return nil }
    }
    if hasFiles { return nameWithReason(value) }
    return missingElement(value).map { "\(nameBytes) (it has no item \($0))" } ?? nameBytes
  }

  /// The number of the first element that a list with a hole lacks; nil for anything else.
  private func missingElement(_ value: FlowValue) -> Int64? {
    guard case .list = shape, case .opaque(let table) = value, table.listCount() == nil,
      let entries = Self.entries(of: value)
    else { return nil }
    let numbers = Set(
      entries.compactMap { entry -> Int64? in
        if case .integer(let number) = entry.key, number >= 1 { number } else { nil }
      })
    guard numbers.count == entries.count else { return nil }
    return (1...Int64(numbers.count + 1)).first { !numbers.contains($0) }
  }

  private func matches(_ value: FlowValue) -> Bool {
    switch shape {
    case .any, .union, .predicate: return true
    case .builtin(let builtin): return Self.matches(value, builtin)
    case .named(let name):
      guard case .opaque(let opaque) = value else { return false }
      return opaque.matches(typeName: name)
    case .list(let element):
      guard case .opaque(let list) = value else { return false }
      if let list = list as? any KindedList {
        guard let present = list.elementKinds() else { return false }
        if element.kinds.isSuperset(of: present) { return true }
      }
      guard let count = list.listCount() else { return false }
      return (0..<count).allSatisfy { element.mismatch(list.element(at: $0)) == nil }
    case .literal(let literal):
      switch (literal, value) {
      case (.bytes(let wanted), .bytes(let text)): return wanted == text
      case (.integer(let wanted), .integer(let number)): return wanted == number
      default: return false
      }
    case .map(let key, let element):
      guard let entries = Self.entries(of: value) else { return false }
      return entries.allSatisfy {
        key.mismatch($0.key) == nil && element.mismatch($0.value) == nil
      }
    case .record(let fields):
      guard case .opaque(let table) = value, Self.entries(of: value) != nil else { return false }
      return fields.allSatisfy {
        guard let value = table.field($0.name), !value.isNull else { return $0.type.isOptional }
        return $0.type.mismatch(value) == nil
      }
    }
  }

  private static func entries(of value: FlowValue) -> [(key: FlowValue, value: FlowValue)]? {
    guard case .opaque(let table) = value, table.matches(typeName: "table") else { return nil }
    return table.entries()
  }

  private static func matches(_ value: FlowValue, _ builtin: Builtin) -> Bool {
    switch (builtin, value) {
    case (.file, .bytes(let path)): fileProblem(path) == nil
    case (.file, _): false
    case (.boolean, .boolean), (.string, .bytes), (.integer, .integer), (.float, .number),
      (.number, .integer), (.number, .number):
      true
    case (_, .opaque(let opaque)): opaque.matches(typeName: ByteString(builtin.rawValue))
    default: false
    }
  }
}

/// The problem of a type's text.
package struct TypeSyntaxError: Error, Sendable, CustomStringConvertible {
  /// A sentence without a full stop, such as `unknown type 'strng' (did you mean 'string'?)`.
  package let message: ByteString

  init(_ message: ByteString) {
    self.message = message
  }

  package var description: String { message.description }
}
