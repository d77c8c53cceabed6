internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// A Lua value with identity (a table, a function, a userdata, a coroutine) as an engine value.
final class ScriptValue: KindedList, FormedValue {
  let reference: LuaReference

  init(_ reference: LuaReference) {
    self.reference = reference
  }

  var typeName: ByteString { reference.vm.typeName(of: .reference(reference)) }

  func logText(limit: Int) -> ByteString {
    // Texts are also made on other threads, as by a test that shows what it compares.
    guard reference.vm.isOnOwnThread,
      let text = try? reference.vm.render(.reference(reference), limit: limit)
    else {
      return ByteString(reference.kind.name)
    }
    return text
  }

  func matches(typeName wanted: ByteString) -> Bool {
    wanted == ByteString(reference.kind.name) || wanted == typeName
  }

  func listCount() -> Int? { reference.vm.listCount(reference) }

  func elementKinds() -> ValueKinds? {
    guard let present = reference.vm.list(reference)?.kinds else { return nil }
    var left = present
    var kinds = ValueKinds()
    for (kind, counterpart) in Self.kinds where left.remove(kind) != nil {
      kinds.insert(counterpart)
    }
    return left.isEmpty ? kinds : kinds.union(.opaque)
  }

  private static let kinds: [(LuaKinds, ValueKinds)] = [
    (.boolean, .boolean), (.integer, .integer), (.float, .number), (.string, .bytes),
    (.table, .table), (.function, .function),
  ]

  func element(at index: Int) -> FlowValue {
    guard let value = try? reference.vm.element(index + 1, of: reference) else { return .null }
    return FlowValue(value)
  }

  func elements(_ range: Range<Int>) -> ContiguousArray<FlowValue> {
    var elements: ContiguousArray<FlowValue> = []
    elements.reserveCapacity(range.count)
    let places = range.lowerBound + 1..<range.upperBound + 1
    // The state identifies secrets among them, so values are made of these afterwards.
    var others: [(place: Int, value: LuaValue)] = []
    try? reference.vm.forEachElement(places, of: reference) { value in
      switch value {
      case .integer(let integer): elements.append(.integer(integer))
      case .number(let number): elements.append(.number(number))
      case .reference:
        others.append((elements.count, value))
        elements.append(.null)
      default: elements.append(FlowValue(value))
      }
    }
    for (place, value) in others { elements[place] = FlowValue(value) }
    // Without memory for it the result is nil, as in `element(at:)`.
    while elements.count < range.count { elements.append(.null) }
    return elements
  }

  func entries() -> [(key: FlowValue, value: FlowValue)]? {
    guard reference.kind == .table else { return nil }
    return try? reference.vm.pairs(of: reference).map { (FlowValue($0), FlowValue($1)) }
  }

  func field(_ name: ByteString) -> FlowValue? {
    guard reference.kind == .table, let value = try? reference.vm.field(name, of: reference),
      !value.isNil
    else { return nil }
    return FlowValue(value)
  }

  func isSame(as other: any OpaqueValue) -> Bool {
    guard let other = other as? ScriptValue else { return false }
    let vm = reference.vm
    return reference === other.reference
      || vm === other.reference.vm && vm.isOpen
        && vm.identity(of: reference) == vm.identity(of: other.reference)
  }

  func plainCopy() -> PlainValue? {
    var copier = PlainCopier(vm: reference.vm)
    return (try? copier.copy(.reference(reference))) ?? nil
  }

  func compared() -> (copy: PlainValue?, form: CodeForm?) {
    var copier = PlainCopier(vm: reference.vm)
    let copy = (try? copier.copy(.reference(reference))) ?? nil
    guard copy != nil, copier.hasMetatables else { return (copy, nil) }
    let host = reference.vm.scheduler as? ScriptHost
    let form = try? host?.codeForm(of: reference)
    return (form == nil ? nil : copy, form)
  }

  func copyForRun(_ copies: ValueCopies) throws -> any OpaqueValue {
    guard reference.kind == .table else { return self }
    let vm = reference.vm
    let memo = try copies.record as? LuaReference ?? vm.makeTable()
    copies.record = memo
    return ScriptValue(try vm.copy(reference, memo: memo))
  }
}

extension ByteString {
  /// The text of a value in Swift.
  init(describing value: Any) {
    self.init(String(describing: value))
  }
}

extension FlowValue {
  /// A Lua value as an engine value.
  init(_ value: LuaValue) {
    switch value {
    case .nil: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .string(let string): self = .bytes(string)
    case .reference(let reference):
      if reference.vm.isJSONNull(reference) {
        self = .jsonNull
        return
      }
      self = .opaque(reference.host?.opaque(in: value) ?? ScriptValue(reference))
    }
  }
}

extension ScriptHost {
  /// An engine value as a Lua value: tables become the same tables again.
  func luaValue(_ value: FlowValue) throws -> LuaValue {
    switch value {
    case .null: return .nil
    case .boolean(let flag): return .boolean(flag)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .number(number)
    case .bytes(let bytes): return .string(bytes)
    case .opaque(let opaque):
      if let script = opaque as? ScriptValue, script.reference.vm === vm {
        return .reference(script.reference)
      }
      if let object = opaque as? ScriptObject, object.reference.vm === vm {
        return .reference(object.reference)
      }
      return try luaValue(notOwn: opaque)
    }
  }

  /// Returns an engine value from a call; strings are passed without conversion.
  func answer(_ call: LuaCall, _ value: FlowValue) throws -> LuaAnswer {
    switch value {
    case .bytes(let bytes): return bytes.bytes.withUnsafeBytes { call.answer(bytes: $0) }
    default: return call.answer(try luaValue(value))
    }
  }

  /// Returns a text to the script, or nil.
  func answer(_ call: LuaCall, _ text: ByteString?) throws -> LuaAnswer {
    try answer(call, text.map { .bytes($0) } ?? .null)
  }

  /// A list of the engine's, as a table.
  func makeList(_ values: ContiguousArray<FlowValue>) -> FlowValue {
    guard let table = try? vm.makeList(count: values.count, { try luaValue(values[$0]) }) else {
      return .opaque(ListValue(values))
    }
    return .opaque(ScriptValue(table))
  }

  /// The entry of a group's `failures` list for one item; `index` counts from 0, for scripts from
  /// 1.
  func makeFailure(index: Int, input: FlowValue, error: FlowError) -> FlowValue {
    do {
      let fields: [(ByteString, LuaValue)] = [
        ("index", .integer(Int64(index + 1))), ("input", try luaValue(input)),
        ("error", try luaError(error)),
      ]
      return .opaque(ScriptValue(try vm.makeTable(fields: fields)))
    } catch {
      return .bytes(ByteString(describing: error))
    }
  }

  /// All readable data of a bucket, including the buckets it reads through to, as a fresh table.
  func table(ofAllIn bucket: DataBucket) throws -> LuaReference {
    guard bucket.parent != nil else { return try table(of: bucket) }
    var fields: [(ByteString, LuaValue)] = []
    var buckets: [DataBucket] = []
    var next: DataBucket? = bucket
    while let each = next {
      buckets.append(each)
      next = each.parent
    }
    // The nearest one's values come last, and win.
    for each in buckets.reversed() {
      for entry in each.entries {
        fields.append((loop.keys.name(of: entry.key), try sharedValue(entry, of: each)))
      }
    }
    return try vm.makeTable(fields: fields)
  }

  private func sharedValue(_ entry: DataBucket.Entry, of bucket: DataBucket) throws -> LuaValue {
    try luaValue(try shared(entry.value, entry.key, in: bucket))
  }

  /// A bucket's content as a fresh table.
  func table(of bucket: DataBucket) throws -> LuaReference {
    var fields: [(ByteString, LuaValue)] = []
    for entry in bucket.entries {
      fields.append((loop.keys.name(of: entry.key), try sharedValue(entry, of: bucket)))
    }
    return try vm.makeTable(fields: fields)
  }
}

/// An object of a bound class that a script has stored, as an engine value: scripts of its state get the
/// same userdata again, Swift gets the object.
///
/// It holds the Swift object itself, so Swift can read it after the state was closed.
final class ScriptObject: OpaqueValue {
  let reference: LuaReference
  private let bound: LuaBoundObject

  init(_ reference: LuaReference, _ bound: LuaBoundObject) {
    self.reference = reference
    self.bound = bound
  }

  /// The name of the class in scripts.
  var typeName: ByteString { ByteString(bound.className) }

  func logText(limit: Int) -> ByteString {
    if let text = try? reference.vm.render(.reference(reference), limit: limit) { return text }
    return ByteString(describing: bound.object).truncated(to: limit)
  }

  func matches(typeName wanted: ByteString) -> Bool {
    wanted == typeName || wanted == "userdata" || ObjectValue.isNamed(wanted, bound.object)
  }

  func listCount() -> Int? { nil }

  func element(at index: Int) -> FlowValue { .null }

  func plainCopy() -> PlainValue? { nil }

  func swiftObject() -> Any? { bound.object }

  /// Whether both hold the same instance of a class, or are the same userdata of a structure.
  func isSame(as other: any OpaqueValue) -> Bool {
    if self === other || ObjectValue.isSame(bound.object, other.swiftObject()) { return true }
    guard let other = other as? ScriptObject else { return false }
    return bound.content === other.bound.content
  }
}

extension ScriptHost {
  /// Lua's name of a value's basic type, or the `__name` of its metatable.
  func kindName(of value: LuaValue) -> String {
    switch value {
    case .integer, .number: return "number"
    default: return vm.typeName(of: value).description
    }
  }

  /// The type with a spelling; `wrong` makes the error.
  func type(spelled text: ByteString, wrong: (String) -> any Error) throws -> FlowValueType {
    let cache = service { ParsedTypes() }
    if let known = cache.types[text] { return known }
    do throws(TypeSyntaxError) {
      let type = try FlowValueType.parse(text)
      // A script may generate any number of texts, of any length.
      if text.count >= LuaVM.largeText { return type }
      if cache.types.count >= ParsedTypes.limit { cache.types = [:] }
      cache.types[text] = type
      return type
    } catch {
      throw wrong("\(error)")
    }
  }

  /// A type defined by a function `(value) -> boolean, reason?`.
  func type(tested function: LuaReference) -> FlowValueType {
    FlowValueType.predicate(name: "predicate", source: function) { value in
      do {
        let results = try self.vm.call(function, [try self.luaValue(value)])
        if let first = results.first, first.isTruthy { return nil }
        if results.count > 1, case .string(let reason) = results[1] { return reason }
        return "predicate"
      } catch {
        return "predicate, which failed: \(ByteString(describing: error))"
      }
    }
  }

  /// `needs` or `gives`: key -> type, in the order of the sorted keys.
  func declaration(
    _ table: LuaReference, wrong: (String) -> any Error
  ) throws -> [Declaration] {
    var result: [Declaration] = []
    for (key, value) in try vm.pairs(of: table) {
      guard case .string(let name) = key else {
        throw wrong("keys are strings, got a key of type \(vm.typeName(of: key))")
      }
      try checkMemory(forKey: name)
      if case .reference(let table) = value, table.kind == .table {
        result.append(try described(name, table, wrong))
      } else {
        result.append(Declaration(name, try declaredType(value, of: name, wrong)))
      }
    }
    return result
  }

  private func declaredType(
    _ value: LuaValue, of name: ByteString, _ wrong: (String) -> any Error
  ) throws -> FlowValueType {
    switch value {
    case .string(let text): return try type(spelled: text) { wrong("type of '\(name)': \($0)") }
    case .reference(let function) where function.kind == .function: return type(tested: function)
    default:
      throw wrong(
        "type of '\(name)': string, function or { type, text } expected, got \(kindName(of: value))"
      )
    }
  }

  /// `{ type, text, values = list }`.
  private func described(
    _ name: ByteString, _ table: LuaReference, _ wrong: (String) -> any Error
  ) throws -> Declaration {
    var (type, doc, values): (FlowValueType?, ByteString?, [FlowValue]?)
    for (key, value) in try vm.pairs(of: table) {
      switch (key, value) {
      case (.integer(1), _): type = try declaredType(value, of: name, wrong)
      case (.integer(2), .string(let text)): doc = text
      case (.string("values"), .reference(let list)) where list.kind == .table:
        values = try vm.pairs(of: list).map { each in
          switch each.value {
          case .string(let text): return .bytes(text)
          case .integer(let number): return .integer(number)
          default:
            throw wrong(
              "values of '\(name)': strings and integers expected, got \(kindName(of: each.value))")
          }
        }
      default:
        throw wrong(
          "'\(name)': { type, text, values = list } expected, got \(kindName(of: value)) at \(FlowValue(key).logText)"
        )
      }
    }
    guard let type else {
      throw wrong("'\(name)': { type, text } expected, got a table without a type")
    }
    if values?.isEmpty == true { throw wrong("values of '\(name)': a list with values expected") }
    return Declaration(name, values.map { type.limited(to: $0) } ?? type, doc: doc)
  }
}

/// Parsed type texts by their spelling: scripts use a few of them often.
private final class ParsedTypes: HostService {
  static let limit = 1000
  var types: [ByteString: FlowValueType] = [:]
}

/// Code of a script that something of the engine holds.
protocol LuaCode: AnyObject {
  /// The values that make up the code, for forms of code that contain the holder.
  var codeValues: [LuaValue] { get throws }
}
