internal import CFlowLua
internal import CLua

/// The settings of a reader of JSON.
package struct JSONReading: Sendable {
  /// How many arrays and objects may contain each other.
  package var maxDepth = 1000
  /// Whether a member of an object that is null stays as such; otherwise it is left out.
  package var keepsNull = false
  /// Whether integers beyond 64 bits stay text; otherwise they become floats.
  package var keepsBig = false
  /// Whether two members of an object with the same key are refused; otherwise the last one counts.
  package var isStrict = false

  /// The defaults of `json.decode`.
  package init() {}

  fileprivate var raw: flowlua_json_reading {
    flowlua_json_reading(
      max_depth: Int32(clamping: maxDepth), keeps_null: keepsNull, keeps_big: keepsBig,
      is_strict: isStrict)
  }
}

/// The settings of a writer of JSON.
package struct JSONWriting: Sendable {
  /// How many arrays and objects may contain each other.
  package var maxDepth = 1000
  /// Spaces for each level; 0 for one line.
  package var indent = 0
  /// Whether the members of an object are sorted by their keys.
  package var sortsKeys = true
  /// Whether an empty table without a mark is an array; otherwise it is an object.
  package var emptyIsArray = false
  /// Whether bytes that aren't UTF-8 become U+FFFD; otherwise they are refused.
  package var replacesInvalid = false
  /// Whether all that isn't ASCII is escaped.
  package var isASCII = false
  /// Whether the contents of secrets are written; otherwise secrets are refused.
  package var showsSecrets = false

  /// The defaults of `json.encode`.
  package init() {}

  fileprivate var raw: flowlua_json_writing {
    flowlua_json_writing(
      max_depth: Int32(clamping: maxDepth), indent: Int32(clamping: indent),
      is_unsorted: !sortsKeys, empty_is_array: emptyIsArray, replaces_invalid: replacesInvalid,
      is_ascii: isASCII, shows_secrets: showsSecrets)
  }
}

/// A text that isn't JSON.
package struct JSONTextError: Error, Sendable {
  /// The problem, without the place: `expected ',' or '}'`.
  package let problem: String
  /// The number of the byte, from 1.
  package var offset: Int
  /// The line, from 1.
  package var line: Int
  /// The character in the line, from 1.
  package let column: Int

  fileprivate init(_ raw: flowlua_json_error) {
    let problem = raw.problem.map { String(cString: $0) } ?? ""
    self.problem = raw.is_at_end ? "\(problem), got the end of the text" : problem
    offset = Int(raw.offset)
    line = Int(raw.line)
    column = Int(raw.column)
  }

  /// `expected ',' or '}' at line 3, column 14`.
  package var message: String { "\(problem) at line \(line), column \(column)" }
}

/// A value that JSON can't represent.
package struct JSONValueError: Error, Sendable {
  /// `can't encode a function at items[3].price`.
  package let message: ByteString

  fileprivate init(_ raw: flowlua_json_error) {
    var raw = raw
    func text<Tuple>(_ characters: inout Tuple) -> ByteString {
      withUnsafeBytes(of: &characters) { ByteString($0.prefix { $0 != 0 }) }
    }
    var message: ByteString
    if let problem = raw.problem {
      message = "can't encode \(String(cString: problem))"
    } else {
      message = "can't encode a value of type \(text(&raw.type_name))"
    }
    let path = text(&raw.path)
    if !path.isEmpty { message = "\(message) at \(path)" }
    if let hint = raw.hint { message = "\(message); \(String(cString: hint))" }
    self.message = message
  }
}

/// How a table is marked for JSON.
package enum JSONMark: Sendable {
  /// It isn't, and has no metatable.
  case none
  /// As an array.
  case array
  /// As an object.
  case object
  /// It has another metatable.
  case other

  fileprivate init(_ raw: Int32) {
    switch Int(raw) {
    case FLOWLUA_JSON_UNMARKED: self = .none
    case FLOWLUA_JSON_ARRAY: self = .array
    case FLOWLUA_JSON_OBJECT: self = .object
    default: self = .other
    }
  }
}

extension LuaVM {
  /// The value of a text. Throws a `JSONTextError` when it isn't JSON, and a `LuaError` when memory runs
  /// out.
  package func decodeJSON(_ text: ByteString, _ options: JSONReading = JSONReading()) throws
    -> LuaValue
  {
    try enter()
    // The reader stops at the 0 after the text.
    let terminated = text.bytes.map { CChar(bitPattern: $0) } + [0]
    let lua = running
    try terminated.withUnsafeBufferPointer { buffer in
      guard let bytes = buffer.baseAddress else { return }
      try decodeJSON(bytes, text.count, options)
    }
    return try popValue(lua)
  }

  /// Pushes the value of a text, whose bytes are followed by a 0.
  fileprivate func decodeJSON(
    _ bytes: UnsafePointer<CChar>, _ count: Int, _ options: JSONReading
  ) throws {
    var error = flowlua_json_error()
    var raw = options.raw
    let status = flowlua_json_decode(state, bytes, count, &raw, &error)
    if status == Int32(FLOWLUA_MALFORMED) { throw JSONTextError(error) }
    try check(status)
  }

  /// The JSON of a value, and whether a secret is in it. Throws a `JSONValueError` for a value that JSON
  /// can't represent, and a `LuaError` when memory runs out. No metamethod runs.
  package func encodeJSON(_ value: LuaValue, _ options: JSONWriting = JSONWriting()) throws -> (
    text: ByteString, hasSecret: Bool
  ) {
    try enter()
    try check(withRawValues(of: self, [value]) { flowlua_push_protected(state, $0) })
    let lua = running
    defer { flowlua_pop(lua, 1) }
    let hasSecret = try encodeJSON(in: lua, at: -1, options)
    defer { flowlua_pop(lua, 1) }
    return (text(onTopOf: lua), hasSecret)
  }

  /// Pushes the JSON of the value at an index.
  fileprivate func encodeJSON(
    in lua: OpaquePointer, at index: Int32, _ options: JSONWriting
  ) throws -> Bool {
    var error = flowlua_json_error()
    var raw = options.raw
    var hasSecret = false
    let status = flowlua_json_encode(state, lua, index, &raw, &error, &hasSecret)
    secrets?.releaseValues()
    if status == Int32(FLOWLUA_NOT_ENCODED) { throw JSONValueError(error) }
    try check(status)
    return hasSecret
  }

  fileprivate func text(onTopOf lua: OpaquePointer) -> ByteString {
    var count = 0
    let bytes = flowlua_bytes(lua, -1, &count)
    return copiedText(UnsafeRawBufferPointer(start: bytes, count: count))
  }

  /// An empty table that is marked as an array or as an object.
  package func makeJSONTable(isArray: Bool) throws -> LuaReference {
    let table = try makeTable()
    try markJSON(table, isArray: isArray)
    return table
  }

  /// Marks a table as an array or as an object. Throws a `LuaError` when memory runs out.
  package func markJSON(_ table: LuaReference, isArray: Bool) throws {
    try enter()
    checkHome(table)
    let lua = running
    try check(flowlua_make_room(state, lua, 2))
    flowlua_push_reference(state, lua, table.id)
    defer { flowlua_pop(lua, 1) }
    try check(flowlua_json_mark(state, lua, -1, isArray))
  }

  /// How a table is marked; `.none` also where Lua's stack is full.
  package func jsonMark(of table: LuaReference) -> JSONMark {
    onTop(table) { JSONMark(flowlua_json_mark_of(state, $0, -1)) } ?? .none
  }

  /// Whether a value is JSON's null.
  package func isJSONNull(_ value: LuaReference) -> Bool {
    value.kind == .lightUserdata && onTop(value) { flowlua_is_json_null($0, -1) } == true
  }

  /// Calls a function with the running coroutine while a value is on top of its stack; nil where the stack or
  /// memory is full, or the state is closed.
  private func onTop<Result>(
    _ value: LuaReference, _ body: (OpaquePointer) -> Result
  ) -> Result? {
    guard (try? enter()) != nil else { return nil }
    checkHome(value)
    let lua = running
    guard flowlua_make_room(state, lua, 2) == LUA_OK else { return nil }
    flowlua_push_reference(state, lua, value.id)
    defer { flowlua_pop(lua, 1) }
    return body(lua)
  }

  /// JSON's null: a light userdata that is NULL, equal in all states and to the null of other modules.
  package func makeJSONNull() throws -> LuaValue {
    try enter()
    let lua = running
    try check(flowlua_make_room(state, lua, 2))
    lua_pushlightuserdata(lua, nil)
    return .reference(try popReference(lua, .lightUserdata))
  }
}

extension LuaCall {
  /// The value of an argument that is JSON; nil when it is no string. As `LuaVM.decodeJSON`.
  package func decodeJSON(_ index: Int, _ options: JSONReading) throws -> LuaAnswer? {
    let vm = vm
    let isRead: Void? = try withBytes(index) { bytes in
      // Each string of Lua's ends with a 0.
      guard let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
      try vm.decodeJSON(start, bytes.count, options)
    }
    return isRead.map { answerTop() }
  }

  /// The JSON of an argument, as the answer, unless a secret is in it: then the text. As
  /// `LuaVM.encodeJSON`.
  package func encodeJSON(
    _ index: Int, _ options: JSONWriting
  ) throws -> (answer: LuaAnswer?, secret: ByteString) {
    let vm = vm
    guard try vm.encodeJSON(in: lua, at: Int32(index), options) else { return (answerTop(), "") }
    defer { flowlua_pop(lua, 1) }
    return (nil, vm.text(onTopOf: lua))
  }

  /// The JSON of an argument. As `LuaVM.encodeJSON`.
  package func textOfJSON(_ index: Int, _ options: JSONWriting) throws -> ByteString {
    let vm = vm
    _ = try vm.encodeJSON(in: lua, at: Int32(index), options)
    defer { flowlua_pop(lua, 1) }
    return vm.text(onTopOf: lua)
  }

  /// How an argument, a table, is marked.
  package func jsonMark(_ index: Int) -> JSONMark {
    guard kind(index) == .table else { return .other }
    return JSONMark(flowlua_json_mark_of(raw.pointee.state, lua, Int32(index)))
  }

  /// Marks an argument, a table, as an array or as an object.
  package func markJSON(_ index: Int, isArray: Bool) throws {
    guard kind(index) == .table else { return }
    try vm.check(flowlua_json_mark(raw.pointee.state, lua, Int32(index), isArray))
  }
}

/// JSON that a program writes itself, with the strings and numbers of `json.encode`. It needs no Lua state.
package struct JSONText {
  /// The text so far.
  package private(set) var bytes: [UInt8] = []

  /// An empty text.
  package init() {}

  /// Appends what is JSON already.
  package mutating func append(raw text: String) { bytes += text.utf8 }

  /// Appends another text.
  package mutating func append(_ other: JSONText) { bytes += other.bytes }

  /// Appends a string in quotes; U+FFFD replaces bytes that aren't UTF-8.
  package mutating func append(_ string: ByteString) {
    bytes.append(UInt8(ascii: "\""))
    string.bytes.withUnsafeBytes { text in
      guard var at = text.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
      let end = at + text.count
      while at < end {
        let room = end - at + Int(FLOWLUA_ESCAPED)
        let written = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
          var isValid = true
          buffer.withMemoryRebound(to: CChar.self) { buffer in
            guard let to = buffer.baseAddress else { return }
            var from: UnsafePointer<CChar> = at
            count = flowlua_json_characters(to, room, &from, end, false, true, &isValid)
            at = from
          }
        }
        bytes += written
      }
    }
    bytes.append(UInt8(ascii: "\""))
  }

  /// Appends an integer.
  package mutating func append(_ number: Int64) {
    append { flowlua_write_integer($0, number) }
  }

  /// Appends a number, without a fraction if it has none; JSON has neither infinities nor NaN, for which
  /// null stands.
  package mutating func append(_ number: Double) {
    guard number.isFinite else { return append(raw: "null") }
    if let whole = Int64(exactly: number) { return append(whole) }
    append { flowlua_write_float($0, number) }
  }

  /// Appends integers with commas between them.
  package mutating func append(_ numbers: some Collection<Int64>) {
    bytes.reserveCapacity(bytes.count + numbers.count * 4)
    var isFirst = true
    for number in numbers {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      if (0..<10).contains(number) {
        bytes.append(UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number))
      } else {
        append(number)
      }
    }
  }

  // MARK: Objects

  /// Appends an object whose fields `body` writes, as a field of this name if there is one.
  package mutating func object(_ name: ByteString? = nil, _ body: (inout JSONText) -> Void) {
    if let name { begin(name) }
    append(raw: "{")
    body(&self)
    append(raw: "}")
  }

  /// Appends a list whose elements `body` writes, each after `separate`, as a field of this name if there is one.
  package mutating func list(_ name: ByteString? = nil, _ body: (inout JSONText) -> Void) {
    if let name { begin(name) }
    append(raw: "[")
    body(&self)
    append(raw: "]")
  }

  /// Appends a comma, unless an object, a list or a line begins.
  package mutating func separate() {
    switch bytes.last {
    case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "\n"): break
    default: bytes.append(UInt8(ascii: ","))
    }
  }

  /// Appends a text as an element of a list.
  package mutating func element(_ text: ByteString) {
    separate()
    append(text)
  }

  /// Appends the name of a field, after a comma unless its object begins with it. It needs no escapes.
  package mutating func begin(_ name: ByteString) {
    separate()
    bytes.append(UInt8(ascii: "\""))
    bytes += name.bytes
    bytes.append(UInt8(ascii: "\""))
    bytes.append(UInt8(ascii: ":"))
  }

  /// Appends a field, or nothing for nil.
  package mutating func field(_ name: ByteString, _ text: ByteString?) {
    guard let text else { return }
    begin(name)
    append(text)
  }

  package mutating func field(_ name: ByteString, _ number: (some BinaryInteger)?) {
    guard let number else { return }
    begin(name)
    append(raw: "\(number)")
  }

  package mutating func field(_ name: ByteString, _ number: Double) {
    begin(name)
    append(number)
  }

  package mutating func field(_ name: ByteString, _ flag: Bool) {
    begin(name)
    append(raw: flag ? "true" : "false")
  }

  private mutating func append(_ write: (UnsafeMutablePointer<CChar>) -> Int) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { buffer in
      guard let to = buffer.baseAddress else { return }
      let count = write(to)
      for index in 0..<count { bytes.append(UInt8(bitPattern: buffer[index])) }
    }
  }
}
