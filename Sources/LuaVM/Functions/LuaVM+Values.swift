internal import CFlowLua
internal import CLua

/// The forms of code that `LuaVM.load` takes.
///
/// ```swift
/// let rule = try vm.load("return 6 * 7", name: "rule", mode: .text)  // refuses bytecode
/// ```
public enum LuaChunkMode: String, Sendable {
  /// Source text.
  case text = "t"
  /// Bytecode.
  case bytecode = "b"
  /// Both.
  case any = "bt"
}

extension LuaVM {
  // MARK: Chunks

  /// Compiles a chunk; messages and tracebacks begin with its name. Bytecode needs `loadsBytecode` of the configuration,
  /// too.
  /// Throws a `LuaError` of code `syntax` with Lua's message.
  ///
  /// ```swift
  /// let chunk = try vm.load("return ... * 2", name: "double.lua")
  /// print(try vm.call(chunk, 21, as: Int.self))
  /// ```
  public func load(
    _ chunk: some FlowText, name: String, mode: LuaChunkMode = .text
  ) throws -> LuaReference {
    try load(chunk, chunkName: "@" + name, mode: mode)
  }

  /// Compiles a chunk with Lua's own form of a name: `@file`, `=text`, or the text itself.
  package func load(
    _ chunk: some FlowText, chunkName name: String, mode: LuaChunkMode = .text
  ) throws -> LuaReference {
    try enter()
    let mode = configuration.loadsBytecode ? mode.rawValue : mode.rawValue.filter { $0 != "b" }
    let status = chunk.byteString.bytes.withUnsafeBytes { bytes in
      // An empty array may have no address.
      flowlua_load(
        state, bytes.baseAddress ?? UnsafeRawPointer(emptyChunk), bytes.count, name, mode)
    }
    if status == LUA_ERRSYNTAX { throw syntaxError(status, in: chunk.byteString, path: nil) }
    return try finishLoad(status)
  }

  /// The error of a chunk, or of a file, with the column: the parser says which piece of the text it didn't expect, and
  /// parsing once more byte by byte how far it had read.
  private func syntaxError(_ status: Int32, in text: ByteString, path: [CChar]?) -> any Error {
    let error = takeError(status)
    guard var error = error as? LuaError else { return error }
    let message = error.message.bytes
    guard let start = message.place(of: "near ")?.upperBound else { return error }
    let token = message[start...]
    // `<eof>` is nothing, `'<\\26>'` one byte.
    let count: Int =
      if token.first != UInt8(ascii: "'") { 0 } else if token.starts(with: "'<\\".bytes) { 1 } else
      {
        token.count - 2
      }
    let column = text.bytes.withUnsafeBytes { bytes in
      flowlua_column_read(
        state, bytes.baseAddress ?? UnsafeRawPointer(emptyChunk), bytes.count, path)
    }
    if column > count { error.column = Int(column) - count }
    return error
  }

  /// Compiles a chunk that isn't part of the script. Its functions have no lines, so that messages
  /// name the calling code of the script.
  package func loadOwn(_ chunk: ByteString, name: String) throws -> LuaReference {
    try enter()
    let status = chunk.bytes.withUnsafeBytes { bytes in
      flowlua_load_own(state, bytes.baseAddress ?? UnsafeRawPointer(emptyChunk), bytes.count, name)
    }
    return try finishLoad(status)
  }

  /// Compiles a file, a leading `#` line skipped; nil reads stdin. Bytecode needs `loadsBytecode` of the
  /// configuration.
  public func loadFile(_ path: (any FlowText)?) throws -> LuaReference {
    try enter()
    let mode: String = configuration.loadsBytecode ? "bt" : "t"
    guard let path else { return try finishLoad(flowlua_load_file(state, nil, mode)) }
    let terminated = path.byteString.bytes.map { CChar(bitPattern: $0) } + [0]
    let status = flowlua_load_file(state, terminated, mode)
    if status == LUA_ERRSYNTAX { throw syntaxError(status, in: "", path: terminated) }
    return try finishLoad(status)
  }

  private func finishLoad(_ status: Int32) throws -> LuaReference {
    try check(status)
    return try popReference(running, .function)
  }

  /// `package.preload[name]`: the function that `require` calls for a module, by each of its names.
  public func preload(_ names: [String], loader: @escaping LuaFunction) throws {
    let function = try makeFunction(loader)
    // All names in one array: scripts that use no module pay for this at their start.
    var characters: [CChar] = []
    for name in names {
      for byte in name.utf8 { characters.append(CChar(bitPattern: byte)) }
      characters.append(0)
    }
    let status = characters.withUnsafeBufferPointer { characters in
      characters.baseAddress.map { flowlua_preload(state, $0, Int32(names.count), function.id) }
    }
    if let status { try check(status) }
  }

  // MARK: Tables

  /// A new table: `values` from 1 on, then `fields`.
  @_specialize(where Name == ByteString)
  public func makeTable<Name: FlowText>(
    values: [LuaValue] = [], fields: [(Name, LuaValue)] = [] as [(ByteString, LuaValue)],
    metatable: LuaReference? = nil
  ) throws -> LuaReference {
    try enter()
    if let metatable { checkHome(metatable) }
    var keyed: [LuaValue] = []
    keyed.reserveCapacity(fields.count * 2)
    for (key, value) in fields {
      keyed.append(.string(key.byteString))
      keyed.append(value)
    }
    let status = withRawValues(of: self, values) { rawValues in
      withRawValues(of: self, keyed) { rawKeyed in
        flowlua_make_table(
          state, rawValues, Int32(values.count), rawKeyed, Int32(fields.count),
          metatable?.id ?? 0)
      }
    }
    try check(status)
    return try popReference(running, .table)
  }

  /// A new list of `count` values. `value` is called for each, in order, and may use the state. It
  /// takes memory for the list alone, because the values are passed on a few at a time.
  package func makeList(
    count: Int, _ value: (Int) throws -> LuaValue
  ) throws -> LuaReference {
    let list = try makeList(capacity: count)
    try fill(list, count: count, value)
    return list
  }

  /// A new table without values, with room for a list.
  package func makeList(capacity: Int) throws -> LuaReference {
    try enter()
    try check(flowlua_make_list(state, Int32(clamping: capacity)))
    return try popReference(running, .table)
  }

  /// Sets the values of a list from 1 on; see `makeList`.
  package func fill(
    _ list: LuaReference, count: Int, _ value: (Int) throws -> LuaValue
  ) throws {
    checkHome(list)
    var next = 0
    while next < count {
      if let other = try setPlain(&next, count, in: list, value) {
        try setSome(&next, count, in: list, from: other, value)
      }
    }
  }

  /// Sets scalars and short strings of a list from index `next` on, and advances `next`; at most
  /// `valuesAtOnce`. Returns the first other value, if there is one.
  @inline(__always)
  private func setPlain(
    _ next: inout Int, _ count: Int, in list: LuaReference, _ value: (Int) throws -> LuaValue
  ) throws -> LuaValue? {
    let first = next
    var other: LuaValue?
    let status = try withUnsafeTemporaryAllocation(
      byteCount: Self.valuesAtOnce * Self.shortString, alignment: 1
    ) { bytes in
      try withUnsafeTemporaryAllocation(of: flowlua_value.self, capacity: Self.valuesAtOnce) {
        raw in
        while next < count, next - first < Self.valuesAtOnce {
          let value = try value(next)
          let place = next - first
          if let plain = flowlua_value(scalar: value) {
            raw.initializeElement(at: place, to: plain)
          } else if case .string(let string) = value, string.count <= Self.shortString {
            let start = place * Self.shortString
            let room = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + string.count])
            string.withUnsafeBytes { room.copyBytes(from: $0) }
            raw.initializeElement(
              at: place, to: flowlua_value(lending: UnsafeRawBufferPointer(room)))
          } else {
            other = value
            break
          }
          next += 1
        }
        guard next > first, let base = raw.baseAddress else { return Int32(LUA_OK) }
        return flowlua_set_elements(state, list.id, Int64(first + 1), base, Int32(next - first))
      }
    }
    try check(status)
    return other
  }

  /// Sets values of any kind in a list from index `next` on, and advances `next`; `value` is the
  /// first of them.
  private func setSome(
    _ next: inout Int, _ count: Int, in list: LuaReference, from value: LuaValue,
    _ following: (Int) throws -> LuaValue
  ) throws {
    var some: [LuaValue] = []
    var value = value
    while true {
      if case .string(let string) = value, string.bytes.count > Self.longString {
        try set(some, from: next, in: list)
        next += some.count
        try set(string, at: next, in: list)
        next += 1
        return
      }
      some.append(value)
      if some.count == Self.valuesAtOnce || next + some.count == count { break }
      value = try following(next + some.count)
    }
    try set(some, from: next, in: list)
    next += some.count
  }

  private static let valuesAtOnce = 64
  /// Strings up to this length: Lua has only one of each.
  private static let shortString = Int(FLOWLUA_SHORT_TEXT)
  /// Longer ones are passed to C without a copy, each by itself, because a copy costs more than a
  /// call.
  private static let longString = 256

  private func set(_ values: [LuaValue], from index: Int, in list: LuaReference) throws {
    if values.isEmpty { return }
    try check(
      withRawValues(of: self, values) {
        flowlua_set_elements(state, list.id, Int64(index + 1), $0, Int32(values.count))
      })
  }

  private func set(_ string: ByteString, at index: Int, in list: LuaReference) throws {
    try check(
      string.bytes.withUnsafeBytes {
        var value = flowlua_value.empty
        value.kind = Int32(FLOWLUA_STRING)
        value.integer = Int64($0.count)
        value.pointer = $0.baseAddress
        return flowlua_set_elements(state, list.id, Int64(index + 1), &value, 1)
      })
  }

  /// Sets a field of a table, without metamethods.
  @_specialize(where Name == ByteString)
  public func set<Name: FlowText>(_ value: LuaValue, _ key: Name, in table: LuaReference) throws {
    try enter()
    checkHome(table)
    let status = withRawValues(of: self, [.string(key.byteString), value]) { raw in
      flowlua_set_fields(state, table.id, raw, 1)
    }
    try check(status)
  }

  /// Sets fields of a table, without metamethods.
  package func set(fields: [(ByteString, LuaValue)], in table: LuaReference) throws {
    try enter()
    checkHome(table)
    let keyed = fields.flatMap { [.string($0), $1] }
    try check(
      withRawValues(of: self, keyed) { raw in
        flowlua_set_fields(state, table.id, raw, Int32(clamping: fields.count))
      })
  }

  /// Reads a field, with metamethods.
  public func get(_ key: LuaValue, in table: LuaReference) throws -> LuaValue {
    try enter()
    checkHome(table)
    let status = withRawValues(of: self, [key]) { raw in flowlua_get_field(state, table.id, raw) }
    try check(status)
    return try popValue(running)
  }

  /// The value at an index of a table, without metamethods.
  package func element(_ index: Int, of table: LuaReference) throws -> LuaValue {
    try enter()
    checkHome(table)
    guard table.kind == .table else { return .nil }
    // Most elements are scalars and strings.
    var plain = flowlua_value.empty
    if flowlua_read_element(state, table.id, Int64(index), &plain) {
      return plain.kind == FLOWLUA_STRING ? .string(copiedText(plain.lentBytes)) : plain.scalar
    }
    let lua = running
    try check(flowlua_make_room(state, lua, 4))
    flowlua_push_reference(state, lua, table.id)
    lua_rawgeti(lua, -1, lua_Integer(index))
    defer { flowlua_pop(lua, 1) }
    return try popValue(lua)
  }

  /// The values at a range of indices of a table, in order, without metamethods. `body` must not
  /// use the state.
  package func forEachElement(
    _ range: Range<Int>, of table: LuaReference, _ body: (LuaValue) -> Void
  ) throws {
    try enter()
    checkHome(table)
    let lua = running
    guard table.kind == .table else { return range.forEach { _ in body(.nil) } }
    try check(flowlua_make_room(state, lua, 4))
    flowlua_push_reference(state, lua, table.id)
    defer { flowlua_pop(lua, 1) }
    for index in range {
      if lua_rawgeti(lua, -1, lua_Integer(index)) == LUA_TNUMBER {
        body(number(in: lua, at: -1))
        flowlua_pop(lua, 1)
      } else {
        body(try popValue(lua))
      }
    }
  }

  /// The length of a list without holes and without other keys; nil for any other table.
  package func listCount(_ table: LuaReference) -> Int? { list(table)?.count }

  /// The length of a list without holes and without other keys, and the kinds of its values; nil for any
  /// other table.
  package func list(_ table: LuaReference) -> (count: Int, kinds: LuaKinds)? {
    guard table.kind == .table, (try? enter()) != nil else { return nil }
    checkHome(table)
    let lua = running
    guard lua_checkstack(lua, 8) != 0 else { return nil }
    flowlua_push_reference(state, lua, table.id)
    defer { flowlua_pop(lua, 1) }
    var kinds: UInt32 = 0
    let count = flowlua_list_count(state, lua, -1, &kinds)
    return count >= 0 ? (Int(count), LuaKinds(rawValue: kinds)) : nil
  }

  /// All pairs of a table, without metamethods, in no particular order.
  public func pairs(of table: LuaReference) throws -> [(key: LuaValue, value: LuaValue)] {
    var room = Int.max
    return try pairs(of: table, room: &room)
  }

  /// All pairs of a table for a copy that is limited, because a string that many places share is copied for each.
  ///
  /// - Parameters:
  ///   - table: The table.
  ///   - room: The bytes that may be copied, less what was copied: 16 for each pair, and the lengths of its strings.
  ///     Lua takes as much at least, so a table whose parts are each in one place fits in the limit of its state.
  /// - Returns: The pairs.
  /// - Throws: A `LuaError` of code `memory` when there is too little room, before more is copied.
  package func pairs(
    of table: LuaReference, room: inout Int
  ) throws -> [(key: LuaValue, value: LuaValue)] {
    try enter()
    checkHome(table)
    let walk = PairWalk(vm: self, room: room)
    defer { room = walk.room }
    try walk.run(on: self) { flowlua_each_pair(state, table.id, $0, $1) }
    return walk.pairs
  }

  /// A copy of a table without metatable. Nested tables without metatable are copied too; any other
  /// table is kept as it is.
  ///
  /// - Parameters:
  ///   - table: The table; its metamethods aren't called.
  ///   - memo: A table of the copies made so far, by their originals, so that a shared table is
  ///     copied once.
  /// - Returns: The copy.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func copy(_ table: LuaReference, memo: LuaReference) throws -> LuaReference {
    try enter()
    checkHome(table)
    checkHome(memo)
    try check(flowlua_copy_table(state, table.id, memo.id))
    return try popReference(running, .table)
  }

  // MARK: Views

  /// A metatable for views.
  ///
  /// - Parameters:
  ///   - refuse: The function that is called with view, key and value when a script tries to change a
  ///     view. It should raise an error.
  ///   - read: The function that is called with the source of a view and a key, for views that have an
  ///     object as their source. It returns the value, and whether `readAll` should be called now.
  ///   - readAll: The function that is called with such a source when all of it is wanted. It returns the
  ///     table that the view shows from then on.
  /// - Returns: The metatable.
  /// - Throws: A `LuaError` when memory runs out or the state is closed.
  package func makeViewMetatable(
    refuse: LuaReference, read: LuaReference, readAll: LuaReference
  ) throws -> LuaReference {
    try enter()
    for function in [refuse, read, readAll] { checkHome(function) }
    try check(flowlua_make_view_metatable(state, refuse.id, read.id, readAll.id))
    return try popReference(running, .table)
  }

  /// A read-only view of a table, which must not be changed afterwards, or of an object that isn't empty.
  ///
  /// Reading, `pairs` and `#` work as on the table; so do all functions of this class that read
  /// tables. An object is read by the functions of the metatable.
  package func makeView(of source: LuaReference, metatable: LuaReference) throws -> LuaReference {
    try enter()
    checkHome(source)
    checkHome(metatable)
    try check(flowlua_make_view(state, source.id, metatable.id))
    return try popReference(running, .table)
  }

  /// The table that a view shows; any other value unchanged.
  package func shown(by value: LuaValue) throws -> LuaValue {
    guard case .reference(let reference) = value, reference.kind == .table else { return value }
    try enter()
    checkHome(reference)
    try check(flowlua_push_shown(state, reference.id))
    let shown = try popReference(running, .table)
    return areSame(shown, reference) ? value : .reference(shown)
  }

  // MARK: Texts

  /// `tostring` of a value; throws any error that its `__tostring` raises.
  package func tostring(_ value: LuaValue) throws -> ByteString {
    try enter()
    return try popString(withRawValues(of: self, [value]) { flowlua_tostring(state, $0) })
  }

  /// As `tostring`, for the host: a `__tostring` that takes longer than a second is an error.
  package func ownText(of value: LuaValue) throws -> ByteString {
    try enter()
    return try popString(withRawValues(of: self, [value]) { flowlua_text(state, $0) })
  }

  /// The text of a value for a log line, at most `limit` characters.
  package func render(_ value: LuaValue, limit: Int) throws -> ByteString {
    try enter()
    let limit = Int32(clamping: limit)
    return try popString(withRawValues(of: self, [value]) { flowlua_render(state, $0, limit) })
  }

  /// The name of a value's type for messages: integer and float apart, `__name` if there is one.
  public func typeName(of value: LuaValue) -> ByteString {
    switch value {
    case .nil: return "nil"
    case .boolean: return "boolean"
    case .integer: return "integer"
    case .number: return "float"
    case .string: return "string"
    case .reference(let reference):
      guard (try? enter()) != nil, lua_checkstack(running, 4) != 0 else {
        return ByteString(reference.kind.name)
      }
      checkHome(reference)
      flowlua_push_reference(state, running, reference.id)
      defer { flowlua_pop(running, 1) }
      var length = 0
      let name = flowlua_type_name(state, running, -1, &length)
      return ByteString(UnsafeRawBufferPointer(start: name, count: length))
    }
  }

  /// The script's place, `file:line: `; empty if no script calls.
  package var position: ByteString {
    guard (try? enter()) != nil else { return "" }
    return position(in: running, level: 0)
  }

  /// The running coroutine's stack as text.
  package func traceback(level: Int = 1) -> ByteString {
    guard (try? enter()) != nil,
      let text = try? popString(flowlua_traceback(state, running, nil, Int32(clamping: level)))
    else { return "" }
    return text
  }

  /// The stack of a waiting coroutine as text.
  package func traceback(of coroutine: RunningCoroutine) -> ByteString {
    guard (try? enter()) != nil, isUsable(coroutine),
      let text = try? popString(
        flowlua_traceback(state, flowlua_coroutine_state(coroutine.raw), nil, 0))
    else { return "" }
    return text
  }

  /// Collects all garbage.
  public func collectGarbage() throws {
    try enter()
    try check(flowlua_collect(state))
  }

  func popString(_ status: Int32) throws -> ByteString {
    try check(status)
    guard case .string(let string) = try popValue(running) else {
      throw LuaError(.runtime, "a text was expected")
    }
    return string
  }
}

// The address for a chunk of no bytes: never read. Immortal and immutable.
private nonisolated(unsafe) let emptyChunk = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

/// Collects the pairs of a table.
private final class PairWalk: TableWalk {
  private let vm: LuaVM
  private(set) var pairs: [(key: LuaValue, value: LuaValue)] = []
  private(set) var room: Int

  init(vm: LuaVM, room: Int) {
    self.vm = vm
    self.room = room
  }

  private static func length(in lua: OpaquePointer, at index: Int32) -> Int {
    lua_type(lua, index) == LUA_TSTRING ? Int(lua_rawlen(lua, index)) : 0
  }

  override func visit(_ lua: OpaquePointer) throws -> Bool {
    let size = 16 + Self.length(in: lua, at: -2) + Self.length(in: lua, at: -1)
    if size > room { throw LuaError(.memory, "not enough memory") }
    room -= size
    pairs.append((try vm.value(in: lua, at: -2), try vm.value(in: lua, at: -1)))
    return true
  }
}

/// Kinds of values.
package struct LuaKinds: OptionSet {
  /// A bit for each kind.
  package let rawValue: UInt32

  /// Makes a set of the kinds of these bits.
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  private init(_ type: Int32) { rawValue = 1 << UInt32(type) }

  /// True and false.
  package static let boolean = LuaKinds(LUA_TBOOLEAN)
  /// Integers.
  package static let integer = LuaKinds(LUA_TNUMBER)
  /// Numbers that are no integers.
  package static let float = LuaKinds(rawValue: UInt32(FLOWLUA_FLOATS))
  /// Strings.
  package static let string = LuaKinds(LUA_TSTRING)
  /// Tables.
  package static let table = LuaKinds(LUA_TTABLE)
  /// Functions.
  package static let function = LuaKinds(LUA_TFUNCTION)
}

extension LuaVM {
  /// The number that a text means by Lua's rules, of either subtype; nil for another text.
  ///
  /// - Parameter text: The text.
  /// - Returns: The number, or nil.
  /// - Throws: A `LuaError` when the stack is full or the state is closed.
  package func number(from text: ByteString) throws -> LuaValue {
    try enter()
    let lua = running
    try check(flowlua_make_room(state, lua, 4))
    let size = (text.bytes + [0]).withUnsafeBytes {
      lua_stringtonumber(lua, $0.baseAddress?.assumingMemoryBound(to: CChar.self))
    }
    if size == 0 { return .nil }
    let number = try popValue(lua)
    return size == text.count + 1 ? number : .nil
  }
}
