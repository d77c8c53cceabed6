internal import CFlowLua
internal import CLua
internal import FlowSystem

extension LuaVM {
  // MARK: Values

  /// Appends a value to a buffer. Tables are copied, cycles and sharing kept, without running
  /// metamethods; their metatables are written by the name of the module that holds them, or as the one of errors.
  /// Throws an `EncodeError` that names a value that can't travel, such as a table with any other metatable; the
  /// buffer is then unchanged.
  package func encode(_ value: LuaValue, into buffer: EncodedBuffer) throws {
    try enter()
    try check(withRawValues(of: self, [value]) { flowlua_push_protected(state, $0) })
    defer { flowlua_pop(running, 1) }
    try encode(in: running, at: -1, into: buffer)
  }

  /// Appends the value at an index of a stack.
  func encode(in lua: OpaquePointer, at index: Int32, into buffer: EncodedBuffer) throws {
    var error = flowlua_encode_error()
    let status = flowlua_encode(state, lua, index, &buffer.raw, &error)
    if status != LUA_OK { try finishEncoding(status, &error, isCode: false) }
  }

  /// The value at an offset of a buffer, and the offset of the next value. Throws a `LuaError` of
  /// code `argument` for bytes that weren't encoded by this class.
  package func decode(
    _ buffer: EncodedBuffer, at offset: Int = 0
  ) throws -> (value: LuaValue, end: Int) {
    try enter()
    let raw = buffer.raw
    guard let bytes = raw.bytes, offset >= 0, offset <= raw.count else {
      throw LuaError(.argument, "there is no encoded value at byte \(offset)")
    }
    var used = 0
    var problem: UnsafePointer<CChar>?
    let lua = running
    let status = flowlua_decode(
      state, lua, bytes + offset, raw.count - offset, 1, &used, &problem)
    try finishDecoding(status, problem, at: offset + used)
    return (try popValue(lua), offset + used)
  }

  func finishEncoding(
    _ status: Int32, _ error: inout flowlua_encode_error, isCode: Bool
  ) throws {
    secrets?.releaseValues()
    if status == Int32(FLOWLUA_NOT_ENCODED) { throw EncodeError(&error, isCode: isCode) }
    try check(status)
  }

  func finishDecoding(
    _ status: Int32, _ problem: UnsafePointer<CChar>?, at offset: Int
  ) throws {
    if status == Int32(FLOWLUA_MALFORMED) {
      let reason = problem.map { String(cString: $0) } ?? ""
      throw LuaError(.argument, "can't decode a value: \(reason) (at byte \(offset))")
    }
    try check(status)
  }

  // MARK: Secrets

  /// Sets the type of objects that travel as a mark around a value, and arrive as objects again.
  ///
  /// - Parameters:
  ///   - type: The type of such objects.
  ///   - unwrap: The value inside; nil if it can't travel.
  ///   - wrap: An object with a value inside; nil if there is none.
  package func setSecretType<Object: AnyObject>(
    _ type: LuaObjectType<Object>, unwrap: @escaping (Object) -> LuaValue?,
    wrap: @escaping (LuaValue) -> Object?
  ) {
    checkOwner()
    secrets = SecretCoding(
      type: type.id,
      unwrap: { pointer in
        unwrap(Unmanaged<Object>.fromOpaque(pointer).takeUnretainedValue())
      },
      wrap: { value in wrap(value).map { Unmanaged.passRetained($0).toOpaque() } })
    flowlua_set_secret_type(state, type.id)
  }

  func takeOut(
    of object: UnsafeMutableRawPointer, into raw: inout flowlua_value
  ) -> Bool {
    guard let secrets, let value = secrets.unwrap(object) else { return false }
    if case .string(let string) = value {
      let count = string.bytes.count
      guard let bytes = flowlua_resize_own(nil, max(count, 1)) else { return false }
      UnsafeMutableRawBufferPointer(start: bytes, count: count).copyBytes(from: string.bytes)
      raw = flowlua_value(
        kind: Int32(FLOWLUA_STRING), reference: 1, integer: Int64(count), number: 0,
        pointer: UnsafeRawPointer(bytes))
      return true
    }
    if case .reference(let reference) = value {
      guard reference.vm === self else { return false }
      secrets.held.append(reference)
    }
    guard let plain = flowlua_value(value, of: self) else { return false }
    raw = plain
    return true
  }

  func mark(_ raw: inout flowlua_value) -> Bool {
    let value: LuaValue =
      switch Int(raw.kind) {
      case FLOWLUA_STRING:
        .string(
          copiedText(UnsafeRawBufferPointer(start: raw.pointer, count: Int(raw.integer))))
      case FLOWLUA_REFERENCE:
        .reference(
          LuaReference(
            vm: self, id: raw.reference,
            kind: LuaKind(rawValue: Int32(truncatingIfNeeded: raw.integer)) ?? .none))
      default: raw.scalar
      }
    guard let secrets, let object = secrets.wrap(value) else { return false }
    raw = flowlua_value(
      kind: Int32(FLOWLUA_OBJECT), reference: secrets.type, integer: 0, number: 0,
      pointer: UnsafeRawPointer(object))
    return true
  }
}

/// Lua values as bytes, on their way to another state: any number of them, one after another.
///
/// Each has the form of the engine's `PlainValueCodec`. One thread at a time fills and reads it.
/// Once emptied, it keeps its memory for the next batch.
// Unchecked: it has only bytes, and code that passes it to another thread releases it.
package final class EncodedBuffer: @unchecked Sendable {
  var raw = flowlua_buffer()

  /// An empty buffer.
  package init() {}

  /// A buffer with these bytes.
  package convenience init(_ bytes: [UInt8]) {
    self.init()
    let done = bytes.withUnsafeBytes {
      flowlua_buffer_append(&raw, $0.baseAddress, $0.count)
    }
    if !done { misuse("no memory for \(bytes.count) bytes") }
  }

  deinit { flowlua_buffer_free(&raw) }

  /// The number of bytes: the offset of the next value.
  package var count: Int { raw.count }

  /// Whether a secret was encoded into it, at any depth of a value; false for bytes of another process.
  package var hasSecrets: Bool { raw.has_secrets }

  /// A copy of its bytes.
  package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// The bytes, valid during the call.
  package func withUnsafeBytes<Result>(
    _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    try body(UnsafeRawBufferPointer(start: raw.bytes, count: raw.count))
  }

  /// Removes bytes, at the end or all of them; the memory stays.
  package func removeAll(from offset: Int = 0) {
    raw.count = min(raw.count, max(offset, 0))
    if raw.count == 0 { raw.has_secrets = false }
  }
}

/// A value that can't travel to another state, and where it was found.
package struct EncodeError: Error, Sendable, CustomStringConvertible {
  /// The basic type of the value.
  package let kind: LuaKind
  /// Its name in messages: `__name` of its metatable, `file`, or the basic type's name.
  package let typeName: String
  /// The path to it from the encoded value, or from the upvalue: `[3].handle`; empty for the value
  /// itself.
  package let path: String
  /// Whether it is a key of the table at `path`.
  package let isKey: Bool
  /// For code: the upvalue in which it was found; nil for a value.
  package let upvalue: String?
  /// For code: where the function with that upvalue was defined, `file:line`.
  package let function: String?

  /// Whether it was found in a function, not in a value.
  package let isCode: Bool

  init(_ raw: inout flowlua_encode_error, isCode: Bool) {
    self.isCode = isCode
    kind = LuaKind(rawValue: raw.type) ?? .none
    typeName = text(&raw.type_name)
    path = text(&raw.path)
    isKey = raw.is_key
    let upvalue = text(&raw.upvalue)
    let function = text(&raw.function)
    self.upvalue = upvalue.isEmpty ? nil : upvalue
    self.function = function.isEmpty ? nil : function
  }

  /// Its description with an article, and the reason where the type doesn't make it obvious.
  package var noun: String { thing + reason }

  private var reason: String { kind == .table ? " whose metatable no module holds" : "" }

  private var thing: String {
    switch kind {
    case .function: isCode ? "a C function" : "a function"
    case .thread: "a coroutine"
    case .lightUserdata: "a light userdata"
    case .userdata: typeName == "userdata" ? "a userdata" : "a userdata (\(typeName))"
    case .table: typeName == "table" ? "a table" : "a table (\(typeName))"
    default: "a \(typeName)"
    }
  }

  /// The advice for the script's author.
  package var advice: String {
    switch kind {
    case .function: "require its module inside the function"
    case .userdata where typeName == "file": "open it inside the function"
    case .userdata where typeName == "limit": "write flow.limit(name) inside the function"
    case .table: "keep the metatable in a module, or make it inside the function"
    default: "make it inside the function"
    }
  }

  /// The message, with the name of the encoded value: `images[3].handle is a function: …`.
  package func description(of root: String) -> String {
    guard let upvalue, let function else {
      let place = root + path
      if isCode { return "\(noun) can't go to a worker; \(advice)" }
      if place.isEmpty { return "\(noun) can't go to or from a worker" }
      return "\(isKey ? "a key of " : "")\(place) is \(noun): it can't go to or from a worker"
    }
    let owner = "upvalue '\(upvalue)' of function at \(function)"
    let what =
      path.isEmpty && !isKey
      ? "is \(noun)"
      : "has \(thing) \(isKey ? "as a key of" : "at") \(upvalue)\(path)\(reason)"
    return "\(owner) \(what): it can't go to a worker; \(advice)"
  }

  /// The message.
  package var description: String { description(of: "") }
}

/// An upvalue whose value has changed since its function was packed.
package struct UpvalueChange: Sendable, Equatable {
  /// Its name; `?` without debug information.
  package let upvalue: String
  /// Where its function was defined, `file:line`.
  package let function: String

  init(_ raw: inout flowlua_encode_error) {
    upvalue = text(&raw.upvalue)
    function = text(&raw.function)
  }
}

/// The text in an array of C characters.
private func text<Characters>(_ characters: inout Characters) -> String {
  withUnsafeBytes(of: &characters) { bytes in
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)  // swift-format-ignore
  }
}

extension LuaCall {
  /// Appends an argument to a buffer, as `LuaVM.encode`.
  package func encode(_ index: Int, into buffer: EncodedBuffer) throws {
    guard index >= 1, index <= count else { return try vm.encode(.nil, into: buffer) }
    try vm.encode(in: lua, at: Int32(index), into: buffer)
  }
}
