@_spi(Scripting) internal import FlowEngine
@_spi(Scripting) internal import LuaVM

/// Values of the engine as scripts see them, and of scripts as the engine has them: tables, secrets, objects, types.
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

  /// All data that a bucket shows, including those of the buckets it reads through to, as a fresh table.
  func table(ofAllIn bucket: DataBucket) throws -> LuaReference {
    try table(of: bucket.visibleEntries)
  }

  /// A bucket's content as a fresh table.
  func table(of bucket: DataBucket) throws -> LuaReference {
    try table(of: bucket.entries.map { ($0, bucket) })
  }

  private func table(
    of entries: [(entry: DataBucket.Entry, bucket: DataBucket)]
  ) throws -> LuaReference {
    try vm.makeTable(
      fields: entries.map { entry, bucket in
        (
          loop.keys.name(of: entry.key),
          try luaValue(try shared(entry.value, entry.key, in: bucket))
        )
      })
  }

  /// A value that isn't one of this state.
  func luaValue(notOwn value: any OpaqueValue) throws -> LuaValue {
    if let secret = value as? SecretValue {
      secret.hide(on: loop)
      return try vm.value(of: secret, types.secret)
    }
    if value is JSONNull { return try vm.makeJSONNull() }
    if let foreign = value as? ScriptValue {
      // A table of another state is copied.
      guard case .opaque(let copy)? = foreign.plainCopy()?.flowValue else {
        throw LuaError(.argument, "a \(foreign.reference.kind.name) of another Lua state was used")
      }
      return try luaValue(notOwn: copy)
    }
    if let object = value.swiftObject(), let bound = try vm.boundValue(of: object) { return bound }
    if value is ScriptObject {
      throw LuaError(
        .argument,
        "a \(value.typeName) of another Lua state was used, which has no class for it here")
    }
    if value.matches(typeName: "table") {
      var maker = TableMaker(host: self)
      return .reference(try maker.table(of: value))
    }
    return try vm.value(of: value as AnyObject, try objectType())
  }

  /// The value under a key of a bucket, for a script.
  ///
  /// A table that Swift has stored becomes a table of the script when a script reads it for the first
  /// time, and takes its place in the bucket: from then on all that read the key get that table, with
  /// the changes that others have made. The Swift object that it was made of stays as it is. So does a structure of
  /// a bound class.
  func shared(
    _ value: FlowValue, _ key: DataKey, in bucket: @autoclosure () -> DataBucket
  ) throws -> FlowValue {
    guard case .opaque(let opaque) = value, !(opaque is ScriptValue),
      opaque is MapValue || opaque is ListValue || isStructure(opaque)
    else { return value }
    let table = FlowValue(try luaValue(notOwn: opaque))
    // An object that scripts can only pass on.
    if case .opaque(let same) = table, same === opaque { return value }
    bucket().substitute(table, for: opaque, under: key)
    return table
  }

  private func isStructure(_ value: any OpaqueValue) -> Bool {
    guard let object = value as? ObjectValue else { return false }
    return !(Swift.type(of: object.content) is AnyClass)
  }

  /// A secret, whose text no line shows as long as the secret exists, and what has made it: the run, the task, or else
  /// the host.
  func makeSecret(_ value: FlowValue) -> SecretValue {
    let secret = SecretValue(value)
    secret.hide(on: loop)
    if let run = currentOp?.run ?? (currentTask == nil ? currentRun : nil) {
      run.log.hide(secret.plain)
    } else {
      let holds =
        currentTask?.secretHolds ?? secretHolds ?? SecretHolds(loop.secrets, countedIn: loop.memory)
      holds.add(secret.plain)
      if let currentTask { currentTask.secretHolds = holds } else { secretHolds = holds }
    }
    return secret
  }

  /// The secret in a Lua value.
  func secret(in value: LuaValue) -> SecretValue? { vm.object(in: value, types.secret) }

  /// The secret or the Swift object in a value.
  func opaque(in value: LuaValue) -> (any OpaqueValue)? {
    guard case .reference(let reference) = value, reference.kind == .userdata else { return nil }
    if let secret = secret(in: value) { return secret }
    if let type = existing(LazyType<AnyObject>.self)?.type, let object = vm.object(in: value, type)
    {
      return object as? any OpaqueValue
    }
    return vm.boundObject(in: value).map { ScriptObject(reference, $0) }
  }

  // MARK: Objects

  /// The type of Swift objects, for which scripts have nothing but `tostring` and `==`.
  private func objectType() throws -> LuaObjectType<AnyObject> {
    try service { LazyType(try makeObjectType()) }.type
  }

  /// The field that a call reads or sets, for messages.
  func shownField(_ call: LuaCall) -> String {
    call.bytes(2).map { "field '\($0)'" } ?? "a field"
  }

  private func makeObjectType() throws -> LuaObjectType<AnyObject> {
    try vm.defineObjectType(
      "object", of: AnyObject.self, methods: [:],
      getter: bind { host, call in
        throw host.usage(call, "can't read \(host.shownField(call)) of a Swift object")
      },
      metamethods: { _ in
        [
          "__tostring": bind { host, call in
            guard let object = host.opaque(in: try call.value(1)) else {
              throw host.usage(
                call, "bad argument #1 to '__tostring' (object expected, got \(call.typeName(1)))")
            }
            return call.answer(.string(object.logText(limit: FlowValue.logLimit)))
          },
          "__eq": bind { host, call in
            guard let left = host.opaque(in: try call.value(1)),
              let right = host.opaque(in: try call.value(2))
            else { return call.answer(.boolean(false)) }
            return call.answer(.boolean(left.isSame(as: right)))
          },
          "__newindex": bind { host, call in
            throw host.usage(call, "can't set \(host.shownField(call)) of a Swift object")
          },
        ]
      })
  }

  // MARK: Types and declarations

  /// Lua's name of a value's basic type, or the `__name` of its metatable.
  func kindName(of value: LuaValue) -> String {
    switch value {
    case .integer, .number: return "number"
    default: return vm.typeName(of: value).description
    }
  }

  /// The type with a spelling; `wrong` makes the error.
  func type(spelled text: ByteString, wrong: (ByteString) -> any Error) throws -> FlowValueType {
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
      throw wrong(error.message)
    }
  }

  /// A type defined by a function `(value) -> boolean, reason?`.
  func type(tested function: LuaReference) -> FlowValueType {
    FlowValueType.predicate(name: "predicate", source: function) { value in
      do {
        let results = try self.callInPlace(function, [try self.luaValue(value)], traceback: false)
        if let first = results.first, first.isTruthy { return nil }
        if results.count > 1, case .string(let reason) = results[1] { return reason }
        return "predicate"
      } catch {
        return "predicate, which failed: \(ByteString(describing: error))"
      }
    }
  }

  /// `needs` or `gives`: key -> type, in the order of the sorted keys.
  func declaration(_ table: LuaReference, wrong: (ByteString) -> any Error) throws -> [Declaration]
  {
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
    _ value: LuaValue, of name: ByteString, _ wrong: (ByteString) -> any Error
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
    _ name: ByteString, _ table: LuaReference, _ wrong: (ByteString) -> any Error
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

  // MARK: Tables

  /// The data in a table with string keys, in the order of its sorted keys; `wrong` makes an error
  /// from a message about it.
  func data(
    in table: LuaReference, _ wrong: (ByteString) -> any Error
  ) throws -> [(ByteString, FlowValue)] {
    var result: [(ByteString, FlowValue)] = []
    for (key, value) in try vm.pairs(of: table) {
      guard case .string(let name) = key else {
        throw wrong("keys of data are strings, got a key of type \(vm.typeName(of: key))")
      }
      try checkMemory(forKey: name)
      result.append((name, FlowValue(value)))
    }
    return result.sorted { $0.0 < $1.0 }
  }

  /// Which part of a table is in the way of a list of strings.
  func problem(ofStringsIn table: LuaReference) throws -> String {
    for index in 0..<(vm.listCount(table) ?? 0) {
      switch try vm.element(index + 1, of: table) {
      case .string, .integer, .number: break
      case let value: return "a \(kindName(of: value)) as element \(index + 1)"
      }
    }
    return try problem(ofNoList: table)
  }

  /// The reason why a table is no list, for messages: the first element that is missing, or a key.
  func problem(ofNoList table: LuaReference) throws -> String {
    var places: Set<Int64> = []
    for (key, _) in try vm.pairs(of: table) {
      switch key {
      case .integer(let place): places.insert(place)
      case .string(let name): return "a table with the key '\(name)'"
      default: return "a table with other keys"
      }
    }
    let hole = (1...Int64.max).first { !places.contains($0) } ?? 0
    return places.contains { $0 > hole } ? "nil as element \(hole)" : "a table with other keys"
  }

  /// The strings of a list; nil if the value isn't such a list.
  func strings(in value: LuaValue) throws -> [ByteString]? {
    guard case .reference(let table) = value, let count = vm.listCount(table) else { return nil }
    var strings: [ByteString] = []
    for index in 0..<count {
      switch try vm.element(index + 1, of: table) {
      case .string(let string): strings.append(string)
      case .integer(let integer): strings.append(FlowValue.integer(integer).logText)
      case .number(let number): strings.append(FlowValue.number(number).logText)
      default: return nil
      }
    }
    return strings
  }
}

/// Parsed type texts by their spelling: scripts use a few of them often.
private final class ParsedTypes: HostService {
  static let limit = 1000
  var types: [ByteString: FlowValueType] = [:]
}

/// Makes tables of a state from tables of the engine. A table that occurs twice is made once, and no
/// depth of nesting recurses.
private struct TableMaker {
  let host: ScriptHost
  private var made: [ObjectIdentifier: LuaReference] = [:]
  /// Tables that have no content yet.
  private var open: [(table: any OpaqueValue, made: LuaReference)] = []

  init(host: ScriptHost) {
    self.host = host
  }

  /// The table for a table of the engine, with its content.
  mutating func table(of root: any OpaqueValue) throws -> LuaReference {
    let result = try reference(to: root)
    while let (table, made) = open.popLast() { try fill(made, from: table) }
    return result
  }

  private mutating func reference(to table: any OpaqueValue) throws -> LuaReference {
    if let known = made[ObjectIdentifier(table)] { return known }
    let vm = host.vm
    let reference = try vm.makeList(capacity: table.listCount() ?? 0)
    let mark = (table as? ListValue)?.jsonMark ?? (table as? MapValue)?.jsonMark
    if let mark { try vm.markJSON(reference, isArray: mark == .array) }
    made[ObjectIdentifier(table)] = reference
    open.append((table, reference))
    return reference
  }

  private mutating func fill(_ made: LuaReference, from table: any OpaqueValue) throws {
    let vm = host.vm
    if let map = table as? MapValue {
      for (number, element) in map.numbered {
        try vm.set(try value(element), at: .integer(number), in: made)
      }
      return try vm.set(fields: try map.fields.map { ($0.name, try value($0.value)) }, in: made)
    }
    if let count = table.listCount() {
      let elements = table.elements(0..<count)
      return try vm.fill(made, count: count) { try value(elements[$0]) }
    }
    for (key, content) in table.entries() ?? [] {
      try vm.set(try value(content), at: try value(key), in: made)
    }
  }

  private mutating func value(_ value: FlowValue) throws -> LuaValue {
    guard case .opaque(let opaque) = value, opaque.matches(typeName: "table"),
      !(opaque is ScriptValue)
    else { return try host.luaValue(value) }
    return .reference(try reference(to: opaque))
  }
}

/// Copies a Lua value into one that isn't bound to a state. Cycles, sharing, and marks and nulls of JSON
/// are kept; functions, userdata and coroutines can't be copied.
///
/// A string is copied for each place that refers to it, and a table for each value that contains it. So all copies
/// together take no more than the memory limit of the state.
struct PlainCopier {
  private let vm: LuaVM
  /// The bytes that may still be copied.
  private var room: Int
  private var indices: [UInt: Int] = [:]
  /// The tables found so far, in the order of their indices.
  private var open: [LuaReference] = []
  /// Whether fields with Swift objects are left out instead of refused.
  private let omitsObjects: Bool
  /// Whether a table has a metatable, which the copy hasn't.
  private(set) var hasMetatables = false

  init(vm: LuaVM, omittingObjects omitsObjects: Bool = false) {
    self.vm = vm
    self.omitsObjects = omitsObjects
    room = vm.memoryLimit ?? .max
  }

  /// A copy; nil if a part of the value can't be copied.
  ///
  /// - Throws: A `LuaError` when the copies exceed the memory limit, or the state is closed.
  mutating func copy(_ value: LuaValue) throws -> PlainValue? {
    (indices, open) = ([:], [])
    guard let root = try atom(value) else { return nil }
    var tables: [PlainValue.Table] = []
    // Tables are copied in the order in which they were found, so no depth of nesting recurses.
    while tables.count < open.count {
      guard let table = try copyTable(open[tables.count]) else { return nil }
      tables.append(table)
    }
    return PlainValue(root, tables: tables)
  }

  private mutating func copyTable(_ reference: LuaReference) throws -> PlainValue.Table? {
    let pairs = try vm.pairs(of: reference, room: &room)
    var listed: [Int64: PlainValue.Atom] = [:]
    let mark = vm.jsonMark(of: reference)
    if case .other = mark { hasMetatables = true }
    var table = PlainValue.Table(mark: PlainValue.JSONMark(mark))
    for (key, value) in pairs {
      if omitsObjects, case .reference(let object) = value,
        let opaque = object.host?.opaque(in: value), !(opaque is SecretValue)
      {
        continue
      }
      guard let key = try atom(key), let value = try atom(value) else { return nil }
      if case .integer(let index) = key, index >= 1, index <= Int64(pairs.count) {
        listed[index] = value
      } else {
        table.entries.append(PlainValue.Entry(key: key, value: value))
      }
    }
    var next: Int64 = 1
    while let value = listed.removeValue(forKey: next) {
      table.list.append(value)
      next += 1
    }
    // Elements after a hole.
    for (index, value) in listed.sorted(by: { $0.key < $1.key }) {
      table.entries.append(PlainValue.Entry(key: .integer(index), value: value))
    }
    return table
  }

  private mutating func atom(_ value: LuaValue) throws -> PlainValue.Atom? {
    switch value {
    case .nil: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .number(number)
    case .string(let string): return .bytes(string)
    case .reference(let reference):
      if vm.isJSONNull(reference) { return .jsonNull }
      if let host = reference.host, let secret = host.secret(in: value) {
        return try atom(host.luaValue(secret.plain)).map { .secret($0) }
      }
      guard reference.kind == .table else { return nil }
      let identity = vm.identity(of: reference)
      if let index = indices[identity] { return .table(index) }
      let index = open.count
      indices[identity] = index
      open.append(reference)
      return .table(index)
    }
  }
}

extension PlainValue.JSONMark {
  /// The mark of a table in Lua; nil when it has none.
  init?(_ mark: JSONMark) {
    switch mark {
    case .array: self = .array
    case .object: self = .object
    case .none, .other: return nil
    }
  }
}
