/// A declared type of a value, as LuaCATS writes it: `string`, `integer?`, `string[]`, `A|B`, `(A|B)[]`, `"a"|"b"`, `1|2`,
/// `table<string, integer>`, `{ name: string, age: integer? }`, `fun(a: string): boolean`; and `stream<string>`, of values
/// that pass from one op of a graph to others while both execute.
///
/// `?`, and `nil` among others, bind to the whole union. Names that aren't built in are those of metatables (`__name`).
/// Confined to one thread when it holds a predicate.
package final class FlowValueType {
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
    /// Values that come one after another, or a list of them.
    case stream(FlowValueType)
    /// nil when the value matches, else the name of the expected type in the line.
    case predicate((FlowValue) -> ByteString?)
  }

  enum Builtin: String, CaseIterable {
    case boolean, string, number, integer, float, table, function, userdata, thread
    /// The path of a file that exists.
    case file
  }

  /// Whether the value may be absent.
  package let isOptional: Bool
  /// The type as it was written.
  package let name: ByteString
  /// An object that belongs to a type with a predicate, such as the predicate's function.
  package let source: AnyObject?
  let shape: Shape
  /// The kinds whose values all match; for other kinds only `mismatch` can decide.
  let kinds: ValueKinds
  /// Whether values of the type may be paths of files whose content counts, or lists of such paths.
  package let hasFiles: Bool

  init(name: ByteString, isOptional: Bool, shape: Shape, source: AnyObject? = nil) {
    self.name = name
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
    case .builtin, .named, .list, .literal, .map, .record, .predicate, .stream: []
    }
  }

  /// Any present value.
  package static var any: FlowValueType {
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
    case .list(let element), .stream(let element): element.isTested
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
    return missingElement(value).map { "\(name) (it has no item \($0))" } ?? name
  }

  /// Whether it is the type of lists.
  private var isListed: Bool {
    switch shape {
    case .list, .stream: true
    default: false
    }
  }

  /// The number of the first element that a list with a hole lacks; nil for anything else.
  private func missingElement(_ value: FlowValue) -> Int64? {
    guard isListed, case .opaque(let table) = value, table.listCount() == nil,
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
    case .list(let element), .stream(let element):
      guard case .opaque(let list) = value else { return false }
      if let list = list as? any KindedList {
        guard let present = list.elementKinds() else { return false }
        if element.kinds.isSuperset(of: present) { return true }
      }
      guard let count = list.listCount() else { return isStream && list is any StreamValue }
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

/// Kinds of values, as far as a quick check distinguishes them.
package struct ValueKinds: OptionSet {
  /// A bit for each kind.
  package let rawValue: UInt8

  /// Makes a set of the kinds of these bits.
  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// No value.
  package static let absent = ValueKinds(rawValue: 1 << 0)
  /// True and false.
  package static let boolean = ValueKinds(rawValue: 1 << 1)
  /// Integers.
  package static let integer = ValueKinds(rawValue: 1 << 2)
  /// Floats.
  package static let number = ValueKinds(rawValue: 1 << 3)
  /// Strings.
  package static let bytes = ValueKinds(rawValue: 1 << 4)
  /// Other values.
  package static let opaque = ValueKinds(rawValue: 1 << 5)
  /// Tables of a script; only a list distinguishes them from other opaque values.
  package static let table = ValueKinds(rawValue: 1 << 6)
  /// Functions of a script; only a list distinguishes them from other opaque values.
  package static let function = ValueKinds(rawValue: 1 << 7)
}

/// A value that gives items one after another, which were checked when they were written.
package protocol StreamValue: OpaqueValue {}

/// A list that tells the kinds of its elements faster than these can be read.
package protocol KindedList: OpaqueValue {
  /// The kinds of all elements; nil when the value isn't a list without holes.
  func elementKinds() -> ValueKinds?
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

// Properties of types that are known without a value.
extension FlowValueType {
  /// The longest name of a type that `list` makes; a longer one becomes a list of anything, which
  /// limits the nesting.
  private static let maximumNameLength = 120

  /// Whether a value may be of both types; only `false` is certain.
  ///
  /// Nothing is known of types with a function. Lists of different elements count as different,
  /// although an empty list would be of both types; so do two names of metatables, because a value
  /// has one.
  func overlaps(_ other: FlowValueType) -> Bool {
    switch (shape, other.shape) {
    case (.any, _), (_, .any), (.predicate, _), (_, .predicate): true
    // Either passes as the other one.
    case (.stream(let element), .stream(let other)), (.stream(let element), .list(let other)),
      (.list(let element), .stream(let other)):
      element.overlaps(other)
    case (.stream(let element), _): element.list.overlaps(other)
    case (_, .stream(let element)): overlaps(element.list)
    // The type nil: both may be absent.
    case (.union(let members), _) where members.isEmpty: other.isOptional
    case (_, .union(let members)) where members.isEmpty: isOptional
    case (.union(let members), _): members.contains { $0.overlaps(other) }
    case (_, .union(let members)): members.contains { overlaps($0) }
    case (.literal(let value), _): other.mayHold(value)
    case (_, .literal(let value)): mayHold(value)
    case (.map(let key, let value), .map(let otherKey, let otherValue)):
      key.overlaps(otherKey) && value.overlaps(otherValue)
    case (.record(let fields), .record(let others)):
      fields.allSatisfy { field in
        others.allSatisfy { $0.name != field.name || $0.type.overlaps(field.type) }
      }
    case (.map, .builtin(let builtin)), (.builtin(let builtin), .map),
      (.record, .builtin(let builtin)), (.builtin(let builtin), .record):
      builtin == .table
    // An empty list is an empty table, too.
    case (.map, _), (_, .map), (.record, _), (_, .record): true
    case (.list(let element), .list(let otherElement)): element.overlaps(otherElement)
    case (.list, .builtin(let builtin)), (.builtin(let builtin), .list): builtin == .table
    case (.list, .named), (.named, .list): true
    case (.named(let name), .named(let otherName)): name == otherName
    case (.named, .builtin(let builtin)), (.builtin(let builtin), .named):
      builtin.hasMetatables
    case (.builtin(let builtin), .builtin(let otherBuiltin)):
      builtin == otherBuiltin
        || builtin.isNumber && otherBuiltin.isNumber
          && (builtin == .number || otherBuiltin == .number)
        || builtin.isText && otherBuiltin.isText
    }
  }

  /// Whether `value` may be of this type; functions aren't called, and files may be made later, so only `false` is
  /// certain.
  func mayHold(_ value: FlowValue) -> Bool {
    switch shape {
    case .predicate: return true
    case .builtin(.file): if case .bytes = value { return true }
    case .union(let members) where hasFiles:
      if members.contains(where: { $0.mayHold(value) }) { return true }
    case .list(let element) where hasFiles:
      guard case .opaque(let list) = value, let count = list.listCount() else { return false }
      return (0..<count).allSatisfy { element.mayHold(list.element(at: $0).plain) }
    default: return mismatch(value) == nil
    }
    return value.isNull && isOptional
  }

  /// The type of a list's elements; `any` when it isn't known, nil when this can't be a list.
  var element: FlowValueType? {
    switch shape {
    case .list(let element), .stream(let element): element
    case .any, .predicate, .named: .any
    case .builtin(let builtin): builtin == .table ? .any : nil
    case .map(_, let value): value
    case .record: .any
    case .literal: nil
    case .union(let members): Self.union(members.compactMap(\.element))
    }
  }

  /// The union of the types; nil when there are none.
  static func union(_ types: [FlowValueType]) -> FlowValueType? {
    var members: [FlowValueType] = []
    for type in types where !members.contains(where: { $0.name == type.name }) {
      members.append(type)
    }
    guard members.count > 1 else { return members.first }
    let isUnknown = members.contains { $0.isUnknown }
    if isUnknown { return .any }
    var name: ByteString = ""
    for member in members { name = name.isEmpty ? member.name : "\(name)|\(member.name)" }
    return FlowValueType(name: name, isOptional: false, shape: .union(members))
  }

  /// The type of lists with elements of this type.
  var list: FlowValueType {
    let element = isUnknown || name.count > Self.maximumNameLength ? .any : present
    var name = element.name
    if case .union = element.shape { name = "(\(name))" }
    return FlowValueType(name: name + "[]", isOptional: false, shape: .list(element))
  }

  /// The type without `?`: a present value has it.
  package var present: FlowValueType {
    guard isOptional else { return self }
    let mark = UInt8(ascii: "?")
    return FlowValueType(
      name: ByteString(name.bytes.filter { $0 != mark }), isOptional: false, shape: shape)
  }

  /// The type of the items of a stream; nil for any other type.
  package var streamed: FlowValueType? {
    if case .stream(let element) = shape { element } else { nil }
  }

  /// Whether its values come one after another.
  package var isStream: Bool { streamed != nil }

  private var isUnknown: Bool {
    switch shape {
    case .any, .predicate: true
    default: false
    }
  }
}

extension FlowValueType.Builtin {
  fileprivate var isNumber: Bool { self == .number || self == .integer || self == .float }

  fileprivate var isText: Bool { self == .string || self == .file }

  /// Whether values of this type may have a metatable of their own, and therefore a name.
  fileprivate var hasMetatables: Bool {
    switch self {
    case .table, .userdata, .function, .thread: true
    case .boolean, .string, .number, .integer, .float, .file: false
    }
  }
}

// The type `file`: the path of a file whose content counts in kept runs.
extension FlowValueType {
  static func hasFiles(_ shape: Shape) -> Bool {
    switch shape {
    case .builtin(let builtin): builtin == .file
    case .list(let element): element.hasFiles
    case .union(let members): members.contains { $0.hasFiles }
    case .any, .named, .literal, .map, .record, .predicate, .stream: false
    }
  }

  /// The paths in a value that are files by this type, in their order.
  ///
  /// A path that may also be a plain string, by `string|file`, is one if the file exists.
  package func files(in value: FlowValue) -> [ByteString] {
    guard hasFiles else { return [] }
    var paths: [ByteString] = []
    collectFiles(in: value.plain, &paths)
    return paths
  }

  private func collectFiles(in value: FlowValue, _ paths: inout [ByteString]) {
    switch shape {
    case .builtin(.file): if case .bytes(let path) = value { paths.append(path) }
    case .list(let element):
      guard element.hasFiles, case .opaque(let list) = value, let count = list.listCount() else {
        return
      }
      for index in 0..<count { element.collectFiles(in: list.element(at: index).plain, &paths) }
    case .union(let members):
      let matching = members.first { $0.hasFiles && $0.mismatch(value) == nil }
      matching?.collectFiles(in: value, &paths)
    case .any, .builtin, .named, .literal, .map, .record, .predicate, .stream: break
    }
  }

  /// Why a path doesn't name a file; nil when it does. Links are followed.
  static func fileProblem(_ path: ByteString) -> ByteString? {
    do throws(SystemError) {
      guard let status = try FileStatus.read(path, follows: true) else { return "no such file" }
      return status.kind == .file ? nil : "it is a \(status.kind.name)"
    } catch {
      return error.message
    }
  }

  /// The name of the type, with the first reason why a value isn't of it that is about a file.
  func nameWithReason(_ value: FlowValue) -> ByteString {
    fileReason(value, isElement: false).map { "\(name) (\($0))" } ?? name
  }

  private func fileReason(_ value: FlowValue, isElement: Bool) -> ByteString? {
    switch shape {
    case .builtin(.file):
      guard case .bytes(let path) = value, let problem = Self.fileProblem(path) else { return nil }
      return isElement ? "\(path.truncated(to: FlowValue.logLimit)): \(problem)" : problem
    case .list(let element):
      guard element.hasFiles, case .opaque(let list) = value, let count = list.listCount() else {
        return nil
      }
      for index in 0..<count {
        if let reason = element.fileReason(list.element(at: index), isElement: true) {
          return reason
        }
      }
      return nil
    case .union(let members):
      return members.lazy.compactMap { $0.fileReason(value, isElement: isElement) }.first
    case .any, .builtin, .named, .literal, .map, .record, .predicate, .stream: return nil
    }
  }
}
