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
    case .list(let element): element
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
    for type in types where !members.contains(where: { $0.nameBytes == type.nameBytes }) {
      members.append(type)
    }
    guard members.count > 1 else { return members.first }
    let isUnknown = members.contains { $0.isUnknown }
    if isUnknown { return .any }
    var name: ByteString = ""
    for member in members { name = name.isEmpty ? member.nameBytes : "\(name)|\(member.nameBytes)" }
    return FlowValueType(name: name, isOptional: false, shape: .union(members))
  }

  /// The type of lists with elements of this type.
  var list: FlowValueType {
    let element = isUnknown || nameBytes.count > Self.maximumNameLength ? .any : present
    var name = element.nameBytes
    if case .union = element.shape { name = "(\(name))" }
    return FlowValueType(name: name + "[]", isOptional: false, shape: .list(element))
  }

  /// The type without `?`: that of a present value.
  var present: FlowValueType {
    guard isOptional else { return self }
    let mark = UInt8(ascii: "?")
    return FlowValueType(
      name: ByteString(nameBytes.bytes.filter { $0 != mark }), isOptional: false, shape: shape)
  }

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
